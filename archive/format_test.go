package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
)

func TestOpenRefusesWhatItDoesNotKnow(t *testing.T) {
	const id = "01890a5d-ac96-774b-bcce-b302099a8057"
	good := `{"format":"session-keeper archive","version":1,"store_id":"` + id + `","hash":"sha256","read_features":[],"write_features":[],"created":"2026-11-30T00:00:00Z"}`
	for _, c := range []struct {
		name, content string
		want          error             // nil: opens
		unsupported   *UnsupportedError // if set, what it says
	}{
		{"good", good, nil, nil},
		{"unknown fields", strings.Replace(good, `"hash"`, `"new":{"x":[1]},"hash"`, 1), nil, nil},
		{"newer version", strings.Replace(good, `"version":1`, `"version":2`, 1), nil, &UnsupportedError{Version: 2}},
		{"newer version, other shape", `{"format":"session-keeper archive","version":7,"store_id":5}`, nil, &UnsupportedError{Version: 7}},
		{"read feature", strings.Replace(good, `"read_features":[]`, `"read_features":["packs"]`, 1), nil, &UnsupportedError{Feature: "packs"}},
		{"hash", strings.Replace(good, "sha256", "blake3", 1), nil, &UnsupportedError{Feature: "hash blake3"}},
		{"other format", strings.Replace(good, "session-keeper archive", "something", 1), ErrNotStore, nil},
		{"no version", strings.Replace(good, `"version":1`, `"version":0`, 1), ErrDamaged, nil},
		{"bad id", strings.Replace(good, id, strings.ToUpper(id), 1), ErrDamaged, nil},
		{"nil id", strings.Replace(good, id, uuid.Nil.String(), 1), ErrDamaged, nil},
		{"empty", "", ErrDamaged, nil},
		{"NULs", strings.Repeat("\x00", 300), ErrDamaged, nil},
		{"cut", good[:len(good)/2], ErrDamaged, nil},
		{"huge", good + strings.Repeat(" ", 100<<10), ErrDamaged, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			must(t, os.WriteFile(filepath.Join(root, "format"), []byte(c.content), 0o600))
			s, err := Open(root)
			var u *UnsupportedError
			switch {
			case c.unsupported != nil:
				c.unsupported.Root = root
				if !errors.As(err, &u) || *u != *c.unsupported || !strings.Contains(u.Error(), root) {
					t.Errorf("error %v", err)
				}
			case !errors.Is(err, c.want) || c.want == nil && (s == nil || s.ID().String() != id):
				t.Errorf("error %v", err)
			}
			// Create changes nothing either.
			if _, err := Create(root); (err == nil) != (c.want == nil && c.unsupported == nil) {
				t.Errorf("create: %v", err)
			}
			if b, err := os.ReadFile(filepath.Join(root, "format")); err != nil || string(b) != c.content {
				t.Error("the format file was changed")
			}
		})
	}
}

func TestUnknownWriteFeature(t *testing.T) {
	r := newRig(t)
	r.file("transcript/x", []byte("x"))
	r.archive()
	file := filepath.Join(r.store.Root(), "format")
	b, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, bytes.Replace(b, []byte(`"write_features": []`), []byte(`"write_features": ["new"]`), 1), 0o600))
	r.reopen()
	before := storeFiles(t, r.store.Root())
	r.read(r.history().Latest())
	r.verify()
	r.add("transcript/x", []byte("y"))
	var u *UnsupportedError
	_, err = r.store.Archive(context.Background(), r.snapshot(sessionA), r.options())
	if !errors.As(err, &u) || !u.Write || u.Feature != "new" || !strings.Contains(err.Error(), "cannot write") {
		t.Errorf("archive: %v", err)
	}
	if _, err := r.store.Forget(context.Background(), sessionA, ForgetOptions{}); !errors.As(err, &u) {
		t.Errorf("forget: %v", err)
	}
	if err := r.store.Sweep(context.Background()); !errors.As(err, &u) {
		t.Errorf("sweep: %v", err)
	}
	if after := storeFiles(t, r.store.Root()); !cmp.Equal(before, after) {
		t.Error(cmp.Diff(before, after))
	}
}

func TestCreate(t *testing.T) {
	root := filepath.Join(t.TempDir(), "a b", "store")
	if _, err := Open(root); !errors.Is(err, ErrNotStore) {
		t.Errorf("open of nothing: %v", err)
	}
	// Many at once make one store.
	var wg sync.WaitGroup
	ids := make([]uuid.UUID, 8)
	for i := range ids {
		wg.Go(func() {
			s, err := Create(root)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = s.ID()
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] || id == uuid.Nil {
			t.Errorf("ids %v", ids)
		}
	}
	// SM-01
	if b, err := os.ReadFile(filepath.Join(root, ".gitignore")); err != nil || string(b) != "*\n" {
		t.Errorf(".gitignore: %q, %v", b, err)
	}
	// A folder with something else in it is left alone.
	other := t.TempDir()
	must(t, os.WriteFile(filepath.Join(other, "letter.txt"), nil, 0o600))
	if _, err := Create(other); !errors.Is(err, ErrNotStore) || !strings.Contains(err.Error(), "letter.txt") {
		t.Errorf("create over something else: %v", err)
	}
	if got := storeFiles(t, other); len(got) != 1 {
		t.Errorf("files %v", got)
	}
}

func TestManifestFromTheFuture(t *testing.T) {
	r := newRig(t)
	r.file("transcript/x", []byte("x"))
	g := r.archive().Generation
	b, err := os.ReadFile(filepath.Join(r.store.Root(), "sessions", sessionA, manifestName(1, g.Hash)))
	must(t, err)
	put := func(number int, b []byte) {
		must(t, os.WriteFile(filepath.Join(r.store.Root(), "sessions", sessionA, manifestName(number, hashOf(b))), b, 0o600))
	}
	// An unknown field is no obstacle.
	b = bytes.Replace(b, []byte(`"number":1,"parent":null`), []byte(`"number":2,"new":{"a":[]},"parent":"`+g.Hash+`"`), 1)
	put(2, b)
	if g, err = r.store.Latest(context.Background(), sessionA); err != nil || g.Number != 2 {
		t.Fatalf("%+v, %v", g, err)
	}
	r.verify()
	// An unknown version is refused, by archivers above all.
	b = bytes.Replace(b, []byte(`"number":2`), []byte(`"number":3`), 1)
	b = bytes.Replace(b, []byte(`"version":1`), []byte(`"version":2`), 1)
	put(3, b)
	var u *UnsupportedError
	if _, err = r.store.Latest(context.Background(), sessionA); !errors.As(err, &u) || u.Version != 2 {
		t.Errorf("latest: %v", err)
	}
	if _, err := r.store.Archive(context.Background(), r.snapshot(sessionA), r.options()); !errors.As(err, &u) {
		t.Errorf("archive: %v", err)
	}
	h, err := r.store.History(context.Background(), sessionA)
	if err != nil || len(h.Generations) != 2 || len(h.Problems) != 1 || !errors.As(h.Problems[0].Err, &u) {
		t.Errorf("history: %+v, %v", h, err)
	}
}

func sampleManifest() *manifest {
	hash := hashOf([]byte("x"))
	now := time.Date(2026, 11, 30, 1, 2, 3, 4, time.UTC)
	return &manifest{
		id: uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8057"), number: 7, parent: hash, sessionID: sessionA,
		lineage: uuid.MustParse(sessionB), storeID: uuid.MustParse(sessionB), reason: SessionEnd, taken: now,
		events:  []Event{{Name: "SessionEnd", Reason: "clear", PromptID: "p", Time: now}, {Name: "PreCompact", Size: 5, Instructions: "keep \"it\""}},
		project: Project{"/home/ü <&>", "-home"}, base: hash, depth: 16,
		files: []fileEntry{
			{File: File{Family: "transcript", Path: sessionA + ".jsonl", Size: 9, SHA256: hash, Mode: 0o600, ModTime: now}, keep: 3, pieces: []piece{{hash, 0, 5}}},
			{File: File{Family: "session", Path: "a/b 'c'", SHA256: hash, Mode: 0o777, ModTime: now, Gone: true}, pieces: []piece{}},
			{File: File{Family: "session", Path: "full", Size: 9, SHA256: hash, ModTime: now}, pieces: []piece{{hash, 0, 5}, {hash, maxSegment - 4, 4}}},
		},
		leftOut: []LeftOut{{"session", "big", 1 << 40, "too big"}},
	}
}

var manifestCmp = cmp.Options{
	cmp.AllowUnexported(manifest{}, fileEntry{}, piece{}, File{}),
	cmpopts.EquateEmpty(),
	cmpopts.IgnoreFields(File{}, "pieces"),
}

func TestManifestRoundTrip(t *testing.T) {
	m := sampleManifest()
	b, err := m.encode()
	must(t, err)
	got, err := parseManifest(b)
	must(t, err)
	if d := cmp.Diff(m, got, manifestCmp); d != "" {
		t.Error(d)
	}
	if bytes.Contains(b, []byte(`\u003c`)) || b[len(b)-1] != '\n' || bytes.Count(b, []byte("\n")) != 1 {
		t.Errorf("bytes %q", b)
	}
	// Times that JSON cannot hold do not keep a file out.
	for _, year := range []int{-5, 0, 12000} {
		m.files[0].ModTime = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		if _, err := m.encode(); err != nil {
			t.Errorf("year %d: %v", year, err)
		}
	}
}

func TestManifestIsCheckedStrictly(t *testing.T) {
	hash := hashOf([]byte("x"))
	for _, c := range []struct {
		name string
		do   func(m *manifestJSON)
	}{
		{"format", func(m *manifestJSON) { m.Format = "x" }},
		{"id", func(m *manifestJSON) { m.ID = "x" }},
		{"upper-case session", func(m *manifestJSON) { m.SessionID = strings.ToUpper(sessionA) }},
		{"session is a path", func(m *manifestJSON) { m.SessionID = "../../x" }},
		{"lineage", func(m *manifestJSON) { m.Lineage = "" }},
		{"store", func(m *manifestJSON) { m.StoreID = "{" + sessionB + "}" }},
		{"reason", func(m *manifestJSON) { m.Reason = "" }},
		{"taken", func(m *manifestJSON) { m.Taken = "yesterday" }},
		{"number", func(m *manifestJSON) { m.Number = 0 }},
		{"no parent", func(m *manifestJSON) { m.Parent = nil }},
		{"bad parent", func(m *manifestJSON) { p := "../x"; m.Parent = &p }},
		{"bad base", func(m *manifestJSON) { m.Base.Manifest = hash[1:] }},
		{"depth 0", func(m *manifestJSON) { m.Base.Depth = 0 }},
		{"depth 17", func(m *manifestJSON) { m.Base.Depth = 17 }},
		{"traversal", func(m *manifestJSON) { m.Files[0].Path = "../x" }},
		{"traversal inside", func(m *manifestJSON) { m.Files[0].Path = "a/../../x" }},
		{"absolute", func(m *manifestJSON) { m.Files[0].Path = "/x" }},
		{"NUL", func(m *manifestJSON) { m.Files[0].Path = "a\x00b" }},
		{"backslash", func(m *manifestJSON) { m.Files[0].Path = `..\x` }},
		{"drive", func(m *manifestJSON) { m.Files[0].Path = `C:x` }},
		{"empty path", func(m *manifestJSON) { m.Files[0].Path = "" }},
		{"family", func(m *manifestJSON) { m.Files[0].Family = "../x" }},
		{"file twice", func(m *manifestJSON) { m.Files = append(m.Files, m.Files[2]) }},
		{"file hash", func(m *manifestJSON) { m.Files[0].SHA256 = strings.ToUpper(hash) }},
		{"mode", func(m *manifestJSON) { m.Files[0].Mode = "4755" }},
		{"mode text", func(m *manifestJSON) { m.Files[0].Mode = "rw" }},
		{"mtime", func(m *manifestJSON) { m.Files[0].MTime = "" }},
		{"keep negative", func(m *manifestJSON) { m.Files[0].Keep = -1 }},
		{"keep without base", func(m *manifestJSON) { m.Base = nil }},
		{"size", func(m *manifestJSON) { m.Files[2].Size = 8 }},
		{"size negative", func(m *manifestJSON) { m.Files[1].Size = -1 }},
		{"size larger", func(m *manifestJSON) { m.Files[2].Size = 10 }},
		{"segment", func(m *manifestJSON) { m.Files[2].Pieces[0].Segment = "../../x" }},
		{"offset", func(m *manifestJSON) { m.Files[2].Pieces[0].Offset = -1 }},
		{"empty piece", func(m *manifestJSON) { m.Files[2].Pieces[0].Length = 0 }},
		{"piece beyond segment", func(m *manifestJSON) { m.Files[2].Pieces[1].Offset++ }},
		{"overflow", func(m *manifestJSON) { m.Files[2].Pieces[0].Length = 1<<63 - 1; m.Files[2].Pieces[0].Offset = 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := sampleManifest()
			good, err := m.encode()
			must(t, err)
			var j manifestJSON
			must(t, json.Unmarshal(good, &j))
			c.do(&j)
			b, err := json.Marshal(j)
			must(t, err)
			if got, err := parseManifest(b); err == nil {
				t.Errorf("accepted: %+v", got)
			} else if len(err.Error()) > 400 {
				t.Errorf("message of %d bytes", len(err.Error()))
			}
		})
	}
}

// Bases and keep are checked against each other before a byte is believed.
func TestJoinIsCheckedStrictly(t *testing.T) {
	r := newRig(t)
	r.file("transcript/x", noise(1, 40<<10))
	r.archive()
	r.add("transcript/x", noise(2, 40<<10))
	r.archive()
	r.add("transcript/x", noise(3, 40<<10))
	g := r.archive().Generation
	dir := filepath.Join(r.store.Root(), "sessions", sessionA)
	good, err := os.ReadFile(filepath.Join(dir, manifestName(3, g.Hash)))
	must(t, err)
	other := hashOf([]byte("nothing"))
	for _, c := range [][2]string{
		{`"keep":2`, `"keep":1`},
		{`"keep":2`, `"keep":3`},
		{`"depth":2`, `"depth":1`},
		{`"depth":2`, `"depth":3`},
		{`"path":"x"`, `"path":"y"`},
		{`"size":122880`, `"size":122881`},
		{`"base":{"manifest":"` + g.Parent, `"base":{"manifest":"` + other},
	} {
		bad := bytes.Replace(good, []byte(c[0]), []byte(c[1]), 1)
		if bytes.Equal(bad, good) {
			t.Fatalf("%s is not there: %s", c[0], good)
		}
		file := filepath.Join(dir, manifestName(3, hashOf(bad)))
		must(t, os.WriteFile(file, bad, 0o600))
		h, err := r.store.History(context.Background(), sessionA)
		must(t, err)
		if len(h.Generations) != 3 || len(h.Problems) != 1 || !errors.Is(h.Problems[0].Err, ErrDamaged) {
			t.Errorf("%s: %d generations, problems %+v", c[1], len(h.Generations), h.Problems)
		}
		must(t, os.Remove(file))
	}
	// A broken chain is damage, though what is there can be read.
	must(t, os.Remove(filepath.Join(dir, manifestName(1, r.history().Generations[0].Hash))))
	if h, err := r.store.History(context.Background(), sessionA); err != nil || len(h.Problems) == 0 {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestPieceList(t *testing.T) {
	p := func(ns ...int64) (ps []piece) {
		for _, n := range ns {
			ps = append(ps, piece{"s", 0, n})
		}
		return ps
	}
	a := &pieceList{own: p(1, 2, 3)}
	b := &pieceList{base: a, keep: 2, own: p(4)}
	c := &pieceList{base: b, keep: 1, own: p(5, 6)}
	d := &pieceList{base: c, keep: 3}
	for _, x := range []struct {
		l    *pieceList
		want []piece
	}{{nil, p()}, {a, p(1, 2, 3)}, {b, p(1, 2, 4)}, {c, p(1, 5, 6)}, {d, p(1, 5, 6)}} {
		if got := x.l.all(); !cmp.Equal(got, x.want, cmp.AllowUnexported(piece{}), cmpopts.EquateEmpty()) {
			t.Errorf("got %v, want %v", got, x.want)
		}
		var sum int64
		for n := range x.want {
			sum += x.want[n].length
			if got := x.l.size(n + 1); got != sum {
				t.Errorf("size of %d of %v is %d", n+1, x.want, got)
			}
		}
	}
}

func TestFind(t *testing.T) {
	r := newRig(t)
	for i := range 3 {
		r.file("transcript/x", records(uint64(i), 1000))
		r.archive()
	}
	h := r.history()
	for _, g := range h.Generations {
		for _, name := range []string{fmt.Sprint(g.Number), g.Hash, g.Hash[:12], g.ID.String(), g.ID.String()[:13], fmt.Sprintf("%06d", g.Number)} {
			if got, err := h.Find(name); err != nil || got != g {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	}
	for _, name := range []string{"", "0", "4", "-1", "zzzz", "a", h.Generations[0].Hash[:3] + "zz"} {
		if _, err := h.Find(name); !errors.Is(err, ErrNoGeneration) {
			t.Errorf("%q: %v", name, err)
		}
	}
	twin := *h.Generations[0]
	h.Generations = append(h.Generations, &twin)
	if _, err := h.Find("1"); !errors.Is(err, ErrAmbiguous) {
		t.Errorf("two with one number: %v", err)
	}
}

func FuzzParseManifest(f *testing.F) {
	b, err := sampleManifest().encode()
	must(f, err)
	f.Add(b)
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"format":"session-keeper manifest","version":2}`))
	f.Add(b[:len(b)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseManifest(b)
		if err != nil {
			return
		}
		// What parses prints, and prints as itself.
		again, err := m.encode()
		if err != nil {
			t.Fatalf("parsed, but not written: %v", err)
		}
		m2, err := parseManifest(again)
		must(t, err)
		if d := cmp.Diff(m, m2, manifestCmp); d != "" {
			t.Error(d)
		}
		for _, e := range m.files {
			if p := filepath.FromSlash(e.Path); !filepath.IsLocal(p) {
				t.Errorf("path %q leaves its folder", e.Path)
			}
		}
	})
}

func FuzzParseFormat(f *testing.F) {
	b, err := newStoreFile(uuid.MustParse(sessionB), time.Unix(0, 0)).encode()
	must(f, err)
	f.Add(b)
	f.Add([]byte(`{"format":"session-keeper archive","version":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseStoreFile(b, "root")
		if err != nil {
			if s != nil {
				t.Error("a store came with an error")
			}
			return
		}
		if s.Version != storeVersion || s.Hash != storeHash || s.id == uuid.Nil || len(s.ReadFeatures) > 0 {
			t.Errorf("accepted %+v", s)
		}
	})
}

func FuzzDecodeSegment(f *testing.F) {
	raw := records(1, 2000)
	f.Add(encodeSegment(f, raw))
	f.Add(encodeSegment(f, noise(1, 200<<10)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		out, err := decodeSegment(hashOf(raw), b, nil)
		if err == nil && !bytes.Equal(out, raw) {
			t.Errorf("%d other bytes came out", len(out))
		}
		if len(out) > maxSegment {
			t.Errorf("%d bytes came out", len(out))
		}
	})
}
