//go:build unix && !aix

package durable

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// FS-06: a file system that refuses locks, in whatever words, or has none left,
// does not keep anybody from locking: a file stands in, for its user alone.
// What else goes wrong is told, and at once.
func TestLockWhereTheSystemHasNone(t *testing.T) {
	defer func(f func(int, int) error) { flock = f }(flock)
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	for _, refusal := range []error{syscall.ENOLCK, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS} {
		flock = func(int, int) error { return refusal }
		path := filepath.Join(t.TempDir(), "lock")
		unlock, err := TryLock(path, Shared)
		if err != nil {
			t.Errorf("%v: %v", refusal, err)
			continue
		}
		for _, name := range []string{path, path + ".held"} {
			if fi, err := os.Stat(name); err != nil || fi.Mode().Perm() != 0o600 {
				t.Errorf("%v: %s: %v, %v", refusal, name, fi, err)
			}
		}
		if _, err := TryLock(path, Exclusive); !errors.Is(err, ErrLocked) {
			t.Errorf("%v: taken twice: %v", refusal, err)
		}
		if err := unlock(); err != nil {
			t.Errorf("%v: %v", refusal, err)
		}
		unlock, err = TryLock(path, Exclusive)
		if err != nil {
			t.Errorf("%v: after it was given back: %v", refusal, err)
			continue
		}
		if err := unlock(); err != nil {
			t.Errorf("%v: %v", refusal, err)
		}
		if got := names(t, filepath.Dir(path)); len(got) != 1 {
			t.Errorf("%v: left over: %q", refusal, got)
		}
	}
	calls := 0
	flock = func(int, int) error { calls++; return syscall.EIO }
	if _, err := Lock(t.Context(), filepath.Join(t.TempDir(), "lock"), Exclusive); !errors.Is(err, syscall.EIO) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
