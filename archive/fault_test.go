package archive

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// How a durable call fails, and what comes after it.
type faultMode int

const (
	failsBefore faultMode = iota // not performed
	failsAfter                   // performed, but reported as failed
	diesBefore                   // this and all later calls fail: the process is dead
	diesAfter                    // performed, then the process is dead
)

var (
	allFaults = []faultMode{failsBefore, failsAfter, diesBefore, diesAfter}
	// The other two differ from these in little, and each takes a while.
	someFaults = []faultMode{failsAfter, diesBefore}
)

func (m faultMode) String() string {
	return [...]string{"fails before", "fails after", "dies before", "dies after"}[m]
}

// withFault runs f with the n-th durable call (from 0) failing, and reports
// whether there was one.
func withFault(mode faultMode, n int, f func()) (op string, hit bool) {
	var mu sync.Mutex
	calls := 0
	defer durable.SetFault(func(what, path string, after bool) error {
		mu.Lock()
		defer mu.Unlock()
		if !after {
			calls++
		}
		late := mode == failsAfter || mode == diesAfter
		switch {
		case calls == n+1 && after == late:
			op, hit = what+" "+filepath.Base(path), true
			return syscall.ENOSPC // FS-01, FS-02; EDQUOT and EROFS (FS-03) take the same way
		case hit && mode >= diesBefore:
			return syscall.EIO
		}
		return nil
	})()
	f()
	return op, hit
}

// eachFault calls run, which returns what to do under the fault and what must
// hold afterwards, for each durable call and each of the ways in which it fails.
func eachFault(t *testing.T, modes []faultMode, run func(t *testing.T) (act func() error, after func(err error))) {
	for _, mode := range modes {
		n := 0
		for ; ; n++ {
			act, after := run(t)
			var err error
			op, hit := withFault(mode, n, func() { err = act() })
			if !hit {
				if err != nil {
					t.Fatalf("without a fault: %v", err)
				}
				break
			}
			after(err)
			if t.Failed() {
				t.Fatalf("%s call %d (%s); the error was %v", mode, n, op, err)
			}
		}
		t.Logf("%s: %d calls", mode, n)
		if n < 5 {
			t.Errorf("only %d durable calls", n)
		}
	}
}

// copyDir copies a folder tree, empty folders included.
func copyDir(t testing.TB, to, from string) {
	t.Helper()
	must(t, os.CopyFS(to, os.DirFS(from)))
}

// FS-01, FS-02, AR-12: whatever write fails, and wherever the process dies, the
// store holds what it held or the new generation too, and the next run leaves
// no leftovers.
func TestEveryWriteOfArchiveMayFail(t *testing.T) {
	name := "transcript/" + sessionA + ".jsonl"
	old := records(1, 100<<10)
	grown := append(bytes.Clone(old), records(2, 30<<10)...)
	for _, c := range []struct {
		name   string
		before map[string][]byte // archived before, in this order of names
		now    map[string][]byte
		modes  []faultMode
	}{
		{"first", nil, map[string][]byte{name: old, "session/a.txt": []byte("a")}, someFaults},
		{"grown", map[string][]byte{name: old}, map[string][]byte{name: grown, "session/a.txt": []byte("a")}, allFaults},
		{"diverged", map[string][]byte{name: old}, map[string][]byte{name: old[:70<<10]}, someFaults},
		{"several segments", map[string][]byte{name: old}, map[string][]byte{
			name:              append(bytes.Clone(old), bytes.Repeat([]byte("large\n"), sharedMax/6+1)...),
			"session/a.txt":   []byte("a"),
			"session/b/large": bytes.Repeat([]byte("1\n"), sharedMax/2+1),
		}, someFaults},
	} {
		t.Run(c.name, func(t *testing.T) {
			template := newRig(t)
			for n, b := range c.before {
				template.file(n, b)
			}
			if c.before != nil {
				template.archive()
			}
			for n, b := range c.now {
				template.file(n, b)
			}
			snap := template.snapshot(sessionA)
			eachFault(t, c.modes, func(t *testing.T) (func() error, func(error)) {
				root := filepath.Join(t.TempDir(), "store")
				copyDir(t, root, template.store.Root())
				s, err := Open(root)
				must(t, err)
				r := &rig{t: t, store: s, src: template.src, index: filepath.Join(t.TempDir(), "i"), now: template.now}
				o := r.options()
				o.Workers = 1
				var res Result
				act := func() error {
					res, err = s.Archive(context.Background(), snap, o)
					return err
				}
				return act, func(actErr error) {
					created := res.Created && actErr == nil
					r.reopen()
					rep := r.verify()
					if c.before == nil && !created && rep.Generations == 0 {
						if _, err := r.store.Latest(context.Background(), sessionA); !errors.Is(err, ErrNoSession) {
							t.Errorf("latest: %v", err)
						}
					} else if g := r.history().Latest(); created || g.Number > 1 || c.before == nil {
						sameFiles(t, "after the fault", r.read(g), c.now)
					} else {
						sameFiles(t, "after the fault", r.read(g), c.before)
					}
					// The next run finishes, and leaves nothing lying about.
					g := r.archive().Generation
					sameFiles(t, "next run", r.read(g), c.now)
					if len(c.before) > 0 {
						h := r.history()
						sameFiles(t, "the old generation", r.read(h.Generations[0]), c.before)
						if len(h.Generations) != 2 {
							t.Errorf("%d generations", len(h.Generations))
						}
					}
					must(t, r.store.Sweep(context.Background()))
					if rep := r.verify(); rep.Unreferenced > 0 {
						t.Errorf("%d segments are left over", rep.Unreferenced)
					}
					for _, f := range storeFiles(t, root) {
						if durable.IsTemp(filepath.Base(f)) {
							t.Errorf("%s is left over", f)
						}
					}
				}
			})
		})
	}
}

func TestEveryWriteOfCreateMayFail(t *testing.T) {
	eachFault(t, allFaults, func(t *testing.T) (func() error, func(error)) {
		root := filepath.Join(t.TempDir(), "a", "store")
		return func() error {
				_, err := Create(root)
				return err
			}, func(error) {
				s, err := Create(root)
				must(t, err)
				again, err := Create(root)
				must(t, err)
				if s.ID() != again.ID() {
					t.Error("the store changed its id")
				}
				must(t, s.Sweep(context.Background()))
			}
	})
}

func TestEveryWriteOfForgetMayFail(t *testing.T) {
	template := newRig(t)
	secret := noise(1, 30<<10)
	for i := range 3 {
		template.file("transcript/x", append(bytes.Clone(secret), records(uint64(i), i*40<<10)...))
		template.archive()
	}
	// The other session has a segment of the first in common.
	template.file("transcript/x", secret)
	other := template.snapshot(sessionB)
	_, err := template.store.Archive(context.Background(), other, Options{})
	must(t, err)
	eachFault(t, allFaults, func(t *testing.T) (func() error, func(error)) {
		root := filepath.Join(t.TempDir(), "store")
		copyDir(t, root, template.store.Root())
		s, err := Open(root)
		must(t, err)
		act := func() error {
			_, err := s.Forget(context.Background(), sessionA, ForgetOptions{})
			return err
		}
		return act, func(error) {
			s, err := Open(root)
			must(t, err)
			ids, err := s.Sessions(context.Background())
			must(t, err)
			if want := 2; !s.Forgotten(sessionA) && len(ids) != want || s.Forgotten(sessionA) && len(ids) != 1 {
				t.Errorf("forgotten: %v, sessions %v", s.Forgotten(sessionA), ids)
			}
			r := &rig{t: t, store: s}
			r.verify()
			// Either of the two finishes.
			if s.Forgotten(sessionA) {
				must(t, s.Sweep(context.Background()))
			} else {
				_, err = s.Forget(context.Background(), sessionA, ForgetOptions{})
				must(t, err)
			}
			checkForgotten(t, s, template)
		}
	})
}

// checkForgotten fails if a word of session A is left, or one of session B is
// missing.
func checkForgotten(t *testing.T, s *Store, template *rig) {
	t.Helper()
	old, err := template.store.History(context.Background(), sessionA)
	must(t, err)
	words := []string{sessionA}
	keep := map[string]bool{}
	b, err := s.Latest(context.Background(), sessionB)
	must(t, err)
	for _, f := range b.Files {
		keep[f.SHA256] = true
		for _, p := range f.pieces.all() {
			keep[p.segment] = true
		}
	}
	for _, g := range old.Generations {
		words = append(words, g.Hash, g.ID.String())
		for _, f := range g.Files {
			words = append(words, f.SHA256)
			for _, p := range f.pieces.all() {
				words = append(words, p.segment)
			}
		}
	}
	for _, name := range storeFiles(t, s.Root()) {
		content, err := os.ReadFile(filepath.Join(s.Root(), name))
		must(t, err)
		for _, w := range words {
			if !keep[w] && (strings.Contains(name, w) || bytes.Contains(content, []byte(w))) {
				t.Errorf("%s still says %s", name, w)
			}
		}
		if durable.IsTemp(filepath.Base(name)) || strings.HasSuffix(name, pendingExt) {
			t.Errorf("%s is left over", name)
		}
	}
	r := &rig{t: t, store: s}
	if rep := r.verify(); rep.Sessions != 1 || rep.Unreferenced != 0 {
		t.Errorf("report %+v", rep)
	}
	for _, f := range b.Files {
		readFile(t, s, b, f)
	}
}

// FS-01, FS-02, FS-03: on a disk that is full, over its quota, read-only or
// broken, archiving ends at once and says why in one line; nothing half made
// stays, what was archived is there, and the next run does the rest.
func TestArchiveOnABadDisk(t *testing.T) {
	name := "transcript/" + sessionA + ".jsonl"
	old := records(1, 100<<10)
	grown := append(bytes.Clone(old), noise(2, sharedMax+1)...)
	for _, bad := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO} {
		for _, op := range []string{"create", "write", "sync", "rename", "syncdir"} {
			r := newRig(t)
			r.file(name, old)
			r.archive()
			r.file(name, grown)
			r.file("session/a.txt", []byte("a"))
			var mu sync.Mutex
			calls := 0
			restore := durable.SetFault(func(what, path string, after bool) error {
				mu.Lock()
				defer mu.Unlock()
				if what != op || after {
					return nil
				}
				calls++
				return &os.PathError{Op: what, Path: path, Err: bad}
			})
			res, err := r.store.Archive(context.Background(), r.snapshot(sessionA), r.options())
			restore()
			if !errors.Is(err, bad) || res.Created {
				t.Errorf("%v in %s: %+v, %v", bad, op, res, err)
				continue
			}
			if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, r.store.Root()) {
				t.Errorf("%v in %s: the message is %q", bad, op, text)
			}
			// Two segments are on their way at once, no more.
			if calls < 1 || calls > 3 {
				t.Errorf("%v in %s: tried %d times", bad, op, calls)
			}
			for _, f := range storeFiles(t, r.store.Root()) {
				if durable.IsTemp(filepath.Base(f)) {
					t.Errorf("%v in %s: %s is left over", bad, op, f)
				}
			}
			r.verify()
			sameFiles(t, "before", r.read(r.history().Generations[0]), map[string][]byte{name: old})
			sameFiles(t, "next run", r.read(r.archive().Generation), map[string][]byte{name: grown, "session/a.txt": []byte("a")})
		}
	}
}
