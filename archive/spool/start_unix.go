//go:build unix

package spool

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// detach runs its arguments in the background, as a process that is nobody's
// child once the shell has ended.
const detach = `"$0" "$@" </dev/null >/dev/null 2>&1 &`

// workerNice is how far the worker stands back behind the user's programs.
const workerNice = 10

func start(binary string, args, env []string, turn *os.File) error {
	// Whether the worker can be run at all is not seen through a shell.
	if fi, err := os.Stat(binary); err != nil {
		return err
	} else if !fi.Mode().IsRegular() || fi.Mode().Perm()&0o111 == 0 {
		return &fs.PathError{Op: "start", Path: binary, Err: fs.ErrPermission}
	}
	closeOnExec()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	attr := &syscall.ProcAttr{
		Dir:   "/",
		Env:   env,
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd()},
		// A session of its own: no terminal, and no process group whose
		// signals would reach the worker.
		Sys: &syscall.SysProcAttr{Setsid: true},
	}
	if turn != nil {
		attr.Files = append(attr.Files, turn.Fd()) // turnDescriptor
	}
	shell := "/bin/sh"
	if _, err := os.Stat(shell); err != nil {
		if shell, err = exec.LookPath("sh"); err != nil {
			return forkNice(binary, append([]string{binary}, args...), attr)
		}
	}
	return forkNice(shell, append([]string{"sh", "-c", detach, binary}, args...), attr)
}

// forkNice starts a program that leads a process group of its own, and lowers
// the group's priority. It does not wait: the program has been executed when
// this returns, its way from there is time that a hook saves by ending now.
// (Nor does it use os.StartProcess, which first tries out how it would wait.)
func forkNice(path string, argv []string, attr *syscall.ProcAttr) error {
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return err
	}
	// The group, because the shell may have its child already.
	switch err := syscall.Setpriority(syscall.PRIO_PGRP, pid, workerNice); err {
	case nil,
		syscall.ESRCH,                 // all of it has ended
		syscall.EPERM, syscall.EACCES: // it stands back further than that, as we do
		return nil
	default:
		return fmt.Errorf("lower the worker's priority: %w", err)
	}
}

// closeOnExec keeps descriptors that this process was started with, beside the
// standard ones, from being handed on: the client would wait for a pipe of its
// own that the worker holds open. Ours are closed on exec anyhow.
func closeOnExec() {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return // there is no way to know them
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
