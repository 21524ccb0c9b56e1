package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

func TestForget(t *testing.T) {
	r := newRig(t)
	shared := noise(9, 20<<10)
	r.file("transcript/x", append(bytes.Clone(shared), noise(1, 50<<10)...))
	r.file("session/a", noise(2, 2<<20)) // a segment of its own
	r.archive()
	r.add("transcript/x", noise(3, 50<<10))
	r.archive()
	template := &rig{t: t, store: r.store}
	old := filepath.Join(t.TempDir(), "old")
	copyDir(t, old, r.store.Root())
	s, err := Open(old)
	must(t, err)
	template.store = s

	must(t, os.Remove(r.path("transcript/x")))
	_, err = r.store.Archive(context.Background(), r.snapshot(sessionB), r.options()) // shares session/a
	must(t, err)
	g := r.history().Latest()
	// An archiver died before it named what it stored.
	orphan := encodeSegment(t, []byte("orphan"))
	name := r.segmentFile(hashOf([]byte("orphan")))
	must(t, os.MkdirAll(filepath.Dir(name), 0o700))
	must(t, os.WriteFile(name, orphan, 0o600))
	if rep := r.verify(); rep.Unreferenced != 1 {
		t.Errorf("report %+v", rep)
	}
	rep, err := r.store.Forget(context.Background(), sessionA, ForgetOptions{IndexDir: r.index})
	must(t, err)
	if rep.Generations != 2 || rep.Segments != 3 || rep.Bytes < 100<<10 {
		t.Errorf("report %+v", rep)
	}
	checkForgotten(t, r.store, template)
	if left := storeFiles(t, r.index); len(left) != 1 {
		t.Errorf("index files %v", left)
	}

	// It stays forgotten, for all.
	ctx := context.Background()
	if !r.store.Forgotten(sessionA) || r.store.Forgotten(sessionB) {
		t.Error("the tombstone is not seen")
	}
	if _, err := r.store.Archive(ctx, r.snapshot(sessionA), r.options()); !errors.Is(err, ErrForgotten) {
		t.Errorf("archive: %v", err)
	}
	if _, err := r.store.History(ctx, sessionA); !errors.Is(err, ErrForgotten) {
		t.Errorf("history: %v", err)
	}
	if _, err := r.store.Latest(ctx, sessionA); !errors.Is(err, ErrForgotten) {
		t.Errorf("latest: %v", err)
	}
	for _, f := range g.Files {
		if f.Family == Transcript {
			rc, err := r.store.OpenFile(g, f)
			must(t, err)
			if _, err := rc.Read(make([]byte, 1)); !errors.Is(err, ErrDamaged) {
				t.Errorf("read: %v", err)
			}
			must(t, rc.Close())
		}
	}
	// Once more, and for one that was never there.
	for _, id := range []string{sessionA, "8ba7b810-9dad-41d1-80b4-00c04fd430c8"} {
		if rep, err := r.store.Forget(ctx, id, ForgetOptions{}); err != nil || rep != (ForgetReport{}) {
			t.Errorf("%+v, %v", rep, err)
		}
		if !r.store.Forgotten(id) {
			t.Errorf("%s is not forgotten", id)
		}
	}
	if _, err := r.store.Forget(ctx, "../x", ForgetOptions{}); err == nil {
		t.Error("a bad id was accepted")
	}
}

// What a damaged manifest of another session may name is kept.
func TestForgetSparesWhatDamagedManifestsName(t *testing.T) {
	r := newRig(t)
	r.file("session/a", noise(1, 30<<10))
	g := r.archive().Generation
	res, err := r.store.Archive(context.Background(), r.snapshot(sessionB), r.options())
	must(t, err)
	file := filepath.Join(r.store.Root(), "sessions", sessionB, manifestName(1, res.Generation.Hash))
	b, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, append(b, "garbage"...), 0o600))
	rep, err := r.store.Forget(context.Background(), sessionA, ForgetOptions{})
	must(t, err)
	if rep.Segments != 0 {
		t.Errorf("report %+v", rep)
	}
	if _, err := os.Stat(r.segmentFile(g.Files[0].pieces.all()[0].segment)); err != nil {
		t.Error(err)
	}
}

func TestSweep(t *testing.T) {
	r := newRig(t)
	r.file("transcript/x", []byte("x"))
	r.archive()
	plant := func() *durable.Temp {
		tmp, err := durable.CreateTemp(filepath.Join(r.store.Root(), "tmp"))
		must(t, err)
		return tmp
	}
	mine := filepath.Join(r.store.Root(), "tmp", "notes.txt")
	must(t, os.WriteFile(mine, nil, 0o600))
	tmp := plant()
	must(t, r.store.Sweep(context.Background()))
	if _, err := os.Stat(tmp.Name()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a temporary is left over: %v", err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Errorf("a strange file is gone: %v", err)
	}
	// Beside an archiver at work, what is fresh is his.
	unlock, err := r.store.lock(context.Background(), durable.Shared, "")
	must(t, err)
	tmp, old := plant(), plant()
	must(t, os.Chtimes(old.Name(), time.Time{}, time.Now().Add(-48*time.Hour)))
	must(t, r.store.Sweep(context.Background()))
	if _, err := os.Stat(tmp.Name()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(old.Name()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an old temporary is left over: %v", err)
	}
	must(t, unlock())
	// CL-03: nothing but leftovers goes.
	must(t, os.RemoveAll(r.src))
	must(t, r.store.Sweep(context.Background()))
	r.read(r.history().Latest())
}

// FS-06: a lock that is not to be had ends with the caller's patience.
func TestLockWaitsNoLongerThanAsked(t *testing.T) {
	r := newRig(t)
	r.file("transcript/x", []byte("x"))
	unlock, err := r.store.lock(context.Background(), durable.Exclusive, "")
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.store.Archive(ctx, r.snapshot(sessionA), r.options()); !errors.Is(err, durable.ErrLocked) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	must(t, unlock())
	// Readers take none.
	unlock, err = r.store.lock(context.Background(), durable.Exclusive, "")
	must(t, err)
	r.verify()
	must(t, unlock())
	r.archive()
}

// An archiver needs the store's lock shared, so that sessions do not wait for
// each other, and its session's alone.
func TestArchiversShareTheStore(t *testing.T) {
	r := newRig(t)
	lockOf := func(id string) string { return keyedHash(r.store.format.id, id)[:2] }
	for lockOf(sessionA) == lockOf(sessionB) { // in one store of 256
		r = newRig(t)
	}
	r.file("transcript/x", []byte("x"))
	unlock, err := r.store.lock(context.Background(), durable.Shared, sessionB)
	must(t, err)
	for id, want := range map[string]error{sessionA: nil, sessionB: durable.ErrLocked} {
		patience := time.Minute
		if want != nil {
			patience = 50 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if _, err := r.store.Archive(ctx, r.snapshot(id), r.options()); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
		cancel()
	}
	must(t, unlock())
}

// Archivers of the same and of other sessions, forgetters and readers at once.
func TestManyAtOnce(t *testing.T) {
	r := newRig(t)
	data := records(1, 2<<20)
	r.file("transcript/x", data)
	r.file("session/a", records(2, 100<<10))
	ids := []string{sessionA, sessionB}
	for i := range 4 {
		ids = append(ids, fmt.Sprintf("%d0000000-9dad-41d1-80b4-00c04fd430c8", i))
	}
	victim := ids[len(ids)-1]
	ctx := context.Background()
	var wg sync.WaitGroup
	for i := range 24 {
		id := ids[i%len(ids)]
		snap := r.snapshot(id)
		wg.Go(func() {
			s, err := Open(r.store.Root())
			if err != nil {
				t.Error(err)
				return
			}
			o := r.options()
			o.Workers = 1 + i%2
			if i%3 == 0 {
				o.IndexDir = ""
			}
			if _, err := s.Archive(ctx, snap, o); err != nil && !(id == victim && errors.Is(err, ErrForgotten)) {
				t.Error(err)
			}
			if i%8 == 5 {
				if _, err := s.Forget(ctx, victim, ForgetOptions{}); err != nil {
					t.Error(err)
				}
			}
			if rep, err := s.Verify(ctx, VerifyOptions{}); err != nil || !rep.OK() {
				t.Errorf("%+v, %v", rep, err)
			}
		})
	}
	wg.Wait()
	got, err := r.store.Sessions(ctx)
	if err != nil || len(got) != len(ids)-1 {
		t.Errorf("sessions %v, %v", got, err)
	}
	for _, id := range got {
		h, err := r.store.History(ctx, id)
		if err != nil || len(h.Generations) != 1 || len(h.Problems) > 0 {
			t.Errorf("%s: %+v, %v", id, h, err)
		}
	}
	if rep := r.verify(); rep.Unreferenced > 0 {
		t.Errorf("%d segments are left over", rep.Unreferenced)
	}
	if left := storeFiles(t, r.store.Root()+"/tmp"); len(left) > 0 {
		t.Errorf("temporaries %v", left)
	}
}

// A caller's patience ends an archiving cleanly.
func TestCancel(t *testing.T) {
	for _, workers := range []int{1, 2} {
		r := newRig(t)
		r.file("transcript/x", records(1, 30<<20))
		o := r.options()
		o.Workers = workers
		ctx, cancel := context.WithCancel(context.Background())
		o.Progress = func(int64) { cancel() }
		res, err := r.store.Archive(ctx, r.snapshot(sessionA), o)
		if !errors.Is(err, context.Canceled) || res.Created {
			t.Errorf("%+v, %v", res, err)
		}
		if left := storeFiles(t, r.store.Root()+"/tmp"); len(left) > 0 {
			t.Errorf("temporaries %v", left)
		}
		r.archive()
		r.verify()
	}
}
