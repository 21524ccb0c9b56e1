//go:build unix

package logfile

import "syscall"

// openFlags keep a named pipe in a log's place from holding a hook.
const openFlags = syscall.O_NONBLOCK
