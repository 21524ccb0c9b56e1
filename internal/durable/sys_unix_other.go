//go:build unix && !linux && !darwin

package durable

import (
	"os"
	"syscall"
	"time"
)

// The zero time never equals a recorded one, so nothing is skipped by it.
func changeTime(*syscall.Stat_t) time.Time { return time.Time{} }

func renameNoReplace(oldname, newname string) error { return syscall.ENOSYS }

// Clone is ErrNoClone: snapshots are made on Linux and macOS alone.
func Clone(src *os.File, path string) error { return ErrNoClone }

// Filesystem does not know the file systems of this system and says that path
// is not on a local one, which is the careful answer.
func Filesystem(path string) (kind string, local bool, err error) {
	return "unknown", false, nil
}

func processStart(int) string { return "" }
