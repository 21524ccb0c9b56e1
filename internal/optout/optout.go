// Package optout decides which sessions stay out of the archive.
//
// Four things keep a session out: the variable SESSION_KEEPER, an exclude
// glob on its directory, a pause of the whole machine, and forgetting it. What
// was once kept out stays out, also of a later catch-up, until a person asks
// for that session by its id: the session is marked. Marks are named by a
// keyed hash and hold no session id.
package optout

import (
	"time"

	"github.com/session-keeper/session-keeper/internal/config"
)

// Reason says what keeps a session out.
type Reason string

// The reasons.
const (
	Off       Reason = "off"       // SESSION_KEEPER=off
	Excluded  Reason = "excluded"  // an exclude glob matches
	Paused    Reason = "paused"    // archiving is paused, or was when the session was last active
	Forgotten Reason = "forgotten" // a person had it forgotten
	KeptOut   Reason = "kept-out"  // it was kept out earlier
)

// Decision says whether a session stays out, and why.
type Decision struct {
	Skip   bool
	Reason Reason // set if Skip
	Detail string // for people: the glob, the time of the mark, the end of the pause
}

// Mark is a remembered decision to keep a session out.
type Mark struct {
	Reason Reason    `json:"reason"`
	Time   time.Time `json:"time"`
}

// Interval is a pause. A zero Until has no planned end, a zero Ended was not
// ended by a person yet.
type Interval struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until,omitzero"`
	Ended time.Time `json:"ended,omitzero"`
}

// Check decides about a session that an event names. dirs are the directories
// it is known to have run in.
func Check(s *config.Settings, session string, dirs []string, now time.Time) (Decision, error) {
	return Decision{}, nil
}

// CheckPast decides about a session that no event names, last active at last.
func CheckPast(s *config.Settings, session string, dirs []string, last, now time.Time) (Decision, error) {
	return Decision{}, nil
}

// MarkOut remembers that session stays out.
func MarkOut(state, session string, r Reason, now time.Time) error { return nil }

// Lift removes the mark of MarkOut; a session without one is no error.
func Lift(state, session string) error { return nil }

// Marked returns the mark of a session.
func Marked(state, session string) (Mark, bool, error) { return Mark{}, false, nil }

// Forget leaves a local tombstone for session and removes its mark.
func Forget(state, session string, now time.Time) error { return nil }

// IsForgotten tells whether session has a local tombstone.
func IsForgotten(state, session string) (bool, error) { return false, nil }

// Pause stops archiving from now on, until a time or, if that is zero, for good.
func Pause(state string, until, now time.Time) error { return nil }

// Unpause ends the pause and tells whether there was one.
func Unpause(state string, now time.Time) (bool, error) { return false, nil }

// Pauses returns all remembered pauses, oldest first.
func Pauses(state string) ([]Interval, error) { return nil, nil }

// PausedAt returns the pause that holds at a time.
func PausedAt(state string, now time.Time) (Interval, bool, error) { return Interval{}, false, nil }
