package spool

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// settle lets go of a unit that is stored: first its jobs, durably, then its
// snapshots, then the pin and the side pins, as far as they are still in the
// state that was stored. It reports whether nothing of it stays.
//
// A hand-off for the same file may run at the same time, and it takes no lock.
// It has found the pin under its name, relies on it, and will write a job. So
// a pin does not simply go: it is moved away first, and only then compared
// with what was stored. If it changed, or if a new job has come, it is moved
// back. That loses nothing, at whatever step either of the two dies:
//
//   - The hand-off found the pin before it was moved. Then all bytes that it
//     saw were there when the pin was compared, and are stored.
//   - It wrote its job before the jobs were looked through. Then the pin is
//     moved back.
//   - It wrote its job after that. Then it finds, as its next step, that the
//     pin is gone, and makes a new one from the transcript. If it dies before
//     that step, its job is worked on without a pin; the bytes are stored, as
//     the first point says.
func (d *drainer) settle(u *unit, s stored) (gone bool, err error) {
	if err := d.dropJobs(u); err != nil {
		return false, err
	}
	for _, n := range u.snaps {
		if err := removeIfThere(filepath.Join(d.dir, pinsDir, n.String())); err != nil {
			return false, err
		}
	}
	if d.hasJobs(u) {
		return false, nil // its turn comes, with the same pin
	}
	gone = true
	if u.pin != "" {
		if gone, err = d.settlePin(u, s.pin); err != nil {
			return false, err
		}
	}
	if u.tree || len(s.side) > 0 {
		ok, err := d.settleTree(treeName{u.Store, u.Session}, s.side)
		if err != nil {
			return false, err
		}
		gone = gone && ok
	}
	return gone, nil
}

func (d *drainer) dropJobs(u *unit) error {
	for _, from := range []struct {
		sub   string
		names []string
	}{{jobsDir, u.jobs}, {parkedDir, u.parked}} {
		for _, name := range from.names {
			if err := removeIfThere(filepath.Join(d.dir, from.sub, name)); err != nil {
				return err
			}
		}
		if len(from.names) > 0 {
			// A job that came back after a power cut, without its pin, would
			// look like a loss.
			if err := durable.SyncDir(filepath.Join(d.dir, from.sub)); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasJobs tells whether a job has come for the unit that is not among its own.
func (d *drainer) hasJobs(u *unit) bool {
	entries, err := readDir(filepath.Join(d.dir, jobsDir))
	if err != nil {
		return true // keeping the pin is never wrong
	}
	for _, e := range entries {
		n, ok := parseJobName(e.Name())
		if !ok || n.Session != u.Session || slices.Contains(u.jobs, e.Name()) {
			continue
		}
		if j, err := readJob(filepath.Join(d.dir, jobsDir, e.Name())); err == nil && j.key() == u.unitKey {
			return true
		}
	}
	return false
}

func (d *drainer) settlePin(u *unit, covered fileState) (bool, error) {
	from := filepath.Join(d.dir, pinsDir, u.pin)
	to := filepath.Join(d.dir, settlingDir, u.pin)
	if err := durable.MkdirAll(filepath.Dir(to)); err != nil {
		return false, err
	}
	if err := durable.RenameNew(from, to); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil // forgotten meanwhile
		}
		return false, errors.Join(err, unsettle(d.dir))
	}
	now, err := stateOf(to)
	if err != nil {
		return false, err
	}
	if !now.equal(covered) || d.hasJobs(u) {
		return false, putBack(d.dir, to, from)
	}
	return true, durable.Remove(to)
}

// putBack moves a pin back to its name. If a hand-off has made a new one under
// it meanwhile, that is a name of the same file, and one is enough.
func putBack(dir, from, to string) error {
	err := durable.RenameNew(from, to)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	a, err := os.Lstat(from)
	if err != nil {
		return err
	}
	b, err := os.Lstat(to)
	if err != nil {
		return err
	}
	if os.SameFile(a, b) {
		return durable.Remove(from)
	}
	_, err = setAside(dir, from)
	return err
}

// settleTree is settlePin for all side pins of a session at once. They stay if
// they changed since they were listed, or came after that.
func (d *drainer) settleTree(tree treeName, stored map[string]Pin) (bool, error) {
	from := filepath.Join(d.dir, sideDir, tree.String())
	to := filepath.Join(d.dir, settlingDir, tree.String())
	if err := durable.MkdirAll(filepath.Dir(to)); err != nil {
		return false, err
	}
	if err := durable.RenameNew(from, to); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		return false, errors.Join(err, unsettle(d.dir))
	}
	return emptyTree(d.dir, tree, func(rel string, now fileState) bool {
		p, ok := stored[rel]
		return ok && now.equal(fileState{p.Size, p.ModTime})
	})
}

// emptyTree removes a tree from settling/: each file either for good, or by
// moving it back, or aside. It reports whether none was moved back.
func emptyTree(dir string, tree treeName, remove func(rel string, now fileState) bool) (bool, error) {
	root := filepath.Join(dir, settlingDir, tree.String())
	back := filepath.Join(dir, sideDir, tree.String())
	var folders []string
	all := true
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			folders = append(folders, path)
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if _, _, _, ok := parseSidePath(filepath.ToSlash(rel)); !ok || !e.Type().IsRegular() {
			_, err := setAside(dir, path)
			return err
		}
		now, err := stateOf(path)
		if err != nil {
			return err
		}
		if remove(filepath.ToSlash(rel), now) {
			return durable.Remove(path)
		}
		all = false
		to := filepath.Join(back, rel)
		if err := mkdirs(filepath.Dir(to)); err != nil {
			return err
		}
		return putBack(dir, path, to)
	})
	if err != nil {
		return false, err
	}
	for _, f := range slices.Backward(folders) {
		if err := durable.Remove(f); err != nil {
			return false, err
		}
	}
	return all, nil
}

// unsettle moves back what a drainer that died left in settling/.
func unsettle(dir string) error {
	entries, err := readDir(filepath.Join(dir, settlingDir))
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(dir, settlingDir, e.Name())
		_, isPin := parsePinName(e.Name())
		tree, isTree := parseTreeName(e.Name())
		switch {
		case isPin && e.Type().IsRegular():
			err = putBack(dir, path, filepath.Join(dir, pinsDir, e.Name()))
		case isTree && e.IsDir():
			_, err = emptyTree(dir, tree, func(string, fileState) bool { return false })
		default:
			_, err = setAside(dir, path)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// drop removes a unit unread.
func (d *drainer) drop(u *unit) error {
	if err := d.dropJobs(u); err != nil {
		return err
	}
	var errs []error
	if u.pin != "" {
		errs = append(errs, removeIfThere(filepath.Join(d.dir, pinsDir, u.pin)))
	}
	for _, s := range u.snaps {
		errs = append(errs, removeIfThere(filepath.Join(d.dir, pinsDir, s.String())))
	}
	if u.tree {
		errs = append(errs, removeTree(filepath.Join(d.dir, sideDir, treeName{u.Store, u.Session}.String())))
	}
	return errors.Join(errs...)
}

// removeTree removes a folder of side pins with all that is in it.
func removeTree(root string) error {
	var folders []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir():
			folders = append(folders, path)
			return nil
		}
		return removeIfThere(path)
	})
	for _, f := range slices.Backward(folders) {
		if err == nil {
			err = removeIfThere(f)
		}
	}
	return err
}
