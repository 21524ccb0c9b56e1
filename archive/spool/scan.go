package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// A unitKey names what is stored together: one file of one session for one
// store. ID is empty for a session without a main file.
type unitKey struct {
	Store   string // store key
	Session string
	ID      string // formatID of the transcript
}

func (k unitKey) String() string { return k.Store + "." + k.Session + "." + k.ID }

// A unit is all that the spool holds under one key, and so one call of Process
// or a few.
type unit struct {
	unitKey
	root   string   // of the store; empty if nobody knows
	jobs   []string // names in jobs/, sorted
	parked []string // names in parked/, sorted
	job    job      // all of them folded
	pin    string   // name in pins/, or empty
	snaps  []pinName
	tree   bool // there are side pins
}

// fresh tells whether something new has come since the unit was parked.
func (u *unit) fresh() bool { return len(u.jobs) > 0 || len(u.parked) == 0 }

func (u *unit) due(now time.Time) bool {
	// A clock that was set back must not make a job rest for years.
	return u.fresh() || now.Sub(u.job.LastTry).Abs() >= parkedRetry
}

// names lists the files of the unit, each with its folder.
func (u *unit) names() []string {
	var all []string
	for _, n := range u.jobs {
		all = append(all, jobsDir+"/"+n)
	}
	for _, n := range u.parked {
		all = append(all, parkedDir+"/"+n)
	}
	if u.pin != "" {
		all = append(all, pinsDir+"/"+u.pin)
	}
	for _, s := range u.snaps {
		all = append(all, pinsDir+"/"+s.String())
	}
	if u.tree {
		all = append(all, sideDir+"/"+treeName{u.Store, u.Session}.String())
	}
	return all
}

// A scan is what was found in a spool at one time.
type scan struct {
	units   []*unit
	strange []string // paths of files that are no jobs or pins of ours
	newer   []string // paths of jobs of a later version
	errs    []error  // what could not be read
}

// scanSpool reads the whole spool and changes nothing. Files that vanish
// meanwhile are left out.
func scanSpool(dir string) (*scan, error) {
	s := &scan{}
	byKey := map[unitKey]*unit{}
	get := func(k unitKey) *unit {
		u := byKey[k]
		if u == nil {
			u = &unit{unitKey: k}
			byKey[k] = u
			s.units = append(s.units, u)
		}
		return u
	}
	jobs := map[*unit][]job{}
	for _, sub := range []string{parkedDir, jobsDir} {
		entries, err := readDir(filepath.Join(dir, sub))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			path := filepath.Join(dir, sub, e.Name())
			name, ok := parseJobName(e.Name())
			if !ok {
				s.strange = append(s.strange, path)
				continue
			}
			j, err := readJob(path)
			if err == nil && j.Session != name.Session {
				err = errors.New("job: its name is of another session")
			}
			var pathErr *fs.PathError
			switch {
			case err == nil:
			case errors.Is(err, fs.ErrNotExist):
				continue
			case errors.Is(err, errNewer):
				s.newer = append(s.newer, path)
				continue
			case errors.As(err, &pathErr) && !errors.Is(err, durable.ErrNotRegular) && !errors.Is(err, durable.ErrNotOwned):
				s.errs = append(s.errs, err) // may be readable another time
				continue
			default:
				s.strange = append(s.strange, path)
				continue
			}
			u := get(j.key())
			u.root = j.Store
			if sub == jobsDir {
				u.jobs = append(u.jobs, e.Name())
			} else {
				u.parked = append(u.parked, e.Name())
			}
			jobs[u] = append(jobs[u], j)
		}
	}
	for u, js := range jobs {
		u.job = fold(js)
	}

	entries, err := readDir(filepath.Join(dir, pinsDir))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		n, ok := parsePinName(e.Name())
		if !ok || !e.Type().IsRegular() {
			s.strange = append(s.strange, filepath.Join(dir, pinsDir, e.Name()))
			continue
		}
		u := get(unitKey{n.Store, n.Session, formatID(n.ID)})
		if n.Snap > 0 {
			u.snaps = append(u.snaps, n)
		} else {
			u.pin = e.Name()
		}
	}

	entries, err = readDir(filepath.Join(dir, sideDir))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		n, ok := parseTreeName(e.Name())
		if !ok || !e.IsDir() {
			s.strange = append(s.strange, filepath.Join(dir, sideDir, e.Name()))
			continue
		}
		found := false
		for _, u := range s.units {
			if u.Store == n.Store && u.Session == n.Session {
				u.tree, found = true, true
			}
		}
		if !found {
			get(unitKey{n.Store, n.Session, ""}).tree = true
		}
	}
	for _, u := range s.units {
		slices.SortFunc(u.snaps, func(a, b pinName) int { return cmp.Compare(a.Snap, b.Snap) })
	}
	// Those with a job in the order of their first one, then bare pins.
	slices.SortStableFunc(s.units, func(a, b *unit) int {
		return cmp.Compare(a.order(), b.order())
	})
	return s, nil
}

func (u *unit) order() string {
	const last = "~" // sorts after all digits
	first := last
	for _, names := range [][]string{u.jobs, u.parked} {
		if len(names) > 0 && names[0] < first {
			first = names[0]
		}
	}
	return first + u.String()
}

// key tells which unit a job belongs to.
func (j job) key() unitKey {
	k := unitKey{StoreKey(j.Store), j.Session, ""}
	if n, ok := parsePinName(j.Pin); ok {
		k.ID = formatID(n.ID)
	} else if j.Copy {
		k.ID = formatID(durable.ID{}) // its copies need some name
	}
	return k
}

// readDir lists a folder of the spool without our temporaries. One that does
// not exist is empty.
func readDir(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return durable.IsTemp(e.Name()) }), err
}

// setAside moves a strange file out of the way of everything else, whatever it
// is, and returns its new path.
func setAside(dir, path string) (string, error) {
	const longest = 200 // bytes of its name that are kept
	base := filepath.Base(path)
	to := filepath.Join(dir, asideDir, fmt.Sprintf("%016x-%s", rand.Uint64(), base[:min(len(base), longest)]))
	err := durable.RenameNew(path, to)
	if errors.Is(err, fs.ErrNotExist) {
		if err := durable.MkdirAll(filepath.Dir(to)); err != nil {
			return "", err
		}
		err = durable.RenameNew(path, to)
	}
	return to, err
}

// A fileState is by what a change of a file is noticed.
type fileState struct {
	size int64
	mod  time.Time
}

func (s fileState) equal(t fileState) bool { return s.size == t.size && s.mod.Equal(t.mod) }

func stateOf(path string) (fileState, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return fileState{}, err
	}
	return fileState{fi.Size(), fi.ModTime()}, nil
}

// sidePins lists the side pins of a session, by their path below the tree.
func sidePins(dir string, tree treeName) (map[string]Pin, error) {
	root := filepath.Join(dir, sideDir, tree.String())
	pins := map[string]Pin{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if !e.Type().IsRegular() {
			return nil
		}
		rel := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		family, name, _, ok := parseSidePath(rel)
		if !ok {
			return nil
		}
		fi, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		pins[rel] = Pin{Family: family, Rel: name, Path: path, Size: fi.Size(), ModTime: fi.ModTime()}
		return nil
	})
	return pins, err
}

// newest keeps the newest of the side pins of each family and path.
func newest(pins map[string]Pin) []Pin {
	var all []Pin
	for _, p := range pins {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Pin) int {
		return cmp.Or(
			cmp.Compare(a.Family, b.Family), cmp.Compare(a.Rel, b.Rel),
			b.ModTime.Compare(a.ModTime), cmp.Compare(b.Size, a.Size), cmp.Compare(a.Path, b.Path))
	})
	return slices.CompactFunc(all, func(a, b Pin) bool { return a.Family == b.Family && a.Rel == b.Rel })
}
