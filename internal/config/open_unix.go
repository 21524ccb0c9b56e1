//go:build unix

package config

import (
	"os"
	"syscall"
)

// openNonBlocking opens a file without waiting for the other end of a pipe.
func openNonBlocking(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}
