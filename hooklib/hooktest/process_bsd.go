//go:build unix && !linux

package hooktest

import (
	"os/exec"
	"strconv"
	"strings"
)

// parents returns the parent of each process.
func parents() map[int]int {
	all := map[int]int{}
	out, err := exec.Command("ps", "-axo", "pid=,ppid=").Output()
	if err != nil {
		return nil // the group is left
	}
	for line := range strings.Lines(string(out)) {
		var numbers []int
		for _, field := range strings.Fields(line) {
			if n, err := strconv.Atoi(field); err == nil {
				numbers = append(numbers, n)
			}
		}
		if len(numbers) == 2 {
			all[numbers[0]] = numbers[1]
		}
	}
	return all
}

// marked returns the processes that were started with a variable, where ps
// shows the environment.
func marked(marker string) (pids []int) {
	out, err := exec.Command("ps", "-axEww", "-o", "pid=,command=").Output()
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, marker) {
			continue
		}
		if pid, err := strconv.Atoi(strings.Fields(line)[0]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
