package hooklib

import "syscall"

func sysSelect(n int, read *syscall.FdSet, timeout *syscall.Timeval) error {
	_, err := syscall.Select(n, read, nil, nil, timeout)
	return err
}
