package archive

import (
	"errors"
	"fmt"
)

var (
	// ErrNotStore says that a folder holds no store.
	ErrNotStore = errors.New("not a session-keeper store")
	// ErrNoSession says that a store holds nothing of a session.
	ErrNoSession = errors.New("session is not in the store")
	// ErrForgotten says that a session was forgotten and must stay so.
	ErrForgotten = errors.New("session was forgotten")
	// ErrDamaged says that bytes in the store are missing or not what they were.
	ErrDamaged = errors.New("damaged")
	// ErrChanging says that a source kept changing in place while it was read.
	ErrChanging = errors.New("source keeps changing while it is read")
	// ErrNoGeneration says that no generation has the name asked for.
	ErrNoGeneration = errors.New("no such generation")
	// ErrAmbiguous says that more than one generation has it.
	ErrAmbiguous = errors.New("more than one generation matches")
)

// An UnsupportedError says that a store needs something this program lacks.
// A newer session-keeper is the remedy; nothing was read or written.
type UnsupportedError struct {
	Root    string
	Version int    // the store's format version, if that is unknown; else 0
	Feature string // the unknown feature or hash, if that is it
	Write   bool   // reading is possible, writing is not
}

func (e *UnsupportedError) Error() string {
	what := fmt.Sprintf("has format version %d", e.Version)
	if e.Version == 0 {
		what = "needs the feature " + quote(e.Feature)
	}
	verb := "read"
	if e.Write {
		verb = "write"
	}
	return fmt.Sprintf("store %s %s, which this session-keeper cannot %s; update session-keeper", e.Root, what, verb)
}

// quote bounds text from bad input for an error message.
func quote(s string) string {
	const max = 64
	if len(s) > max {
		return fmt.Sprintf("%q (%d bytes)", s[:max], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// damaged wraps ErrDamaged with what was found.
func damaged(format string, a ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, a...))
}
