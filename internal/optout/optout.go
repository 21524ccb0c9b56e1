// Package optout decides which sessions stay out of the archive.
//
// Five things keep a session out: the variable SESSION_KEEPER, an exclude glob
// on its directory, a pause of the whole machine, forgetting it, and having
// been kept out before. What was kept out stays out, of a later catch-up too,
// until a person asks for that session by its id: it is marked. Marks are
// named by a keyed hash and hold no session id, so they tell nobody which
// sessions there were.
//
// Where something cannot be read that may say no, the answer is an error and
// never yes.
package optout

import (
	"fmt"
	"strings"
	"time"

	"github.com/session-keeper/session-keeper/internal/config"
)

// Variable is the environment variable that switches a run off.
const Variable = "SESSION_KEEPER"

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
	Detail string // for people: the variable, the glob, the mark, the pause
}

// Check decides about a session that an event names. dirs are the directories
// that it is known to have run in; empty ones are passed over.
func Check(s *config.Settings, session string, dirs []string, now time.Time) (Decision, error) {
	if value := s.Env.Getenv(Variable); isOff(value) {
		return Decision{Skip: true, Reason: Off, Detail: Variable + "=" + shorten(value)}, nil
	}
	pause, paused, err := PausedAt(s.Paths.State, now)
	if err != nil {
		return Decision{}, err
	}
	if paused {
		return Decision{Skip: true, Reason: Paused, Detail: pause.String()}, nil
	}
	return checkAlways(s, session, dirs)
}

// CheckPast decides about a session that no event names and that was last
// active at last. Whether archiving is paused now is not asked: that is a
// question about the whole run, see [PausedAt].
func CheckPast(s *config.Settings, session string, dirs []string, last time.Time) (Decision, error) {
	pauses, err := Pauses(s.Paths.State)
	if err != nil {
		return Decision{}, err
	}
	for _, p := range pauses {
		if p.Contains(last) {
			return Decision{Skip: true, Reason: Paused, Detail: "last active while " + p.String()}, nil
		}
	}
	return checkAlways(s, session, dirs)
}

// checkAlways checks what does not depend on when.
func checkAlways(s *config.Settings, session string, dirs []string) (Decision, error) {
	forgotten, err := IsForgotten(s.Paths.State, session)
	if err != nil {
		return Decision{}, err
	}
	if forgotten {
		return Decision{Skip: true, Reason: Forgotten, Detail: "it was forgotten"}, nil
	}
	glob, excluded, err := excludedBy(s, dirs)
	if err != nil {
		return Decision{}, err
	}
	if excluded {
		return Decision{Skip: true, Reason: Excluded, Detail: fmt.Sprintf("archive.exclude %q", shorten(glob))}, nil
	}
	mark, marked, err := Marked(s.Paths.State, session)
	if err != nil {
		return Decision{}, err
	}
	if marked {
		return Decision{Skip: true, Reason: KeptOut, Detail: fmt.Sprintf("kept out since %s (%s)", mark.Time.Format(time.RFC3339), mark.Reason)}, nil
	}
	return Decision{}, nil
}

// isOff reads the variable. A value that means neither yes nor no is taken as
// no: whoever sets it wants something kept out.
func isOff(value string) bool {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "on", "1", "true", "yes":
		return false
	}
	return true
}

func shorten(s string) string {
	const most = 64 // bytes
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

// IsOff tells whether the variable switches this run off.
func IsOff(getenv func(string) string) bool { return isOff(getenv(Variable)) }
