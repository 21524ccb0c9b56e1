//go:build unix

package archive

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// SM-06, SM-07: everything is for the user alone, whatever the umask, and
// nothing is made in the folder for temporary files, which others can read.
func TestModesAtCreation(t *testing.T) {
	public := t.TempDir()
	t.Setenv("TMPDIR", public)
	var temps atomic.Int64
	defer func() {
		if temps.Load() == 0 {
			t.Error("no temporary was seen")
		}
	}()
	defer durable.SetFault(func(op, path string, after bool) error {
		if strings.HasPrefix(path, public) {
			t.Errorf("%s %s, outside of the store", op, path)
		}
		if op != "create" || !after {
			return nil
		}
		temps.Add(1)
		if fi, err := os.Stat(path); err != nil {
			t.Error(err)
		} else if fi.Mode().Perm() != 0o600 {
			t.Errorf("temporary %s has mode %v", path, fi.Mode())
		}
		return nil
	})()
	for _, mask := range []int{0, 0o022, 0o077, 0o277} {
		old := syscall.Umask(mask)
		defer syscall.Umask(old)
		dir := filepath.Join(t.TempDir(), "d")
		s, err := Create(filepath.Join(dir, "store"))
		if mask&0o200 != 0 && err != nil && os.Geteuid() != 0 {
			syscall.Umask(old)
			continue // such a umask keeps its owner out of new folders
		}
		must(t, err)
		r := &rig{t: t, store: s, src: t.TempDir(), index: filepath.Join(dir, "index")}
		r.file("transcript/x", records(1, 1000))
		must(t, os.Chmod(r.path("transcript/x"), 0o666))
		snap := r.snapshot(sessionA)
		o := Options{IndexDir: r.index}
		_, err = s.Archive(context.Background(), snap, o)
		must(t, err)
		snap.SessionID = sessionB
		_, err = s.Archive(context.Background(), snap, o)
		must(t, err)
		_, err = s.Forget(context.Background(), sessionB, ForgetOptions{})
		must(t, err)
		syscall.Umask(old)
		must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			fi, err := d.Info()
			want := fs.FileMode(0o600)
			if d.IsDir() {
				want = 0o700
			}
			if err == nil && fi.Mode().Perm() != want {
				t.Errorf("umask %03o: %s has mode %v", mask, p, fi.Mode())
			}
			return err
		}))
	}
}

// SM-08: what the user widened stays so.
func TestModesOfUserAreKept(t *testing.T) {
	r := newRig(t)
	r.file("transcript/x", records(1, 1000))
	must(t, os.Chmod(r.store.Root(), 0o755))
	must(t, os.Chmod(filepath.Join(r.store.Root(), "sessions"), 0o750))
	r.archive()
	_, err := Create(r.store.Root())
	must(t, err)
	for name, want := range map[string]fs.FileMode{"": 0o755, "sessions": 0o750} {
		fi, err := os.Stat(filepath.Join(r.store.Root(), name))
		must(t, err)
		if fi.Mode().Perm() != want {
			t.Errorf("%q has mode %v", name, fi.Mode())
		}
	}
}

// Reading needs no right to write, and leaves no trace.
func TestReadingWritesNothing(t *testing.T) {
	r := newRig(t)
	r.file("transcript/x", records(1, 1000))
	r.archive()
	must(t, os.RemoveAll(filepath.Join(r.store.Root(), "locks")))
	before := storeFiles(t, r.store.Root())
	r.reopen()
	r.read(r.history().Latest())
	r.verify()
	after := storeFiles(t, r.store.Root())
	if len(before) != len(after) {
		t.Errorf("files %v, then %v", before, after)
	}
	// Copies of a store lack empty folders; the next archiving makes them.
	r.add("transcript/x", []byte("y"))
	must(t, os.RemoveAll(filepath.Join(r.store.Root(), "tmp")))
	r.archive()
}

// A pipe in the place of a file of the store holds nobody up.
func TestPipesInTheStore(t *testing.T) {
	r := newRig(t)
	r.file("transcript/x", records(1, 100_000))
	g := r.archive().Generation
	pipe := func(name string) {
		t.Helper()
		must(t, os.Remove(name))
		must(t, syscall.Mkfifo(name, 0o600))
	}
	within := func(what string, f func() error) {
		t.Helper()
		done := make(chan error, 1)
		go func() { done <- f() }()
		select {
		case err := <-done:
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: still waiting", what)
		}
	}
	pipe(r.store.path(segmentPath(g.Files[0].pieces.all()[0].segment)))
	within("segment", func() error {
		rc, err := r.store.OpenFile(g, g.Files[0])
		if err == nil {
			_, err = io.ReadAll(rc)
			rc.Close()
		}
		return err
	})
	pipe(r.store.path(formatName))
	within("format", func() error { _, err := Open(r.store.Root()); return err })
}
