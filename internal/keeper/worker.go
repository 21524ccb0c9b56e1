package keeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/archive/spool"
	"github.com/session-keeper/session-keeper/hooklib"
	"github.com/session-keeper/session-keeper/internal/durable"
	"github.com/session-keeper/session-keeper/internal/handoff"
	"github.com/session-keeper/session-keeper/internal/logfile"
	"github.com/session-keeper/session-keeper/internal/optout"
	"github.com/session-keeper/session-keeper/transcript"
)

// stopLag is how long after the event of a turn's end its answer may still be
// on its way to the file, and after that of a compaction the prompt that
// triggered it (observed on 2.1.332: 90 to 160 ms, interactive).
const stopLag = 300 * time.Millisecond

// sweepInterval is how often leftovers of killed processes are removed.
const sweepInterval = 24 * time.Hour

// RunWorker drains the spool dir, if it is not "", and then the others that
// are known, and removes what is old. A spool that another worker drains or
// waits for is left to it.
func (k *Keeper) RunWorker(ctx context.Context, dir string) error {
	dirs, err := k.Spools()
	if err != nil {
		k.Log.Log(warn, "remembered spools", "error", err)
	}
	if dir != "" {
		dirs = slices.DeleteFunc(dirs, func(d string) bool { return d == dir })
		dirs = append([]string{dir}, dirs...)
	}
	w := k.newWorker()
	defer w.endTurns()
	errs := w.drain(ctx, dirs)
	k.cleanUp(ctx)
	return errors.Join(errs...)
}

// drain drains spools one after another. What became of each session is
// logged; an error is about a spool as a whole.
func (w *worker) drain(ctx context.Context, dirs []string) []error {
	var errs []error
	for _, dir := range dirs {
		if ctx.Err() != nil {
			break
		}
		if !isThere(dir) {
			continue
		}
		stats, err := w.drainInTurn(ctx, dir)
		for end := time.Now().Add(w.patience); errors.Is(err, spool.ErrBusy) && time.Now().Before(end) && ctx.Err() == nil; {
			time.Sleep(busyWaits[0])
			stats, err = w.drainInTurn(ctx, dir)
		}
		switch {
		case errors.Is(err, spool.ErrBusy) && w.patience > 0:
			errs = append(errs, fmt.Errorf("spool %s: %w; what is left in it will be archived later", dir, err))
		case errors.Is(err, spool.ErrBusy):
		case err != nil:
			errs = append(errs, fmt.Errorf("spool %s: %w", dir, err))
			w.Log.Log(failure, "spool", "spool", dir, "error", err)
		case stats != spool.Stats{}:
			w.Log.Log(info, "drained", "spool", dir, "done", stats.Done, "changing", stats.Changing, "failed", stats.Failed,
				"parked", stats.Parked, "discarded", stats.Discarded, "set_aside", stats.SetAside, "left", stats.Left)
		}
	}
	return errs
}

// busyWaits are the waits between the tries to drain a spool that is taken.
// Another drainer sees to all that is in it, but a command that only looks, or
// forgets a session, does not, and is done in a moment.
var busyWaits = []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}

// drainInTurn drains a spool when it is this worker's turn. It is
// spool.ErrBusy if another one waits for that, or if the spool stays taken.
func (w *worker) drainInTurn(ctx context.Context, dir string) (spool.Stats, error) {
	turn, err := spool.TakeTurn(ctx, dir)
	switch {
	case errors.Is(err, spool.ErrBusy):
		return spool.Stats{}, err
	case err != nil: // a disk that is full, say; to be one too many is no harm
		w.Log.Log(warn, "turn", "spool", dir, "error", err)
	default:
		w.turns = append(w.turns, turn)
	}
	options := w.drainOptions()
	options.Begin = func() { w.check("turn", turn.Begin()) }
	for _, wait := range busyWaits {
		stats, err := spool.Drain(ctx, dir, options)
		if !errors.Is(err, spool.ErrBusy) {
			return stats, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return stats, ctx.Err()
		}
	}
	// The next one may wait from here on: whoever was kept away before has
	// left its job by now, and is seen by this last try or by who has the lock.
	options.Begin()
	return spool.Drain(ctx, dir, options)
}

// endTurns makes place for other workers. It is the last thing that a worker
// does.
func (w *worker) endTurns() {
	for _, t := range w.turns {
		w.check("turn", t.End())
	}
	w.turns = nil
}

func (w *worker) check(what string, err error) {
	if err != nil {
		w.Log.Log(warn, what, "error", err)
	}
}

// cleanUp removes old log files, and once a day the leftovers of processes
// that were killed.
func (k *Keeper) cleanUp(ctx context.Context) {
	if _, err := logfile.Clean(handoff.LogDir(k.Settings.Paths.State), k.Settings.Log.Days, k.Now()); err != nil {
		k.Log.Log(warn, "remove old logs", "error", err)
	}
	state, known, err := k.StoreState()
	if err != nil || !known || state.Error != "" || !k.sweepDue(state) {
		return
	}
	store, err := archive.Open(k.Settings.Paths.Store)
	if err == nil {
		err = store.Sweep(ctx)
	}
	if err != nil {
		k.Log.Log(warn, "sweep the store", "error", err)
		return
	}
	if _, err := durable.Sweep(k.plansDir(), sweepInterval, k.Now()); err != nil {
		k.Log.Log(warn, "sweep", "error", err)
	}
	state.Swept = k.Now().UTC()
	k.writeStoreState(k.StatePath(k.Settings.Paths.Store), state)
}

// sweepDue tells whether a worker is to look after what no event brings up:
// leftovers, old logs, and spools other than that of the event.
func (k *Keeper) sweepDue(state handoff.StoreState) bool {
	age := k.Now().Sub(state.Swept)
	return age >= sweepInterval || age < 0
}

// worker stores sessions out of spools. It opens each store once.
type worker struct {
	*Keeper
	stores   map[string]*archive.Store
	locators map[string]*transcript.Locator // by the config folder to look in first
	turns    []*spool.Turn                  // in the spools that it has drained
	parked   bool                           // try parked sessions too, however short they have rested
	patience time.Duration                  // for others to be through with a spool
}

func (k *Keeper) newWorker() *worker {
	return &worker{Keeper: k, stores: map[string]*archive.Store{}, locators: map[string]*transcript.Locator{}}
}

// locator returns what finds sessions in a config folder, or else in the
// others. One is used for many sessions, because it remembers listings.
func (w *worker) locator(clientDir string) *transcript.Locator {
	locator, ok := w.locators[clientDir]
	if !ok {
		locator = w.Locator()
		if clientDir != "" && !slices.Contains(locator.ConfigDirs, clientDir) {
			locator.ConfigDirs = append([]string{clientDir}, locator.ConfigDirs...)
		}
		w.locators[clientDir] = locator
	}
	return locator
}

func (w *worker) drainOptions() spool.DrainOptions {
	return spool.DrainOptions{
		Process:    w.process,
		Now:        w.Now,
		StoreRoots: []string{w.Settings.Paths.Store},
		Parked:     w.parked,
		Report:     w.report,
	}
}

// report logs what became of a session. What was stored is logged when it is.
func (w *worker) report(o spool.Outcome) {
	pairs := []any{"session", o.SessionID, "what", string(o.What), "attempts", o.Attempts}
	if o.File != "" {
		pairs = append(pairs, "file", o.File)
	}
	if o.Err != nil {
		pairs = append(pairs, "error", o.Err)
	}
	switch o.What {
	case spool.Done:
	case spool.Changing, spool.NoCopy:
		w.Log.Log(info, "spooled session", pairs...)
	case spool.Discarded:
		// It may have been forgotten: then its id must not be written down.
		w.Log.Log(info, "spooled session", "what", string(o.What))
	case spool.Failed, spool.SetAside:
		w.Log.Log(warn, "spooled session", pairs...)
	default:
		w.Log.Log(failure, "spooled session", pairs...)
	}
}

// process stores one session out of a spool.
func (w *worker) process(ctx context.Context, work spool.Work) (archived int64, err error) {
	began := w.Now()
	if err := waitForAnswer(ctx, work.Events, began); err != nil {
		return 0, err
	}
	snap, err := w.snapshot(ctx, work)
	if err != nil {
		return 0, err
	}
	// Since the hand-off a person may have said no.
	decision, err := optout.CheckPast(w.Settings, work.SessionID, []string{snap.Project.Cwd, work.Cwd}, time.Time{})
	if err != nil {
		return 0, err
	}
	if decision.Skip {
		return 0, fmt.Errorf("%w: %s", spool.ErrDiscard, decision.Reason)
	}
	if len(snap.Sources) == 0 {
		w.Log.Log(info, "nothing left to archive", "session", work.SessionID)
		return 0, nil
	}
	store, err := w.store(work.StoreRoot)
	if err != nil {
		return 0, err
	}
	result, err := store.Archive(ctx, snap, archive.Options{IndexDir: w.IndexDir(), Now: w.Now})
	if errors.Is(err, archive.ErrForgotten) {
		return 0, fmt.Errorf("%w: %w", spool.ErrDiscard, err)
	}
	var unsupported *archive.UnsupportedError
	if errors.As(err, &unsupported) {
		return 0, fmt.Errorf("%w: %w", spool.ErrRefused, err)
	}
	if err != nil {
		// The rest of the session may be in the store all the same.
		if result.Created {
			w.logResult(work.SessionID, snap, result, w.Now().Sub(began))
		}
		return 0, err
	}
	w.logResult(work.SessionID, snap, result, w.Now().Sub(began))
	return transcriptSize(result), nil
}

// waitForAnswer waits until the file has what an event at the end of a turn is
// about.
func waitForAnswer(ctx context.Context, events []spool.Event, now time.Time) error {
	if len(events) == 0 || events[len(events)-1].Name == hooklib.NameSessionEnd {
		return nil // at the end the file has all
	}
	var wait time.Duration
	for _, e := range slices.Backward(events) {
		if e.Name == hooklib.NameStop || e.Name == hooklib.NamePreCompact {
			wait = stopLag - now.Sub(e.Time)
			break
		}
	}
	if wait <= 0 || wait > stopLag {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *worker) store(root string) (*archive.Store, error) {
	if store, ok := w.stores[root]; ok {
		return store, nil
	}
	store, _, err := w.openStore(root)
	var unsupported *archive.UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		return nil, fmt.Errorf("%w: %w", spool.ErrRefused, err)
	case err != nil:
		return nil, err
	}
	w.stores[root] = store
	return store, nil
}

// snapshot tells what of a session is to be stored: what lies there now, and
// from the spool what does not any more. The transcript is always the spooled
// one if there is one: it is the file that the event was about, whatever has
// been put in its place.
func (w *worker) snapshot(ctx context.Context, work spool.Work) (archive.Snapshot, error) {
	snap := archive.Snapshot{
		SessionID: work.SessionID,
		Reason:    archive.Reason(work.Reason),
		Project:   archive.Project{Cwd: work.Cwd, Folder: work.Folder},
		Check:     archive.Full,
	}
	if snap.Reason == "" {
		snap.Reason = archive.CatchUp // only a pin is left of what led to it
	}
	quick := len(work.Events) > 0
	for _, e := range work.Events {
		snap.Events = append(snap.Events, archive.Event{
			Name: e.Name, Reason: e.Reason, PromptID: e.PromptID, Time: e.Time, Size: e.Size, Instructions: e.Instructions,
		})
		quick = quick && e.Name != hooklib.NameSessionEnd
	}
	if quick && snap.Reason == archive.Stop {
		snap.Check = archive.Quick
	}

	bundle, err := w.locator(work.ConfigDir).Locate(work.SessionID, work.Transcript)
	switch {
	case err == nil:
		snap.Project.Folder = bundle.Folder
		if err := w.addFiles(ctx, &snap, bundle, work.Path); err != nil {
			return snap, err
		}
	case errors.Is(err, transcript.ErrNotFound):
		// All that is left is in the spool, and it may be less than there was.
		snap.Partial = true
	default:
		return snap, err
	}
	if work.Path != "" {
		snap.Sources = append(snap.Sources, archive.Source{Family: transcript.FamilyTranscript, Path: work.SessionID + ".jsonl", File: work.Path})
	}
	for _, pin := range work.Side {
		if !slices.ContainsFunc(snap.Sources, func(s archive.Source) bool { return s.Family == pin.Family && s.Path == pin.Rel }) {
			snap.Sources = append(snap.Sources, archive.Source{Family: pin.Family, Path: pin.Rel, File: pin.Path})
		}
	}
	for _, s := range snap.Sources {
		if s.Family == transcript.FamilyTranscript {
			if cwd := w.HeadCwd(s.File); cwd != "" {
				snap.Project.Cwd = cwd
			}
		}
	}
	return snap, nil
}

// addFiles adds the files of a bundle to a snapshot, without the transcript if
// there is another one to store.
func (k *Keeper) addFiles(ctx context.Context, snap *archive.Snapshot, b transcript.Bundle, pinned string) error {
	slugs, end := k.plans(ctx, b)
	files, skipped, err := b.ListFiles(ctx, transcript.FilesOptions{Slugs: slugs, SlugsEnd: end})
	if err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	for _, f := range files {
		if f.Family == transcript.FamilyTranscript && pinned != "" {
			continue
		}
		snap.Sources = append(snap.Sources, archive.Source{Family: f.Family, Path: f.Rel, File: f.Path})
	}
	for _, s := range skipped {
		k.Log.Log(info, "left out", "session", b.SessionID, "file", s.Path, "why", s.Reason)
	}
	return nil
}

// logResult tells of a session that is in the store now.
func (k *Keeper) logResult(session string, snap archive.Snapshot, r archive.Result, took time.Duration) {
	pairs := []any{"session", session, "reason", string(snap.Reason), "files", len(snap.Sources),
		"new_bytes", r.NewBytes, "stored_bytes", r.StoredBytes, "took", took}
	if r.Generation != nil {
		pairs = append(pairs, "generation", r.Generation.Number)
	}
	if r.Diverged {
		pairs = append(pairs, "diverged", true)
	}
	message := "archived"
	switch {
	case r.Generation == nil:
		message = "nothing to archive" // no file has a byte
	case !r.Created:
		message = "already archived"
	}
	k.Log.Log(info, message, pairs...)
	for _, s := range r.Skipped {
		k.Log.Log(warn, "file could not be read", "session", session, "family", s.Family, "file", s.Path, "error", s.Err)
	}
	for _, l := range r.LeftOut {
		k.Log.Log(info, "file left out", "session", session, "family", l.Family, "file", l.Path, "size", l.Size, "why", l.Why)
	}
	for _, err := range r.Warnings {
		k.Log.Log(warn, "archive", "session", session, "error", err)
	}
}

// transcriptSize returns how many bytes of the transcript a result stands for.
func transcriptSize(r archive.Result) int64 {
	if r.Generation != nil {
		for _, f := range r.Generation.Files {
			if f.Family == transcript.FamilyTranscript {
				return f.Size
			}
		}
	}
	return 0
}

// isThere tells whether there is anything at a path. What cannot be told counts
// as yes: who uses it is told why not.
func isThere(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}
