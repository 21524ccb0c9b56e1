package briefing

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// Of many that claim at the same moment one is the first, also while the folder
// is made for them all and swept under them. SS-05, SS-06
func TestClaimOnce(t *testing.T) {
	d := SaidFolder(filepath.Join(t.TempDir(), "state", "said"))
	for round := range 20 {
		key := fmt.Sprint("key ", round)
		session := fmt.Sprint("session ", round/2) // a folder that is there and one that is not
		var wg sync.WaitGroup
		var mu sync.Mutex
		firsts := 0
		for range 16 {
			wg.Go(func() {
				first, err := d.Claim(session, key)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				if first {
					firsts++
				}
			})
		}
		wg.Go(func() {
			if _, err := d.Sweep(time.Now()); err != nil { // nothing is old
				t.Error(err)
			}
		})
		wg.Wait()
		if firsts != 1 {
			t.Fatalf("%s: %d were the first", key, firsts)
		}
		if said, err := d.Said(session, key); !said || err != nil {
			t.Fatalf("%v, %v", said, err)
		}
	}
}

// Whatever a session or a briefing is called, the names stay in the folder and
// tell one from another.
func TestClaimHostileNames(t *testing.T) {
	top := t.TempDir()
	d := SaidFolder(filepath.Join(top, "said"))
	names := []string{"", ".", "..", "../..", "/etc/passwd", "a/b", "a\x00b", "a\nb", "CON", "\xff", strings.Repeat("x", 5_000), "a", "A"}
	for _, session := range names {
		for _, key := range names {
			if said, err := d.Said(session, key); said || err != nil {
				t.Fatalf("%.20q, %.20q: %v, %v", session, key, said, err)
			}
			if first, err := d.Claim(session, key); !first || err != nil {
				t.Fatalf("%.20q, %.20q: %v, %v", session, key, first, err)
			}
		}
	}
	entries, err := os.ReadDir(top)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	if entries, err = os.ReadDir(string(d)); err != nil || len(entries) != len(names) {
		t.Errorf("%d sessions, %v", len(entries), err)
	}
}

func TestReleaseAndForget(t *testing.T) {
	d := SaidFolder(filepath.Join(t.TempDir(), "said"))
	if err := d.Release("s", "never"); err != nil {
		t.Error(err)
	}
	if err := d.Forget("s"); err != nil {
		t.Error(err)
	}
	claim := func(session, key string, want bool) {
		t.Helper()
		if first, err := d.Claim(session, key); first != want || err != nil {
			t.Errorf("%s, %s: %v, %v", session, key, first, err)
		}
	}
	claim("s", "a", true)
	claim("s", "b", true)
	claim("other", "a", true)
	if err := d.Release("s", "a"); err != nil {
		t.Error(err)
	}
	claim("s", "a", true)
	claim("s", "b", false)
	if err := d.Forget("s"); err != nil {
		t.Error(err)
	}
	claim("other", "a", false)
	if entries, err := os.ReadDir(string(d)); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	claim("s", "b", true)
	if err := ReadOnly(d).Release("s", "b"); err != nil {
		t.Error(err)
	}
	claim("s", "b", false)
}

// A session is forgotten 90 days after the last claim in it. What is not ours
// stays, and one that cannot be removed does not keep the others.
func TestSweepSaid(t *testing.T) {
	d := SaidFolder(filepath.Join(t.TempDir(), "said"))
	if n, err := d.Sweep(day); n != 0 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	age := func(path string, age time.Duration) {
		t.Helper()
		if err := os.Chtimes(path, day, day.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	for session, old := range map[string]time.Duration{
		"new": 0, "edge": keepSaid, "old": keepSaid + time.Second, "ancient": 20 * keepSaid, "of the future": -1000 * time.Hour,
	} {
		for _, key := range []string{"a", "b"} {
			if _, err := d.Claim(session, key); err != nil {
				t.Fatal(err)
			}
		}
		age(d.session(session), old)
	}
	outside := t.TempDir()
	put(t, filepath.Join(outside, "kept"), "x")
	link(t, outside, filepath.Join(string(d), hashed("a link")))
	put(t, filepath.Join(string(d), hashed("a file")), "x")
	put(t, filepath.Join(string(d), "notes", "x"), "x")
	put(t, filepath.Join(string(d), strings.Repeat("g", 32), "x"), "x")
	for _, name := range []string{hashed("a file"), "notes", strings.Repeat("g", 32)} {
		age(filepath.Join(string(d), name), 20*keepSaid)
	}
	age(outside, 20*keepSaid)

	n, err := d.Sweep(day)
	if n != 2 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	for session, want := range map[string]bool{"new": true, "edge": true, "old": false, "ancient": false, "of the future": true} {
		if said, err := d.Said(session, "a"); said != want || err != nil {
			t.Errorf("%s: %v, %v", session, said, err)
		}
	}
	for _, path := range []string{filepath.Join(outside, "kept"), filepath.Join(string(d), hashed("a file")), filepath.Join(string(d), "notes", "x")} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if n, err := d.Sweep(day); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
}

// A claim makes a session's folder young again.
func TestClaimKeepsSession(t *testing.T) {
	d := SaidFolder(filepath.Join(t.TempDir(), "said"))
	for _, key := range []string{"a", "b"} {
		if _, err := d.Claim("s", key); err != nil {
			t.Fatal(err)
		}
		if key == "a" {
			if err := os.Chtimes(d.session("s"), day, time.Now().Add(-2*keepSaid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n, err := d.Sweep(time.Now()); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// Where nothing can be remembered that is an error, and not an answer.
func TestClaimFails(t *testing.T) {
	top := t.TempDir()
	put(t, filepath.Join(top, "file"), "x")
	for _, d := range []SaidFolder{SaidFolder(filepath.Join(top, "file")), SaidFolder(filepath.Join(top, "file", "said"))} {
		if first, err := d.Claim("s", "a"); first || err == nil {
			t.Errorf("%s: %v, %v", d, first, err)
		}
		if said, err := d.Said("s", "a"); said || err != nil {
			t.Errorf("%s: %v, %v", d, said, err)
		}
	}
	full := errors.New("no space left")
	defer durable.SetFault(func(op, path string, after bool) error {
		if op == "mkdir" {
			return full
		}
		return nil
	})()
	if first, err := SaidFolder(filepath.Join(top, "said")).Claim("s", "a"); first || !errors.Is(err, full) {
		t.Errorf("%v, %v", first, err)
	}
}

// A folder that is gone again each time it was made ends in an error.
func TestClaimGivesUp(t *testing.T) {
	d := SaidFolder(filepath.Join(t.TempDir(), "said"))
	made := 0
	defer durable.SetFault(func(op, path string, after bool) error {
		if op != "mkdir" || !after || path != d.session("s") {
			return nil
		}
		if made++; made > 100 {
			return errors.New("it goes on for ever")
		}
		return os.Remove(path)
	})()
	if first, err := d.Claim("s", "a"); first || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, %v", first, err)
	}
}
