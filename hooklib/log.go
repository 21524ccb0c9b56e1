package hooklib

// Level says how much a log line matters.
type Level int8

// The levels, least first.
const (
	Debug Level = iota // of use to a developer
	Info               // what was done, or why nothing was
	Warn               // a fallback or a skip that lessens what the user gets
	Error              // a failure
)

// Logger takes the log lines of a hook. A Logger must not fail the hook, must
// not write to standard output, and is called by one goroutine at a time.
type Logger interface {
	// Log writes one line. The pairs alternate a name, always a string, and
	// its value. Values are ids, paths, sizes, times and errors, never text of
	// a conversation and never the environment.
	Log(level Level, message string, pairs ...any)
}

// Discard is a Logger that drops everything.
var Discard Logger = discard{}

type discard struct{}

func (discard) Log(Level, string, ...any) {}

// String names the level: debug, info, warn, error.
func (l Level) String() string {
	switch l {
	case Debug:
		return "debug"
	case Info:
		return "info"
	case Warn:
		return "warn"
	}
	return "error"
}
