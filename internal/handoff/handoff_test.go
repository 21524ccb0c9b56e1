//go:build unix

package handoff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/archive/spool"
	"github.com/session-keeper/session-keeper/hooklib"
	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/transcript"
)

const session = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a machine with a client and one session.
type world struct {
	*Handoff
	t          *testing.T
	client     string // the client's config folder
	transcript string
	log        *bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	base := t.TempDir()
	env := config.Env{Getenv: func(string) string { return "" }, Home: filepath.Join(base, "home"), Dir: base, GOOS: "linux"}
	s, err := config.Load(env)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: filepath.Join(env.Home, ".claude"), log: &bytes.Buffer{}}
	w.Handoff = New(s, logger{w.log})
	w.Now = func() time.Time { return now }
	w.NoWorker = true
	w.transcript = w.write(filepath.Join(w.client, "projects", "-w-proj", session+".jsonl"), "{}\n")
	return w
}

type logger struct{ w *bytes.Buffer }

func (l logger) Log(level hooklib.Level, message string, pairs ...any) {
	fmt.Fprintln(l.w, append([]any{level, message}, pairs...)...)
}

func (w *world) write(path, text string) string {
	w.t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return path
}

// event runs the handler as the hook does, but for the process.
func (w *world) event(name string, start time.Time) error {
	w.t.Helper()
	event, err := hooklib.ParseEvent(fmt.Appendf(nil, `{"session_id":%q,"transcript_path":%q,"hook_event_name":%q}`, session, w.transcript, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return w.Handle(context.Background(), &hooklib.Call{Event: event, Start: start, Log: w.Log, Stdout: io.Discard, Stderr: io.Discard})
}

// The words for reasons are the archive's, which is not linked into a hook.
func TestReasons(t *testing.T) {
	for have, want := range map[string]archive.Reason{sessionEnd: archive.SessionEnd, stop: archive.Stop, catchUp: archive.CatchUp} {
		if have != string(want) {
			t.Errorf("%q for %q", have, want)
		}
	}
}

// When a hook waits for the worker, and when not.
func TestAwaitWorker(t *testing.T) {
	tests := []struct {
		name  string
		mode  config.Inline
		event string
		late  time.Duration // how long the hook has run already
		size  int
		want  bool
	}{
		{name: "small", mode: config.InlineAuto, event: "SessionEnd", want: true},
		{name: "never", mode: config.InlineNever, event: "SessionEnd"},
		{name: "a turn", mode: config.InlineAuto, event: "Stop"},
		{name: "late", mode: config.InlineAuto, event: "SessionEnd", late: time.Second},
		{name: "late, always", mode: config.InlineAlways, event: "SessionEnd", late: time.Second, want: true},
		{name: "a turn, always", mode: config.InlineAlways, event: "Stop"},
		{name: "large", mode: config.InlineAuto, event: "SessionEnd", size: inlineBytes + 1},
		{name: "large, always", mode: config.InlineAlways, event: "SessionEnd", size: inlineBytes + 1, want: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.Settings.Archive.Inline = tt.mode
			w.write(w.transcript, strings.Repeat("\n", max(tt.size, 1)))
			began := filepath.Join(w.client, "began")
			// It has the job done a while after it was started, as a worker does.
			w.NoWorker = false
			w.Worker = w.program("echo > '" + began + "'; sleep 0.05; rm \"$1\"/jobs/*")
			// A start to come means that no time has passed, however busy
			// the machine.
			if err := w.event(tt.event, time.Now().Add(time.Minute-tt.late*100)); err != nil {
				t.Fatal(err)
			}
			left, err := os.ReadDir(filepath.Join(config.DefaultSpool(w.Settings.Paths.State), "jobs"))
			if err != nil {
				t.Fatal(err)
			}
			if waited := len(left) == 0; waited != tt.want {
				t.Errorf("waited: %v, want %v\n%s", waited, tt.want, w.log)
			}
			w.eventually("the worker has run", func() bool {
				left, err := os.ReadDir(filepath.Join(config.DefaultSpool(w.Settings.Paths.State), "jobs"))
				return err == nil && len(left) == 0
			})
		})
	}
}

// A worker that does not get it done in time, or fails, holds no hook.
func TestAwaitWorkerEnds(t *testing.T) {
	w := newWorld(t)
	w.Settings.Archive.Inline = config.InlineAuto
	start := time.Now()
	c := &hooklib.Call{Start: start, Log: w.Log}
	dir, receipt, err := w.Leave(context.Background(), transcript.Bundle{
		SessionID: session, Transcript: w.transcript, ConfigDir: w.client, Folder: "-w-proj", ProjectDir: filepath.Dir(w.transcript),
	}, sessionEnd, spool.Event{Name: "SessionEnd", Time: now}, "")
	if err != nil {
		t.Fatal(err)
	}
	w.NoWorker = false
	c.Start = time.Now()
	w.awaitWorker(c, dir, receipt)
	if !spool.Waits(dir, receipt.Job) {
		t.Error("the job is gone: there is no worker")
	}

	w.Settings.Archive.Inline = config.InlineAlways
	_, err = spool.Drain(context.Background(), dir, spool.DrainOptions{
		Process: func(context.Context, spool.Work) (int64, error) { return 0, errors.New("no space") },
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { w.awaitWorker(c, dir, receipt); close(done) }()
	select {
	case <-done:
	case <-time.After(alwaysBudget / 2):
		t.Error("it waits for a job that has failed")
	}
}

// Without the worker's program nothing is lost, and the user is told.
func TestNoWorker(t *testing.T) {
	w := newWorld(t)
	w.NoWorker = false
	w.Worker = filepath.Join(w.client, "absent")
	err := w.event("SessionEnd", time.Now())
	var failure *hooklib.Failure
	if !errors.As(err, &failure) || !strings.Contains(failure.Hint, "install") {
		t.Errorf("%v", err)
	}
	sum, err := spool.Status(config.DefaultSpool(w.Settings.Paths.State))
	if err != nil || len(sum.Waiting) != 1 || !sum.Waiting[0].Pinned {
		t.Errorf("%+v, %v", sum, err)
	}
}

// A store that has failed for long is told of, and one that failed just now,
// or works again, is not.
func TestLongFailure(t *testing.T) {
	w := newWorld(t)
	path := w.StatePath(w.Settings.Paths.Store)
	for text, want := range map[string]bool{
		`{"root":"/r","error":"no space","failing":"2026-02-27T12:00:00Z"}`: true,
		`{"root":"/r","error":"no space","failing":"2026-03-01T11:00:00Z"}`: false,
		`{"root":"/r","opened":"2026-02-01T12:00:00Z"}`:                     false,
		`{`: false,
	} {
		w.write(path, text)
		if err := w.event("SessionEnd", time.Now()); (err != nil) != want || err != nil && !strings.Contains(err.Error(), "/r") {
			t.Errorf("%s: %v", text, err)
		}
		if err := w.event("Stop", time.Now()); err != nil {
			t.Errorf("%s, at a turn: %v", text, err)
		}
	}
}

// program makes a shell script a program.
func (w *world) program(script string) string {
	w.t.Helper()
	path := w.write(filepath.Join(w.client, "program"), "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(path, 0o700); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) eventually(what string, done func() bool) {
	w.t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not within 20 s: %s\n%s", what, w.log)
		}
	}
}

// The spool must be on the transcript's file system for a hard link.
func TestSpoolsFor(t *testing.T) {
	w := newWorld(t)
	state := config.DefaultSpool(w.Settings.Paths.State)
	beside := filepath.Join(w.client, clientSpool)
	path := w.transcript
	if got := w.spoolsFor(path, w.client); !slices.Equal(got, []string{state, beside}) {
		t.Errorf("same device: %q", got)
	}
	if got := w.spoolsFor(filepath.Join(w.client, "gone"), w.client); got[0] != state {
		t.Errorf("no file: %q", got)
	}
	if got := w.spoolsFor(path, ""); !slices.Equal(got, []string{state}) {
		t.Errorf("no client folder: %q", got)
	}
	// Files under /dev/shm, /proc and the like are on other devices than
	// temporary folders; one of them is there on every Linux.
	for _, other := range []string{"/dev/null", "/proc/self/stat"} {
		if _, err := os.Stat(other); err == nil {
			if got := w.spoolsFor(other, w.client); !slices.Equal(got, []string{beside, state}) {
				t.Errorf("%s: %q", other, got)
			}
		}
	}
	if err := config.RememberSpool(w.Settings.Paths.State, "/mnt/x/spool"); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Spools(); err != nil || !slices.Equal(got, []string{state, "/mnt/x/spool", beside}) {
		t.Errorf("all: %q, %v", got, err)
	}
}

// NW-01: a client that has stopped writing is noticed, one inside another is
// not complained of.
func TestStale(t *testing.T) {
	old := transcript.Bundle{Transcript: "/t", ModTime: now.Add(-time.Hour)}
	nested := exec.Command("sleep", "60") // stands for a client inside another
	nested.Env = []string{"CLAUDE_CODE_CHILD_SESSION=1"}
	if err := nested.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := nested.Process.Kill(); err != nil {
			t.Error(err)
		}
		nested.Wait() // it was killed
	}()
	// Its environment can be read a moment after it has begun.
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if is, known := (hooklib.Env{PID: nested.Process.Pid}).Nested(); is || !known && runtime.GOOS != "linux" {
			break
		}
	}
	prompt := spool.Event{PromptID: "p", Reason: "other"}
	for _, tt := range []struct {
		name string
		env  hooklib.Env
		ev   spool.Event
		b    transcript.Bundle
		want bool
	}{
		{"old", hooklib.Env{}, prompt, old, true},
		{"fresh", hooklib.Env{}, prompt, transcript.Bundle{Transcript: "/t", ModTime: now.Add(-time.Minute)}, false},
		{"no prompt", hooklib.Env{}, spool.Event{Reason: "other"}, old, false},
		{"clear", hooklib.Env{}, spool.Event{PromptID: "p", Reason: "clear"}, old, false},
		// Each hook of the client has that variable, whoever started the client.
		{"child", hooklib.Env{Child: true}, prompt, old, true},
		{"nested", hooklib.Env{Child: true, PID: nested.Process.Pid}, prompt, old, false},
		{"husk", hooklib.Env{}, prompt, transcript.Bundle{ModTime: old.ModTime}, false},
	} {
		if got := isStale(&hooklib.Call{Env: tt.env}, occasion{event: tt.ev}, tt.b, now); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
