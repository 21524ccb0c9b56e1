package spool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// snapshots makes copies of their own, first thing, of the transcripts that a
// pin does not keep safe: where the file system has clones, of every pin, so
// that a rewriting in place does no harm either; and of transcripts that could
// not be hard-linked at all. What cannot be copied is stored from where it is.
// The error is ctx's.
//
// A drain of one session is on its way to store it right now, so it does not
// stop for this.
func (d *drainer) snapshots(ctx context.Context, units []*unit) error {
	if d.o.Session != "" {
		return nil
	}
	for _, u := range units {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		switch {
		case u.pin != "" && !d.noClone:
			err = d.snapshot(ctx, u, filepath.Join(d.dir, pinsDir, u.pin))
		case u.pin == "" && u.job.Copy:
			err = d.snapshot(ctx, u, u.job.Transcript)
		}
		if ctxErr := ctx.Err(); ctxErr != nil {
			return ctxErr
		}
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, durable.ErrNoClone):
			d.noClone = true
		default:
			d.report(Outcome{SessionID: u.Session, StoreRoot: u.root, What: NoCopy, Err: err})
		}
	}
	return nil
}

// snapshot adds to the unit a snapshot of the file path, unless the last one
// is of the same state. Earlier ones that it continues go.
func (d *drainer) snapshot(ctx context.Context, u *unit, path string) error {
	f, fi, err := durable.OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	id, ok := parseID(u.ID)
	if !ok {
		return errNoID
	}
	n := pinName{Store: u.Store, Session: u.Session, ID: id, Snap: 1}
	if last := len(u.snaps); last > 0 {
		n.Snap = u.snaps[last-1].Snap + 1
		have, err := stateOf(filepath.Join(d.dir, pinsDir, u.snaps[last-1].String()))
		if err == nil && have.equal(fileState{fi.Size(), fi.ModTime()}) {
			return nil
		}
	}
	to := filepath.Join(d.dir, pinsDir, n.String())
	if err := durable.MkdirAll(filepath.Dir(to)); err != nil {
		return err
	}
	err = durable.Clone(f, to)
	if err == nil {
		// The clone is a file of its own. Mode and time are the source's, for
		// the archive's sake; the spool's folder keeps it private.
		err = errors.Join(os.Chmod(to, fi.Mode().Perm()), os.Chtimes(to, fi.ModTime(), fi.ModTime()))
	} else if u.pin == "" && errors.Is(err, durable.ErrNoClone) {
		err = copyFile(ctx, f, fi, to)
	}
	if err != nil {
		return err
	}
	if err := durable.SyncDir(filepath.Dir(to)); err != nil {
		return err
	}
	kept := u.snaps[:0]
	for _, old := range u.snaps {
		path := filepath.Join(d.dir, pinsDir, old.String())
		if !isPrefix(path, to) || removeIfThere(path) != nil {
			kept = append(kept, old)
		}
	}
	u.snaps = append(kept, n)
	return nil
}

// copyFile copies the bytes that f has now to the new file to, with f's mode
// and time.
func copyFile(ctx context.Context, f *os.File, fi fs.FileInfo, to string) error {
	t, err := durable.CreateTemp(filepath.Dir(to))
	if err != nil {
		return err
	}
	defer t.Discard() // after Place it does nothing, before it the error is told already
	const chunk = 4 << 20
	for left := fi.Size(); left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.Copy(t, io.LimitReader(f, min(left, chunk)))
		if err != nil {
			return err
		}
		if n == 0 {
			break // it was truncated meanwhile
		}
		left -= n
	}
	if err := errors.Join(t.Chmod(fi.Mode().Perm()), os.Chtimes(t.Name(), fi.ModTime(), fi.ModTime())); err != nil {
		return err
	}
	return t.Place(to)
}

// isPrefix tells whether all of the file path is how the file of begins. What
// cannot be read is none.
func isPrefix(path, of string) bool {
	a, fa, err := durable.OpenRegular(path)
	if err != nil {
		return false
	}
	defer a.Close()
	b, fb, err := durable.OpenRegular(of)
	if err != nil {
		return false
	}
	defer b.Close()
	if fa.Size() > fb.Size() {
		return false
	}
	if fa.Size() == fb.Size() && fa.ModTime().Equal(fb.ModTime()) {
		return true // a snapshot has the time of what it was made from
	}
	const chunk = 1 << 20
	bufA, bufB := make([]byte, chunk), make([]byte, chunk)
	for {
		n, errA := io.ReadFull(a, bufA)
		if n > 0 {
			if _, err := io.ReadFull(b, bufB[:n]); err != nil || !bytes.Equal(bufA[:n], bufB[:n]) {
				return false
			}
		}
		switch {
		case errA == nil:
		case errors.Is(errA, io.EOF), errors.Is(errA, io.ErrUnexpectedEOF):
			return true
		default:
			return false
		}
	}
}
