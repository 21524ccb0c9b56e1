package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// HandOff puts a session into the spool dir, which it makes if need be. When it
// returns nil, a worker will find the session, and its transcript outlives
// the removal of the original, the death of every process, and a power cut.
//
//	open the transcript (never waiting), check that it is a regular file of the user's
//	link it into pins/ (an existing name is success), check device and inode
//	sync pins/
//	if the store is new here: write stores/<key>.json, durably
//	write the job, sync it, rename it into place
//	sync jobs/
//	check that the pin is still there, or link and sync once more
//	link side files into side/, for 20 ms at most, unsynced
//
// No lock is taken and no goroutine started, and nothing is opened for writing
// but files of the spool. Where the transcript cannot be hard-linked (another
// file system, or one without links) the job says so, and the drainer copies.
//
// Doing it again changes nothing but adds one more event to tell. After an
// error the Receipt says how far it came; a pin alone is enough to be found.
func HandOff(ctx context.Context, dir string, r Request) (Receipt, error) {
	var rec Receipt
	if err := r.check(); err != nil {
		return rec, fmt.Errorf("hand off: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return rec, err
	}
	key := StoreKey(r.StoreRoot)
	j := job{
		Version: jobVersion, Store: r.StoreRoot, Session: r.SessionID, Transcript: r.Transcript,
		Reason: short(r.Reason), Events: []Event{r.Event.short()},
		ConfigDir: r.ConfigDir, Folder: short(r.Folder), Cwd: short(r.Cwd),
	}
	if r.Transcript != "" {
		name, size, err := pin(dir, key, r)
		refused := durable.LinkRefused(err) || errors.Is(err, errNoID)
		if err != nil && !refused {
			return rec, fmt.Errorf("pin transcript: %w", err)
		}
		rec.Pinned, rec.Size = !refused, size
		j.Pin, j.Copy, j.Size = name, refused, size
	}
	if err := recordStore(dir, key, r.StoreRoot); err != nil {
		return rec, fmt.Errorf("record store: %w", err)
	}
	at := r.Event.Time
	if at.IsZero() {
		at = time.Now()
	}
	name := newJobName(r.SessionID, at).String()
	if err := writeJob(dir, jobsDir, name, j); err != nil {
		return rec, fmt.Errorf("write job: %w", err)
	}
	rec.Job = name
	if rec.Pinned {
		// A drainer that has just stored an earlier state may have let go of
		// the pin that was found above, before it could see the job.
		if _, err := os.Lstat(filepath.Join(dir, pinsDir, j.Pin)); errors.Is(err, fs.ErrNotExist) {
			// The bytes of a vanished transcript are in the store: the drainer
			// checked after this hand-off had seen them.
			if _, _, err := pin(dir, key, r); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return rec, fmt.Errorf("pin transcript again: %w", err)
			}
		}
	}
	if r.Side != nil && !j.Copy {
		rec.Side, rec.SideSkipped = pinSide(ctx, dir, treeName{key, r.SessionID}, r.Side)
	}
	return rec, nil
}

func (r Request) check() error {
	switch {
	case !ValidSessionID(r.SessionID):
		return errors.New("session id is not valid")
	case !cleanAbs(r.StoreRoot):
		return errors.New("store is no absolute path")
	case r.Transcript != "" && !cleanAbs(r.Transcript):
		return errors.New("transcript is no absolute path")
	case r.ConfigDir != "" && !cleanAbs(r.ConfigDir):
		return errors.New("config folder is no absolute path")
	}
	return nil
}

func (e Event) short() Event {
	e.Name, e.Reason, e.PromptID, e.Agent, e.Cwd = short(e.Name), short(e.Reason), short(e.PromptID), short(e.Agent), short(e.Cwd)
	e.Instructions = short(e.Instructions)
	return e
}

// errNoID says that the file system does not tell files apart by number.
var errNoID = errors.New("file has no number")

// pin gives the transcript its second name and makes that durable. It returns
// the name and the transcript's size also with an error for which
// durable.LinkRefused is true.
func pin(dir, key string, r Request) (name string, size int64, err error) {
	// Between the opening and the linking another file may be put in the
	// transcript's place. Each try then meets the newer one.
	const tries = 5
	for range tries {
		var again bool
		name, size, again, err = pinOnce(dir, key, r)
		if !again {
			return name, size, err
		}
	}
	return name, size, err
}

func pinOnce(dir, key string, r Request) (name string, size int64, again bool, err error) {
	// The file stays open until its pin is checked, so that its inode number
	// cannot be given to another file meanwhile.
	f, fi, err := durable.OpenRegular(r.Transcript)
	if err != nil {
		return "", 0, false, err
	}
	defer f.Close()
	id, ok := durable.OpenID(f)
	if !ok {
		return "", fi.Size(), false, errNoID
	}
	name = pinName{Store: key, Session: r.SessionID, ID: id}.String()
	path := filepath.Join(dir, pinsDir, name)
	err = durable.Link(r.Transcript, path)
	if errors.Is(err, fs.ErrNotExist) {
		// Either the folder is missing, or the transcript has just vanished.
		if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
			return name, fi.Size(), false, err
		}
		err = durable.Link(r.Transcript, path)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return name, fi.Size(), false, err
	}
	have, regular, statErr := fileID(path)
	if errors.Is(statErr, fs.ErrNotExist) {
		return name, fi.Size(), true, statErr // a drainer let go of it
	}
	if statErr != nil {
		return name, fi.Size(), false, statErr
	}
	if regular && have == id {
		return name, fi.Size(), false, durable.SyncDir(filepath.Dir(path))
	}
	swapped := fmt.Errorf("another file is named %s", name)
	if err == nil {
		// This link is ours, to a file that is not the one we opened.
		return name, fi.Size(), true, errors.Join(swapped, durable.Remove(path))
	}
	// A pin under a false name, from a spool that was copied or restored, may
	// be the last name of its bytes.
	if err := rehome(dir, path, pinName{Store: key, Session: r.SessionID, ID: have}, regular); err != nil {
		return name, fi.Size(), false, errors.Join(swapped, err)
	}
	return name, fi.Size(), true, swapped
}

// rehome moves a pin to the name that it should have, or aside if it is no
// regular file.
func rehome(dir, path string, right pinName, regular bool) error {
	if !regular {
		_, err := setAside(dir, path)
		return err
	}
	to := filepath.Join(dir, pinsDir, right.String())
	err := durable.RenameNew(path, to)
	if errors.Is(err, fs.ErrExist) {
		return durable.Remove(path) // it has the right name already
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another hand-off was quicker
	}
	return err
}

// recordStore writes down which root a key stands for, once.
func recordStore(dir, key, root string) error {
	path := storePath(dir, key)
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	data, err := encodeStore(root)
	if err != nil {
		return err
	}
	return durable.ReplaceFile(path, data)
}

// writeJob writes a job into a folder of the spool, durably, over one of the
// same name if there is one.
func writeJob(dir, sub, name string, j job) error {
	data, err := j.encode()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, sub, name)
	err = durable.ReplaceFile(path, data)
	if errors.Is(err, fs.ErrNotExist) {
		if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
			return err
		}
		err = durable.ReplaceFile(path, data)
	}
	return err
}

// pinSide gives side files a second name below the session's tree, as many as
// the time allows. A file that cannot have one is left to the drainer, which
// reads the live one; after a refusal of the file system none is tried.
func pinSide(ctx context.Context, dir string, tree treeName, files func(func(File) bool)) (pinned, skipped int) {
	deadline := time.Now().Add(sideBudget)
	root := filepath.Join(dir, sideDir, tree.String())
	for f := range files {
		err := pinSideFile(root, f)
		switch {
		case err == nil:
			pinned++
		case durable.LinkRefused(err):
			return pinned, skipped + 1
		default:
			skipped++
		}
		if ctx.Err() != nil || !time.Now().Before(deadline) {
			break
		}
	}
	return pinned, skipped
}

func pinSideFile(root string, f File) error {
	id, regular, err := fileID(f.Path)
	if err != nil {
		return err
	}
	if !regular {
		return durable.ErrNotRegular
	}
	rel, err := sidePath(f.Family, f.Rel, id)
	if err != nil {
		return err
	}
	path := filepath.Join(root, rel)
	err = durable.Link(f.Path, path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := mkdirs(filepath.Dir(path)); err != nil {
			return err
		}
		err = durable.Link(f.Path, path)
	}
	ours := err == nil
	if !ours && !errors.Is(err, fs.ErrExist) {
		return err
	}
	have, regular, err := fileID(path)
	if err == nil && (!regular || have != id) {
		err = fmt.Errorf("another file is named %s", filepath.Base(path))
		if ours { // the file was replaced between its look-up and its linking
			err = errors.Join(err, durable.Remove(path))
		}
	}
	return err
}

// mkdirs is durable.MkdirAll without the syncs, which the time for side files
// does not allow: without them it takes a power cut to lose a name.
func mkdirs(dir string) error {
	err := durable.Mkdir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := mkdirs(filepath.Dir(dir)); err != nil {
			return err
		}
		err = durable.Mkdir(dir)
	}
	return err
}
