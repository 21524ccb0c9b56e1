// Package keeper joins settings, off switches, transcripts, spool and store.
//
// It is what the worker and the command share: what hooks handed off becomes
// generations of the archive, and a person may archive one session or all of
// them. It holds no state of its own.
package keeper

import (
	"path/filepath"

	"github.com/session-keeper/session-keeper/hooklib"
	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/handoff"
	"github.com/session-keeper/session-keeper/internal/optout"
)

const (
	info    = hooklib.Info
	warn    = hooklib.Warn
	failure = hooklib.Error
)

// Keeper does the work under one set of settings. Its methods are for one
// goroutine at a time.
type Keeper struct {
	*handoff.Handoff
}

// New returns a Keeper. A nil log drops everything.
func New(s *config.Settings, log hooklib.Logger) *Keeper {
	return &Keeper{handoff.New(s, log)}
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

// IndexDir returns where the freshness indexes of stores live.
func (k *Keeper) IndexDir() string { return filepath.Join(k.Settings.Paths.State, "index") }
