package keeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/archive/spool"
	"github.com/session-keeper/session-keeper/internal/handoff"
	"github.com/session-keeper/session-keeper/internal/logfile"
	"github.com/session-keeper/session-keeper/internal/optout"
	"github.com/session-keeper/session-keeper/transcript"
)

// ForgetReport says what Forget removed.
type ForgetReport struct {
	Store    archive.ForgetReport
	LogLines int
}

// Forget removes every trace of a session that is ours: from the store, its
// index, the spools, the marks and the log. It leaves tombstones that hooks
// and catch-up obey. The client's own files are not touched. The tombstone
// comes first, so that a Forget that is cut short is still obeyed, and the
// next one does the rest. Each step is tried whatever became of the one
// before; the error tells what is left.
func (k *Keeper) Forget(ctx context.Context, session string) (ForgetReport, error) {
	var report ForgetReport
	if !transcript.ValidSessionID(session) {
		return report, transcript.ErrInvalidID
	}
	var errs []error
	step := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	state := k.Settings.Paths.State
	step("tombstone", optout.Forget(state, session, k.Now()))

	dirs, err := k.Spools()
	step("spools", err)
	for _, dir := range dirs {
		if !isThere(dir) {
			continue
		}
		step("spool "+dir, spool.Purge(dir, session))
	}

	store, err := archive.Open(k.Settings.Paths.Store)
	switch {
	case errors.Is(err, archive.ErrNotStore):
	case err != nil:
		step("store", err)
	default:
		report.Store, err = store.Forget(ctx, session, archive.ForgetOptions{IndexDir: k.IndexDir()})
		if !errors.Is(err, archive.ErrNoSession) {
			step("store", err)
		}
	}

	step("plans", k.forgetPlans(session))

	report.LogLines, err = logfile.Forget(handoff.LogDir(state), session)
	step("log", err)
	return report, errors.Join(errs...)
}
