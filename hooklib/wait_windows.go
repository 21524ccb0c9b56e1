package hooklib

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// pollInterval is how often a pipe is looked at: Windows cannot wait for one.
const pollInterval = 2 * time.Millisecond

var peekNamedPipe = syscall.NewLazyDLL("kernel32.dll").NewProc("PeekNamedPipe")

// waitReadable waits until a read of f does not block, at most until deadline,
// and tells whether that is so. What is no pipe counts as readable.
func waitReadable(f *os.File, deadline time.Time) (bool, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	for {
		var available uint32
		isPipe := false
		err := conn.Control(func(fd uintptr) {
			ok, _, _ := peekNamedPipe.Call(fd, 0, 0, 0, uintptr(unsafe.Pointer(&available)), 0)
			isPipe = ok != 0
		})
		if err != nil {
			return false, err
		}
		// A pipe whose other end is gone cannot be peeked at either: its read
		// returns the end at once.
		if !isPipe || available > 0 {
			return true, nil
		}
		if !time.Now().Before(deadline) {
			return false, nil
		}
		time.Sleep(pollInterval)
	}
}
