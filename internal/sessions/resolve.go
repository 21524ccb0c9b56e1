package sessions

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/session-keeper/session-keeper/transcript"
)

// LastWord is the argument that names the newest session.
const LastWord = "last"

// minPrefix is the shortest beginning of an id that is looked up.
const minPrefix = 4

// An AmbiguousError says that more than one session has the name asked for.
type AmbiguousError struct {
	Name     string
	Sessions []*Session
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%.64q names %d sessions", e.Name, len(e.Sessions))
}

// ErrShortPrefix says that too few characters of an id were given.
var ErrShortPrefix = fmt.Errorf("give at least %d characters of an id", minPrefix)

// Find gives the session that an argument names: an id, the unique beginning
// of one, a title, or "last". transcript.ErrNotFound, *AmbiguousError.
func (c *Catalog) Find(ctx context.Context, name string) (*Session, error) {
	if transcript.ValidSessionID(name) {
		return c.Get(ctx, name)
	}
	if name == "" {
		return nil, fmt.Errorf("%w: the name is empty", transcript.ErrNotFound)
	}
	list, err := c.Load(ctx)
	if err != nil {
		return nil, err
	}
	return list.Find(name)
}

// Find is Catalog.Find on a list.
func (l *List) Find(name string) (*Session, error) {
	if name == LastWord {
		if s := l.Last(); s != nil {
			return s, nil
		}
		return nil, fmt.Errorf("%w: there is none yet", transcript.ErrNotFound)
	}
	var found []*Session
	for _, s := range l.Sessions {
		switch {
		case s.ID == name:
			return s, nil
		case len(name) >= minPrefix && strings.HasPrefix(s.ID, name),
			s.Facts.Title != "" && strings.EqualFold(s.Facts.Title, strings.TrimSpace(name)):
			found = append(found, s)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		err := fmt.Errorf("%w: %.64q", transcript.ErrNotFound, name)
		if len(name) < minPrefix && isPrefix(name) {
			err = errors.Join(err, ErrShortPrefix)
		}
		return nil, err
	}
	return nil, &AmbiguousError{name, found}
}

func isPrefix(s string) bool {
	return strings.Trim(s, "0123456789abcdef-") == ""
}

// Last gives the session with the newest message: one of a person if there is
// any, else one of print mode; never one of an agent, never an empty one.
func (l *List) Last() *Session {
	for _, kind := range []Kind{Person, Print} {
		for _, s := range l.Sessions {
			if s.Kind == kind && !s.Facts.Last.IsZero() {
				return s
			}
		}
	}
	// Records without times: the files' own must do.
	for _, kind := range []Kind{Person, Print} {
		for _, s := range l.Sessions {
			if s.Kind == kind {
				return s
			}
		}
	}
	return nil
}
