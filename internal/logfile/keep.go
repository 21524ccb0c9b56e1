package logfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// Clean removes the log files whose day is more than days before today, and
// says how many. Other files in dir are left alone.
func Clean(dir string, days int, now time.Time) (int, error) {
	names, err := logNames(dir)
	if err != nil {
		return 0, err
	}
	y, m, d := now.Local().Date()
	oldest := time.Date(y, m, d-days, 0, 0, 0, 0, time.Local)
	removed := 0
	var errs []error
	for _, name := range names {
		if _, day, _ := parseName(name); !day.Before(oldest) {
			continue
		}
		switch err := durable.Remove(filepath.Join(dir, name)); {
		case err == nil:
			removed++
		case !errors.Is(err, fs.ErrNotExist): // another worker may clean as well
			errs = append(errs, err)
		}
	}
	return removed, errors.Join(errs...)
}

// Forget removes every line that names session, and says how many. Each file
// is replaced as a whole; a line that another process appends at that moment
// may be lost.
func Forget(dir, session string) (int, error) {
	if session == "" {
		return 0, errors.New("no session named")
	}
	names, err := logNames(dir)
	if err != nil {
		return 0, err
	}
	removed := 0
	var errs []error
	for _, name := range names {
		n, err := forgetIn(filepath.Join(dir, name), []byte(session))
		removed += n
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return removed, errors.Join(errs...)
}

func forgetIn(path string, session []byte) (removed int, err error) {
	data, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(data, session) {
		return 0, err
	}
	var kept []byte
	for line := range bytes.Lines(data) {
		if bytes.Contains(line, session) {
			removed++
		} else {
			kept = append(kept, line...)
		}
	}
	return removed, durable.ReplaceFile(path, kept)
}

// Entry is one line of the log.
type Entry struct {
	Time    time.Time
	Program string
	Level   string // debug, info, warn, error
	Message string
	Fields  map[string]any // everything else
}

// Entries yields the lines of all programs of one day after another, the
// newest day first, and the newest line first in each program's day. A line
// that cannot be read is passed over. It ends when yield returns false.
func Entries(dir string, yield func(Entry) bool) error {
	names, err := logNames(dir)
	if err != nil {
		return err
	}
	slices.SortStableFunc(names, func(a, b string) int {
		_, dayA, _ := parseName(a)
		_, dayB, _ := parseName(b)
		return dayB.Compare(dayA)
	})
	for i := 0; i < len(names); {
		// All programs of one day are merged, so that the first entry of all is
		// the newest there is.
		_, day, _ := parseName(names[i])
		var entries []Entry
		for ; i < len(names); i++ {
			if _, other, _ := parseName(names[i]); !other.Equal(day) {
				break
			}
			more, err := readEntries(filepath.Join(dir, names[i]))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			entries = append(entries, more...)
		}
		slices.SortStableFunc(entries, func(a, b Entry) int { return a.Time.Compare(b.Time) })
		for _, e := range slices.Backward(entries) {
			if !yield(e) {
				return nil
			}
		}
	}
	return nil
}

func readEntries(path string) ([]Entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var entries []Entry
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20) // lines of ours are a few KB
	for lines.Scan() {
		var fields map[string]any
		if json.Unmarshal(lines.Bytes(), &fields) != nil {
			continue
		}
		e := Entry{Fields: fields}
		e.Program, e.Level, e.Message = takeText(fields, "program"), takeText(fields, "level"), takeText(fields, "message")
		if e.Time, err = time.Parse(time.RFC3339Nano, takeText(fields, "time")); err != nil {
			continue
		}
		entries = append(entries, e)
	}
	return entries, lines.Err()
}

func takeText(fields map[string]any, name string) string {
	text, _ := fields[name].(string) // another type is no line of ours: empty
	delete(fields, name)
	return text
}

// logNames returns the names of the log files in dir, sorted.
func logNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if _, _, ok := parseName(e.Name()); ok && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
