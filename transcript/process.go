package transcript

import "time"

// A Process is a running client as its file under <config>/sessions tells.
type Process struct {
	PID       int
	SessionID string
	Cwd       string
	Status    string
	Started   time.Time
}

// Processes reads <configDir>/sessions and keeps those for which alive holds.
func Processes(configDir string, alive func(pid int) bool) ([]Process, []Skipped) { return nil, nil }
