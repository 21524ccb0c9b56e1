package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestRoundTrip(t *testing.T) {
	for _, workers := range []int{0, 1, 3} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			r := newRig(t)
			want := map[string][]byte{
				"transcript/" + sessionA + ".jsonl": records(1, 20<<20+123),
				"session/subagents/agent-1.jsonl":   records(2, 300<<10),
				"session/tool-results/t.txt":        noise(3, 9<<20),
				"session/tool-results/empty.txt":    {},
				"tasks/1.json":                      []byte("{}"),
				"session/Ünïcode, spaces 'q'":       []byte("x\x00y"),
			}
			for name, b := range want {
				r.file(name, b)
			}
			mtime := time.Date(2020, 1, 2, 3, 4, 5, 678901234, time.UTC)
			must(t, os.Chtimes(r.path("tasks/1.json"), mtime, mtime))
			must(t, os.Chmod(r.path("tasks/1.json"), 0o640))
			var seen int64
			o := r.options()
			o.Workers = workers
			o.Progress = func(n int64) { seen += n }
			res, err := r.store.Archive(context.Background(), r.snapshot(sessionA), o)
			must(t, err)
			var total int64
			for _, b := range want {
				total += int64(len(b))
			}
			if !res.Created || res.Diverged || res.NewBytes != total || seen != total || len(res.Warnings)+len(res.Skipped)+len(res.LeftOut) > 0 {
				t.Errorf("result %+v, progress %d, want %d bytes", res, seen, total)
			}
			r.reopen()
			g, err := r.store.Latest(context.Background(), sessionA)
			must(t, err)
			sameFiles(t, "latest", r.read(g), want)
			if g.Number != 1 || g.Parent != "" || g.Reason != SessionEnd || g.Project.Folder != "-home-u-p" ||
				len(g.Events) != 1 || g.Events[0].Name != "SessionEnd" || !g.Taken.Equal(r.now) {
				t.Errorf("generation %+v", g)
			}
			for _, f := range g.Files {
				if f.Path == "1.json" && (!f.ModTime.Equal(mtime) || f.Mode != 0o640) {
					t.Errorf("mode %v, mtime %v", f.Mode, f.ModTime)
				}
			}
			rep := r.verify()
			if rep.Sessions != 1 || rep.Generations != 1 || rep.Files != len(want) || rep.Unreferenced != 0 || rep.Bytes != total {
				t.Errorf("report %+v", rep)
			}
			// Two files are too large to share: three segments and two. The small
			// ones go into the last segment of one of them.
			if rep.Segments != 5 {
				t.Errorf("%d segments", rep.Segments)
			}
		})
	}
}

// Cut at a record's end where that is near.
func TestSegmentsEndWithRecords(t *testing.T) {
	r := newRig(t)
	data := records(1, 40<<20)
	r.file("transcript/"+sessionA+".jsonl", data)
	g := r.archive().Generation
	ps := g.Files[0].pieces.all()
	var at int64
	for i, p := range ps {
		at += p.length
		if i < len(ps)-1 && (data[at-1] != '\n' || p.length < maxSegment*3/4) {
			t.Errorf("piece %d of %d bytes ends with %q", i, p.length, data[at-1])
		}
	}
	// Without any record's end, segments are full.
	r.file("transcript/"+sessionA+".jsonl", bytes.Repeat([]byte("x"), 20<<20))
	for i, p := range r.archive().Generation.Files[0].pieces.all() {
		if want := []int64{8 << 20, 8 << 20, 4 << 20}[i]; p.length != want {
			t.Errorf("piece %d has %d bytes", i, p.length)
		}
	}
	r.verify()
}

// RM-02: nothing new but metadata makes no generation.
func TestSameContentFolds(t *testing.T) {
	r := newRig(t)
	name := "transcript/" + sessionA + ".jsonl"
	r.file(name, records(1, 100<<10))
	first := r.archive()
	before := storeFiles(t, r.store.Root())
	for range 3 {
		r.now = r.now.Add(time.Hour)
		must(t, os.Chtimes(r.path(name), r.now, r.now))
		must(t, os.Chmod(r.path(name), 0o644))
		if res := r.archive(); res.Created || res.NewBytes != 0 || res.Generation.Hash != first.Generation.Hash {
			t.Errorf("result %+v", res)
		}
		if res := r.quick(); res.Created {
			t.Errorf("quick: %+v", res)
		}
	}
	if after := storeFiles(t, r.store.Root()); !slices.Equal(before, after) {
		t.Errorf("the store has other files: %v, then %v", before, after)
	}
}

// AR-11: 120 events on a growing session; the store ends up near the size of
// one archive of its last state.
func TestGrowthCostsWhatIsNew(t *testing.T) {
	r := newRig(t)
	name := "transcript/" + sessionA + ".jsonl"
	r.file(name, nil)
	want := map[int][]byte{}
	var all []byte
	for i := range 120 {
		all = append(all, records(uint64(i), 5000+i*997)...)
		r.file(name, all[:0])
		r.file(name, all)
		r.now = r.now.Add(time.Minute)
		var res Result
		if i%2 == 0 {
			res = r.quick()
		} else {
			res = r.archive()
		}
		if !res.Created || res.Diverged || res.Generation.Number != i+1 {
			t.Fatalf("step %d: %+v", i, res)
		}
		want[i+1] = bytes.Clone(all)
	}
	h := r.history()
	for _, g := range h.Generations {
		if got := readFile(t, r.store, g, g.Files[0]); !bytes.Equal(got, want[g.Number]) {
			t.Fatalf("generation %d has other bytes", g.Number)
		}
		if g.depth > maxBaseDepth {
			t.Errorf("depth %d", g.depth)
		}
	}
	if len(h.Lineages()) != 1 {
		t.Error("growth made a lineage")
	}
	r.verify()
	one := newRig(t)
	one.file(name, all)
	one.archive()
	grown, once := storeSize(t, r.store.Root()+"/segments"), storeSize(t, one.store.Root()+"/segments")
	t.Logf("grown: %d, at once: %d", grown, once)
	if grown > 2*once {
		t.Errorf("120 growths take %d bytes, one archive %d", grown, once)
	}
	var manifests int64
	for _, f := range storeFiles(t, r.store.Root()+"/sessions") {
		fi, err := os.Stat(r.store.Root() + "/sessions/" + f)
		must(t, err)
		manifests += fi.Size()
	}
	if manifests > 120*4000 {
		t.Errorf("manifests take %d bytes", manifests)
	}
}

// AR-07, AR-08: a shorter or rewritten source never replaces what is archived.
func TestDivergedSourceStartsLineage(t *testing.T) {
	name := "transcript/" + sessionA + ".jsonl"
	long := records(1, 3<<20)
	changed := bytes.Clone(long)
	changed[2<<20] ^= 1
	for _, c := range []struct {
		name   string
		next   []byte
		stored int64 // new bytes at most
	}{
		{"truncated", long[:1<<20], 0},
		{"truncated to little", long[:100], 100},
		{"other", records(2, 50<<10), 50 << 10},
		{"changed inside", changed, 1 << 20},
		{"changed inside and grown", append(bytes.Clone(changed), records(3, 1<<20)...), 2 << 20},
		{"shifted", append([]byte("x"), long...), 3<<20 + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.file(name, long)
			one := r.archive().Generation
			r.file(name, c.next)
			res := r.archive()
			two := res.Generation
			if !res.Created || !res.Diverged || two.Lineage == one.Lineage || two.Parent != one.Hash || two.Number != 2 {
				t.Errorf("result %+v", res)
			}
			if res.NewBytes > c.stored {
				t.Errorf("%d new bytes", res.NewBytes)
			}
			h := r.history()
			if n := len(h.Lineages()); n != 2 {
				t.Errorf("%d lineages", n)
			}
			sameFiles(t, "old", r.read(h.Generations[0]), map[string][]byte{name: long})
			sameFiles(t, "new", r.read(h.Generations[1]), map[string][]byte{name: c.next})

			// Growing from there stays in the new lineage.
			r.add(name, []byte("more\n"))
			res = r.archive()
			if res.Diverged || res.Generation.Lineage != two.Lineage {
				t.Errorf("grown: %+v", res)
			}
			// The old file comes back, and grows: so does its lineage.
			r.file(name, append(bytes.Clone(long), "more\n"...))
			res = r.archive()
			if !res.Created || !res.Diverged || res.Generation.Lineage != one.Lineage || res.NewBytes > 5 {
				t.Errorf("back: %+v", res)
			}
			if h := r.history(); len(h.Lineages()) != 2 || h.Latest().Hash != res.Generation.Hash {
				t.Errorf("%d lineages", len(h.Lineages()))
			}
			r.verify()
		})
	}
}

// An emptied transcript is no state to restore to, nor is a missing one.
func TestEmptiedTranscriptIsGone(t *testing.T) {
	r := newRig(t)
	name := "transcript/" + sessionA + ".jsonl"
	data := records(1, 1000)
	r.file(name, data)
	r.archive()
	r.file(name, nil)
	if res := r.archive(); res.Created {
		t.Errorf("an emptied transcript made a generation: %+v", res.Generation)
	}
	r.file("session/new.txt", []byte("new"))
	g := r.archive().Generation
	sameFiles(t, "carried forward", r.read(g), map[string][]byte{name: data, "session/new.txt": []byte("new")})
	if !g.Files[1].Gone || g.Files[0].Gone {
		t.Errorf("files %+v", g.Files)
	}
}

// NW-04, SS-17: no generation of nothing.
func TestNoGhosts(t *testing.T) {
	r := newRig(t)
	for _, snap := range []Snapshot{
		{SessionID: sessionA, Reason: SessionEnd},
		{SessionID: sessionA, Reason: SessionEnd, Sources: []Source{{Transcript, sessionA + ".jsonl", r.path("nowhere")}}},
		{SessionID: sessionA, Reason: SessionEnd, Sources: []Source{{Transcript, sessionA + ".jsonl", r.file("transcript/x", nil)}}},
		{SessionID: sessionA, Reason: SessionEnd, Sources: []Source{{"session-env", "x", r.file("session-env/x", nil)}}},
	} {
		res, err := r.store.Archive(context.Background(), snap, r.options())
		if err != nil || res.Created || res.Generation != nil {
			t.Errorf("%+v: %+v, %v", snap, res, err)
		}
	}
	if ids, err := r.store.Sessions(context.Background()); err != nil || len(ids) > 0 {
		t.Errorf("sessions %v, %v", ids, err)
	}
	if _, err := r.store.Latest(context.Background(), sessionA); !errors.Is(err, ErrNoSession) {
		t.Errorf("latest: %v", err)
	}
	if _, err := r.store.History(context.Background(), sessionA); !errors.Is(err, ErrNoSession) {
		t.Errorf("history: %v", err)
	}
}

// CL-01, CL-03, CL-05, AR-10: sources that vanish are carried forward, in any
// number, and their return is no news.
func TestVanishedSourcesAreKept(t *testing.T) {
	r := newRig(t)
	want := map[string][]byte{
		"transcript/" + sessionA + ".jsonl": records(1, 50<<10),
		"session/a.txt":                     []byte("a"),
		"tasks/1.json":                      []byte("{}"),
	}
	for name, b := range want {
		r.file(name, b)
	}
	first := r.archive().Generation
	snap := r.snapshot(sessionA) // named, but gone when it is opened
	must(t, os.RemoveAll(r.src))
	must(t, os.Mkdir(r.src, 0o700))
	for _, snap := range []Snapshot{snap, r.snapshot(sessionA)} {
		res, err := r.store.Archive(context.Background(), snap, r.options())
		must(t, err)
		if res.Created || len(res.Skipped) > 0 {
			t.Errorf("result %+v", res)
		}
	}
	sameFiles(t, "latest", r.read(r.history().Latest()), want)

	// The next news says that they are gone, and still has them.
	r.file("session/b.txt", []byte("b"))
	want["session/b.txt"] = []byte("b")
	second := r.archive().Generation
	sameFiles(t, "latest", r.read(second), want)
	for _, f := range second.Files {
		if f.Gone != (f.Path != "b.txt") {
			t.Errorf("%s: gone is %v", f.Path, f.Gone)
		}
	}
	// Back again, the same: no news. With a new byte: no longer gone.
	r.file("session/a.txt", []byte("a"))
	if res := r.archive(); res.Created {
		t.Errorf("result %+v", res)
	}
	r.file("session/a.txt", []byte("ab"))
	for _, f := range r.archive().Generation.Files {
		if f.Gone != !slices.Contains([]string{"a.txt", "b.txt"}, f.Path) {
			t.Errorf("%s: gone is %v", f.Path, f.Gone)
		}
	}
	if first.Files[0].Gone {
		t.Error("an old generation changed")
	}
	// Pins alone say nothing of what is not pinned.
	snap = Snapshot{SessionID: sessionA, Reason: Stop, Partial: true,
		Sources: []Source{{"session", "c.txt", r.file("session/c.txt", []byte("c"))}}}
	res, err := r.store.Archive(context.Background(), snap, r.options())
	must(t, err)
	for _, f := range res.Generation.Files {
		if f.Path == "a.txt" && f.Gone {
			t.Error("a partial snapshot marked a file gone")
		}
	}
	r.verify()
}

// One file that cannot be read does not keep the others out, and is said.
func TestUnreadableSourceIsSkipped(t *testing.T) {
	r := newRig(t)
	name := "transcript/" + sessionA + ".jsonl"
	old := records(1, 1000)
	r.file(name, old)
	r.archive()
	must(t, os.Remove(r.path(name)))
	must(t, os.Mkdir(r.path(name), 0o700)) // opens, but is no file
	r.file("session/a.txt", []byte("a"))
	snap := r.snapshot(sessionA)
	snap.Sources = append(snap.Sources, Source{Transcript, sessionA + ".jsonl", r.path(name)})
	res, err := r.store.Archive(context.Background(), snap, r.options())
	if err == nil || !res.Created || len(res.Skipped) != 1 || res.Skipped[0].Err == nil {
		t.Fatalf("result %+v, %v", res, err)
	}
	sameFiles(t, "latest", r.read(res.Generation), map[string][]byte{name: old, "session/a.txt": []byte("a")})
	for _, f := range res.Generation.Files {
		if f.Gone {
			t.Errorf("%s is gone", f.Path)
		}
	}
}

// A side file that is none, or somebody else's, is said, and no reason to fail
// for ever.
func TestLastingFailureOfSideFile(t *testing.T) {
	r := newRig(t)
	name := "transcript/" + sessionA + ".jsonl"
	r.file(name, records(1, 1000))
	snap := r.snapshot(sessionA)
	snap.Sources = append(snap.Sources, Source{"session", "x", r.src})
	res, err := r.store.Archive(context.Background(), snap, r.options())
	if err != nil || !res.Created || len(res.Skipped) != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}

// FL-01: a snapshot is what was there; what comes later is a later one.
func TestGrowthWhileReading(t *testing.T) {
	r := newRig(t)
	name := "transcript/" + sessionA + ".jsonl"
	data := records(1, 5<<20)
	r.file(name, data)
	o := r.options()
	grown := 0
	o.Progress = func(int64) {
		if grown++; grown <= 2 {
			r.add(name, []byte("late\n"))
		}
	}
	res, err := r.store.Archive(context.Background(), r.snapshot(sessionA), o)
	must(t, err)
	sameFiles(t, "first", r.read(res.Generation), map[string][]byte{name: data})
	res = r.archive()
	if res.Diverged || res.NewBytes != 10 {
		t.Errorf("result %+v", res)
	}
	sameFiles(t, "second", r.read(res.Generation), map[string][]byte{name: append(data, "late\nlate\n"...)})
	r.verify()
}

// A file that is written in place, or cut off, while it is read is read again;
// one that never rests is put off, and nothing of it is kept. AR-10: one that
// is deleted meanwhile is stored as it was.
func TestChangeWhileReading(t *testing.T) {
	name := "transcript/" + sessionA + ".jsonl"
	data := records(1, 5<<20)
	other := bytes.Clone(data)
	copy(other, "{}\n{}\n")
	for _, c := range []struct {
		name   string
		change func(r *rig, n int) bool // reports whether it did
		want   []byte
	}{
		{"in place", func(r *rig, n int) bool {
			if n == 3 {
				r.file(name, other)
			}
			return n == 3
		}, other},
		{"truncated", func(r *rig, n int) bool {
			if n == 3 {
				must(r.t, os.Truncate(r.path(name), 1<<20))
			}
			return n == 3
		}, data[:1<<20]},
		{"deleted", func(r *rig, n int) bool {
			if n == 3 {
				must(r.t, os.Remove(r.path(name)))
			}
			return n == 3
		}, data},
		{"replaced by a shorter one", func(r *rig, n int) bool {
			if n == 3 {
				r.file("short", []byte("short\n"))
				must(r.t, os.Rename(r.path("short"), r.path(name)))
			}
			return n == 3
		}, data},
		{"never rests", func(r *rig, n int) bool {
			data := bytes.Clone(data)
			data[0] = byte(n)
			r.file(name, data)
			return true
		}, nil},
	} {
		for _, workers := range []int{1, 2} {
			t.Run(fmt.Sprint(c.name, workers), func(t *testing.T) {
				r := newRig(t)
				r.file(name, data)
				r.file("session/a.txt", []byte("a"))
				o := r.options()
				o.Workers = workers
				n, changed := 0, false
				r.readHook(func() {
					n++
					changed = c.change(r, n) || changed
				})
				res, err := r.store.Archive(context.Background(), r.snapshot(sessionA), o)
				if !changed {
					t.Fatal("nothing was changed")
				}
				want := map[string][]byte{"session/a.txt": []byte("a")}
				if c.want == nil {
					if !errors.Is(err, ErrChanging) || len(res.Skipped) != 1 {
						t.Errorf("%+v, %v", res, err)
					}
				} else {
					must(t, err)
					want[name] = c.want
				}
				sameFiles(t, "latest", r.read(res.Generation), want)
				if rep := r.verify(); rep.Unreferenced != 0 {
					t.Errorf("%d segments are left over", rep.Unreferenced)
				}
				if left := storeFiles(t, r.store.Root()+"/tmp"); len(left) > 0 {
					t.Errorf("temporaries are left over: %v", left)
				}
			})
		}
	}
}

// readHook calls f at each read of a source.
func (r *rig) readHook(f func()) {
	testReadHook = f
	r.t.Cleanup(func() { testReadHook = nil })
}

// TP-04: a transcript that moves to another project folder is the same file.
func TestMovedTranscriptIsOneSession(t *testing.T) {
	r := newRig(t)
	name := "transcript/" + sessionA + ".jsonl"
	r.file(name, records(1, 100<<10))
	r.archive()
	r.file(name, append(records(1, 100<<10), records(2, 100<<10)...))
	moved := r.path("moved.jsonl")
	must(t, os.Rename(r.path(name), moved))
	snap := Snapshot{SessionID: sessionA, Reason: SessionEnd, Project: Project{Cwd: "/w", Folder: "-w"},
		Sources: []Source{{Transcript, sessionA + ".jsonl", moved}}}
	res, err := r.store.Archive(context.Background(), snap, r.options())
	must(t, err)
	if res.Diverged || res.NewBytes != 100<<10 || res.Generation.Project.Folder != "-w" || len(res.Generation.Files) != 1 {
		t.Errorf("result %+v", res)
	}
	ids, err := r.store.Sessions(context.Background())
	if err != nil || !slices.Equal(ids, []string{sessionA}) {
		t.Errorf("sessions %v, %v", ids, err)
	}
	h := r.history()
	if h.Generations[0].Project.Folder != "-home-u-p" {
		t.Errorf("the first project is %+v", h.Generations[0].Project)
	}
}

// CO-01: two clients append to one transcript and nothing keeps them apart.
// Every generation is how the file began, and the last one has all of both.
func TestTwoWriters(t *testing.T) {
	r := newRig(t)
	name := "transcript/" + sessionA + ".jsonl"
	r.file(name, []byte("root\n"))
	const lines = 200
	var wg sync.WaitGroup
	for _, who := range []string{"A", "B"} {
		wg.Go(func() {
			for i := range lines {
				r.add(name, fmt.Appendf(nil, "%s %d %s\n", who, i, strings.Repeat(who, 3000)))
			}
		})
	}
	written := make(chan struct{})
	go func() { wg.Wait(); close(written) }()
	for done := false; !done; {
		select {
		case <-written:
			done = true
		default:
		}
		r.archive()
	}
	all, err := os.ReadFile(r.path(name))
	must(t, err)
	h := r.history()
	for _, g := range h.Generations {
		if got := readFile(t, r.store, g, g.Files[0]); !bytes.HasPrefix(all, got) {
			t.Errorf("generation %d is not how the file begins", g.Number)
		}
	}
	got := string(readFile(t, r.store, h.Latest(), h.Latest().Files[0]))
	for _, who := range []string{"A", "B"} {
		for i := range lines {
			if !strings.Contains(got, fmt.Sprintf("%s %d %s\n", who, i, strings.Repeat(who, 3000))) {
				t.Errorf("line %d of %s is missing", i, who)
			}
		}
	}
	if len(h.Lineages()) != 1 {
		t.Errorf("%d lineages", len(h.Lineages()))
	}
	r.verify()
}

// CO-02: a session that was split in two files has the same beginning in both.
// Each is kept whole under its own id, and forgetting one takes nothing from
// the other.
func TestSameBeginning(t *testing.T) {
	r := newRig(t)
	common := records(1, 2<<20)
	want := map[string][]byte{}
	for i, id := range []string{sessionA, sessionB} {
		want[id] = append(bytes.Clone(common), records(uint64(10+i), 100<<10)...)
		r.file("transcript/"+id+".jsonl", common)
		for _, data := range [][]byte{common, want[id]} {
			r.file("transcript/"+id+".jsonl", data)
			_, err := r.store.Archive(context.Background(), r.snapshot(id), r.options())
			must(t, err)
		}
		must(t, os.Remove(r.path("transcript/"+id+".jsonl")))
	}
	for id, data := range want {
		g, err := r.store.Latest(context.Background(), id)
		must(t, err)
		sameFiles(t, id, r.read(g), map[string][]byte{"transcript/" + id + ".jsonl": data})
	}
	_, err := r.store.Forget(context.Background(), sessionA, ForgetOptions{})
	must(t, err)
	g, err := r.store.Latest(context.Background(), sessionB)
	must(t, err)
	sameFiles(t, "the one that is left", r.read(g), map[string][]byte{"transcript/" + sessionB + ".jsonl": want[sessionB]})
	r.verify()
}

// Which generation is the newest goes by the chain: a clock that was set back
// between two of them, and the times of the sources, change nothing.
func TestOrderIsByParent(t *testing.T) {
	r := newRig(t)
	name := "transcript/" + sessionA + ".jsonl"
	var all []byte
	start := r.now
	for i, hours := range []int{0, -5000, 5000, -1, -100000} {
		all = append(all, records(uint64(i), 30<<10)...)
		r.file(name, all)
		r.now = start.Add(time.Duration(hours) * time.Hour)
		must(t, os.Chtimes(r.path(name), r.now, r.now))
		r.archive()
		r.reopen()
		h := r.history()
		g, err := r.store.Latest(context.Background(), sessionA)
		must(t, err)
		if g.Number != i+1 || h.Latest().Hash != g.Hash || len(h.Lineages()) != 1 {
			t.Fatalf("step %d: latest is %d, in the history %d, %d lineages", i, g.Number, h.Latest().Number, len(h.Lineages()))
		}
		if i > 0 && g.Parent != h.Generations[i-1].Hash {
			t.Errorf("step %d: parent %s", i, g.Parent)
		}
		sameFiles(t, "latest", r.read(g), map[string][]byte{name: all})
	}
}

// CL-09: archiving leaves the sources' times and modes alone, since the client
// deletes by them.
func TestSourcesAreLeftAlone(t *testing.T) {
	r := newRig(t)
	name := "transcript/" + sessionA + ".jsonl"
	data := records(1, 100<<10)
	r.file(name, data)
	r.file("session/a.txt", []byte("a"))
	past := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for i := range 4 {
		r.file(name, data[:len(data)-i*1000]) // the first time, then diverging
		before := map[string]os.FileInfo{}
		for _, n := range []string{name, "session/a.txt"} {
			must(t, os.Chmod(r.path(n), 0o640))
			must(t, os.Chtimes(r.path(n), past, past))
			fi, err := os.Stat(r.path(n))
			must(t, err)
			before[n] = fi
		}
		r.archive()
		r.quick()
		for n, was := range before {
			fi, err := os.Stat(r.path(n))
			must(t, err)
			if !fi.ModTime().Equal(was.ModTime()) || fi.Mode() != was.Mode() || !os.SameFile(fi, was) {
				t.Errorf("%s: %v %v, was %v %v", n, fi.ModTime(), fi.Mode(), was.ModTime(), was.Mode())
			}
		}
	}
}

// PA-12, PA-13: the project's directory is kept as it was told, also one of
// another system.
func TestProjectIsKeptAsTold(t *testing.T) {
	for i, p := range []Project{
		{`Z:\home\u\p`, "Z--home-u-p"},
		{`\\wsl.localhost\Ubuntu\home\u\p`, "--wsl-localhost-Ubuntu-home-u-p"},
		{`c:\Users\u\Mein <Projekt> & "mehr"`, "c--Users-u-Mein--Projekt-----mehr-"},
		{"/mnt/c/Foo/../foo//", "-mnt-c-Foo----foo--"},
		{"/p/외주/" + strings.Repeat("ü😀", 600), "-p----"},
	} {
		r := newRig(t)
		r.file("transcript/x", []byte("x"))
		snap := r.snapshot(sessionA)
		snap.Project = p
		_, err := r.store.Archive(context.Background(), snap, r.options())
		must(t, err)
		r.reopen()
		g, err := r.store.Latest(context.Background(), sessionA)
		must(t, err)
		if g.Project != p {
			t.Errorf("%d: %+v became %+v", i, p, g.Project)
		}
	}
}

// SA-05: a limit leaves side files out, says so, and never the transcript.
func TestLimits(t *testing.T) {
	r := newRig(t)
	name := "transcript/" + sessionA + ".jsonl"
	r.file(name, records(1, 200<<10))
	r.file("session/tool-results/a.txt", noise(1, 100<<10))
	r.file("session/tool-results/b.txt", noise(2, 10<<10))
	r.file("session/tool-results/c.txt", noise(3, 10<<10))
	o := r.options()
	o.MaxFile, o.MaxSide = 50<<10, 15<<10
	res, err := r.store.Archive(context.Background(), r.snapshot(sessionA), o)
	must(t, err)
	r.reopen()
	g, err := r.store.Latest(context.Background(), sessionA)
	must(t, err)
	if len(g.Files) != 2 || len(g.LeftOut) != 2 || len(res.LeftOut) != 2 {
		t.Fatalf("files %+v, left out %+v", g.Files, g.LeftOut)
	}
	if l := g.LeftOut[0]; l.Path != "tool-results/a.txt" || l.Size != 100<<10 || !strings.Contains(l.Why, "51200") {
		t.Errorf("left out %+v", l)
	}
	if l := g.LeftOut[1]; l.Path != "tool-results/c.txt" {
		t.Errorf("left out %+v", l)
	}
	// Without limits it all goes in.
	if g := r.archive().Generation; len(g.Files) != 4 || len(g.LeftOut) != 0 {
		t.Errorf("files %+v, left out %+v", g.Files, g.LeftOut)
	}
	// Under a limit once more: what is archived stays, and is not gone.
	r.add(name, []byte("x"))
	res, err = r.store.Archive(context.Background(), r.snapshot(sessionA), o)
	must(t, err)
	for _, f := range res.Generation.Files {
		if f.Gone {
			t.Errorf("%s is gone", f.Path)
		}
	}
}

// A name that no manifest may hold is left out with a note, not an error.
func TestBadNamesAreLeftOut(t *testing.T) {
	r := newRig(t)
	data := r.file("transcript/"+sessionA+".jsonl", records(1, 100))
	snap := r.snapshot(sessionA)
	bad := []string{"../x", "/etc/passwd", "a/../b", "a//b", "./a", "a\x00b", `a\b`, "C:/x", "c:x", "a\nb", "a\xffb", "", ".", "..", strings.Repeat("x", 5000)}
	for _, p := range bad {
		snap.Sources = append(snap.Sources, Source{"session", p, data})
	}
	res, err := r.store.Archive(context.Background(), snap, r.options())
	must(t, err)
	if len(res.Generation.Files) != 1 || len(res.Generation.LeftOut) != len(bad)-len(res.Warnings) {
		t.Errorf("files %+v, left out %d, warnings %v", res.Generation.Files, len(res.Generation.LeftOut), res.Warnings)
	}
	snap.Sources = []Source{{"Bad Family", "x", data}}
	if _, err := r.store.Archive(context.Background(), snap, r.options()); err == nil {
		t.Error("a bad family was accepted")
	}
	snap = r.snapshot(strings.ToUpper(sessionA))
	if _, err := r.store.Archive(context.Background(), snap, r.options()); err == nil {
		t.Error("an upper-case session id was accepted")
	}
}

// Whatever happens to the sources, every generation ever made gives back what
// was there when it was made.
func TestRandomHistories(t *testing.T) {
	seeds := 6
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			randomHistory(t, uint64(seed))
		})
	}
}

func randomHistory(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	r := newRig(t)
	names := []string{"transcript/" + sessionA + ".jsonl", "session/a.jsonl", "session/b/c.txt", "tasks/1.json", "beside/x.cast"}
	live := map[string][]byte{}  // what is at the source
	known := map[string][]byte{} // what the store must give back
	past := map[string]map[string][]byte{}
	size := func() int {
		switch rng.IntN(20) {
		case 0:
			return rng.IntN(12 << 20)
		case 1, 2, 3:
			return rng.IntN(2 << 20)
		case 4:
			return smallPiece - 1 + rng.IntN(3)
		}
		return rng.IntN(30 << 10)
	}
	for step := range 30 {
		for range 1 + rng.IntN(3) {
			name := names[rng.IntN(len(names))]
			b, there := live[name]
			switch op := rng.IntN(10); {
			case !there || op < 4: // grow
				b = append(bytes.Clone(b), records(rng.Uint64(), size())...)
			case op == 4: // truncate
				b = bytes.Clone(b[:rng.IntN(len(b)+1)])
			case op == 5 && len(b) > 0: // rewrite in place
				b = bytes.Clone(b)
				copy(b[rng.IntN(len(b)):], noise(rng.Uint64(), 1+rng.IntN(100)))
			case op == 6: // replace
				b = records(rng.Uint64(), size())
			case op == 7: // vanish
				delete(live, name)
				must(t, os.Remove(r.path(name)))
				continue
			case op == 8: // become what it once was
				for _, g := range past {
					if old, ok := g[name]; ok {
						b = old
						break
					}
				}
			case op == 9: // take another one's content
				b = live[names[rng.IntN(len(names))]]
			}
			live[name] = b
			if rng.IntN(2) == 0 { // a new inode
				r.file(name+".new", b)
				must(t, os.Rename(r.path(name+".new"), r.path(name)))
			} else {
				r.file(name, b)
			}
		}
		for name, b := range live {
			if len(b) > 0 || !strings.HasPrefix(name, Transcript) {
				known[name] = b
			} else if _, ok := known[name]; !ok && len(b) > 0 {
				known[name] = b
			}
		}
		r.now = r.now.Add(time.Duration(rng.IntN(3000)) * time.Second)
		o := r.options()
		o.Workers = 1 + rng.IntN(2)
		if rng.IntN(4) == 0 {
			o.IndexDir = ""
		}
		if rng.IntN(8) == 0 {
			must(t, os.RemoveAll(r.index))
		}
		res, err := r.store.Archive(context.Background(), r.snapshot(sessionA), o)
		must(t, err)
		if len(res.Warnings) > 0 {
			t.Errorf("step %d: %v", step, res.Warnings)
		}
		if res.Generation == nil {
			if len(known) > 0 && slices.ContainsFunc(slices.Collect(maps.Values(known)), func(b []byte) bool { return len(b) > 0 }) {
				t.Fatalf("step %d: nothing was archived", step)
			}
			continue
		}
		past[res.Generation.Hash] = maps.Clone(known)
		r.reopen()
		h := r.history()
		for _, g := range h.Generations {
			if step%10 != 9 && g != h.Latest() {
				continue
			}
			sameFiles(t, fmt.Sprintf("step %d, generation %d", step, g.Number), r.read(g), past[g.Hash])
		}
		if t.Failed() {
			return
		}
	}
	rep := r.verify()
	if rep.Unreferenced > 0 {
		t.Errorf("%d segments are left over", rep.Unreferenced)
	}
}
