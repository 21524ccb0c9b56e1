//go:build !unix

package config

import "os"

func openNonBlocking(path string) (*os.File, error) { return os.Open(path) }
