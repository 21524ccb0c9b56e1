//go:build linux || darwin

package hooktest

import (
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/hooklib"
)

func ignoreTerm() { signal.Ignore(syscall.SIGTERM) }

// SE-04, SE-10: SIGTERM when the time is up, SIGKILL later.
func TestEndOfTheBudget(t *testing.T) {
	s := New(t)
	p := self(t, "forever")
	r := s.Run(t, p, s.Payload(hooklib.NameSessionEnd))
	if !r.TimedOut || r.Killed || r.ExitCode != -1 || r.Took < hooklib.DefaultSessionEndBudget {
		t.Errorf("%+v", r)
	}
	p = self(t, "deaf")
	p.Timeout = 500 * time.Millisecond
	r = s.Run(t, p, s.Payload(hooklib.NameSessionEnd))
	if !r.TimedOut || !r.Killed || r.Took < p.Timeout+hooklib.KillDelay {
		t.Errorf("%+v", r)
	}
}

// What a hook started dies with it when its time is up, whatever its session;
// what was started by a hook that has returned lives on, and ends with the
// test.
func TestWhatAHookStarted(t *testing.T) {
	var returned, ended *Result
	t.Run("runs", func(t *testing.T) {
		s := New(t)
		p := self(t, "worker")
		p.Timeout = time.Minute
		returned = s.Run(t, p, s.Payload(hooklib.NameSessionEnd))
		returned.Check(t)
		p = self(t, "parent")
		p.Timeout = time.Second
		ended = s.Run(t, p, s.Payload(hooklib.NameSessionEnd))
		if !ended.TimedOut {
			t.Errorf("%+v", ended)
		}
		for end := time.Now().Add(time.Minute); len(returned.Survivors()) != 1; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d survivors of a hook that returned", len(returned.Survivors()))
			}
		}
		waitGone(t, ended, "of a hook that was ended")
	})
	waitGone(t, returned, "of the test")
	if (&Result{}).Survivors() != nil {
		t.Error("something survives a call")
	}
}

// waitGone waits for the end of what was killed.
func waitGone(t *testing.T, r *Result, what string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); len(r.Survivors()) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("survivors %s: %v", what, r.Survivors())
		}
	}
}
