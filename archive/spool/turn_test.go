//go:build unix

package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// turnArg makes the test binary a worker that takes its turn, says so in a
// file, and keeps it for as long as another file is there.
const turnArg = "spool-test-turn"

func takeTurnAndTell(dir, told, keep string) error {
	handed := os.Getenv(turnEnv) != ""
	turn, err := TakeTurn(context.Background(), dir)
	if err != nil {
		return err
	}
	if err := os.WriteFile(told, fmt.Appendf(nil, "%v %v", handed, os.Getenv(turnEnv) != ""), 0o600); err != nil {
		return err
	}
	for {
		if _, err := os.Stat(keep); err != nil {
			return turn.End()
		}
		time.Sleep(time.Millisecond)
	}
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// RE-02: of many events at once one gets a worker, and that one has the turn
// before it has begun to run.
func TestStartHandsTheTurnOver(t *testing.T) {
	dir := t.TempDir()
	told, keep := filepath.Join(dir, "told"), filepath.Join(dir, "keep")
	if err := os.WriteFile(keep, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	results := make(chan error, 40)
	for range cap(results) {
		wg.Go(func() { results <- Start(dir, os.Args[0], turnArg, dir, told, keep) })
	}
	wg.Wait()
	started := 0
	for range cap(results) {
		switch err := <-results; {
		case err == nil:
			started++
		case !errors.Is(err, ErrBusy):
			t.Error(err)
		}
	}
	if started != 1 {
		t.Errorf("%d workers were started", started)
	}
	var said []byte
	eventually(t, "the worker tells", func() bool {
		said, _ = os.ReadFile(told)
		return len(said) > 0
	})
	if !bytes.Equal(said, []byte("true false")) {
		t.Errorf("the worker found: %s", said)
	}
	if err := Start(dir, os.Args[0], turnArg); !errors.Is(err, ErrBusy) {
		t.Errorf("while it waits: %v", err)
	}
	if _, err := TakeTurn(context.Background(), dir); !errors.Is(err, ErrBusy) {
		t.Errorf("while it waits: %v", err)
	}
	if err := os.Remove(keep); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the turn is free", func() bool {
		turn, err := TakeTurn(context.Background(), dir)
		if err == nil {
			err = turn.End()
		}
		return err == nil
	})
}

// A worker that dies before it took what it was given leaves the turn free.
func TestTurnOfADeadWorkerIsFree(t *testing.T) {
	dir := t.TempDir()
	if err := Start(dir, "/bin/sh", "-c", "kill -9 $$"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the turn is free", func() bool {
		turn, err := TakeTurn(context.Background(), dir)
		if err == nil {
			err = turn.End()
		}
		return err == nil
	})
}

// Beside the worker that drains one may wait, and a third may not.
func TestTurns(t *testing.T) {
	dir := t.TempDir()
	first, err := TakeTurn(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TakeTurn(context.Background(), dir); !errors.Is(err, ErrBusy) {
		t.Errorf("before it has begun: %v", err)
	}
	if err := errors.Join(first.Begin(), first.Begin()); err != nil {
		t.Fatal(err)
	}
	type result struct {
		turn *Turn
		err  error
	}
	second := make(chan result)
	go func() {
		turn, err := TakeTurn(context.Background(), dir)
		second <- result{turn, err}
	}()
	eventually(t, "the second waits", func() bool {
		unlock, err := durable.TryLock(filepath.Join(dir, turnFile), durable.Exclusive)
		if err == nil {
			if err := unlock(); err != nil {
				t.Error(err)
			}
			return false
		}
		return errors.Is(err, durable.ErrLocked)
	})
	if _, err := TakeTurn(context.Background(), dir); !errors.Is(err, ErrBusy) {
		t.Errorf("a third: %v", err)
	}
	select {
	case <-second:
		t.Error("the second did not wait for the end of the first")
	default:
	}
	if err := errors.Join(first.End(), first.End()); err != nil {
		t.Fatal(err)
	}
	got := <-second
	if got.err != nil {
		t.Fatal(got.err)
	}
	if err := got.turn.End(); err != nil {
		t.Error(err)
	}
	var none *Turn
	if err := errors.Join(none.Begin(), none.End()); err != nil {
		t.Errorf("no turn: %v", err)
	}
}

// A lock that was handed over for another spool is not taken for this one's.
func TestTurnOfAnotherSpool(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	told := filepath.Join(dir, "told")
	f, err := durable.LockToHandOn(filepath.Join(other, turnFile))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], turnArg, dir, told, filepath.Join(dir, "absent"))
	cmd.Env = append(os.Environ(), turnEnv+"=1")
	cmd.ExtraFiles = []*os.File{f}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if said, err := os.ReadFile(told); err != nil || string(said) != "true false" {
		t.Errorf("it said %q, %v", said, err)
	}
	turn, err := TakeTurn(context.Background(), other)
	if err != nil {
		t.Fatal(err)
	}
	if err := turn.End(); err != nil {
		t.Error(err)
	}
}
