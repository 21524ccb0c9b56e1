package archive

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	sessionA = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	sessionB = "7ba7b810-9dad-41d1-80b4-00c04fd430c9"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A rig is a store and a folder of sources.
type rig struct {
	t     testing.TB
	store *Store
	src   string
	index string
	now   time.Time
}

func newRig(t testing.TB) *rig {
	t.Helper()
	dir := t.TempDir()
	s, err := Create(filepath.Join(dir, "store"))
	must(t, err)
	r := &rig{t: t, store: s, src: filepath.Join(dir, "src"), index: filepath.Join(dir, "index"), now: time.Now()}
	must(t, os.Mkdir(r.src, 0o700))
	return r
}

func (r *rig) options() Options {
	return Options{IndexDir: r.index, Now: func() time.Time { return r.now }}
}

// file writes a source: "family/path".
func (r *rig) file(name string, data []byte) string {
	r.t.Helper()
	p := filepath.Join(r.src, filepath.FromSlash(name))
	must(r.t, os.MkdirAll(filepath.Dir(p), 0o700))
	must(r.t, os.WriteFile(p, data, 0o600))
	return p
}

func (r *rig) add(name string, data []byte) {
	r.t.Helper()
	f, err := os.OpenFile(filepath.Join(r.src, filepath.FromSlash(name)), os.O_APPEND|os.O_WRONLY, 0)
	must(r.t, err)
	_, err = f.Write(data)
	must(r.t, errors.Join(err, f.Close()))
}

func (r *rig) path(name string) string { return filepath.Join(r.src, filepath.FromSlash(name)) }

// snapshot names all files below src: the first folder is the family.
func (r *rig) snapshot(session string) Snapshot {
	r.t.Helper()
	snap := Snapshot{SessionID: session, Reason: SessionEnd,
		Events:  []Event{{Name: "SessionEnd", Reason: "other", Time: r.now}},
		Project: Project{Cwd: "/home/u/p", Folder: "-home-u-p"}}
	must(r.t, filepath.WalkDir(r.src, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(r.src, p)
		family, rest, _ := strings.Cut(filepath.ToSlash(rel), "/")
		snap.Sources = append(snap.Sources, Source{Family: family, Path: rest, File: p})
		return err
	}))
	return snap
}

func (r *rig) archive() Result {
	r.t.Helper()
	res, err := r.store.Archive(context.Background(), r.snapshot(sessionA), r.options())
	must(r.t, err)
	for _, w := range res.Warnings {
		r.t.Errorf("warning: %v", w)
	}
	return res
}

func (r *rig) quick() Result {
	r.t.Helper()
	snap := r.snapshot(sessionA)
	snap.Check = Quick
	snap.Reason = Stop
	res, err := r.store.Archive(context.Background(), snap, r.options())
	must(r.t, err)
	return res
}

// read returns all files of a generation, as "family/path".
func (r *rig) read(g *Generation) map[string][]byte {
	r.t.Helper()
	out := make(map[string][]byte)
	for _, f := range g.Files {
		out[f.Family+"/"+f.Path] = readFile(r.t, r.store, g, f)
	}
	return out
}

func readFile(t testing.TB, s *Store, g *Generation, f File) []byte {
	t.Helper()
	rc, err := s.OpenFile(g, f)
	must(t, err)
	b, err := io.ReadAll(rc)
	must(t, errors.Join(err, rc.Close()))
	if int64(len(b)) != f.Size {
		t.Fatalf("%s: %d bytes, the file says %d", f.Path, len(b), f.Size)
	}
	return b
}

func (r *rig) verify() *Report {
	r.t.Helper()
	rep, err := r.store.Verify(context.Background(), VerifyOptions{})
	must(r.t, err)
	for _, p := range rep.Problems {
		r.t.Errorf("verify: %+v", p)
	}
	return rep
}

func (r *rig) history() *History {
	r.t.Helper()
	h, err := r.store.History(context.Background(), sessionA)
	must(r.t, err)
	for _, p := range h.Problems {
		r.t.Errorf("history: %+v", p)
	}
	return h
}

// reopen opens the store as another process would.
func (r *rig) reopen() {
	r.t.Helper()
	s, err := Open(r.store.Root())
	must(r.t, err)
	r.store = s
}

func sameFiles(t testing.TB, what string, got, want map[string][]byte) {
	t.Helper()
	for name, w := range want {
		g, ok := got[name]
		if !ok {
			t.Errorf("%s: %s is missing", what, name)
		} else if !bytes.Equal(g, w) {
			t.Errorf("%s: %s has %d bytes, want %d, differing at %d", what, name, len(g), len(w), firstDiff(g, w))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %s came from nowhere", what, name)
		}
	}
}

func firstDiff(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// records makes n bytes of JSON-like lines, the same for the same seed. It
// copies more than it computes: the race detector makes computing slow.
func records(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	words := []string{"the ", "store ", "keeps ", "every ", "byte ", "and ", "says ", "so "}
	texts := make([][]byte, 64)
	for i := range texts {
		for range 1 + rng.IntN(120) {
			texts[i] = append(texts[i], words[rng.IntN(len(words))]...)
		}
	}
	b := make([]byte, 0, n+4096)
	for len(b) < n {
		b = append(b, `{"type":"user","uuid":"`...)
		b = strconv.AppendUint(b, rng.Uint64(), 16)
		b = append(b, `","message":{"content":"`...)
		for range 1 + rng.IntN(4) {
			b = append(b, texts[rng.IntN(len(texts))]...)
		}
		b = append(b, "\"}}\n"...)
	}
	return b[:n:n]
}

// noise makes n bytes that do not compress.
func noise(seed uint64, n int) []byte {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	b := make([]byte, n)
	rand.NewChaCha8(key).Read(b)
	return b
}

// storeFiles lists the files of a folder, relative.
func storeFiles(t testing.TB, root string) []string {
	t.Helper()
	var out []string
	must(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(root, p)
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	}))
	return out
}

func storeSize(t testing.TB, root string) int64 {
	t.Helper()
	var n int64
	for _, f := range storeFiles(t, root) {
		fi, err := os.Stat(filepath.Join(root, f))
		must(t, err)
		n += fi.Size()
	}
	return n
}
