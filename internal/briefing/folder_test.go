package briefing

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/session-keeper/session-keeper/internal/config"
)

// put writes a file and the folders above it.
func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		if runtime.GOOS == "windows" {
			t.Skip("links need a right on Windows: ", err)
		}
		t.Fatal(err)
	}
}

// told gives for each entry its name and its title or error, without folders.
func told(dir string, entries []Entry) []string {
	var out []string
	for _, e := range entries {
		text := ""
		if e.Err != nil {
			text = e.Err.Error()
		} else {
			text = e.Briefing.Title
		}
		out = append(out, e.Name+" | "+strings.ReplaceAll(text, dir, "DIR"))
	}
	return out
}

const small = "+++\n+++\nbody\n"

func TestLoad(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "briefings")
	put(t, filepath.Join(dir, "b.md"), "+++\ntitle = \"B\"\n+++\nbody")
	put(t, filepath.Join(dir, "a.md"), small)
	put(t, filepath.Join(dir, "bad.md"), "+++\n\nonce = 3\n+++\nbody")
	put(t, filepath.Join(dir, "binary.md"), "+++\n+++\n\x00\x01")
	put(t, filepath.Join(dir, "exact.md"), small+strings.Repeat("x", MaxFileBytes-len(small)))
	put(t, filepath.Join(dir, "huge.md"), small+strings.Repeat("x", MaxFileBytes-len(small)+1))
	put(t, filepath.Join(dir, "folder.md", "inner.md"), small)
	put(t, filepath.Join(dir, ".hidden.md"), small)
	put(t, filepath.Join(dir, "notes.txt"), small)
	put(t, filepath.Join(dir, "c.md~"), small)
	put(t, filepath.Join(top, "outside.md"), small)
	link(t, filepath.Join("..", "outside.md"), filepath.Join(dir, "out.md"))
	link(t, filepath.Join(top, "outside.md"), filepath.Join(dir, "out-absolute.md"))
	link(t, "a.md", filepath.Join(dir, "in.md"))
	link(t, "gone", filepath.Join(dir, "dangling.md"))
	link(t, "loop.md", filepath.Join(dir, "loop.md"))

	outside := "leads out of its folder by a link (a link in the place of the whole folder is followed)"
	want := []string{
		"a.md | a",
		"b.md | B",
		"bad.md | DIR/bad.md:3: once: must be true or false",
		"binary.md | DIR/binary.md:3: a binary file: it holds a NUL",
		"dangling.md | DIR/dangling.md: no such file or directory",
		"exact.md | exact",
		"folder.md | DIR/folder.md: not a regular file",
		"huge.md | DIR/huge.md: larger than 256 KiB",
		"in.md | in",
		"loop.md | DIR/loop.md: too many levels of symbolic links",
		"out-absolute.md | DIR/out-absolute.md: " + outside,
		"out.md | DIR/out.md: " + outside,
	}
	got := Folder{Kind: Personal, Dir: dir}.Load()
	if diff := cmp.Diff(want, told(dir, got)); diff != "" {
		t.Error(diff)
	}
	for _, e := range got {
		var bad *config.Error
		if e.Err != nil && (!errors.As(e.Err, &bad) || bad.File != e.Path) {
			t.Errorf("%s: %#v", e.Name, e.Err)
		}
	}

	// A caller that knows the names sees no other; one that is missing is nothing.
	named := Folder{Kind: Store, Dir: dir, Names: []string{"b.md", "none.md", "../outside.md", "b.md"}}.Load()
	if diff := cmp.Diff([]string{"../outside.md | " + filepath.Join(top, "outside.md") + ": " + outside, "b.md | B"}, told(dir, named)); diff != "" {
		t.Error(diff)
	}
}

func TestLoadFolders(t *testing.T) {
	top := t.TempDir()
	put(t, filepath.Join(top, "file"), "x")
	put(t, filepath.Join(top, "real", "a.md"), small)
	link(t, "real", filepath.Join(top, "linked"))
	put(t, filepath.Join(top, "inside", "docs", "a.md"), small)
	put(t, filepath.Join(top, "inside", ".claude", "x"), "")
	link(t, filepath.Join("..", "docs"), filepath.Join(top, "inside", ".claude", "briefings"))
	put(t, filepath.Join(top, "leaving", ".claude", "x"), "")
	link(t, filepath.Join("..", "..", "real"), filepath.Join(top, "leaving", ".claude", "briefings"))
	put(t, filepath.Join(top, "blocked", ".claude", "briefings"), "a file")

	for _, test := range []struct {
		folder Folder
		want   []string
	}{
		{Folder{Kind: Personal, Dir: filepath.Join(top, "none")}, nil},
		{Folder{Kind: Personal, Dir: filepath.Join(top, "file", "none")}, nil},
		{Folder{Kind: Personal, Dir: filepath.Join(top, "file")}, []string{" | DIR/file: not a folder"}},
		{Folder{Kind: Personal, Dir: filepath.Join(top, "linked")}, []string{"a.md | a"}},
		{Folder{Kind: Repository, Dir: filepath.Join(top, "real")}, nil},
		{Folder{Kind: Repository, Dir: filepath.Join(top, "inside")}, []string{"a.md | a"}},
		{Folder{Kind: Repository, Dir: filepath.Join(top, "leaving")}, []string{" | DIR/leaving/.claude/briefings: " + errOutside.Error()}},
		{Folder{Kind: Repository, Dir: filepath.Join(top, "blocked")}, []string{" | DIR/blocked/.claude/briefings: not a folder"}},
	} {
		if diff := cmp.Diff(test.want, told(top, test.folder.Load())); diff != "" {
			t.Errorf("%+v: %s", test.folder, diff)
		}
	}
}

// Keys that mean something in one home alone are said to be ignored elsewhere.
func TestLoadByHome(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, InRepository, "a.md"), "+++\nsession_title = \"x\"\nprojects = [\"sub\"]\n+++\nbody")
	repository := Folder{Kind: Repository, Dir: dir}.Load()[0]
	if w := repository.Warnings; len(w) != 1 || !strings.Contains(w[0].Text, "session_title") || repository.Briefing.SessionTitle != "" {
		t.Errorf("%v, %+v", w, repository.Briefing)
	}
	personal := Folder{Kind: Personal, Dir: filepath.Join(dir, InRepository)}.Load()[0]
	if w := personal.Warnings; len(w) != 1 || !strings.Contains(w[0].Text, `"sub"`) || personal.Briefing.SessionTitle != "x" {
		t.Errorf("%v, %+v", w, personal.Briefing)
	}
}

// Of ten thousand files the first by name are looked at, and the rest counted.
func TestLoadMany(t *testing.T) {
	dir := t.TempDir()
	const n = 10_000
	for i := range n {
		put(t, filepath.Join(dir, fmt.Sprintf("%05d.md", (i*7919)%n)), small)
	}
	got := Folder{Kind: Personal, Dir: dir}.Load()
	if len(got) != MaxFiles+1 {
		t.Fatalf("%d entries", len(got))
	}
	for i, e := range got[:MaxFiles] {
		if e.Name != fmt.Sprintf("%05d.md", i) {
			t.Fatalf("entry %d is %s", i, e.Name)
		}
	}
	if want := fmt.Sprintf("%s: %d more files were not looked at: the first %d by name are", dir, n-MaxFiles, MaxFiles); got[MaxFiles].Err.Error() != want {
		t.Errorf("%v, want %v", got[MaxFiles].Err, want)
	}
}

func TestLoadBounds(t *testing.T) {
	t.Run("bytes", func(t *testing.T) {
		dir := t.TempDir()
		for i := range 10 {
			put(t, filepath.Join(dir, fmt.Sprintf("%d.md", i)), small+strings.Repeat("x", MaxFileBytes-len(small)))
		}
		got := Folder{Kind: Personal, Dir: dir}.Load()
		for i, e := range got {
			if fits := i < MaxFolderBytes/MaxFileBytes; fits != (e.Err == nil) {
				t.Errorf("file %d: %v", i, e.Err)
			}
		}
	})
	t.Run("names", func(t *testing.T) {
		dir := t.TempDir()
		for i := range MaxNames + 1 {
			f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		got := Folder{Kind: Personal, Dir: dir}.Load()
		if len(got) != 1 || got[0].Err == nil || !strings.Contains(got[0].Err.Error(), "holds more than 20000 names") {
			t.Errorf("%v", told(dir, got))
		}
	})
}

// BenchmarkHundred reads, matches and words 100 briefings, as a hook does at
// the start of a session: it should be a small part of 5 ms.
func BenchmarkHundred(b *testing.B) {
	dir := b.TempDir()
	for i := range 100 {
		put(b, filepath.Join(dir, fmt.Sprintf("%03d.md", i)), fmt.Sprintf(
			"+++\ntitle = \"Briefing %d\"\nsources = [\"startup\", \"resume\"]\nprojects = [\"~/src/app-%d/**\"]\npriority = %d\nexpires = 2030-01-01\n+++\n\n%s",
			i, i%10, i%5, strings.Repeat("A line of what one should know about this place.\n", 20)))
	}
	session := Session{ID: "s", Source: Startup, Dir: "/home/ada/src/app-3/x", Now: day, Env: config.Env{Home: "/home/ada"}}
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			Folder{Kind: Personal, Dir: dir}.Load()
		}
	})
	entries := Folder{Kind: Personal, Dir: dir}.Load()
	b.Run("choose", func(b *testing.B) {
		for b.Loop() {
			if r := Choose(entries, session, Options{Budget: Budget{Limit: DefaultBudget}}); r.Text == "" {
				b.Fatal("nothing was chosen")
			}
		}
	})
	// Large briefings for other places cost a look at their first lines alone.
	for i := range entries {
		entries[i].Briefing.Body = strings.Repeat("Ein Satz über die große Straße. ", 600)
	}
	session.Dir = "/home/ada/elsewhere"
	b.Run("elsewhere", func(b *testing.B) {
		for b.Loop() {
			if r := Choose(entries, session, Options{Budget: Budget{Limit: DefaultBudget}}); r.Text != "" {
				b.Fatal("something was chosen")
			}
		}
	})
}
