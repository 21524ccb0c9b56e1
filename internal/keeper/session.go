package keeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/internal/optout"
	"github.com/session-keeper/session-keeper/transcript"
)

// ArchiveOptions steer ArchiveSession.
type ArchiveOptions struct {
	Reason   archive.Reason // why; archive.Manual if empty
	Progress func(n int64)  // told of source bytes as they are read
	Store    *archive.Store // nil to open or make the settings' one
}

// ArchiveSession archives one session as it lies there now. It is what a
// person asks for by naming a session, so neither an exclude nor a pause holds
// it back, and a mark that kept the session out is lifted. Only a forgotten
// session stays out: the error is a *SkippedError then.
func (k *Keeper) ArchiveSession(ctx context.Context, b transcript.Bundle, o ArchiveOptions) (archive.Result, error) {
	state := k.Settings.Paths.State
	forgotten, err := optout.IsForgotten(state, b.SessionID)
	if err != nil {
		return archive.Result{}, err
	}
	if forgotten {
		return archive.Result{}, forgottenError(b.SessionID)
	}
	if err := optout.Lift(state, b.SessionID); err != nil {
		return archive.Result{}, err
	}
	if o.Reason == "" {
		o.Reason = archive.Manual
	}
	return k.archiveBundle(ctx, b, o)
}

func forgottenError(session string) *SkippedError {
	return &SkippedError{SessionID: session, Decision: optout.Decision{Skip: true, Reason: optout.Forgotten, Detail: "it was forgotten"}}
}

// archiveBundle archives a session without asking whether that is wanted.
func (k *Keeper) archiveBundle(ctx context.Context, b transcript.Bundle, o ArchiveOptions) (archive.Result, error) {
	store := o.Store
	if store == nil {
		var err error
		if store, err = k.OpenStore(); err != nil {
			return archive.Result{}, err
		}
	}
	began := k.Now()
	snap := archive.Snapshot{
		SessionID: b.SessionID,
		Reason:    o.Reason,
		Project:   archive.Project{Cwd: k.HeadCwd(b.Transcript), Folder: b.Folder},
		Check:     archive.Full,
	}
	if err := k.addFiles(ctx, &snap, b, ""); err != nil {
		return archive.Result{}, err
	}
	if len(snap.Sources) == 0 {
		return archive.Result{}, fmt.Errorf("session %s has no files", b.SessionID)
	}
	result, err := store.Archive(ctx, snap, archive.Options{
		IndexDir: k.IndexDir(),
		Now:      k.Now,
		Progress: o.Progress,
	})
	if errors.Is(err, archive.ErrForgotten) {
		return result, forgottenError(b.SessionID)
	}
	if err != nil {
		return result, err
	}
	k.Remember(b.ConfigDir)
	k.logResult(b.SessionID, snap, result, k.Now().Sub(began))
	return result, nil
}
