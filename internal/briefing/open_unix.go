//go:build unix

package briefing

import "syscall"

// nonBlocking opens a pipe or a device without waiting for its other end.
const nonBlocking = syscall.O_NONBLOCK
