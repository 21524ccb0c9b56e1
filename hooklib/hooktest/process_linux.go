package hooktest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// parents returns the parent of each process.
func parents() map[int]int {
	all := map[int]int{}
	eachProcess(func(pid int, dir string) {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			return // it has ended
		}
		// The name, in brackets, may hold anything.
		_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
		if fields := strings.Fields(rest); len(fields) > 1 {
			if parent, err := strconv.Atoi(fields[1]); err == nil {
				all[pid] = parent
			}
		}
	})
	return all
}

// marked returns the processes that were started with a variable.
func marked(marker string) (pids []int) {
	eachProcess(func(pid int, dir string) {
		// Those of others cannot be read, and are not ours.
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err == nil && bytes.Contains(env, []byte(marker)) {
			pids = append(pids, pid)
		}
	})
	return pids
}

func eachProcess(do func(pid int, dir string)) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // fails for a bad pattern only
	for _, dir := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			do(pid, dir)
		}
	}
}
