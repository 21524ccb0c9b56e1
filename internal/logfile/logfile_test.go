//go:build unix

package logfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/hooklib"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

func readLines(t *testing.T, path string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var lines []map[string]any
	for line := range bytes.Lines(data) {
		var fields map[string]any
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		lines = append(lines, fields)
	}
	return lines
}

func TestLog(t *testing.T) {
	old := syscall.Umask(0) // SM-06
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "state", "log")
	var stderr bytes.Buffer
	l := New(dir, "prog", &stderr, at(noon))
	if _, err := os.Stat(dir); err == nil {
		t.Error("made before the first line")
	}
	var _ hooklib.Logger = l
	l.Log(hooklib.Info, "handed off",
		"session", "s", "size", int64(7), "n", 3, "ok", true, "took", 1500*time.Microsecond,
		"error", errors.New("no"), "nothing", nil, "at", noon, 42, "no name", "odd one out")
	l.Log(hooklib.Error, strings.Repeat("m", 5000), "long", strings.Repeat("v", 5000), "stack", strings.Repeat("s", 5000))
	l.Log(hooklib.Warn, "bytes", "bad", "a\xFF\x00\n\"b", "esc", "\x1b[31m")

	path := filepath.Join(dir, "prog-2026-03-01.jsonl")
	lines := readLines(t, path)
	if len(lines) != 3 {
		t.Fatalf("%d lines", len(lines))
	}
	for name, want := range map[string]any{
		"level": "info", "message": "handed off", "program": "prog", "session": "s", "size": 7.0, "n": 3.0,
		"ok": true, "took": "1.5ms", "error": "no", "field": "no name", "at": noon.Format(time.RFC3339Nano),
	} {
		if lines[0][name] != want {
			t.Errorf("%s is %v, want %v", name, lines[0][name], want)
		}
	}
	for _, name := range []string{"nothing", "odd one out"} {
		if _, ok := lines[0][name]; ok {
			t.Errorf("field %s is there", name)
		}
	}
	if m, v, s := lines[1]["message"].(string), lines[1]["long"].(string), lines[1]["stack"].(string); len(m) > 1100 || len(v) > 1100 || len(s) < 5000 {
		t.Errorf("lengths %d, %d, %d", len(m), len(v), len(s))
	}
	for _, p := range []string{path, dir, filepath.Dir(dir)} {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", p, info.Mode())
		}
	}
	if stderr.Len() > 0 {
		t.Errorf("stderr: %s", stderr.String())
	}
}

// SM-08: what somebody widened stays so.
func TestLogKeepsModes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "prog-2026-03-01.jsonl")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	New(dir, "prog", nil, at(noon)).Log(hooklib.Info, "x")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o644 || info.Size() == 0 {
		t.Errorf("%v, %v", info, err)
	}
}

// FS-02, FS-04: a log that cannot be written, for want of room or of a folder,
// costs one line on stderr and nothing else.
func TestLogCannotBeWritten(t *testing.T) {
	base := t.TempDir()
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fifoDir := filepath.Join(base, "fifo")
	if err := os.Mkdir(fifoDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(fifoDir, "prog-2026-03-01.jsonl"), 0o600); err != nil {
		t.Fatal(err)
	}
	dirs := []string{"", "relative", file, filepath.Join(file, "log"), fifoDir}
	if _, err := os.Stat("/dev/full"); err == nil { // Linux has a disk without room
		full := filepath.Join(base, "full")
		if err := os.Mkdir(full, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/dev/full", filepath.Join(full, "prog-2026-03-01.jsonl")); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, full)
	}
	for _, dir := range dirs {
		t.Chdir(base)
		var stderr bytes.Buffer
		l := New(dir, "prog", &stderr, at(noon))
		l.Log(hooklib.Warn, "first\nof\r\ntwo")
		l.Log(hooklib.Warn, "second")
		got := stderr.String()
		if !strings.HasPrefix(got, "prog: warn: first of  two (the log cannot be written: ") || strings.Count(got, "\n") != 1 {
			t.Errorf("folder %q: stderr %q", dir, got)
		}
	}
	if _, err := os.Stat(filepath.Join(base, "relative")); err == nil {
		t.Error("a log was begun in the working directory")
	}
	New("", "prog", nil, nil).Log(hooklib.Info, "nowhere at all")
}

func TestLogInParallel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	const writers, each = 20, 50
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			l := New(dir, "prog", nil, at(noon))
			for j := range each {
				l.Log(hooklib.Info, "x", "i", i, "j", j, "filler", strings.Repeat("f", 900))
			}
		})
	}
	wg.Wait()
	if n := len(readLines(t, filepath.Join(dir, "prog-2026-03-01.jsonl"))); n != writers*each {
		t.Errorf("%d lines, want %d", n, writers*each)
	}
}

func TestClean(t *testing.T) {
	dir := t.TempDir()
	for day := -5; day <= 1; day++ {
		New(dir, "session-end-archive", nil, at(noon.AddDate(0, 0, day))).Log(hooklib.Info, "x")
	}
	others := []string{"notes.txt", "2025-01-01.jsonl", "prog-2025-13-01.jsonl", "prog-2025-01-01.txt"}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n, err := Clean(dir, 2, noon)
	if err != nil || n != 3 {
		t.Errorf("removed %d, %v, want 3", n, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4+len(others) {
		t.Errorf("%d files left, %v: %v", len(entries), err, entries)
	}
	if n, err := Clean(filepath.Join(dir, "none"), 2, noon); n != 0 || err != nil {
		t.Errorf("no folder: %d, %v", n, err)
	}
}

func TestForget(t *testing.T) {
	dir := t.TempDir()
	const gone, stays = "b2055b9e-4f0b-4d39-9a55-1f2a3b4c5d6e", "84784f3a-4f0b-4d39-9a55-1f2a3b4c5d6e"
	for _, day := range []int{0, -1} {
		l := New(dir, "prog", nil, at(noon.AddDate(0, 0, day)))
		l.Log(hooklib.Info, "one", "session", gone)
		l.Log(hooklib.Info, "two", "session", stays)
		l.Log(hooklib.Info, "three", "transcript", "/x/"+gone+".jsonl")
	}
	n, err := Forget(dir, gone)
	if err != nil || n != 4 {
		t.Errorf("removed %d lines, %v, want 4", n, err)
	}
	var left []string
	if err := Entries(dir, func(e Entry) bool {
		left = append(left, e.Message+" "+fmt.Sprint(e.Fields["session"]))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if len(left) != 2 || left[0] != "two "+stays {
		t.Errorf("left: %q", left)
	}
	if _, err := Forget(dir, ""); err == nil {
		t.Error("the empty session was forgotten")
	}
}

func TestEntries(t *testing.T) {
	dir := t.TempDir()
	for i, program := range []string{"a", "b", "a", "b"} {
		New(dir, program, nil, at(noon.AddDate(0, 0, -i/2).Add(time.Duration(i)*time.Minute))).Log(hooklib.Info, fmt.Sprint(i))
	}
	f, err := os.OpenFile(filepath.Join(dir, "a-2026-03-01.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("not JSON\n{\"time\":3}\n{\"message\":\"cut"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := Entries(dir, func(e Entry) bool {
		got += e.Program + e.Message + " "
		if e.Level != "info" || e.Fields["pid"] != float64(os.Getpid()) || e.Time.IsZero() {
			t.Errorf("entry %+v", e)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if want := "b1 a0 b3 a2 "; got != want {
		t.Errorf("entries %q, want %q", got, want)
	}
	n := 0
	if err := Entries(dir, func(Entry) bool { n++; return false }); err != nil || n != 1 {
		t.Errorf("%d entries after the first, %v", n, err)
	}
	if err := Entries(filepath.Join(dir, "none"), func(Entry) bool { return true }); err != nil {
		t.Error(err)
	}
}
