package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// testTime is the clock of the tests where it matters.
var testTime = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

// sessionID makes a valid session id of a number.
func sessionID(n int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", n, n) }

// A scene is a client's project folder, a spool beside it and a store.
type scene struct {
	t     *testing.T
	home  string
	spool string
	root  string // of the store, which the spool never touches
	store *fakeStore
	clock time.Time
}

func newScene(t *testing.T) *scene {
	t.Helper()
	return newSceneIn(t, t.TempDir())
}

// newQuickScene is a scene in memory, where the system has such a place: for
// tests that repeat themselves hundreds of times, and are not about the disk.
func newQuickScene(t *testing.T) *scene {
	t.Helper()
	home, err := os.MkdirTemp("/dev/shm", "spool-test-")
	if err != nil {
		return newScene(t)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	return newSceneIn(t, home)
}

func newSceneIn(t *testing.T, home string) *scene {
	t.Helper()
	s := &scene{t: t, home: home, spool: filepath.Join(home, "state", "spool"), root: filepath.Join(home, "far", "store"),
		store: &fakeStore{}, clock: testTime}
	for _, dir := range []string{"state", "project"} {
		if err := os.Mkdir(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *scene) transcript(session string) string {
	return filepath.Join(s.home, "project", session+".jsonl")
}

// write makes or replaces a file in place and returns its path.
func (s *scene) write(path, content string) string {
	s.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.home, path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *scene) append(path, content string) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString(content)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		s.t.Error(err)
	}
}

func (s *scene) remove(path string) {
	if err := os.RemoveAll(path); err != nil {
		s.t.Error(err)
	}
}

func (s *scene) request(session string) Request {
	return Request{
		StoreRoot: s.root, SessionID: session, Transcript: s.transcript(session), Reason: "session-end",
		Event:     Event{Name: "SessionEnd", Reason: "clear", Time: s.clock},
		ConfigDir: s.home, Folder: "-project", Cwd: "/project",
	}
}

func (s *scene) handOff(session string) Receipt {
	s.t.Helper()
	rec, err := HandOff(context.Background(), s.spool, s.request(session))
	if err != nil {
		s.t.Fatal(err)
	}
	return rec
}

func (s *scene) options() DrainOptions {
	return DrainOptions{Process: s.store.process, Now: func() time.Time { return s.clock }}
}

func (s *scene) drain() Stats {
	s.t.Helper()
	stats, err := Drain(context.Background(), s.spool, s.options())
	if err != nil {
		s.t.Fatal(err)
	}
	return stats
}

// files lists what is in the spool, but not the lock and the store records.
func (s *scene) files() []string {
	s.t.Helper()
	var all []string
	err := filepath.WalkDir(s.spool, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		rel, err := filepath.Rel(s.spool, path)
		if err == nil && !e.IsDir() && rel != lockFile && filepath.Dir(rel) != storesDir {
			all = append(all, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// in lists the names in one folder of the spool.
func (s *scene) in(sub string) []string {
	s.t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.spool, sub))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// pins lists the pins, without the snapshots that some file systems add.
func (s *scene) pins() []string {
	s.t.Helper()
	return slices.DeleteFunc(s.in(pinsDir), func(name string) bool { return strings.HasSuffix(name, snapSuffix) })
}

func (s *scene) wantEmpty(when string) {
	s.t.Helper()
	if left := s.files(); len(left) > 0 {
		s.t.Errorf("%s: left in the spool: %q", when, left)
	}
}

// later makes everything in the spool that is a temporary old enough to go.
func (s *scene) later() { s.clock = time.Now().Add(2 * tempAge) }

// A fakeStore remembers what it was given. Like a real one it reads the spooled
// transcript, or the live one if none is spooled.
type fakeStore struct {
	mu       sync.Mutex
	versions map[string][]string          // of each session's transcript
	side     map[string]map[string]string // of each session: family/rel to content
	works    []Work
	inside   int
	most     int // at the same time
	fail     func(w Work) error
	during   func(w Work) // after the reading
}

func (f *fakeStore) process(ctx context.Context, w Work) (int64, error) {
	f.mu.Lock()
	f.inside++
	f.most = max(f.most, f.inside)
	fail, during := f.fail, f.during
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.inside--
		f.mu.Unlock()
	}()
	if fail != nil {
		if err := fail(w); err != nil {
			return 0, err
		}
	}
	path := w.Path
	if path == "" {
		path = w.Transcript
	}
	var content []byte
	have := path != ""
	if have {
		var err error
		if content, err = os.ReadFile(path); err != nil {
			if w.Path != "" || !errors.Is(err, fs.ErrNotExist) {
				return 0, err
			}
			have = false
		}
	}
	side := map[string]string{}
	for _, p := range w.Side {
		data, err := os.ReadFile(p.Path)
		if err != nil {
			return 0, err
		}
		side[p.Family+"/"+p.Rel] = string(data)
	}
	if during != nil {
		during(w)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.versions == nil {
		f.versions, f.side = map[string][]string{}, map[string]map[string]string{}
	}
	f.works = append(f.works, w)
	if v := f.versions[w.SessionID]; have && (len(v) == 0 || v[len(v)-1] != string(content)) {
		f.versions[w.SessionID] = append(v, string(content))
	}
	if f.side[w.SessionID] == nil {
		f.side[w.SessionID] = map[string]string{}
	}
	maps.Copy(f.side[w.SessionID], side)
	return int64(len(content)), nil
}

// has tells whether some version of the session begins with the content.
func (f *fakeStore) has(session, content string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.versions[session], func(v string) bool { return strings.HasPrefix(v, content) })
}

var errCrash = errors.New("the machine stopped here")

// crashAt makes the n-th operation that changes the disk (from 1) and all
// after it fail, as if the process had died. With after, the n-th itself still
// takes place.
func crashAt(n int, after bool) (count *int, restore func()) {
	count = new(int)
	return count, durable.SetFault(func(op, path string, isAfter bool) error {
		if !isAfter {
			*count++
			if *count > n || *count == n && !after {
				return errCrash
			}
			return nil
		}
		if *count >= n && after {
			return errCrash
		}
		return nil
	})
}

// operations collects what do does to the disk: "op folder/name", with the
// spool's own varying names replaced.
func operations(do func()) []string {
	var ops []string
	restore := durable.SetFault(func(op, path string, after bool) error {
		if after {
			return nil
		}
		base := filepath.Base(path)
		_, isPin := parsePinName(base)
		_, isJob := parseJobName(base)
		_, isTree := parseTreeName(base)
		switch {
		case durable.IsTemp(base):
			base = "TEMP"
		case isPin:
			base = "PIN"
		case isJob:
			base = "JOB"
		case isTree:
			base = "TREE"
		case strings.HasSuffix(base, ".json"):
			base = "RECORD"
		}
		parent := filepath.Base(filepath.Dir(path))
		if _, ok := parseTreeName(parent); ok {
			parent = "TREE"
		}
		ops = append(ops, op+" "+parent+"/"+base)
		return nil
	})
	defer restore()
	do()
	return ops
}

func grep(t *testing.T, dir, word string) []string {
	t.Helper()
	var hits []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.Contains(path, word) {
			hits = append(hits, path)
		} else if e.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if bytes.Contains(data, []byte(word)) {
				hits = append(hits, path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return hits
}
