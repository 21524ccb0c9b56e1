//go:build unix && !aix

package durable

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// locksInherit tells whether a child that inherits the file holds its lock.
const locksInherit = true

// flock is the system call; a test puts another in its place.
var flock = unix.Flock

func osLock(f *os.File, m LockMode) error {
	how := unix.LOCK_SH | unix.LOCK_NB
	if m == Exclusive {
		how = unix.LOCK_EX | unix.LOCK_NB
	}
	err := retry(func() error { return flock(int(f.Fd()), how) })
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return ErrLocked
	case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.EOPNOTSUPP),
		errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL):
		return errNoLocks
	}
	return err
}

func osUnlock(f *os.File) error {
	return retry(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) })
}

// alive tells whether a process of this machine still runs. One of another
// user (EPERM) does.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
