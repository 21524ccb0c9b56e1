package archive

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// reads counts reads of sources while f runs.
func (r *rig) reads(f func()) int {
	n := 0
	testReadHook = func() { n++ }
	defer func() { testReadHook = nil }()
	f()
	return n
}

// rested is a time at which a file that was just written has long been at rest.
func rested() time.Time { return time.Now().Add(time.Hour) }

func TestIndexSparesReading(t *testing.T) {
	name := "transcript/" + sessionA + ".jsonl"
	data := records(1, 100<<10)
	setup := func(t *testing.T) *rig {
		r := newRig(t)
		r.file(name, data)
		r.now = rested()
		r.archive()
		return r
	}
	for _, c := range []struct {
		name   string
		change func(r *rig)
		read   bool
	}{
		{"nothing", func(r *rig) {}, false},
		{"a day later", func(r *rig) { r.now = r.now.Add(24 * time.Hour) }, false},
		{"a month later", func(r *rig) { r.now = r.now.Add(31 * 24 * time.Hour) }, true},
		{"clock set back", func(r *rig) { r.now = r.now.Add(-3 * time.Hour) }, true},
		{"touched", func(r *rig) { must(r.t, os.Chtimes(r.path(name), r.now, r.now)) }, true},
		{"mode", func(r *rig) { must(r.t, os.Chmod(r.path(name), 0o400)) }, true},
		{"one byte, times put back", func(r *rig) {
			fi, err := os.Stat(r.path(name))
			must(r.t, err)
			other := bytes.Clone(data)
			other[500] ^= 1
			must(r.t, os.WriteFile(r.path(name), other, 0o600))
			must(r.t, os.Chtimes(r.path(name), fi.ModTime(), fi.ModTime()))
		}, true},
		{"copied over", func(r *rig) {
			fi, err := os.Stat(r.path(name))
			must(r.t, err)
			r.file("copy", data)
			must(r.t, os.Chtimes(r.path("copy"), fi.ModTime(), fi.ModTime()))
			must(r.t, os.Rename(r.path("copy"), r.path(name)))
		}, true},
		{"linked", func(r *rig) { must(r.t, os.Link(r.path(name), filepath.Join(r.t.TempDir(), "pin"))) }, true},
		{"index gone", func(r *rig) { must(r.t, os.RemoveAll(r.index)) }, true},
		{"index garbage", func(r *rig) {
			must(r.t, os.WriteFile(r.store.indexFile(r.index, sessionA), []byte("{\"version\":1"), 0o600))
		}, true},
		{"index of another version", func(r *rig) {
			must(r.t, os.WriteFile(r.store.indexFile(r.index, sessionA), []byte("{\"version\":2}"), 0o600))
		}, true},
		{"generation gone", func(r *rig) { must(r.t, os.RemoveAll(filepath.Join(r.store.Root(), "sessions", sessionA))) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := setup(t)
			c.change(r)
			var res Result
			n := r.reads(func() { res = r.archive() })
			if (n > 0) != c.read {
				t.Errorf("%d reads", n)
			}
			want, err := os.ReadFile(r.path(name))
			must(t, err)
			sameFiles(t, "latest", r.read(res.Generation), map[string][]byte{name: want})
		})
	}
}

// A file that was written just before it was read may change once more without
// its times moving: the index does not vouch for it.
func TestIndexIsRacySafe(t *testing.T) {
	r := newRig(t)
	name := "transcript/" + sessionA + ".jsonl"
	r.file(name, records(1, 1000))
	r.now = time.Now()
	r.archive()
	r.now = rested()
	if n := r.reads(func() { r.archive() }); n == 0 {
		t.Error("a file read in the moment of its change was trusted")
	}
	// Read while at rest, it is.
	if n := r.reads(func() { r.archive() }); n != 0 {
		t.Errorf("%d reads", n)
	}
}

// Other machines change files on a network disk without our times moving.
func TestNetworkDiskIsAlwaysRead(t *testing.T) {
	r := newRig(t)
	r.file("transcript/x", records(1, 1000))
	r.now = rested()
	r.archive()
	defer func(f func(string) (string, bool, error)) { filesystem = f }(filesystem)
	filesystem = func(string) (string, bool, error) { return "nfs", false, nil }
	if n := r.reads(func() { r.archive() }); n == 0 {
		t.Error("not read")
	}
}

func TestQuickCheck(t *testing.T) {
	name := "transcript/" + sessionA + ".jsonl"
	data := append(records(1, 9<<20), noise(2, 20<<10)...)
	r := newRig(t)
	r.file(name, data)
	r.archive()
	grow := func(b []byte) { data = append(data, b...); r.add(name, b) }

	// A small growth reads the last piece and what is new, not the prefix.
	grow(records(3, 100))
	if n := r.reads(func() {
		if res := r.quick(); !res.Created || res.Diverged || res.NewBytes != 100 {
			t.Errorf("result %+v", res)
		}
	}); n > 3 {
		t.Errorf("%d reads", n)
	}
	sameFiles(t, "grown", r.read(r.history().Latest()), map[string][]byte{name: data})
	// The small last piece is stored again with the next growth.
	grow(records(4, 100))
	res := r.quick()
	sameFiles(t, "grown again", r.read(res.Generation), map[string][]byte{name: data})
	h := r.history()
	a, b := h.Generations[1].Files[0].pieces.all(), res.Generation.Files[0].pieces.all()
	if len(a) != len(b) || b[len(b)-1].length != 200 {
		t.Errorf("pieces %v, then %v", a, b)
	}
	// Nothing new: no generation, a glance at the last piece.
	if n := r.reads(func() {
		if res := r.quick(); res.Created {
			t.Error("a generation of nothing")
		}
	}); n > 1 {
		t.Errorf("%d reads", n)
	}
	// Another last piece, or another inode, is looked at in full.
	must(t, os.WriteFile(r.path(name), append(bytes.Clone(data[:len(data)-1]), "x and more"...), 0o600))
	if res := r.quick(); !res.Diverged {
		t.Errorf("result %+v", res)
	}
	data = append(data[:len(data)-1], "x and more"...)
	sameFiles(t, "diverged", r.read(r.history().Latest()), map[string][]byte{name: data})
	data[0] ^= 1
	r.file("new", data)
	must(t, os.Rename(r.path("new"), r.path(name)))
	if res := r.quick(); !res.Diverged {
		t.Errorf("result %+v", res)
	}
	sameFiles(t, "replaced", r.read(r.history().Latest()), map[string][]byte{name: data})
	// A change deep inside is what the quick check does not see, and the full
	// one does.
	f, err := os.OpenFile(r.path(name), os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("~~~"), 1<<20)
	must(t, err)
	must(t, f.Close())
	if res := r.quick(); res.Created {
		t.Errorf("result %+v", res)
	}
	if res := r.archive(); !res.Diverged {
		t.Errorf("result %+v", res)
	}
	r.verify()
}

// The index is a cache: that it cannot be written is a warning, no failure.
func TestIndexCannotBeWritten(t *testing.T) {
	r := newRig(t)
	r.file("transcript/x", []byte("x"))
	r.index = r.file("file", nil)
	must(t, os.Rename(r.index, filepath.Join(t.TempDir(), "file")))
	r.index = filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(r.index, nil, 0o600))
	res, err := r.store.Archive(context.Background(), r.snapshot(sessionA), r.options())
	if err != nil || !res.Created || len(res.Warnings) != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}
