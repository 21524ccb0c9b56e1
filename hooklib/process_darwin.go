package hooklib

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// processHas tells whether the environment with which a process was started
// has a variable, given with its equals sign, and whether that can be told.
// What the system gives is the count and the arguments, then the environment;
// an argument of that form is taken for a variable.
func processHas(pid int, variable string) (has, known bool) {
	args, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return false, false
	}
	return bytes.Contains(args, []byte("\x00"+variable)), true
}
