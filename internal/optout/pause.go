package optout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// Interval is a pause. A zero Until has no planned end; a zero Ended was not
// ended by a person.
type Interval struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until,omitzero"`
	Ended time.Time `json:"ended,omitzero"`
}

// End returns when the pause was or will be over; false if that is open.
func (p Interval) End() (time.Time, bool) {
	switch {
	case p.Ended.IsZero():
		return p.Until, !p.Until.IsZero()
	case !p.Until.IsZero() && p.Until.Before(p.Ended):
		return p.Until, true
	}
	return p.Ended, true
}

// Contains tells whether t lies in the pause.
func (p Interval) Contains(t time.Time) bool {
	end, ok := p.End()
	return !t.Before(p.From) && (!ok || t.Before(end))
}

func (p Interval) String() string {
	text := "paused since " + p.From.Format(time.RFC3339)
	if end, ok := p.End(); ok {
		text = fmt.Sprintf("paused from %s until %s", p.From.Format(time.RFC3339), end.Format(time.RFC3339))
	}
	return text
}

// pauseFile holds all pauses there ever were: a session that was last active
// in one of them stays out.
const pauseFile = "pause.json"

// pauseLockWait bounds the wait for another command that changes the pauses.
const pauseLockWait = 5 * time.Second

// Pause stops archiving from now on, until a time or, if that is zero, until
// Unpause. In a pause it changes the pause's end.
func Pause(state string, until, now time.Time) error {
	if !until.IsZero() && !until.After(now) {
		return fmt.Errorf("the end of the pause, %s, is past", until.Format(time.RFC3339))
	}
	return changePauses(state, func(pauses []Interval) ([]Interval, bool) {
		if n := len(pauses); n > 0 && holds(pauses[n-1], now) {
			pauses[n-1].Until = until.UTC()
			return pauses, true
		}
		return append(pauses, Interval{From: now.UTC(), Until: until.UTC()}), true
	})
}

// Unpause ends the pause and tells whether there was one.
func Unpause(state string, now time.Time) (was bool, err error) {
	err = changePauses(state, func(pauses []Interval) ([]Interval, bool) {
		if n := len(pauses); n > 0 && holds(pauses[n-1], now) {
			pauses[n-1].Ended = now.UTC()
			was = true
		}
		return pauses, was
	})
	return was, err
}

// Pauses returns all remembered pauses, oldest first.
func Pauses(state string) ([]Interval, error) {
	path := filepath.Join(state, pauseFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || isNoFolder(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var file struct {
		Pauses []Interval `json:"pauses"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s is damaged, so it cannot be told whether archiving is paused: %w", path, err)
	}
	return file.Pauses, nil
}

// PausedAt returns the pause that holds now.
func PausedAt(state string, now time.Time) (Interval, bool, error) {
	pauses, err := Pauses(state)
	if err != nil || len(pauses) == 0 {
		return Interval{}, false, err
	}
	last := pauses[len(pauses)-1]
	return last, holds(last, now), nil
}

// holds tells whether the last pause holds. A pause that begins after now was
// made before the clock was set back: it holds.
func holds(p Interval, now time.Time) bool {
	return p.Ended.IsZero() && (p.Until.IsZero() || now.Before(p.Until))
}

func changePauses(state string, change func([]Interval) ([]Interval, bool)) (err error) {
	if err := durable.MkdirAll(state); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), pauseLockWait)
	defer cancel()
	unlock, err := durable.Lock(ctx, filepath.Join(state, pauseFile+".lock"), durable.Exclusive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	pauses, err := Pauses(state)
	if err != nil {
		return err
	}
	pauses, changed := change(pauses)
	if !changed {
		return nil
	}
	data, err := json.MarshalIndent(map[string]any{"pauses": pauses}, "", "  ")
	if err != nil {
		return err
	}
	return durable.ReplaceFile(filepath.Join(state, pauseFile), append(data, '\n'))
}

// isNoFolder reports an error that says that a folder on the way to a file is
// no folder: then the file is not there either.
func isNoFolder(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
