// Package spool hands sessions from hooks to a worker through a local folder.
//
// A hook has milliseconds and may be killed at any of them; storing a session
// takes seconds. So the hook only gives the transcript a second name in the
// spool (a hard link: the pin) and writes a small job beside it ([HandOff]).
// From then on the bytes outlive the client's clean-up and the death of any
// process. A worker that lives on ([Start]) drains the spool ([Drain]): it gives
// each session to a function that stores it and lets go of job and pin when that
// function has succeeded.
//
// Hand-offs take no lock and touch nothing outside the spool. They may be
// repeated, doubled, and run beside each other and beside a drainer. Every
// step can be the last one: a pin without a job counts as a job, a job without
// a pin is worked on from the live file.
//
// A pin shares the transcript's inode. It is opened for reading only and its
// mode is never changed. It survives the removal and the renaming of the
// transcript, not a rewriting in place; where the file system can, the drainer
// makes a true snapshot first thing.
//
// The package does not know what a transcript is, nor the store: roots, ids
// and families are names to it. Nothing of a session's content is written to
// a job.
package spool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"
	"path/filepath"
	"time"
)

// The folders and files of a spool. FORMAT.md describes them.
const (
	jobsDir     = "jobs"     // what is to be done
	pinsDir     = "pins"     // transcripts by a second name, and snapshots of them
	sideDir     = "side"     // side files by a second name
	parkedDir   = "parked"   // jobs that failed too often, or were refused
	asideDir    = "aside"    // what is not a job or pin of ours, kept for people
	storesDir   = "stores"   // which store's root a store key stands for
	settlingDir = "settling" // pins on their way out
	lockFile    = "lock"     // held by the one who drains
	turnFile    = "waiting"  // held by the worker that drains next
	workerFile  = "worker"   // held by a worker that had its turn, while it lives
	tryingFile  = "trying"   // what the drainer is at, to notice that it died of it
)

const (
	// maxFailures is how often a job is tried before it is parked.
	maxFailures = 5
	// parkedRetry is how long a parked job rests before it is tried again.
	parkedRetry = 24 * time.Hour
	// sideBudget is how long a hand-off may pin side files.
	sideBudget = 20 * time.Millisecond
	// tempAge is the age from which a temporary counts as left behind.
	tempAge = time.Hour
	// maxRounds is how often in one drain a file that changes meanwhile is
	// given to Process.
	maxRounds = 3
	// maxJobBytes bounds a job file. One event takes under 1 KiB, or as much
	// as its paths are long.
	maxJobBytes = 1 << 20
	// maxEvents bounds the events kept of jobs that were folded: the first
	// and the latest.
	maxEvents = 200
	// maxText bounds each text that a job takes over from an event or error.
	maxText = 4096
)

var (
	// ErrBusy says that somebody else drains the spool. They will see what is
	// in it; there is nothing to do.
	ErrBusy = errors.New("spool is being drained by another process")
	// ErrRefused, wrapped by an error of Process, says that the store does not
	// take this session now and that trying again soon is of no use. The job
	// is parked at once.
	ErrRefused = errors.New("refused by the store")
	// ErrDiscard, wrapped by an error of Process, says that the session must
	// not be kept. Its job and pins are removed unread.
	ErrDiscard = errors.New("session is not to be kept")
)

// StoreKey names a store's root in the spool: the first 16 hex digits of the
// SHA-256 of the absolute, cleaned path.
func StoreKey(root string) string {
	sum := sha256.Sum256([]byte(filepath.Clean(root)))
	return hex.EncodeToString(sum[:])[:16]
}

// An Event is what is kept of the client's event that led to a hand-off.
type Event struct {
	Name     string    `json:"name,omitempty"`
	Reason   string    `json:"reason,omitempty"` // its reason, trigger or source
	PromptID string    `json:"prompt_id,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	Time     time.Time `json:"time,omitzero"` // when the hook saw it
	Cwd      string    `json:"cwd,omitempty"`

	// Of a compaction that is about to begin: how many bytes the transcript
	// had, and what the user told the summary to hold to. That is the one
	// thing in a job that the user has written.
	Size         int64  `json:"size,omitempty"`
	Instructions string `json:"instructions,omitempty"`
}

// A File is a side file of a session: its family, its slash-separated path
// within the family, and where it lies.
type File struct{ Family, Rel, Path string }

// A Request asks for a session to be archived.
type Request struct {
	StoreRoot  string // absolute; not touched
	SessionID  string // canonical: lower case, 8-4-4-4-12
	Transcript string // absolute, links resolved; empty if the session has no main file
	Reason     string // why, in the archive's words
	Event      Event
	ConfigDir  string // the client's config folder that the session lies in
	Folder     string // the name of its project folder there
	Cwd        string // the project's real directory, if known
	// Side yields the side files, those first that matter most. It is read
	// after all else is safe, for 20 ms at most. It may be nil.
	Side iter.Seq[File]
}

// A Receipt says what a hand-off has done so far, also beside an error.
type Receipt struct {
	Job         string // the job's file name; empty if it was not written
	Pinned      bool   // the transcript has a second name in the spool
	Size        int64  // bytes of the transcript when it was opened
	Side        int    // side files with a second name
	SideSkipped int    // side files that were seen and could not be given one
}

// A Pin is a side file in the spool.
type Pin struct {
	Family  string
	Rel     string // slash-separated, local
	Path    string // where its bytes are
	Size    int64
	ModTime time.Time
}

// Work is one session to be stored, as Process gets it.
type Work struct {
	StoreRoot  string
	SessionID  string
	Transcript string // where the client's file was at hand-off; it may be gone. Empty: unknown, or none
	Path       string // the file to store as transcript; see Process. Empty: none in the spool
	Size       int64  // bytes of the transcript at hand-off, a floor; 0: unknown
	Reason     string // of the latest hand-off; empty if only a pin is left
	Events     []Event
	ConfigDir  string
	Folder     string
	Cwd        string
	Side       []Pin // newest of each family and path
	Attempts   int   // how often it has failed before
}

// DrainOptions steer Drain.
type DrainOptions struct {
	// Process stores one session: the transcript from Path, or, if that is
	// empty, from the live file at Transcript if there is one; side files from
	// the live ones, or from Side where those are gone. It returns how many
	// bytes of the transcript the store now holds, durably.
	//
	// After an error the job stays, and is parked when it has failed five
	// times. ErrRefused and ErrDiscard are treated as they say. An error while
	// ctx is done does not count: the job stays as it was. A panic counts as
	// an error.
	Process func(ctx context.Context, w Work) (archived int64, err error)
	// Now is the clock; nil for time.Now.
	Now func() time.Time
	// Session limits the drain to one session; empty for all.
	Session string
	// Parked has parked sessions tried, however short they have rested.
	Parked bool
	// StoreRoots are roots that a pin without a job may belong to, should the
	// spool's own record of it be missing.
	StoreRoots []string
	// Begin, if not nil, is called when the spool is locked, before anything
	// is looked for in it.
	Begin func()
	// Report, if not nil, is told what became of each session and of files
	// that had to be set aside.
	Report func(Outcome)
}

// An Outcome is what became of one session, or of one strange file.
type Outcome struct {
	SessionID string
	StoreRoot string
	What      What
	Attempts  int    // failed ones, this one included
	Archived  int64  // bytes of the transcript, as Process said
	File      string // path of a file that was set aside
	Err       error
}

// What became of a session.
type What string

const (
	Done      What = "done"      // stored; job and pins are gone
	Changing  What = "changing"  // stored, but its file changed meanwhile: it stays for the next drain
	Failed    What = "failed"    // stays, to be tried again by the next drain
	Parked    What = "parked"    // stays, to be tried again tomorrow or at its next event
	Discarded What = "discarded" // not to be kept: job and pins are gone
	SetAside  What = "set aside" // a file that is none of ours
	NoCopy    What = "no copy"   // no copy could be made in the spool; the live file is read
)

// Stats count what a drain did.
type Stats struct {
	Done, Changing, Failed, Parked, Discarded, SetAside int
	// Left counts the sessions that are still waiting: all but the parked
	// ones that are not due.
	Left int
}
