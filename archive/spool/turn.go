package spool

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

const (
	// turnDescriptor is where a worker finds the lock that it was started with,
	// turnEnv says that there is one.
	turnDescriptor = 3
	turnEnv        = "SESSION_KEEPER_TURN"
)

// turnPatience is how long a worker waits for the end of the one before it.
const turnPatience = 10 * time.Second

// A Turn is what makes a process the worker of a spool. There are two at a
// time at most: a worker that drains, or is about to end, and one that waits
// for it, however many events ask for one. [Start] takes the turn before there
// is a worker, and hands it over.
//
// Whoever finds somebody waiting is free to go: the one who waits looks into
// the spool only after it has stopped waiting, and so after everybody that it
// kept away.
type Turn struct {
	wait func() error // gives back the place of the one who waits
	work func() error // gives back the place of the one who drains
}

// TakeTurn makes this process the worker of the spool dir: with the place that
// Start handed over, else with a free one. ErrBusy says that another process
// waits already. It returns when the worker before it has ended, or after
// ten seconds: whether the spool can be drained then is for [Drain] to find out,
// which excludes others by a lock of its own.
func TakeTurn(ctx context.Context, dir string) (*Turn, error) {
	wait, err := takeWait(filepath.Join(dir, turnFile))
	if errors.Is(err, durable.ErrLocked) {
		return nil, ErrBusy
	}
	if err != nil {
		return nil, err
	}
	t := &Turn{wait: wait}
	ctx, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	unlock, err := durable.Lock(ctx, filepath.Join(dir, workerFile), durable.Exclusive)
	switch {
	case err == nil:
		t.work = unlock
	case !errors.Is(err, durable.ErrLocked):
		return nil, errors.Join(err, t.End())
	}
	return t, nil
}

func takeWait(path string) (unlock func() error, err error) {
	if os.Getenv(turnEnv) != "" {
		if err := os.Unsetenv(turnEnv); err != nil {
			return nil, err
		}
		// What was handed over for another spool is of no use here, nor
		// anywhere else.
		if unlock, err := durable.AdoptLock(turnDescriptor, path); err == nil {
			return unlock, nil
		}
	}
	return durable.TryLock(path, durable.Exclusive)
}

// Begin says that the spool's content is looked at from now on: another worker
// may wait. It is meant for DrainOptions.Begin. A second time it does nothing.
func (t *Turn) Begin() error {
	if t == nil || t.wait == nil {
		return nil
	}
	unlock := t.wait
	t.wait = nil
	return unlock()
}

// End says that the worker is through, and will not come back.
func (t *Turn) End() error {
	if t == nil {
		return nil
	}
	err := t.Begin()
	if t.work != nil {
		err = errors.Join(err, t.work())
		t.work = nil
	}
	return err
}
