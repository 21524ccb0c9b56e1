//go:build linux || darwin

package hooklib

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// waitReadable waits until a read of f does not block, at most until deadline,
// and tells whether that is so. Select is used rather than poll, which does
// not serve every device on macOS (documented there).
func waitReadable(f *os.File, deadline time.Time) (bool, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	ready := false
	var waitErr error
	err = conn.Control(func(fd uintptr) {
		ready, waitErr = selectReadable(int(fd), deadline)
	})
	if err != nil {
		return false, err
	}
	return ready, waitErr
}

func selectReadable(fd int, deadline time.Time) (bool, error) {
	var set syscall.FdSet
	word := 8 * int(unsafe.Sizeof(set.Bits[0])) // bits a word: 32 or 64, by platform
	if fd >= word*len(set.Bits) {
		return true, nil // cannot be waited for; standard input is 0
	}
	for {
		left := time.Until(deadline)
		if left < 0 {
			left = 0
		}
		set = syscall.FdSet{}
		set.Bits[fd/word] |= 1 << (fd % word)
		timeout := syscall.NsecToTimeval(left.Nanoseconds())
		err := sysSelect(fd+1, &set, &timeout)
		switch {
		case errors.Is(err, syscall.EINTR): // any signal; the runtime uses some itself
			continue
		case err != nil:
			return false, os.NewSyscallError("select", err)
		}
		return set.Bits[fd/word]&(1<<(fd%word)) != 0, nil
	}
}
