//go:build unix && !linux && !solaris && !aix

package spool

import "syscall"

// LowerPriority makes this process step back behind others, as far as the
// system lets it.
func LowerPriority() error {
	return syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness)
}
