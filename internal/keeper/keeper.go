// Package keeper joins settings, off switches, transcripts, spool and store.
//
// It is what the hooks and the command share: an event of the client becomes a
// hand-off, a worker turns hand-offs into generations of the archive, and a
// person may archive one session or all of them. It holds no state of its own.
package keeper

import (
	"io"
	"path/filepath"
	"time"

	"github.com/session-keeper/session-keeper/hooklib"
	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/logfile"
	"github.com/session-keeper/session-keeper/internal/optout"
	"github.com/session-keeper/session-keeper/transcript"
)

// Keeper does the work under one set of settings. Its methods are for one
// goroutine at a time.
type Keeper struct {
	Settings *config.Settings
	Log      hooklib.Logger
	Now      func() time.Time
	Binary   string // the program that runs as worker; "" to start none
}

// New returns a Keeper. A nil log drops everything.
func New(s *config.Settings, log hooklib.Logger) *Keeper {
	if log == nil {
		log = hooklib.Discard
	}
	return &Keeper{Settings: s, Log: log, Now: time.Now}
}

// SkippedError says that a session is kept out of the archive.
type SkippedError struct {
	SessionID string // empty if the error is about all sessions
	Decision  optout.Decision
}

func (e *SkippedError) Error() string {
	if e.SessionID == "" {
		return "archiving is off: " + e.Decision.Detail
	}
	return "session " + e.SessionID + " is kept out of the archive: " + e.Decision.Detail
}

// Locator returns what finds sessions under the settings.
func (k *Keeper) Locator() *transcript.Locator {
	return &transcript.Locator{ConfigDirs: k.Settings.ClientDirs, ProjectDirName: k.Settings.ProjectDirName}
}

// LogDir returns where the log files are.
func LogDir(state string) string { return filepath.Join(state, "log") }

// IndexDir returns where the freshness indexes of stores live.
func (k *Keeper) IndexDir() string { return filepath.Join(k.Settings.Paths.State, "index") }

// OpenLog returns the log of a program, in the place that the environment
// decides. Nothing is created before the first line.
func OpenLog(program string, stderr io.Writer) hooklib.Logger {
	dir := ""
	if paths, err := config.PathsFor(config.SystemEnv()); err == nil {
		dir = LogDir(paths.State)
	}
	return logfile.New(dir, program, stderr, time.Now)
}
