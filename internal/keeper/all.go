package keeper

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/archive/spool"
	"github.com/session-keeper/session-keeper/internal/optout"
	"github.com/session-keeper/session-keeper/transcript"
)

// endangered is how near its end a session must be to be pinned before
// anything else is done.
const endangered = 3 * 24 * time.Hour

// AllOptions steer ArchiveAll.
type AllOptions struct {
	Progress func(AllProgress) // called before each session and at the end
	Bytes    func(n int64)     // told of source bytes as they are read
}

// AllProgress is how far ArchiveAll is.
type AllProgress struct {
	Done, Total           int    // sessions
	DoneBytes, TotalBytes int64  // of their transcripts
	Session               string // the next one; "" at the end
}

// Outcome is what became of one session in ArchiveAll.
type Outcome struct {
	SessionID string
	Bundle    transcript.Bundle
	Result    archive.Result
	Skipped   *optout.Decision // why it was left out, or nil
	Err       error
}

// Summary is what ArchiveAll did.
type Summary struct {
	Outcomes    []Outcome
	Archived    int // sessions with a new generation
	Unchanged   int // sessions that were archived as they are
	Skipped     int // sessions that stay out
	Failed      int
	NewBytes    int64 // source bytes that were not in the store
	StoredBytes int64 // what they take there
	// Unreadable are places where sessions could not be looked for.
	Unreadable []transcript.Skipped
	// SpoolErrors are about spools as a whole.
	SpoolErrors []error
}

// allPatience is how long ArchiveAll waits for workers that are at the spools
// already: what they fail at is then tried once more.
const allPatience = time.Minute

// ArchiveAll archives every session on this machine that is not archived as it
// is, those first that the client's clean-up will delete first, and what hooks
// left in the spools. It can be stopped at any moment, and the next run goes
// on where it was. One bad session stops nothing: its error is in its outcome.
// The error returned is about the whole, and comes with what was done so far:
// no store, archiving switched off or paused (a *SkippedError), ctx.
func (k *Keeper) ArchiveAll(ctx context.Context, o AllOptions) (Summary, error) {
	var sum Summary
	if err := k.refuseAll(); err != nil {
		return sum, err
	}
	bundles, skipped, err := k.Locator().Sessions(ctx)
	if err != nil {
		return sum, err
	}
	sum.Unreadable = skipped
	// The clean-up goes by the time of the last change alone (observed on
	// 2.1.332), so the oldest is the nearest to its end.
	slices.SortStableFunc(bundles, func(a, b transcript.Bundle) int {
		return cmp.Or(a.ModTime.Compare(b.ModTime), cmp.Compare(a.SessionID, b.SessionID))
	})
	store, err := k.OpenStore()
	if err != nil {
		return sum, err
	}

	progress := AllProgress{Total: len(bundles)}
	wanted := make([]bool, len(bundles))
	decisions := make([]optout.Decision, len(bundles))
	for i, b := range bundles {
		progress.TotalBytes += b.Size
		if decisions[i], err = k.decidePast(b, store); err != nil {
			return sum, err
		}
		wanted[i] = !decisions[i].Skip
	}
	k.pinEndangered(ctx, bundles, wanted, store)

	report := func(session string) {
		if progress.Session = session; o.Progress != nil {
			o.Progress(progress)
		}
	}
	for i, b := range bundles {
		if ctx.Err() != nil {
			break
		}
		report(b.SessionID)
		out := Outcome{SessionID: b.SessionID, Bundle: b}
		if !wanted[i] {
			out.Skipped = &decisions[i]
		} else {
			out.Result, out.Err = k.archiveBundle(ctx, b, ArchiveOptions{Reason: archive.CatchUp, Progress: o.Bytes, Store: store})
		}
		if out.Err != nil && ctx.Err() != nil {
			break // not this session's fault
		}
		sum.add(out, k)
		progress.Done++
		progress.DoneBytes += b.Size
	}
	if err := ctx.Err(); err != nil {
		return sum, err
	}
	dirs, err := k.Spools()
	if err != nil {
		sum.SpoolErrors = append(sum.SpoolErrors, err)
	}
	// A person who runs this has mended what some are parked for.
	w := k.newWorker()
	w.parked = true
	w.patience = allPatience
	sum.SpoolErrors = append(sum.SpoolErrors, w.drain(ctx, dirs)...)
	w.endTurns()
	report("")
	return sum, ctx.Err()
}

// refuseAll returns a *SkippedError if nothing at all is to be archived now.
func (k *Keeper) refuseAll() error {
	if optout.IsOff(k.Settings.Env.Getenv) {
		return &SkippedError{Decision: optout.Decision{Skip: true, Reason: optout.Off, Detail: "the variable " + optout.Variable + " says so"}}
	}
	pause, paused, err := optout.PausedAt(k.Settings.Paths.State, k.Now())
	if err != nil {
		return err
	}
	if paused {
		return &SkippedError{Decision: optout.Decision{Skip: true, Reason: optout.Paused, Detail: pause.String()}}
	}
	return optout.Validate(k.Settings)
}

// decidePast decides about a session that no event names.
func (k *Keeper) decidePast(b transcript.Bundle, store *archive.Store) (optout.Decision, error) {
	if store.Forgotten(b.SessionID) {
		return forgottenError(b.SessionID).Decision, nil
	}
	return k.checkPast(b)
}

// checkPast is decidePast without a store.
func (k *Keeper) checkPast(b transcript.Bundle) (optout.Decision, error) {
	var dirs []string
	if optout.HasExcludes(k.Settings) {
		dirs = append(dirs, k.HeadCwd(b.Transcript))
	}
	return optout.CheckPast(k.Settings, b.SessionID, dirs, b.ModTime)
}

func (s *Summary) add(o Outcome, k *Keeper) {
	var skipped *SkippedError
	switch {
	case errors.As(o.Err, &skipped):
		o.Skipped, o.Err = &skipped.Decision, nil
		s.Skipped++
	case o.Skipped != nil:
		s.Skipped++
	case o.Err != nil:
		s.Failed++
		k.Log.Log(failure, "archive", "session", o.SessionID, "error", o.Err)
	case o.Result.Created:
		s.Archived++
	default:
		s.Unchanged++
	}
	s.NewBytes += o.Result.NewBytes
	s.StoredBytes += o.Result.StoredBytes
	s.Outcomes = append(s.Outcomes, o)
}

// pinEndangered gives the sessions that may be deleted at any moment a second
// name, before the long work begins. A pin that cannot be had is not the end:
// the session itself is archived soon.
func (k *Keeper) pinEndangered(ctx context.Context, bundles []transcript.Bundle, wanted []bool, store *archive.Store) {
	days := map[string]int64{}
	for i, b := range bundles {
		if ctx.Err() != nil {
			return
		}
		if !wanted[i] || b.Transcript == "" {
			continue
		}
		if _, ok := days[b.ConfigDir]; !ok {
			days[b.ConfigDir] = k.retentionDays(b.ConfigDir)
		}
		end, ends := transcript.Expiry(b.ModTime, days[b.ConfigDir])
		if !ends || end.Sub(k.Now()) > endangered || k.isArchived(ctx, b, store) {
			continue
		}
		event := spool.Event{Time: k.Now().UTC()}
		if _, _, err := k.Leave(ctx, b, string(archive.CatchUp), event, ""); err != nil {
			k.Log.Log(warn, "pin", "session", b.SessionID, "error", err)
		}
	}
}

// isArchived tells whether the store seems to have a transcript as it is.
func (k *Keeper) isArchived(ctx context.Context, b transcript.Bundle, store *archive.Store) bool {
	latest, err := store.Latest(ctx, b.SessionID)
	if err != nil {
		return false
	}
	for _, f := range latest.Files {
		if f.Family == transcript.FamilyTranscript {
			return f.Size == b.Size && f.ModTime.Equal(b.ModTime)
		}
	}
	return false
}

// retentionDays returns after how many days a client deletes what lies in its
// config folder, as far as the user's settings tell: those of projects may say
// less, but not before the client runs there.
func (k *Keeper) retentionDays(clientDir string) int64 {
	path := filepath.Join(clientDir, "settings.json")
	var settings struct {
		Days json.RawMessage `json:"cleanupPeriodDays"`
	}
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &settings) != nil {
		return transcript.DefaultCleanupDays
	}
	return transcript.EffectiveRetention(transcript.RetentionSetting{Where: path, Raw: settings.Days}).Days
}

// String sums up in one line, for logs and for people.
func (s Summary) String() string {
	return fmt.Sprintf("%d archived, %d unchanged, %d left out, %d failed", s.Archived, s.Unchanged, s.Skipped, s.Failed)
}
