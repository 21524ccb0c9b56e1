package sessions

import (
	"path/filepath"
	"strings"
	"time"
)

// A Filter chooses sessions; its zero value takes those that a person had.
type Filter struct {
	All     bool      // also print mode, agents, empty ones
	Project string    // real path: sessions of this directory and of those below it
	Since   time.Time // last activity at or after
	State   State     // one that holds
	Branch  string
	Limit   int // at most this many; 0: all
}

// Hidden counts what a filter hid for its kind alone.
type Hidden struct {
	Print, Agent, Empty int
}

// Apply gives the sessions that the filter takes, in their order. Where there
// is nothing but print mode to show, that is shown.
func (l *List) Apply(f Filter) (shown []*Session, hidden Hidden) {
	var printed []*Session
	for _, s := range l.Sessions {
		if !f.takes(s) {
			continue
		}
		if !f.All {
			switch s.Kind {
			case Print:
				hidden.Print++
				printed = append(printed, s)
				continue
			case Agent:
				hidden.Agent++
				continue
			case Empty:
				hidden.Empty++
				continue
			}
		}
		shown = append(shown, s)
	}
	if len(shown) == 0 {
		shown, hidden.Print = printed, 0
	}
	if f.Limit > 0 && len(shown) > f.Limit {
		shown = shown[:f.Limit]
	}
	return shown, hidden
}

func (f Filter) takes(s *Session) bool {
	switch {
	case f.Project != "" && !within(s, f.Project):
	case !f.Since.IsZero() && s.Last.Before(f.Since):
	case f.State != "" && !s.Is(f.State):
	case f.Branch != "" && s.Branch() != f.Branch && s.Facts.FirstBranch != f.Branch:
	default:
		return true
	}
	return false
}

// within reports whether a session ran in dir or below it.
func within(s *Session, dir string) bool {
	for _, d := range s.Dirs() {
		if d == dir || strings.HasPrefix(d, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator)) {
			return true
		}
	}
	return false
}
