//go:build unix

package hooklib

import "syscall"

// noCoreDump keeps an abort from leaving a file with the memory of this
// process in the session's directory. Where it fails a core may be written.
func noCoreDump() {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &limit); err != nil || limit.Cur == 0 {
		return
	}
	limit.Cur = 0
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &limit) // lowering needs no right
}
