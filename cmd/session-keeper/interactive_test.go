package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/transcript"
)

// machine is a home in which commands run within the test's process.
type machine struct {
	t    *testing.T
	home string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &machine{t, home}
}

// run runs a command line of a person who answers what is asked.
func (m *machine) run(answer string, args ...string) (code int, out, errs string) {
	m.t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{
		in: strings.NewReader(answer), out: &stdout, errw: &stderr,
		env: config.Env{
			Getenv: func(string) string { return "" },
			Home:   m.home, Dir: m.home, GOOS: "linux",
		},
		now:         time.Now,
		interactive: true,
	}
	code = run(a, args)
	return code, stdout.String(), stderr.String()
}

const interactiveID = "0a1b2c3d-0000-4000-8000-000000000001"

func (m *machine) path() string {
	return filepath.Join(m.home, ".claude", "projects", transcript.FolderName(m.home), interactiveID+".jsonl")
}

// session writes a session of n turns and archives it.
func (m *machine) session(n int, archive bool) string {
	m.t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"type":"user","uuid":"u%d","timestamp":"2026-11-20T10:00:00Z","cwd":%q,"message":{"role":"user","content":"prompt %d"}}`+"\n", i, m.home, i)
		fmt.Fprintf(&b, `{"type":"assistant","uuid":"a%d","parentUuid":"u%d","timestamp":"2026-11-20T10:00:01Z","message":{"id":"m%d","role":"assistant","content":"answer"}}`+"\n", i, i, i)
	}
	if n == 0 {
		b.WriteString(`{"type":"mode","mode":"default"}` + "\n")
	}
	if err := os.MkdirAll(filepath.Dir(m.path()), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.path(), []byte(b.String()), 0o600); err != nil {
		m.t.Fatal(err)
	}
	if archive {
		if code, out, errs := m.run("", "archive", interactiveID); code != 0 {
			m.t.Fatalf("archive: %d\n%s%s", code, out, errs)
		}
	}
	return b.String()
}

func TestForgetAsks(t *testing.T) {
	for answer, want := range map[string]int{"n\n": exitFailed, "\n": exitFailed, "": exitFailed, "maybe\n": exitFailed, "y\n": exitOK, "YES\n": exitOK} {
		t.Run(fmt.Sprintf("%q", answer), func(t *testing.T) {
			m := newMachine(t)
			m.session(1, true)
			code, out, errs := m.run(answer, "forget", "last")
			if code != want || !strings.Contains(errs, "Forget session") {
				t.Fatalf("exit code %d, want %d\n%s%s", code, want, out, errs)
			}
			code, _, _ = m.run("", "cat", interactiveID, "--generation", "latest")
			if kept := code == exitOK; kept == (want == exitOK) {
				t.Errorf("after the answer the archived transcript is there: %v", kept)
			}
		})
	}
}

// AR-07, AR-08: which generation to restore is the user's choice where the
// newest one holds less.
func TestRestoreAsksWhich(t *testing.T) {
	for _, c := range []struct {
		answer string
		code   int
		turns  int // in the restored transcript; -1: none
	}{{"1\n", exitOK, 0}, {"2\n", exitOK, 5}, {"3\n", exitNotFound, -1}, {"\n", exitNotFound, -1}, {"", exitNotFound, -1}} {
		t.Run(fmt.Sprintf("%q", c.answer), func(t *testing.T) {
			m := newMachine(t)
			texts := map[int]string{5: m.session(5, true), 0: m.session(0, true)}
			if err := os.RemoveAll(filepath.Join(m.home, ".claude")); err != nil {
				t.Fatal(err)
			}
			code, out, errs := m.run(c.answer, "restore", interactiveID)
			if code != c.code || !strings.Contains(errs, "Which one? [1-2") || !strings.Contains(errs, "10 messages") {
				t.Fatalf("exit code %d, want %d\n%s%s", code, c.code, out, errs)
			}
			data, err := os.ReadFile(m.path())
			switch {
			case c.turns < 0 && err == nil:
				t.Error("something was restored")
			case c.turns >= 0 && (err != nil || string(data) != texts[c.turns]):
				t.Errorf("restored %d bytes, %v; want the one of %d turns", len(data), err, c.turns)
			}
		})
	}
}

// A failed run says so in one line and leaves nothing behind.
func TestErrorsAreNeutralised(t *testing.T) {
	m := newMachine(t)
	code, out, errs := m.run("", "show", "no\x1b[31m such")
	if code != exitNotFound || out != "" || strings.Contains(errs, "\x1b") {
		t.Errorf("exit code %d, output %q, errors %q", code, out, errs)
	}
}

// brokenWriter takes a few bytes and then fails, as a full disk does.
type brokenWriter struct{ left int }

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestFullOutputIsAnError(t *testing.T) {
	m := newMachine(t)
	m.session(3, true)
	for _, args := range [][]string{{"list"}, {"list", "--json"}, {"show", "last"}, {"cat", "last"}, {"cat", "last", "--files"}, {"verify"}, {"restore", "last"}} {
		var stderr bytes.Buffer
		a := &app{
			in: strings.NewReader(""), out: &brokenWriter{20}, errw: &stderr, now: time.Now,
			env: config.Env{Getenv: func(string) string { return "" }, Home: m.home, Dir: m.home, GOOS: "linux"},
		}
		if code := run(a, args); code != exitFailed {
			t.Errorf("%v: exit code %d, want %d", args, code, exitFailed)
		}
	}
}
