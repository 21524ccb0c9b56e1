// Package keeper joins settings, off switches, transcripts, spool and store.
//
// It is what the hooks and the command share: an event of the client becomes a
// hand-off, a worker turns hand-offs into generations of the archive, and a
// person may archive one session or all of them. It holds no state of its own.
package keeper

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/hooklib"
	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/optout"
	"github.com/session-keeper/session-keeper/transcript"
)

// Keeper does the work under one set of settings.
type Keeper struct {
	Settings *config.Settings
	Log      hooklib.Logger
	Now      func() time.Time
	Binary   string // the program that runs as worker; "" for none
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
	SessionID string
	Decision  optout.Decision
}

func (e *SkippedError) Error() string { return "session is kept out: " + e.Decision.Detail }

// Locator returns what finds sessions under the settings.
func (k *Keeper) Locator() *transcript.Locator {
	return &transcript.Locator{ConfigDirs: k.Settings.ClientDirs, ProjectDirName: k.Settings.ProjectDirName}
}

// LogDir returns where the log files are.
func LogDir(state string) string { return filepath.Join(state, "log") }

// IndexDir returns where the freshness index of the settings' store lives.
func (k *Keeper) IndexDir() string { return "" }

// Spools returns every spool that may hold something, existing or not.
func (k *Keeper) Spools() ([]string, error) { return nil, errNotBuilt }

// ArchiveOptions steer ArchiveSession.
type ArchiveOptions struct {
	Reason   archive.Reason  // why; archive.Manual lifts a mark that keeps the session out
	Progress func(n int64)   // source bytes just read
	Events   []archive.Event // what led to it
	Store    *archive.Store  // nil to open or make the settings' store
}

// ArchiveSession archives one session as it is now. A *SkippedError says that
// the session stays out.
func (k *Keeper) ArchiveSession(ctx context.Context, b transcript.Bundle, o ArchiveOptions) (archive.Result, error) {
	return archive.Result{}, errNotBuilt
}

// AllOptions steer ArchiveAll.
type AllOptions struct {
	// Progress is called before and after each session.
	Progress func(AllProgress)
	Bytes    func(n int64) // source bytes just read
}

// AllProgress is how far ArchiveAll is.
type AllProgress struct {
	Done, Total           int   // sessions
	DoneBytes, TotalBytes int64 // of transcripts
	Session               string
}

// Outcome is what became of one session in ArchiveAll.
type Outcome struct {
	SessionID string
	Bundle    transcript.Bundle
	Result    archive.Result
	Skipped   *optout.Decision // why it was left out
	Err       error
}

// Summary is what ArchiveAll did.
type Summary struct {
	Outcomes    []Outcome
	Archived    int // sessions with a new generation
	Unchanged   int
	Skipped     int
	Failed      int
	NewBytes    int64
	StoredBytes int64
	Unreadable  []transcript.Skipped // places where no session could be looked for
}

// ArchiveAll archives every session on this machine that is not archived as it
// is, those first that the client's clean-up is nearest to delete. It can be
// stopped at any moment and goes on where it was. One bad session stops
// nothing; the error is about the whole: no store, paused, interrupted.
func (k *Keeper) ArchiveAll(ctx context.Context, o AllOptions) (Summary, error) {
	return Summary{}, errNotBuilt
}

// ForgetReport says what Forget removed.
type ForgetReport struct {
	Store    archive.ForgetReport
	Spooled  int // jobs and pins
	LogLines int
}

// Forget removes every trace of a session that is ours: store, spools, index,
// marks and log lines. It leaves a tombstone that hooks and catch-up obey, and
// does not touch the client's own files.
func (k *Keeper) Forget(ctx context.Context, session string) (ForgetReport, error) {
	return ForgetReport{}, errNotBuilt
}

// StoreState is what the last worker found out about a store.
type StoreState struct {
	Root   string    `json:"root"`
	Local  bool      `json:"local"`           // on a disk of this machine
	Kind   string    `json:"kind"`            // of file system
	Opened time.Time `json:"opened"`          // when it was last opened well
	Error  string    `json:"error,omitempty"` // what went wrong since
	Failed time.Time `json:"failed,omitzero"`
}

// StoreState returns what is remembered of the settings' store; ok is false if
// no worker has opened it yet.
func (k *Keeper) StoreState() (state StoreState, ok bool, err error) {
	return StoreState{}, false, errNotBuilt
}

// HandleEvent is the handler of session-end-archive.
func HandleEvent(ctx context.Context, c *hooklib.Call) error { return errNotBuilt }

// RunWorker drains a spool, and then the others that are known.
func (k *Keeper) RunWorker(ctx context.Context, spool string) error { return errNotBuilt }

var errNotBuilt = errors.New("not built yet")
