package spool

import (
	"os"
	"strconv"
	"syscall"
)

// LowerPriority makes this process step back behind others, as far as the
// system lets it.
func LowerPriority() error {
	// On Linux each thread has a priority of its own, and the runtime has
	// started some. New ones take over that of the thread which starts them.
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness)
	}
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, tid, niceness); err != nil && err != syscall.ESRCH {
			return err
		}
	}
	return nil
}
