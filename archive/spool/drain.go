package spool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// Drain works on everything in the spool dir that is due: jobs in the order of
// their hand-offs, those of one session and file together, then pins without a
// job. It starts no goroutine. A spool that does not exist is empty.
//
// Only one drains a spool at a time; for all others Drain is ErrBusy at once.
// When it is through and has given the lock back, it looks once more, so that
// a hand-off whose worker came to a taken lock is not left lying. A drainer
// that is killed leaves the lock free and nothing half done: what it stored
// is stored again, which changes nothing.
//
// The error is about the spool as a whole, or ctx's; what became of single
// sessions is in the Stats and told to Report.
func Drain(ctx context.Context, dir string, o DrainOptions) (Stats, error) {
	if _, err := os.Stat(dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return Stats{}, nil
		}
		return Stats{}, err
	}
	d := &drainer{dir: dir, o: o, now: o.Now, tried: map[string]bool{}, returned: map[string]int{}}
	if d.now == nil {
		d.now = time.Now
	}
	for first := true; ; first = false {
		unlock, err := durable.TryLock(filepath.Join(dir, lockFile), durable.Exclusive)
		if errors.Is(err, durable.ErrLocked) {
			if first {
				return d.stats, ErrBusy
			}
			return d.stats, nil // whoever has it now sees what we saw
		}
		if err != nil {
			return d.stats, err
		}
		if first && o.Begin != nil {
			o.Begin()
		}
		err = d.drain(ctx, first)
		if err := errors.Join(err, unlock()); err != nil {
			return d.stats, err
		}
		units, left, err := d.waiting()
		d.stats.Left = left
		if err != nil || len(units) == 0 {
			return d.stats, err
		}
	}
}

type drainer struct {
	dir      string
	o        DrainOptions
	now      func() time.Time
	stats    Stats
	tried    map[string]bool // names of files (unit.names) that had their turn in this drain
	returned map[string]int  // how often a pin was found changed when it was to go
	deaths   map[string]int  // how often a drainer died over a unit
	noClone  bool            // the spool's file system has no snapshots
}

// drain works until nothing is left that did not have its turn. The caller
// holds the lock.
func (d *drainer) drain(ctx context.Context, first bool) error {
	if first {
		d.tidy()
	}
	for {
		units, left, err := d.waiting()
		d.stats.Left = left
		if err != nil || len(units) == 0 {
			return err
		}
		if err := d.snapshots(ctx, units); err != nil {
			return err
		}
		for _, u := range units {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := d.unit(ctx, u); err != nil {
				return err
			}
		}
	}
}

// tidy puts right what an earlier drainer did not live to finish. What cannot
// be put right now keeps nobody from working.
func (d *drainer) tidy() {
	for _, sub := range []string{".", jobsDir, pinsDir, parkedDir, storesDir} {
		if _, err := durable.Sweep(filepath.Join(d.dir, sub), tempAge, d.now()); err != nil {
			d.report(Outcome{What: Failed, File: filepath.Join(d.dir, sub), Err: err})
		}
	}
	d.deaths = map[string]int{}
	if data, err := os.ReadFile(filepath.Join(d.dir, tryingFile)); err == nil {
		var t trying
		// It is written without a sync, so it may be empty after a power cut.
		if json.Unmarshal(data, &t) == nil {
			d.deaths[t.Unit] = t.Deaths + 1
		}
	}
	if err := unsettle(d.dir); err != nil {
		d.report(Outcome{What: Failed, File: filepath.Join(d.dir, settlingDir), Err: err})
	}
}

// waiting lists the units that are due and did not have their turn, and counts
// all that are waiting, of whatever session. Strange files are set aside.
func (d *drainer) waiting() (units []*unit, left int, err error) {
	s, err := scanSpool(d.dir)
	if err != nil {
		return nil, 0, err
	}
	for _, path := range s.strange {
		if d.tried[path] {
			continue
		}
		d.tried[path] = true
		to, err := setAside(d.dir, path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			to = path
		}
		d.stats.SetAside++
		d.report(Outcome{What: SetAside, File: to, Err: err})
	}
	now := d.now()
	for _, u := range s.units {
		if u.root == "" {
			u.root = d.rootOf(u.Store)
		}
		due := u.due(now)
		if u.root == "" || !due && !d.o.Parked {
			continue
		}
		if due {
			left++
		}
		had := d.o.Session != "" && u.Session != d.o.Session
		if !had && slices.ContainsFunc(u.names(), func(name string) bool { return !d.tried[name] }) {
			units = append(units, u)
		}
	}
	// One that its drainers die of lets all others go first.
	slices.SortStableFunc(units, func(a, b *unit) int {
		return cmp.Compare(d.deaths[a.String()], d.deaths[b.String()])
	})
	return units, left, nil
}

// rootOf finds the root of a store of which only the key is known.
func (d *drainer) rootOf(key string) string {
	if root, err := readStore(d.dir, key); err == nil {
		return root
	}
	for _, root := range d.o.StoreRoots {
		if cleanAbs(root) && StoreKey(root) == key {
			return root
		}
	}
	return ""
}

// unit gives one unit to Process and lets go of it, or records the failure.
// The error is ctx's.
func (d *drainer) unit(ctx context.Context, u *unit) error {
	again := false // its files, or others by their names, may have another turn
	defer func() {
		for _, name := range u.names() {
			d.tried[name] = !again
		}
	}()
	if deaths := d.deaths[u.String()]; deaths >= maxFailures || (deaths > 0 && !u.fresh()) {
		delete(d.deaths, u.String())
		d.notTrying()
		return d.failed(ctx, u, fmt.Errorf("%w: the worker died %d times while it worked on this", ErrRefused, deaths))
	}
	d.trying(u)
	s, err := d.store(ctx, u)
	d.notTrying()
	if err != nil {
		return d.failed(ctx, u, err)
	}
	out := Outcome{SessionID: u.Session, StoreRoot: u.root, What: Changing, Archived: s.archived}
	if s.stable {
		gone, err := d.settle(u, s)
		if err != nil {
			return d.failed(ctx, u, fmt.Errorf("stored, but not removed from the spool: %w", err))
		}
		if gone {
			// A hand-off that found its pin gone may just make a new one.
			out.What, again = Done, true
		} else {
			// Another turn in this drain, but not for ever.
			d.returned[u.String()]++
			again = d.returned[u.String()] < maxRounds
		}
	}
	if out.What == Done {
		d.stats.Done++
	} else {
		d.stats.Changing++
	}
	d.report(out)
	return nil
}

// stored is what Process has done for a unit.
type stored struct {
	archived int64
	pin      fileState      // the state of the pin that the store holds
	side     map[string]Pin // the side pins, in the states that Process was given
	stable   bool           // the pin is in that state after Process as before
}

// store gives the unit's files to Process: a snapshot that the pin does not
// cover any more before the pin itself, and the pin until it keeps still.
func (d *drainer) store(ctx context.Context, u *unit) (stored, error) {
	var s stored
	process := func(path string) error {
		var err error
		if s.side, err = sidePins(d.dir, treeName{u.Store, u.Session}); err != nil {
			return err
		}
		w := u.work()
		w.Path, w.Side = path, newest(s.side)
		s.archived, err = d.process(ctx, w)
		return err
	}
	whole := func(size int64) error {
		if s.archived < size {
			return fmt.Errorf("only %d of %d bytes were stored", s.archived, size)
		}
		return nil
	}
	pin := filepath.Join(d.dir, pinsDir, u.pin)
	done := map[int]bool{}
	for range maxRounds {
		before, err := stateOf(pin)
		havePin := u.pin != "" && err == nil
		if u.pin != "" && err != nil && !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
		for _, n := range u.snaps {
			path := filepath.Join(d.dir, pinsDir, n.String())
			if done[n.Snap] || havePin && isPrefix(path, pin) {
				continue
			}
			state, err := stateOf(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				err = process(path)
			}
			if err == nil {
				err = whole(state.size)
			}
			if err != nil {
				return s, err
			}
			done[n.Snap] = true
		}
		if !havePin {
			if len(done) == 0 {
				// The live file is all there is, if it is.
				if err := process(""); err != nil {
					return s, err
				}
			}
			s.stable = true
			return s, nil
		}
		if err := process(pin); err != nil {
			return s, err
		}
		s.pin, err = stateOf(pin)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
		if err == nil && s.pin.equal(before) {
			s.stable = true
			return s, whole(s.pin.size)
		}
	}
	return s, nil
}

func (u *unit) work() Work {
	return Work{
		StoreRoot: u.root, SessionID: u.Session, Transcript: u.job.Transcript, Size: u.job.Size,
		Reason: u.job.Reason, Events: u.job.Events,
		ConfigDir: u.job.ConfigDir, Folder: u.job.Folder, Cwd: u.job.Cwd, Attempts: u.job.Attempts,
	}
}

// process calls Process and makes an error of its panic.
func (d *drainer) process(ctx context.Context, w Work) (archived int64, err error) {
	defer func() {
		if r := recover(); r != nil {
			archived, err = 0, fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return d.o.Process(ctx, w)
}

// failed records that a unit could not be stored, as its error says. Its own
// error is ctx's: what was interrupted has not failed.
func (d *drainer) failed(ctx context.Context, u *unit, cause error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	out := Outcome{SessionID: u.Session, StoreRoot: u.root, What: Failed, Err: cause}
	if errors.Is(cause, ErrDiscard) {
		err := d.drop(u)
		if err == nil {
			d.stats.Discarded++
			out.What = Discarded
			d.report(out)
			return nil
		}
		cause = errors.Join(cause, err)
		out.Err = cause
	}
	j := u.job
	if len(u.jobs)+len(u.parked) == 0 { // a bare pin gets a job now
		j = job{Version: jobVersion, Store: u.root, Session: u.Session}
		if n, ok := parsePinName(u.pin); ok {
			j.Pin = n.String()
		} else if len(u.snaps) > 0 {
			j.Pin = u.snaps[0].base().String()
		}
	}
	j.Attempts++
	j.LastError, j.LastTry = short(firstLine(cause.Error())), d.now()
	out.Attempts = j.Attempts
	sub := jobsDir
	if j.Attempts >= maxFailures || errors.Is(cause, ErrRefused) {
		sub, out.What = parkedDir, Parked
	}
	if err := d.rewrite(u, sub, j); err != nil {
		// A full disk, most likely. The job stays as it was and gets another
		// turn with the next drain.
		out.What, out.Err = Failed, errors.Join(cause, err)
	}
	if out.What == Parked {
		d.stats.Parked++
	} else {
		d.stats.Failed++
	}
	d.report(out)
	return nil
}

func firstLine(s string) string {
	for i, c := range s {
		if c == '\n' {
			return s[:i]
		}
	}
	return s
}

// rewrite puts one job in the place of all those of the unit, in the folder
// sub. What was forgotten meanwhile does not come back.
func (d *drainer) rewrite(u *unit, sub string, j job) error {
	forgotten := true
	for _, name := range u.names() {
		if _, err := os.Lstat(filepath.Join(d.dir, name)); !errors.Is(err, fs.ErrNotExist) {
			forgotten = false
		}
	}
	if forgotten {
		return nil
	}
	var name string
	switch {
	case len(u.jobs) > 0:
		name = u.jobs[0]
	case len(u.parked) > 0:
		name = u.parked[0]
	default:
		name = newJobName(u.Session, d.now()).String()
	}
	if err := writeJob(d.dir, sub, name, j); err != nil {
		return err
	}
	keep := sub + "/" + name
	d.tried[keep] = true
	var errs []error
	for _, old := range u.names()[:len(u.jobs)+len(u.parked)] {
		if old != keep {
			errs = append(errs, removeIfThere(filepath.Join(d.dir, old)))
		}
	}
	return errors.Join(errs...)
}

func removeIfThere(path string) error {
	if err := durable.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (d *drainer) report(o Outcome) {
	if d.o.Report != nil {
		d.o.Report(o)
	}
}

// trying is what the file of that name holds while Process runs.
type trying struct {
	Unit   string `json:"unit"`
	Deaths int    `json:"deaths"` // of drainers, before this one
}

// trying leaves word of what is being worked on. If the drainer dies of it
// (out of memory, say), the next one counts that as a failure, and sees to the
// others first. It is not synced: a power cut is nobody's fault. Where it
// cannot be written the work goes on without it; the store may well be on a
// disk that is not full.
func (d *drainer) trying(u *unit) {
	err := func() error {
		data, err := json.Marshal(trying{u.String(), d.deaths[u.String()]})
		if err != nil {
			return err
		}
		t, err := durable.CreateTemp(d.dir)
		if err != nil {
			return err
		}
		if _, err = t.Write(data); err == nil {
			if err = t.File.Close(); err == nil {
				if err = durable.Rename(t.Name(), filepath.Join(d.dir, tryingFile)); err == nil {
					return nil
				}
			}
		}
		return errors.Join(err, t.Discard())
	}()
	if err != nil {
		d.report(Outcome{What: Failed, File: filepath.Join(d.dir, tryingFile), Err: err})
	}
}

func (d *drainer) notTrying() {
	path := filepath.Join(d.dir, tryingFile)
	if err := removeIfThere(path); err != nil {
		d.report(Outcome{What: Failed, File: path, Err: err})
	}
}
