package restore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// A restore that was killed holds its lock until the system has ended it, so
// the next one waits a little; and not for ever.
func TestWaitsForTheOther(t *testing.T) {
	w := newWorld(t)
	plan := w.plan(t)
	unlock, err := durable.TryLock(w.lock, durable.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(t.Context(), plan, Options{Lock: w.lock, Now: now}); !errors.Is(err, ErrBusy) {
		t.Fatalf("beside another restore: %v, want %v", err, ErrBusy)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Apply(ctx, plan, Options{Lock: w.lock, Now: now}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted while waiting: %v", err)
	}
	timer := time.AfterFunc(300*time.Millisecond, func() {
		if err := unlock(); err != nil {
			t.Error(err)
		}
	})
	defer timer.Stop()
	if r, err := Apply(t.Context(), plan, Options{Lock: w.lock, Now: now}); err != nil || r.Written != 3 {
		t.Errorf("after another restore: %+v, %v; want 3 files written", r, err)
	}
}

// Restores of one session at the same time, planned before either did
// anything, both succeed.
func TestTheSameTwiceAtOnce(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	written := make(chan int, 4)
	for range cap(written) {
		plan := w.plan(t)
		wg.Go(func() {
			r, err := Apply(t.Context(), plan, Options{Lock: w.lock, Now: now})
			if err != nil {
				t.Error(err)
				return
			}
			if !r.Conversation {
				t.Error("no conversation found")
			}
			written <- r.Written
		})
	}
	wg.Wait()
	close(written)
	all := 0
	for n := range written {
		all += n
	}
	if all != 3 {
		t.Errorf("%d files written by all together, want 3", all)
	}
}

// plan is one of a session with two side files.
func (w *world) plan(t *testing.T) *Plan {
	t.Helper()
	p, err := Make(Request{
		SessionID: id, ConfigDir: w.config, Folder: w.folder, Cwds: []string{w.project}, Now: now, GOOS: "linux",
		Items: []Item{
			item("transcript", id+".jsonl", w.transcript, day),
			item("session", "subagents/agent-1.jsonl", "{}\n", day),
			item("session-env", "hook-0.sh", "export A=1\n", day),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A folder's name that only a hand-made archive or a strange disk has leads to a
// refusal before anything is written, not to half a session.
func TestNoPlaceForTheTranscript(t *testing.T) {
	for _, folder := range []string{"-weird\nname", "..", "a/b", `a\b`, "c:", "\x7f"} {
		w := newWorld(t)
		r := w.request(w.items()...)
		r.Folder = folder
		if p, err := Make(r); err == nil {
			t.Errorf("%q: planned for %q", folder, p.ProjectDir)
		}
		r.Project = w.project
		if p, err := Make(r); err != nil || p.Folder != w.folder {
			t.Errorf("%q: with a directory named: %v", folder, err)
		}
	}
}
