package hooklib

import (
	"bytes"
	"os"
	"strconv"
)

// processHas tells whether the environment with which a process was started
// has a variable, given with its equals sign, and whether that can be told.
func processHas(pid int, variable string) (has, known bool) {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || len(env) == 0 { // empty: just starting, or ended
		return false, false
	}
	return bytes.HasPrefix(env, []byte(variable)) || bytes.Contains(env, []byte("\x00"+variable)), true
}
