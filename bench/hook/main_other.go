//go:build !unix

// Command hook measures session-keeper; it does so on Unix systems only.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "hook: error: this measurement runs on Unix systems only")
	os.Exit(1)
}
