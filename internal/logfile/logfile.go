// Package logfile writes and reads the log: JSON lines, one file per program and day.
//
// A line is one appended write, so that processes that run at the same time do
// not mix theirs. The file is opened for each line and closed again: a hook
// writes one or two, and what a long worker writes must not land in yesterday's
// file, or in one that was just cleared of a forgotten session.
//
// What is logged is ids, paths, sizes, times and errors. Text of a conversation
// and the environment do not belong here, and long values are cut.
package logfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/session-keeper/session-keeper/hooklib"
	"github.com/session-keeper/session-keeper/internal/durable"
)

const (
	// maxValueBytes bounds a value, maxStackBytes that of a field "stack".
	maxValueBytes = 1000
	maxStackBytes = 8000
	// dayFormat is how a file's name tells its day, in local time.
	dayFormat = "2006-01-02"
	suffix    = ".jsonl"
	fileMode  = 0o600
)

// Log writes the lines of one program. It never fails its caller: what cannot
// be written to the file goes to stderr, once, as one plain line.
type Log struct {
	dir     string
	program string
	stderr  io.Writer
	now     func() time.Time
	told    bool // stderr has had its line
}

// New returns the log of program in dir, an absolute path or "" if there is no
// place for it. Nothing is created before the first line. A nil now is time.Now, a nil stderr is nowhere.
func New(dir, program string, stderr io.Writer, now func() time.Time) *Log {
	if now == nil {
		now = time.Now
	}
	if stderr == nil {
		stderr = io.Discard
	}
	return &Log{dir: dir, program: program, stderr: stderr, now: now}
}

// Log implements hooklib.Logger.
func (l *Log) Log(level hooklib.Level, message string, pairs ...any) {
	now := l.now()
	w := &lineWriter{path: filepath.Join(l.dir, l.program+"-"+now.Format(dayFormat)+suffix)}
	zl := zerolog.New(w)
	e := zl.WithLevel(zerologLevel(level)).
		Str("time", now.Format(time.RFC3339Nano)).
		Str("program", l.program).
		Int("pid", os.Getpid())
	for i := 0; i+1 < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			name = "field"
		}
		e = addField(e, name, pairs[i+1])
	}
	e.Msg(bound(message, maxValueBytes))
	if w.err != nil && !l.told {
		l.told = true
		line := fmt.Sprintf("%s: %s: %s (the log cannot be written: %v)", l.program, level, bound(message, maxValueBytes), w.err)
		fmt.Fprintln(l.stderr, oneLine.Replace(line))
	}
}

var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

// addField adds a value as what it is, where JSON has such a thing, and else
// as text.
func addField(e *zerolog.Event, name string, value any) *zerolog.Event {
	most := maxValueBytes
	if name == "stack" {
		most = maxStackBytes
	}
	switch v := value.(type) {
	case nil:
		return e
	case bool:
		return e.Bool(name, v)
	case int:
		return e.Int(name, v)
	case int64:
		return e.Int64(name, v)
	case time.Duration:
		return e.Str(name, v.Round(time.Microsecond).String())
	case time.Time:
		return e.Str(name, v.Format(time.RFC3339Nano))
	case string:
		return e.Str(name, bound(v, most))
	}
	return e.Str(name, bound(fmt.Sprint(value), most))
}

func bound(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:most] + fmt.Sprintf("… (%d bytes)", len(s))
}

func zerologLevel(level hooklib.Level) zerolog.Level {
	switch level {
	case hooklib.Debug:
		return zerolog.DebugLevel
	case hooklib.Info:
		return zerolog.InfoLevel
	case hooklib.Warn:
		return zerolog.WarnLevel
	}
	return zerolog.ErrorLevel
}

// lineWriter appends each line to its file in one write. It remembers the
// error, because zerolog would print it.
type lineWriter struct {
	path string
	err  error
}

func (w *lineWriter) Write(line []byte) (int, error) {
	w.err = w.append(line)
	return len(line), nil
}

// errNoDir says that there is no place for log files.
var errNoDir = errors.New("no folder for it")

func (w *lineWriter) append(line []byte) error {
	if !filepath.IsAbs(w.path) {
		return errNoDir // never a file in the session's own directory
	}
	f, err := openAppend(w.path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := durable.MkdirAll(filepath.Dir(w.path)); err != nil {
			return err
		}
		f, err = openAppend(w.path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}

// openAppend opens a file to append to, without waiting for a reader if it is
// a pipe. A new one is made for the user alone, whatever the umask adds or
// takes.
func openAppend(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|openFlags, fileMode)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL|openFlags, fileMode)
	if errors.Is(err, fs.ErrExist) { // made by another process just now
		return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|openFlags, fileMode)
	}
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(fileMode); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// parseName tells program and day of a log file.
func parseName(name string) (program string, day time.Time, ok bool) {
	name, ok = strings.CutSuffix(name, suffix)
	if !ok || len(name) < len(dayFormat)+2 {
		return "", time.Time{}, false
	}
	at := len(name) - len(dayFormat)
	day, err := time.ParseInLocation(dayFormat, name[at:], time.Local)
	if err != nil || name[at-1] != '-' {
		return "", time.Time{}, false
	}
	return name[:at-1], day, true
}
