package spool

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// A Waiting is one session in the spool.
type Waiting struct {
	SessionID  string
	StoreRoot  string // empty if the spool does not know it
	Transcript string // where it was at hand-off, if known
	Since      time.Time
	Parked     bool // rests until tomorrow, or until its next event
	Attempts   int  // that failed
	LastError  string
	LastTry    time.Time
	Pinned     bool  // its transcript has a second name or a copy in the spool
	Size       int64 // bytes of that
	OnlyName   bool  // the original is gone: the spool holds the last name of those bytes
}

// A Summary is what a spool holds.
type Summary struct {
	Waiting []Waiting // in the order in which they would be worked on
	Aside   []string  // paths of files that were set aside
	Newer   []string  // paths of jobs written by a later version
	Errors  []error   // what could not be read
	Busy    bool      // somebody is draining it
}

// Status tells what is in the spool dir, without changing anything. A spool
// that does not exist is empty.
func Status(dir string) (Summary, error) {
	s, err := scanSpool(dir)
	if err != nil {
		return Summary{}, err
	}
	sum := Summary{Newer: s.newer, Errors: s.errs}
	for _, u := range s.units {
		w := Waiting{
			SessionID: u.Session, StoreRoot: u.root, Transcript: u.job.Transcript,
			Parked: !u.fresh(), Attempts: u.job.Attempts, LastError: u.job.LastError, LastTry: u.job.LastTry,
		}
		if w.StoreRoot == "" {
			if root, err := readStore(dir, u.Store); err == nil {
				w.StoreRoot = root
			}
		}
		for _, name := range append(u.jobs, u.parked...) {
			if n, ok := parseJobName(name); ok {
				if t := time.Unix(0, n.Nanos); w.Since.IsZero() || t.Before(w.Since) {
					w.Since = t
				}
			}
		}
		pins := []string{}
		for _, n := range u.snaps {
			pins = append(pins, n.String())
		}
		if u.pin != "" {
			pins = append(pins, u.pin)
		}
		for _, name := range pins {
			fi, err := os.Lstat(filepath.Join(dir, pinsDir, name))
			if err != nil {
				continue // it is done, just now
			}
			w.Pinned, w.Size = true, fi.Size()
			if links, ok := durable.Links(fi); ok && name == u.pin {
				w.OnlyName = links == 1
			}
			if w.Since.IsZero() {
				w.Since = fi.ModTime()
			}
		}
		sum.Waiting = append(sum.Waiting, w)
	}
	aside, err := readDir(filepath.Join(dir, asideDir))
	if err != nil {
		return sum, err
	}
	for _, e := range aside {
		sum.Aside = append(sum.Aside, filepath.Join(dir, asideDir, e.Name()))
	}
	sum.Aside = append(sum.Aside, s.strange...)
	if _, err := os.Lstat(filepath.Join(dir, lockFile)); err == nil {
		unlock, err := durable.TryLock(filepath.Join(dir, lockFile), durable.Shared)
		switch {
		case errors.Is(err, durable.ErrLocked):
			sum.Busy = true
		case err != nil:
			return sum, err
		default:
			if err := unlock(); err != nil {
				return sum, err
			}
		}
	}
	return sum, nil
}

// Waits tells whether a job, as a [Receipt] names it, is still to be done for
// the first time: a worker has neither finished nor failed.
func Waits(dir, job string) bool {
	j, err := readJob(filepath.Join(dir, jobsDir, filepath.Base(job)))
	return err == nil && j.Attempts == 0
}

// Purge removes every trace of a session from the spool dir: jobs, parked ones
// and those set aside, pins, snapshots and side files. A drainer that is working on the session at the time writes
// nothing of it back. A spool that does not exist has none.
func Purge(dir, sessionID string) (failed error) {
	if !ValidSessionID(sessionID) {
		return errors.New("purge: session id is not valid")
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	p := &purger{id: sessionID}
	unlock, err := durable.TryLock(filepath.Join(dir, lockFile), durable.Exclusive)
	if err == nil {
		// Nobody is making a copy, so what looks like one in the making was
		// left behind, and may be of this session.
		_, err := durable.Sweep(filepath.Join(dir, pinsDir), 0, time.Unix(1<<40, 0))
		p.errs = append(p.errs, err)
		defer func() { failed = errors.Join(failed, unlock()) }()
	} else if !errors.Is(err, durable.ErrLocked) {
		p.errs = append(p.errs, err)
	}
	for _, sub := range []string{jobsDir, parkedDir, pinsDir, settlingDir, sideDir, asideDir, "."} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			p.errs = append(p.errs, err)
			continue
		}
		for _, e := range entries {
			path := filepath.Join(dir, sub, e.Name())
			switch {
			case sub == "." && e.IsDir():
			case strings.Contains(e.Name(), sessionID):
				p.remove(path, e.IsDir())
			case sub == jobsDir, sub == parkedDir, sub == asideDir, sub == "." && e.Name() != lockFile:
				// A strange file may name the session inside.
				if e.Type().IsRegular() && p.mentions(path) {
					p.remove(path, false)
				}
			}
		}
		if p.removed {
			p.errs = append(p.errs, durable.SyncDir(filepath.Join(dir, sub)))
			p.removed = false
		}
	}
	return errors.Join(p.errs...)
}

type purger struct {
	id      string
	removed bool // something, from the folder at hand
	errs    []error
}

func (p *purger) remove(path string, isDir bool) {
	var err error
	if isDir {
		err = removeTree(path)
	} else {
		err = removeIfThere(path)
	}
	p.removed = true
	if err != nil {
		p.errs = append(p.errs, err)
	}
}

// mentions looks into a file that a job could be; one that is longer is not
// of our making.
func (p *purger) mentions(path string) bool {
	fi, err := os.Lstat(path)
	if err != nil || fi.Size() > maxJobBytes {
		return false
	}
	data, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(data), p.id)
}
