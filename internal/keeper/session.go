package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
		Project:   archive.Project{Cwd: k.headCwd(b.Transcript), Folder: b.Folder},
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
	k.remember(b.ConfigDir)
	k.logResult(b.SessionID, snap, result, k.Now().Sub(began))
	return result, nil
}

// BundleAt returns the session whose transcript a person names by its path.
// The file may lie anywhere, as long as its name is that of a transcript; if
// it lies in a client's config folder, its side files belong to it, and the
// folder is remembered by ArchiveSession.
func BundleAt(path string) (transcript.Bundle, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return transcript.Bundle{}, err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return transcript.Bundle{}, err
	}
	session, ok := strings.CutSuffix(filepath.Base(path), ".jsonl")
	if !ok || !transcript.ValidSessionID(session) {
		return transcript.Bundle{}, fmt.Errorf("%s: %w: a transcript is named <session id>.jsonl", path, transcript.ErrInvalidID)
	}
	f, info, err := transcript.OpenRegular(real)
	if err != nil {
		return transcript.Bundle{}, err
	}
	if err := f.Close(); err != nil {
		return transcript.Bundle{}, err
	}
	for _, p := range []string{path, real} {
		projects := filepath.Dir(filepath.Dir(p))
		if filepath.Base(projects) != "projects" {
			continue
		}
		locator := transcript.Locator{ConfigDirs: []string{filepath.Dir(projects)}}
		b, err := locator.Locate(session, p)
		if err != nil {
			return transcript.Bundle{}, err
		}
		if samePath(b.Transcript, real) {
			return b, nil
		}
	}
	dir := filepath.Dir(real)
	return transcript.Bundle{
		SessionID:  session,
		Folder:     filepath.Base(dir),
		ProjectDir: dir,
		Transcript: real,
		Size:       info.Size(),
		ModTime:    info.ModTime(),
		Found:      transcript.ByPath,
	}, nil
}

func samePath(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
