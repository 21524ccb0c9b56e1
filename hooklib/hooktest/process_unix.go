//go:build unix

package hooktest

import (
	"os"
	"syscall"
	"time"
)

// ownSession makes a process the leader of a session and a group of its own,
// without a terminal, as the client's hooks are (observed on 2.1.332).
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// stream makes a standard stream: our end, and the hook's. Output says that the
// hook writes to it.
func stream(output, pipe bool) (ours, theirs *os.File, err error) {
	if pipe {
		r, w, err := os.Pipe()
		if output {
			return r, w, err
		}
		return w, r, err
	}
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	// Only in this mode does closing our end end a read of it.
	if err := syscall.SetNonblock(fds[0], true); err != nil {
		syscall.Close(fds[0])
		syscall.Close(fds[1])
		return nil, nil, os.NewSyscallError("set nonblock", err)
	}
	return os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket"), nil
}

// endTree sends SIGTERM, or SIGKILL, to a process, to its group, and to all
// below it, whatever their groups, as the client does.
func endTree(pid int, kill bool) {
	signal := syscall.SIGTERM
	if kill {
		signal = syscall.SIGKILL
	}
	below := descendants(pid)
	// An error says that there is none of them left.
	_ = syscall.Kill(-pid, signal)
	for _, p := range below {
		_ = syscall.Kill(p, signal)
	}
}

// descendants returns the processes below a process. A tree that grows
// meanwhile may have more.
func descendants(pid int) (below []int) {
	children := map[int][]int{}
	for child, parent := range parents() {
		children[parent] = append(children[parent], child)
	}
	for queue := children[pid]; len(queue) > 0; queue = queue[1:] {
		below = append(below, queue[0])
		queue = append(queue, children[queue[0]]...)
	}
	return below
}

// endMarked kills all processes that bear the marker. One that starts another
// meanwhile is met again, and so is one that was just becoming another program
// and had nothing to show: it looks until twice there is none.
func endMarked(marker string) {
	for round, quiet := 0, 0; quiet < 2 && round < 100; round++ {
		pids := marked(marker)
		for _, p := range pids {
			_ = syscall.Kill(p, syscall.SIGKILL) // it may have ended
		}
		quiet++
		if len(pids) > 0 {
			quiet = 0
		}
		time.Sleep(2 * time.Millisecond)
	}
}
