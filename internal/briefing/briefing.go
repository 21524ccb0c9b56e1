// Package briefing chooses and words the prepared context of a new session.
//
// A briefing is a Markdown file whose first lines are TOML between two lines
// of "+++": what it is called, and which sessions it is for. Briefings lie in
// three homes: a repository (the team's), the user's configuration (personal),
// the archive's store (written by hooks). [Folder.Load] reads a home, [Choose]
// picks what a session gets and words it within a [Budget], and says of every
// briefing why it is in or out.
//
// The text that comes out is for a language model. It is fenced, says where
// each part comes from, and is worded as background. What the files hold is
// taken as anybody's: nothing in it closes its fence, and characters that a
// person would not see are made visible (see [Clean]).
//
// The same files and the same session give the same bytes, whatever order the
// file system lists them in, since the client drops a context that it already
// has and adds any other again (observed on 2.1.332). Only a briefing's expiry
// and its being said once look at a clock or at what was before.
//
// Nothing here fails as a whole. A file that cannot be used is named, with its
// line, and left out; the others stay. All reading is bounded, because a
// session waits for it: see [MaxFileBytes], [MaxFiles], [MaxNames],
// [MaxFolderBytes].
package briefing

import (
	"fmt"
	"time"

	"github.com/session-keeper/session-keeper/internal/config"
)

// Kind is the home of a briefing.
type Kind string

// The homes.
const (
	Store      Kind = "store"      // written by hooks of ours
	Repository Kind = "repository" // the team's, in the repository; needs trust
	Personal   Kind = "personal"   // the user's own
)

// rank orders briefings of one priority.
func (k Kind) rank() int {
	switch k {
	case Store:
		return 0
	case Repository:
		return 1
	}
	return 2
}

// Sources of a session, as the client names them. Others may come.
const (
	Startup = "startup"
	Resume  = "resume"
	Clear   = "clear"
	Compact = "compact"
	Fork    = "fork"
)

// Sources are the sources that are known.
var Sources = []string{Startup, Resume, Clear, Compact, Fork}

// Briefing is one file, understood.
type Briefing struct {
	Title        string   // a line; the file's name if the file gives none
	Sources      []string // empty: all
	Projects     []string // globs on the real directory; empty: all
	Branches     []string // globs on the branch; empty: all, and no branch
	Priority     int      // higher comes first
	Expires      Expiry   // zero: never
	Once         bool     // once in a session
	Print        bool     // also in sessions that nobody attends
	SessionTitle string   // what the session is to be called; personal briefings only
	Body         string   // as written, but with line ends as "\n" and valid UTF-8
}

// Expiry is when a briefing is over. TOML has three forms of it: an instant
// (with an offset) is over at that instant; a date and time without an offset
// is meant in the time zone of the machine; a date is the last day, in the
// time zone of the machine, on which the briefing still holds.
type Expiry struct {
	form expiryForm
	time time.Time // local forms: the clock's reading, in UTC
}

type expiryForm int

const (
	never expiryForm = iota
	instant
	localTime
	localDay
)

// IsZero tells whether there is no end.
func (e Expiry) IsZero() bool { return e.form == never }

// Over tells whether the end has come at now; now's location is the machine's.
func (e Expiry) Over(now time.Time) bool {
	t := e.time
	switch e.form {
	case never:
		return false
	case localTime:
		t = time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), now.Location())
	case localDay:
		t = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, now.Location())
	}
	return !now.Before(t)
}

// String gives the end as TOML writes it, "" if there is none.
func (e Expiry) String() string {
	switch e.form {
	case instant:
		return e.time.Format(time.RFC3339Nano)
	case localTime:
		return e.time.Format("2006-01-02T15:04:05.999999999")
	case localDay:
		return e.time.Format(time.DateOnly)
	}
	return ""
}

// Entry is one file of a home, whether it could be used or not.
type Entry struct {
	Kind Kind
	Name string // the file's name; "" where the trouble is the folder's
	Path string
	Root string // of the repository, for patterns relative to it; else ""

	Briefing *Briefing // nil if Err is set
	Warnings []config.Warning
	Err      error // why it cannot be used: a *config.Error with file and line
}

// from attributes a briefing, without the machine's paths: the same on every
// machine, and nothing of the user's in a session's context.
func (e Entry) from() string {
	name := line(e.Name, maxNameUnits)
	switch e.Kind {
	case Repository:
		return "the repository's .claude/briefings/" + name
	case Personal:
		return "the user's own briefing " + name
	}
	return "session-keeper's record " + name
}

// label names an entry in messages.
func (e Entry) label() string {
	return fmt.Sprintf("%q (%s)", line(e.Briefing.Title, maxTitleUnits), e.from())
}
