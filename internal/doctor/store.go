package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/internal/durable"
	"github.com/session-keeper/session-keeper/internal/install"
)

const (
	// littleSpace and noSpace are free bytes on the store's disk from which
	// down it is worth a word.
	littleSpace = 1 << 30
	noSpace     = 100 << 20
)

// checkStore looks whether the archive can be opened and written, what kind
// of disk it is on, and who may read it.
func checkStore(_ context.Context, w *World) []Finding {
	if w.Settings == nil {
		return nil
	}
	root := w.Settings.Paths.Store
	var found []Finding
	store, err := archive.Open(root)
	var unsupported *archive.UnsupportedError
	switch {
	case errors.Is(err, archive.ErrNotStore), errors.Is(err, fs.ErrNotExist):
		return append(found, problem("store-missing", fixInstall, "there is no archive in %s yet (%v)", root, err).at(root, 0))
	case errors.As(err, &unsupported):
		return append(found, problem("store-newer", "install the newer version of session-keeper", "%v", err).at(root, 0))
	case err != nil:
		return append(found, problem("store-unreadable", "", "the archive cannot be opened: %v", err).at(root, 0))
	}
	found = append(found, ok("store", "archive %s, id %s", w.short(root), store.ID()).at(root, 0))
	if err := tryWrite(root); err != nil {
		found = append(found, problem("store-read-only", "make the folder writable, or set [archive] root", "nothing can be written to the archive: %v", err).at(root, 0))
	}
	found = append(found, w.checkMode(root, "the archive")...)
	found = append(found, w.checkMode(w.Settings.Paths.State, "the state folder")...)
	kind, local, err := durable.Filesystem(root)
	switch {
	case err != nil:
		found = append(found, note("store-disk", "", "the kind of disk under the archive is not known: %v", err).at(root, 0))
	case !local:
		found = append(found, note("store-remote", "", "the archive is on a network disk (%s): hooks leave the work to the worker", kind).at(root, 0))
	}
	if free, err := freeBytes(root); err == nil {
		switch {
		case free < noSpace:
			found = append(found, problem("store-full", "free space on the disk, or move the archive", "%s free under the archive", humanize.Bytes(free)).at(root, 0))
		case free < littleSpace:
			found = append(found, note("store-space", "", "%s free under the archive", humanize.Bytes(free)).at(root, 0))
		}
	} else if !errors.Is(err, errors.ErrUnsupported) {
		found = append(found, note("store-space", "", "free space under the archive is not known: %v", err).at(root, 0))
	}
	if n, err := countTemps(filepath.Join(root, "tmp")); err != nil {
		found = append(found, note("store-leftovers", "", "%v", err).at(root, 0))
	} else if n > 0 {
		found = append(found, note("store-leftovers", "", "%d temporary files in the archive; the worker removes those that nobody writes any more", n).at(root, 0))
	}
	if w.Keeper != nil {
		state, known, err := w.Keeper.StoreState()
		switch {
		case err != nil:
			found = append(found, note("store-state", "", "what the last worker noted about the archive cannot be read: %v", err))
		case known && state.Error != "":
			found = append(found, problem("store-failed", "session-keeper verify", "the worker cannot use the archive, the first time %s: %s", w.ago(state.Failed), state.Error).at(root, 0))
		}
	}
	return append(found, w.checkLinks()...)
}

// tryWrite makes a file in dir and removes it again.
func tryWrite(dir string) (err error) {
	t, err := durable.CreateTemp(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Discard()) }()
	_, err = t.WriteString("session-keeper doctor\n")
	return err
}

// checkMode reports a folder that others can read. It is not changed: the
// user may have meant it.
func (w *World) checkMode(dir, what string) []Finding {
	if w.Env.GOOS == "windows" {
		return nil
	}
	fi, err := os.Stat(dir)
	if err != nil || fi.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return []Finding{note("mode-wide", "chmod 700 "+install.Quote(dir), "others on this machine can look into %s (mode %03o)", what, fi.Mode().Perm()).at(dir, 0)}
}

// checkLinks tries what a hand-off does: giving a file beside the transcripts
// a second name in the spool.
func (w *World) checkLinks() []Finding {
	dir := w.clientDir()
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return nil // the client was never used; nothing to link
	}
	if w.Keeper == nil {
		return nil
	}
	spool := w.Keeper.SpoolFor(dir, dir)
	// Before the first hand-off there is none; the folder above it, or the
	// client's own, is on the same disk.
	for _, exists := range []string{spool, filepath.Dir(spool), dir} {
		if _, err := os.Stat(exists); err == nil {
			spool = exists
			break
		}
	}
	var found []Finding
	err := tryLink(dir, spool)
	switch {
	case err == nil:
		found = append(found, ok("links", "a session that ends is kept by a hard link, whatever its size"))
	case durable.LinkRefused(err):
		found = append(found, note("links-no", "", "the disk with the transcripts knows no hard links: a transcript is copied when its session ends, which takes time in proportion to its size"))
	default:
		found = append(found, note("links-unknown", "", "hard links could not be tried: %v", err))
	}
	switch err := tryClone(spool); {
	case err == nil:
		found = append(found, ok("snapshots", "a transcript that is rewritten in place before it is archived is kept as it was: this disk can clone files"))
	case errors.Is(err, durable.ErrNoClone):
		found = append(found, ok("snapshots-no", "a transcript that is rewritten in place in the moments before it is archived is archived as rewritten: this disk cannot clone files"))
	default:
		found = append(found, note("snapshots-unknown", "", "clones of files could not be tried: %v", err))
	}
	if standIn, err := tryLock(spool); err != nil {
		found = append(found, note("locks-unknown", "", "locks could not be tried: %v", err))
	} else if standIn {
		found = append(found, note("locks-no", "", "the disk with the spool knows no locks; files stand in for them"))
	}
	return found
}

// tryClone makes a snapshot of a file, as the worker does, and removes it again.
func tryClone(dir string) (err error) {
	t, err := durable.CreateTemp(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Discard()) }()
	if _, err := t.WriteString("session-keeper doctor\n"); err != nil {
		return err
	}
	name := t.Name() + "-clone"
	if err := durable.Clone(t.File, name); err != nil {
		return err
	}
	return durable.Remove(name)
}

// tryLock takes a lock, and tells whether a file had to stand in for it.
func tryLock(dir string) (standIn bool, err error) {
	t, err := durable.CreateTemp(dir)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, t.Discard()) }()
	unlock, err := durable.TryLock(t.Name(), durable.Exclusive)
	if err != nil {
		return false, err
	}
	_, statErr := os.Lstat(t.Name() + ".held")
	return statErr == nil, unlock()
}

func tryLink(from, to string) (err error) {
	t, err := durable.CreateTemp(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Discard()) }()
	name := filepath.Join(to, filepath.Base(t.Name())+"-link")
	if err := durable.Link(t.Name(), name); err != nil {
		return err
	}
	return durable.Remove(name)
}

func countTemps(dir string) (int, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("temporary files cannot be counted: %w", err)
	}
	n := 0
	for _, e := range entries {
		if durable.IsTemp(e.Name()) || strings.HasPrefix(e.Name(), ".tmp") {
			n++
		}
	}
	return n, nil
}
