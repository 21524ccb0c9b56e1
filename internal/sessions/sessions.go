// Package sessions tells which sessions there are, live and archived.
//
// It joins what lies in the client's folders with what lies in the store and
// says for each session in which state it is. Facts come from the transcripts
// themselves, never from an index that the client keeps. They are cached;
// the cache may be lost, stale or damaged at any time and costs only the time
// to read again. Nothing is written to the client's folders.
package sessions

import (
	"strings"
	"time"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/transcript"
)

// A State is one thing to know about a session.
type State string

// States. More than one may hold; they are listed here in the order in which
// the first one that holds becomes the session's main state.
const (
	Lost     State = "lost"        // traces of it, but neither a transcript nor an archive
	KeptOut  State = "kept out"    // the user keeps it out of the archive
	Live     State = "live"        // open in a running client
	Expiring State = "expiring"    // behind, and the client deletes it within a week
	Behind   State = "behind"      // the source has bytes that the archive lacks
	Unclean  State = "unclean end" // the client was killed or crashed
	Gone     State = "source gone" // only the archive has it
	Archived State = "archived"    // all of it is in the archive
)

// order ranks the states for the choice of the main one.
var order = []State{Lost, KeptOut, Live, Expiring, Behind, Unclean, Gone, Archived}

// States lists all states.
func States() []State { return append([]State(nil), order...) }

// A Kind says what sort of session it is.
type Kind string

// Kinds.
const (
	Person Kind = "session" // a conversation of a person
	Print  Kind = "print"   // print mode and the SDK; the client's picker hides these
	Agent  Kind = "agent"   // of an agent or an agent team
	Empty  Kind = "empty"   // no message in it
	Husk   Kind = "husk"    // side files without a transcript
)

// ExpiringWithin is how near the client's clean-up is for Expiring.
const ExpiringWithin = 7 * 24 * time.Hour

// A Session is one session, wherever it lies.
type Session struct {
	ID    string
	Kind  Kind
	Facts transcript.Facts
	// FactsOf is the hash of the generation that Facts are of, "" if they are of
	// the live transcript. It need not be the latest one.
	FactsOf string

	State  State   // the main one
	States []State // all that hold

	Live   *transcript.Bundle  // nil: not in the client's folders, or only side files
	Traces *transcript.Bundle  // side files without a transcript
	Kept   *archive.Generation // the latest in the store; nil: none

	Last      time.Time // last message; the file's time where no message has one
	Size      int64     // of the transcript, live or archived
	Forgotten bool      // the user had it forgotten; what is live stays the client's

	Expires time.Time // when the client may delete the live transcript; zero: never or unknown

	Inherited string // title of the session that this one goes on from, where it has none of its own

	Errors []error // what could not be read
}

// Is reports whether a state holds.
func (s *Session) Is(state State) bool {
	for _, have := range s.States {
		if have == state {
			return true
		}
	}
	return false
}

// Title is what the client would call the session, never empty.
func (s *Session) Title() string {
	title := s.Facts.Title
	switch {
	case s.Kind == Husk:
		return "(agents only)"
	case s.Facts.Format == transcript.FormatArray, s.Facts.Format == transcript.FormatUTF16:
		// The client finds no conversation in these (observed on 2.1.332).
		return strings.TrimSpace("(no transcript: " + s.Facts.Format.String() + ") " + title)
	case s.Facts.TitleSource == transcript.TitleNone && s.Inherited != "":
		return s.Inherited
	case title == "":
		return "(session)"
	}
	return title
}

// From gives the ids of other sessions whose records stand in the transcript:
// older clients began a new file with them when they went on. The file's name
// alone says whose it is.
func (s *Session) From() []string { return s.Facts.SessionIDs }

// inherit gives a session without a title that of one it goes on from.
func (s *Session) inherit(find func(id string) *Session) {
	if s.Facts.TitleSource != transcript.TitleNone || s.Kind == Husk {
		return
	}
	for _, id := range s.From() {
		if from := find(id); from != nil && from.Facts.TitleSource != transcript.TitleNone && !from.Forgotten {
			s.Inherited = from.Facts.Title
			return
		}
	}
}

// Project is the directory that the session belongs to: where it began, as
// its records say. The folder's name cannot tell: it is not reversible and
// different directories share one.
func (s *Session) Project() string {
	if s.Facts.FirstCwd != "" {
		return s.Facts.FirstCwd
	}
	if s.Kept != nil {
		return s.Kept.Project.Cwd
	}
	return ""
}

// Dirs lists the directories that are known for the session, each once.
func (s *Session) Dirs() []string {
	all := []string{s.Facts.FirstCwd, s.Facts.RelocatedCwd, s.Facts.LastCwd}
	if s.Kept != nil {
		all = append(all, s.Kept.Project.Cwd)
	}
	var dirs []string
	for _, dir := range all {
		seen := dir == ""
		for _, d := range dirs {
			seen = seen || d == dir
		}
		if !seen {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Branch is the git branch of the last record that names one.
func (s *Session) Branch() string { return BranchOf(s.Facts) }

// BranchOf is the git branch that a transcript was last on, "" for none.
func BranchOf(f transcript.Facts) string {
	if f.LastBranch == noBranch {
		return ""
	}
	return f.LastBranch
}

// noBranch is what the client records outside of git, and on no branch of it
// (observed on 2.1.332).
const noBranch = "HEAD"

// Folder is the name of the client's project folder.
func (s *Session) Folder() string {
	switch {
	case s.Live != nil:
		return s.Live.Folder
	case s.Kept != nil && s.Kept.Project.Folder != "":
		return s.Kept.Project.Folder
	case s.Traces != nil:
		return s.Traces.Folder
	}
	return ""
}

// Messages counts prompts and answers: how much conversation there is.
func Messages(f transcript.Facts) int64 { return f.Prompts + f.Queued + f.Answers }

// classify tells the kind from the facts.
func classify(f transcript.Facts, husk bool) Kind {
	switch {
	case husk:
		return Husk
	case f.Agent():
		return Agent
	case f.Empty:
		return Empty
	case f.Entrypoint == "sdk-cli" || f.Entrypoint == "sdk-ts" || f.Entrypoint == "sdk-py":
		return Print
	}
	return Person
}
