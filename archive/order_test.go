package archive

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// AR-09: a power cut leaves no generation that names bytes which never reached
// the disk. Each file is synced before it gets its name, all segments and their
// folders are synced before the manifest is begun, and its folder comes last.
func TestOrderOfSyncs(t *testing.T) {
	r := newRig(t)
	r.file("transcript/"+sessionA+".jsonl", bytes.Repeat([]byte("line\n"), 3*sharedMax/5))
	r.file("session/a.txt", []byte("a"))
	r.file("session/b.txt", bytes.Repeat([]byte("b"), sharedMax+1))

	type call struct{ op, path string }
	var mu sync.Mutex
	var calls []call
	restore := durable.SetFault(func(op, path string, after bool) error {
		if after {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, call{op, path})
		}
		return nil
	})
	r.archive()
	restore()

	manifest := -1 // the call that gives it its name
	named := map[string]int{}
	synced := 0
	for i, c := range calls {
		switch c.op {
		case "sync":
			synced++
		case "rename":
			named[c.path] = i
			if strings.Contains(c.path, "/sessions/") {
				manifest = i
			}
			if synced < len(named) {
				t.Errorf("%s is the %dth to get its name after %d syncs", c.path, len(named), synced)
			}
		}
	}
	if manifest < 0 {
		t.Fatalf("no manifest was written: %v", calls)
	}
	begun := manifest
	for begun > 0 && calls[begun].op != "create" {
		begun--
	}
	segments := 0
	for path, i := range named {
		if !strings.Contains(path, "/segments/") {
			continue
		}
		segments++
		safe := false
		for _, c := range calls[i:begun] {
			safe = safe || c.op == "syncdir" && c.path == filepath.Dir(path)
		}
		if !safe {
			t.Errorf("the folder of %s is not synced between its naming and the manifest", path)
		}
	}
	if segments < 2 {
		t.Errorf("only %d segments", segments)
	}
	last := false
	for _, c := range calls[manifest:] {
		last = last || c.op == "syncdir" && c.path == filepath.Dir(calls[manifest].path)
	}
	if !last {
		t.Error("the manifest's folder is not synced")
	}
}

// The syncs are one pass for a generation, not one for each of its files.
func TestSyncsAreOnePass(t *testing.T) {
	r := newRig(t)
	r.file("transcript/"+sessionA+".jsonl", []byte("line\n"))
	r.archive()
	r.add("transcript/"+sessionA+".jsonl", []byte("more\n"))
	for i := range 60 {
		r.file(fmt.Sprintf("session/tool-results/%d.txt", i), fmt.Appendf(nil, "result %d", i))
	}
	var mu sync.Mutex
	n := map[string]int{}
	restore := durable.SetFault(func(op, path string, after bool) error {
		if after {
			mu.Lock()
			defer mu.Unlock()
			n[op]++
		}
		return nil
	})
	g := r.archive().Generation
	restore()
	if len(g.Files) != 61 {
		t.Fatalf("%d files", len(g.Files))
	}
	// One segment and one manifest; a new folder for the segment has a sync too.
	if n["sync"] != 2 || n["syncdir"] > 4 {
		t.Errorf("%d files and %d folders were synced", n["sync"], n["syncdir"])
	}
}
