// Package logfile writes and reads the log: JSON lines, one file per program and day.
package logfile

import (
	"io"
	"time"

	"github.com/session-keeper/session-keeper/hooklib"
)

// Log writes lines for one program.
type Log struct {
	dir, program string
	stderr       io.Writer
	now          func() time.Time
}

// New returns a log of program in dir. Nothing is created before the first line.
func New(dir, program string, stderr io.Writer, now func() time.Time) *Log {
	return &Log{dir: dir, program: program, stderr: stderr, now: now}
}

// Log implements hooklib.Logger.
func (l *Log) Log(level hooklib.Level, message string, pairs ...any) {}

// Clean removes the log files of days before the last days ones.
func Clean(dir string, days int, now time.Time) (int, error) { return 0, nil }

// Forget removes every line that names session.
func Forget(dir, session string) (int, error) { return 0, nil }

// Entry is one line of the log.
type Entry struct {
	Time    time.Time
	Program string
	Level   string
	Message string
	Fields  map[string]any
}

// Entries yields the lines of all programs, newest first.
func Entries(dir string, yield func(Entry) bool) error { return nil }
