package transcript

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Process is a client as its file in <config>/sessions tells. The file can be
// stale, and is not rewritten when another session is resumed in the same process:
// it is a hint that a session runs, never a proof that it does not.
type Process struct {
	PID       int
	SessionID string
	Cwd       string
	Status    string
	Name      string
}

// Processes reads <configDir>/sessions/<pid>.json and returns those for whose number
// alive holds. Files that cannot be made out are skipped with a note.
func Processes(configDir string, alive func(pid int) bool) ([]Process, []Skipped) {
	dir := filepath.Join(configDir, "sessions")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, noteUnlessAbsent(nil, dir, err)
	}
	var all []Process
	var skipped []Skipped
	for _, e := range entries {
		number, ok := strings.CutSuffix(e.Name(), ".json")
		pid, err := strconv.Atoi(number)
		if !ok || err != nil || pid <= 0 {
			continue
		}
		path := filepath.Join(dir, e.Name())
		text, err := readSmall(path, maxSmall)
		if err != nil {
			skipped = noteUnlessAbsent(skipped, path, err)
			continue
		}
		v := Value{text}
		p := Process{
			PID: pid, SessionID: v.Member("sessionId").String(), Cwd: v.Member("cwd").String(),
			Status: v.Member("status").String(), Name: v.Member("name").String(),
		}
		if !ValidSessionID(p.SessionID) {
			skipped = append(skipped, Skipped{path, "names no session"})
			continue
		}
		if alive(pid) {
			all = append(all, p)
		}
	}
	return all, skipped
}
