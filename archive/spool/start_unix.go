//go:build unix

package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// detach runs its arguments in the background, as a process that is nobody's
// child once the shell has ended.
const detach = `if command -v nice >/dev/null; then set -- nice -n 10 "$0" "$@"; else set -- "$0" "$@"; fi
"$@" </dev/null >/dev/null 2>&1 &`

func start(binary string, args, env []string) error {
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
	attr := &os.ProcAttr{
		Dir:   "/",
		Env:   env,
		Files: []*os.File{null, null, null},
		// A session of its own: no terminal, and no process group whose
		// signals would reach the worker.
		Sys: &syscall.SysProcAttr{Setsid: true},
	}
	shell := "/bin/sh"
	if _, err := os.Stat(shell); err != nil {
		if shell, err = exec.LookPath("sh"); err != nil {
			p, err := os.StartProcess(binary, append([]string{binary}, args...), attr)
			if err != nil {
				return err
			}
			return p.Release()
		}
	}
	p, err := os.StartProcess(shell, append([]string{"sh", "-c", detach, binary}, args...), attr)
	if err != nil {
		return err
	}
	state, err := p.Wait()
	if err != nil {
		return err
	}
	if !state.Success() {
		return fmt.Errorf("start %s: the shell says %w", binary, errors.New(state.String()))
	}
	return nil
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
