package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// testdata/archives/v1 is a store as the first version wrote it. It was made
// by this command, once, and is never made again; a new format version gets a
// store beside it:
//
//	go test ./archive -run TestGenerateArchive -update
var update = flag.Bool("update", false, "write testdata/archives/v1, which must not exist")

const (
	v1Store    = "../testdata/archives/v1"
	v1Expected = "../testdata/archives/v1.expected.json"

	v1Session   = "0f8fad5b-d9cb-469f-a165-70867728950e"
	v1Small     = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
	v1Forgotten = "3d813cbb-47fb-32ba-91df-831e1593ac29"
)

// v1Generation is what a generation of the store must give back.
type v1Generation struct {
	Session  string            `json:"session"`
	Number   int               `json:"number"`
	Lineage  int               `json:"lineage"` // lineages counted from 0
	Reason   Reason            `json:"reason"`
	Taken    time.Time         `json:"taken"`
	Events   int               `json:"events"`
	LeftOut  int               `json:"left_out"`
	Project  Project           `json:"project"`
	Contents map[string]v1File `json:"contents"`
}

type v1File struct {
	Size    int64     `json:"size"`
	SHA256  string    `json:"sha256"`
	Mode    string    `json:"mode"`
	ModTime time.Time `json:"mtime"`
	Gone    bool      `json:"gone,omitempty"`
}

func TestGenerateArchive(t *testing.T) {
	if !*update {
		t.Skip("the store is made once for each format version; see the comment on -update")
	}
	if _, err := os.Stat(v1Store); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%s exists (%v) and is never made again", v1Store, err)
	}
	s, err := Create(v1Store)
	must(t, err)
	start := time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC)
	r := &rig{t: t, store: s, src: t.TempDir(), now: start}
	var expected []v1Generation
	known := map[string]v1File{}
	put := func(name string, b []byte, mode os.FileMode) {
		p := r.file(name, b)
		mtime := r.now.Add(-time.Minute - 7*time.Nanosecond)
		must(t, os.Chmod(p, mode))
		must(t, os.Chtimes(p, mtime, mtime))
		known[name] = v1File{Size: int64(len(b)), SHA256: hashOf(b), Mode: fmt.Sprintf("%04o", mode), ModTime: mtime}
	}
	take := func(session string, reason Reason, lineage int, o Options) {
		t.Helper()
		snap := r.snapshot(session)
		snap.Reason = reason
		snap.Events = []Event{{Name: "SessionEnd", Reason: "clear", Time: r.now}, {Name: "Stop", PromptID: "prompt-1", Time: r.now}}
		o.Now = func() time.Time { return r.now }
		res, err := s.Archive(context.Background(), snap, o)
		must(t, err)
		if !res.Created {
			t.Fatal("no generation")
		}
		g := v1Generation{session, res.Generation.Number, lineage, reason, r.now, 2, len(res.LeftOut), snap.Project, map[string]v1File{}}
		for name, f := range known {
			if _, err := os.Stat(r.path(name)); err != nil {
				f.Gone = true
			}
			g.Contents[name] = f
		}
		expected = append(expected, g)
		r.now = r.now.Add(time.Hour)
	}

	name := "transcript/" + v1Session + ".jsonl"
	text := records(1, 40<<10)
	put(name, text, 0o600)
	put("session/subagents/agent-a1.jsonl", records(2, 3000), 0o600)
	put("session/subagents/agent-a1.meta.json", []byte(`{"agentType":"x"}`), 0o600)
	put("session/tool-results/Ünï 'quoted' $(x).txt", noise(3, 700), 0o644)
	put("tasks/empty", nil, 0o600)
	put("file-history/0123456789abcdef@v1", []byte("#!/bin/sh\n"), 0o755)
	take(v1Session, SessionEnd, 0, Options{})
	for i := range 18 { // past a full manifest
		text = append(bytes.Clone(text), records(uint64(10+i), 900+i*40)...)
		put(name, text, 0o600)
		switch i {
		case 3:
			must(t, os.Remove(r.path("tasks/empty")))
			must(t, os.Remove(r.path("session/subagents/agent-a1.jsonl")))
		case 5:
			put("session/custom-title.json", []byte(`{"customTitle":"one"}`), 0o600)
		case 6:
			put("session/custom-title.json", []byte(`{"customTitle":"another"}`), 0o600)
		}
		take(v1Session, Stop, 0, Options{})
	}
	big := text
	put(name, text[:20<<10], 0o600) // cut off: another lineage
	take(v1Session, CatchUp, 1, Options{})
	put(name, append(bytes.Clone(text[:20<<10]), records(50, 20<<10)...), 0o600)
	take(v1Session, PreCompact, 1, Options{})
	put(name, append(bytes.Clone(big), records(51, 2000)...), 0o600) // the first goes on
	r.file("session/tool-results/big.txt", noise(4, 9000))
	take(v1Session, Manual, 0, Options{MaxFile: 8 << 10})

	must(t, os.RemoveAll(r.src))
	known = map[string]v1File{}
	put("transcript/"+v1Small+".jsonl", []byte("{}"), 0o600)
	take(v1Small, Import, 0, Options{})
	_, err = s.Archive(context.Background(), r.snapshot(v1Forgotten), Options{})
	must(t, err)
	_, err = s.Forget(context.Background(), v1Forgotten, ForgetOptions{})
	must(t, err)
	b, err := json.MarshalIndent(expected, "", " ")
	must(t, err)
	must(t, os.WriteFile(v1Expected, append(b, '\n'), 0o644))
}

// checkV1 compares a store with what the first version wrote.
func checkV1(t *testing.T, s *Store) {
	t.Helper()
	b, err := os.ReadFile(v1Expected)
	must(t, err)
	var expected []v1Generation
	must(t, json.Unmarshal(b, &expected))
	if len(expected) < 20 {
		t.Fatalf("%d generations are expected", len(expected))
	}
	ids, err := s.Sessions(context.Background())
	if err != nil || !slices.Equal(ids, []string{v1Session, v1Small}) {
		t.Errorf("sessions %v, %v", ids, err)
	}
	if !s.Forgotten(v1Forgotten) {
		t.Error("a forgotten session is remembered")
	}
	for _, want := range expected {
		h, err := s.History(context.Background(), want.Session)
		must(t, err)
		g, err := h.Find(fmt.Sprint(want.Number))
		must(t, err)
		what := fmt.Sprintf("session %s, generation %d", want.Session, want.Number)
		if g.Reason != want.Reason || !g.Taken.Equal(want.Taken) || len(g.Events) != want.Events ||
			g.Project != want.Project || len(g.LeftOut) != want.LeftOut || len(g.Files) != len(want.Contents) {
			t.Errorf("%s: %+v", what, g)
		}
		if g.Lineage != h.Lineages()[want.Lineage].ID {
			t.Errorf("%s: lineage %s", what, g.Lineage)
		}
		for _, f := range g.Files {
			w, ok := want.Contents[f.Family+"/"+f.Path]
			content := readFile(t, s, g, f)
			got := v1File{int64(len(content)), hashOf(content), fmt.Sprintf("%04o", f.Mode), f.ModTime, f.Gone}
			if !ok || got.Size != w.Size || got.SHA256 != w.SHA256 || got.Mode != w.Mode || !got.ModTime.Equal(w.ModTime) || got.Gone != w.Gone {
				t.Errorf("%s: %s is %+v, want %+v", what, f.Path, got, w)
			}
		}
	}
}

// Every version reads what the first one wrote, and goes on from it.
func TestArchiveV1(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	copyDir(t, root, v1Store)
	s, err := Open(root)
	must(t, err)
	r := &rig{t: t, store: s, src: t.TempDir(), index: t.TempDir(), now: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}
	checkV1(t, s)
	if rep := r.verify(); rep.Unreferenced != 0 || rep.Sessions != 2 {
		t.Errorf("report %+v", rep)
	}
	g, err := s.Latest(context.Background(), v1Session)
	must(t, err)
	for _, f := range g.Files {
		if !f.Gone {
			r.file(f.Family+"/"+f.Path, readFile(t, s, g, f))
		}
	}
	res, err := s.Archive(context.Background(), r.snapshot(v1Session), r.options())
	if err != nil || res.Created {
		t.Errorf("the same again: %+v, %v", res, err)
	}
	r.add("transcript/"+v1Session+".jsonl", []byte("{}\n"))
	res, err = s.Archive(context.Background(), r.snapshot(v1Session), r.options())
	if err != nil || !res.Created || res.Diverged || res.NewBytes != 3 || res.Generation.Parent != g.Hash {
		t.Errorf("grown: %+v, %v", res, err)
	}
	checkV1(t, s)
	r.verify()
}

func TestRestoreShReadsV1(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "out")
	if code, out := restoreSh(t, v1Store, v1Session, dest); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	s, err := Open(v1Store)
	must(t, err)
	g, err := s.Latest(context.Background(), v1Session)
	must(t, err)
	sameFiles(t, "restored", filesBelow(t, dest), (&rig{t: t, store: s}).read(g))
}
