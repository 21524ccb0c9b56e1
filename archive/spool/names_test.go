package spool

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

func TestPinNames(t *testing.T) {
	id := sessionID(1)
	key := "0123456789abcdef"
	for _, tt := range []struct {
		name string
		ok   bool
	}{
		{key + "." + id + ".801-1f", true},
		{key + "." + id + ".0-0", true},
		{key + "." + id + ".ffffffffffffffff-ffffffffffffffff", true},
		{key + "." + id + ".801-1f.1.snap", true},
		{key + "." + id + ".801-1f.12.snap", true},
		{key + "." + id + ".801-1f.0.snap", false},
		{key + "." + id + ".801-1f.-1.snap", false},
		{key + "." + id + ".801-1f.01.snap", false},
		{key + "." + id + ".801-1f.1.snip", false},
		{key + "." + id + ".801-1f.1", false},
		{key + "." + id + ".0801-1f", false},
		{key + "." + id + ".801-1F", false},
		{key + "." + id + ".801-", false},
		{key + "." + id + ".-1", false},
		{key + "." + id + ".801", false},
		{key + "." + id + ".1ffffffffffffffff-1", false},
		{key + "." + id, false},
		{key[1:] + "." + id + ".801-1f", false},
		{strings.ToUpper(key) + "." + id + ".801-1f", false},
		{key + "." + strings.ToUpper(sessionID(0xabc)) + ".801-1f", false},
		{key + "." + strings.ReplaceAll(id, "-", "") + ".801-1f", false},
		{key + ".../../../../../../etc/passwd.801-1f", false},
		{"", false},
		{"..", false},
	} {
		n, ok := parsePinName(tt.name)
		if ok != tt.ok || ok && n.String() != tt.name {
			t.Errorf("%q: %+v, %v", tt.name, n, ok)
		}
	}
}

func TestSidePaths(t *testing.T) {
	for _, tt := range []struct {
		path string
		ok   bool
	}{
		{"session/a.1-2", true},
		{"session/a/b.txt.1-2", true},
		{"tool-results/a.1-2.3-4", true},
		{"session/.1-2", false}, // no name at all
		{"session/a", false},
		{"session/a.1", false},
		{"a.1-2", false},
		{"/a.1-2", false},
		{"session/../a.1-2", false},
		{"session/./a.1-2", false},
		{"session//a.1-2", false},
		{"Session/a.1-2", false},
		{"..", false},
	} {
		family, rel, id, ok := parseSidePath(tt.path)
		if ok != tt.ok {
			t.Errorf("%q: %q %q %v %v", tt.path, family, rel, id, ok)
		}
	}
}

// A name that a spool is asked to make or to trust is exactly its parts, and
// stays in its folder.
func FuzzNames(f *testing.F) {
	id := sessionID(1)
	for _, s := range []string{
		"0123456789abcdef." + id + ".801-1f", "0123456789abcdef." + id + ".801-1f.3.snap", "0123456789abcdef." + id,
		newJobName(id, time.Unix(1, 2)).String(), "session/a/b.1-2", "session/../b.1-2", "../x", "/etc/passwd", "a\x00b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		check := func(kind, back string) {
			if back != s {
				t.Errorf("%s %q formats to %q", kind, s, back)
			}
			if strings.ContainsAny(s, "/\\\x00") || !filepath.IsLocal(s) {
				t.Errorf("%s %q leads out of its folder", kind, s)
			}
		}
		if n, ok := parsePinName(s); ok {
			check("pin", n.String())
		}
		if n, ok := parseTreeName(s); ok {
			check("tree", n.String())
		}
		if n, ok := parseJobName(s); ok {
			check("job", n.String())
		}
		if family, rel, fid, ok := parseSidePath(s); ok {
			back, err := sidePath(family, rel, fid)
			if err != nil || filepath.ToSlash(back) != s || !filepath.IsLocal(back) {
				t.Errorf("side %q: %q, %v", s, back, err)
			}
		}
		if path, err := sidePath("session", s, durable.ID{Device: 1, Inode: 2}); err == nil {
			if !filepath.IsLocal(path) || !strings.HasPrefix(path, "session"+string(filepath.Separator)) {
				t.Errorf("side path of %q: %q", s, path)
			}
			if _, rel, _, ok := parseSidePath(filepath.ToSlash(path)); !ok || rel != s {
				t.Errorf("side path %q reads as %q, %v", path, rel, ok)
			}
		}
	})
}

// A job that is accepted holds only names that parse and clean absolute paths,
// and is written as it was read. An error does not repeat the content.
func FuzzJob(f *testing.F) {
	root := filepath.Join(f.TempDir(), "store")
	good := job{Version: 1, Store: root, Session: sessionID(1), Transcript: "/p/x.jsonl", Size: 3, Reason: "stop",
		Pin:    pinName{Store: StoreKey(root), Session: sessionID(1), ID: durable.ID{Device: 1, Inode: 2}}.String(),
		Events: []Event{{Name: "Stop", Time: testTime}}, ConfigDir: "/c", Folder: "-p", Cwd: "/p", Attempts: 2, LastError: "x", LastTry: testTime}
	data, err := good.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for _, s := range []string{"", "{}", "null", `{"version":1,"session":"../../etc","store":"/x"}`, `{"version":99}`,
		strings.Replace(string(data), "/p/x.jsonl", "/p/../../x", 1), strings.Replace(string(data), "/p/x.jsonl", "p", 1),
		strings.Replace(string(data), `"pin":"`, `"pin":"../`, 1), string(data) + "{}", strings.Replace(string(data), `"size":3`, `"size":-3`, 1)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		j, err := parseJob(data)
		if err != nil {
			if len(err.Error()) > 200 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		for _, path := range []string{j.Store, j.Transcript, j.ConfigDir} {
			if path != "" && (!filepath.IsAbs(path) || filepath.Clean(path) != path) {
				t.Errorf("path %q", path)
			}
		}
		if !ValidSessionID(j.Session) || j.Size < 0 || j.Attempts < 0 {
			t.Errorf("%+v", j)
		}
		if j.Pin != "" && (strings.ContainsAny(j.Pin, "/\\") || !strings.Contains(j.Pin, j.Session)) {
			t.Errorf("pin %q", j.Pin)
		}
		out, err := j.encode()
		if err != nil {
			if len(out) == 0 && len(data) < maxJobBytes/8 && !strings.Contains(err.Error(), "year") {
				t.Errorf("cannot be written again: %v", err)
			}
			return
		}
		again, err := parseJob(out)
		if err != nil || again.key() != j.key() || len(again.Events) != len(j.Events) {
			t.Errorf("read again: %+v, %v", again, err)
		}
	})
}

func TestFold(t *testing.T) {
	at := func(n int) Event {
		return Event{Name: "Stop", PromptID: string(rune('a' + n%26)), Time: testTime.Add(time.Duration(n) * time.Second)}
	}
	a := job{Reason: "stop", Size: 10, Events: []Event{at(1), at(3)}, Attempts: 4, LastError: "old", LastTry: testTime}
	b := job{Reason: "session-end", Size: 20, Events: []Event{at(2), at(3)}, Attempts: 1, LastError: "older", LastTry: testTime.Add(-1)}
	all := fold([]job{a, b})
	if all.Reason != "session-end" || all.Size != 20 || all.Attempts != 4 || all.LastError != "old" || len(all.Events) != 3 {
		t.Errorf("%+v", all)
	}
	if len(a.Events) != 2 || a.Events[1] != at(3) {
		t.Errorf("the first job was changed: %+v", a)
	}
	var many []job
	for i := range 3 * maxEvents {
		many = append(many, job{Events: []Event{at(i)}})
	}
	all = fold(many)
	if n := len(all.Events); n != maxEvents || all.Events[0] != at(0) || all.Events[n-1] != at(3*maxEvents-1) {
		t.Errorf("%d events, from %v to %v", n, all.Events[0], all.Events[n-1])
	}
}

func TestShort(t *testing.T) {
	for _, n := range []int{0, maxText - 1, maxText} {
		if s := strings.Repeat("x", n); short(s) != s {
			t.Errorf("%d bytes were cut", n)
		}
	}
	if got := short(strings.Repeat("é", maxText)); len(got) != maxText {
		t.Errorf("%d bytes", len(got))
	}
	if got := short("x" + strings.Repeat("é", maxText)); len(got) != maxText-1 {
		t.Errorf("%d bytes: a character was cut in two", len(got))
	}
}
