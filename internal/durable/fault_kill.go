//go:build killpoints && unix

package durable

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
)

// The environment of a build with kill points, for the tests that kill a
// program at each durable operation in turn.
const (
	// killAtEnv is the number of the operation, from 1, at which the process
	// kills itself with SIGKILL.
	killAtEnv = "SESSION_KEEPER_KILL_AT"
	// killSideEnv is "before" or "after": on which side of the operation.
	killSideEnv = "SESSION_KEEPER_KILL_SIDE"
	// killTraceEnv names a file to which a line is appended before and after
	// each operation: process id, number, side, operation, path, separated by
	// tabs. The last line of a killed process is the moment of its death. A
	// worker that it started writes to the same file.
	killTraceEnv = "SESSION_KEEPER_KILL_TRACE"
)

var (
	killCount atomic.Int64
	killAt, _ = strconv.ParseInt(os.Getenv(killAtEnv), 10, 64)
	killSide  = os.Getenv(killSideEnv)
	killTrace = os.Getenv(killTraceEnv)
)

func killpoint(op, path string, after bool) {
	n := killCount.Load()
	side := "after"
	if !after {
		n = killCount.Add(1)
		side = "before"
	}
	if killTrace != "" {
		f, err := os.OpenFile(killTrace, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			panic(err)
		}
		if _, err := fmt.Fprintf(f, "%d\t%d\t%s\t%s\t%s\n", os.Getpid(), n, side, op, path); err != nil {
			panic(err)
		}
		if err := f.Close(); err != nil {
			panic(err)
		}
	}
	if n == killAt && side == killSide {
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			panic(err)
		}
		select {} // the signal is on its way
	}
}
