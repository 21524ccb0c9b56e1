// Package handoff is what happens in a hook: an event of the client becomes a
// session in a spool, and a worker is started that archives it.
//
// It opens no store and links none, so that a hook is small, starts fast, and
// cannot be held up by a disk that is not there.
package handoff

import (
	"io"
	"path/filepath"
	"time"

	"github.com/session-keeper/session-keeper/hooklib"
	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/logfile"
	"github.com/session-keeper/session-keeper/transcript"
)

const (
	info = hooklib.Info
	warn = hooklib.Warn
)

// Handoff leaves sessions for the worker, under one set of settings. Its
// methods are for one goroutine at a time.
type Handoff struct {
	Settings *config.Settings
	Log      hooklib.Logger
	Now      func() time.Time
	Worker   string // the worker's program; "" for the one beside this program
	NoWorker bool   // start none
}

// New returns a Handoff. A nil log drops everything.
func New(s *config.Settings, log hooklib.Logger) *Handoff {
	if log == nil {
		log = hooklib.Discard
	}
	return &Handoff{Settings: s, Log: log, Now: time.Now}
}

// Locator returns what finds sessions under the settings.
func (h *Handoff) Locator() *transcript.Locator {
	return &transcript.Locator{ConfigDirs: h.Settings.ClientDirs, ProjectDirName: h.Settings.ProjectDirName}
}

// LogDir returns where the log files are.
func LogDir(state string) string { return filepath.Join(state, "log") }

// OpenLog returns the log of a program, in the place that the environment
// decides. Nothing is created before the first line.
func OpenLog(program string, stderr io.Writer) hooklib.Logger {
	dir := ""
	if paths, err := config.PathsFor(config.SystemEnv()); err == nil {
		dir = LogDir(paths.State)
	}
	return logfile.New(dir, program, stderr, time.Now)
}
