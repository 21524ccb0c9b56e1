package spool

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// No turn is ever handed on: on Windows a lock belongs to its process.
func start(binary string, args, env []string, _ *os.File) error {
	const flags = windows.CREATE_NO_WINDOW | windows.CREATE_NEW_PROCESS_GROUP | windows.BELOW_NORMAL_PRIORITY_CLASS
	var err error
	// A job object may forbid its processes to leave it. Then the worker runs
	// inside it, and the next hook finishes what it may not get to.
	for _, leave := range []uint32{windows.CREATE_BREAKAWAY_FROM_JOB, 0} {
		cmd := exec.Command(binary, args...)
		cmd.Env = env
		cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: flags | leave, HideWindow: true}
		if err = cmd.Start(); err == nil {
			return cmd.Process.Release()
		}
	}
	return err
}
