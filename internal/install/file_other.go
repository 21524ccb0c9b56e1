//go:build !unix

package install

import (
	"io/fs"
	"os"
)

func keepOwner(*os.File, fs.FileInfo) error { return nil }

func isMountError(error) bool { return false }
