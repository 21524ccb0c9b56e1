package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

var testNow = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// options are those of a user whose settings file holds content; nil is none.
func options(t *testing.T, content []byte) Options {
	t.Helper()
	home := t.TempDir()
	o := Options{
		File: filepath.Join(home, ".claude", SettingsName), State: filepath.Join(home, "state"),
		Binary: "/opt/my tools/session-end-archive", GOOS: "linux", Now: testNow,
		Events: []string{"SessionEnd"},
	}
	if content != nil {
		if err := os.MkdirAll(filepath.Dir(o.File), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(o.File, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func mustInstall(t *testing.T, o Options) *Result {
	t.Helper()
	res, err := Install(o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func mustUninstall(t *testing.T, o Options) *Result {
	t.Helper()
	res, err := Uninstall(o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// wantTree fails unless dir holds exactly these names.
func wantTree(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

// IN-01, IN-03, IN-05, IN-14: one entry after any number of installs, reported
// from what is read back, a backup, and the same bytes after uninstall.
func TestInstallUninstall(t *testing.T) {
	before := "{\n  // mine\n  \"outputStyle\": \"x\",\n  \"mcpServers\": {\"a\": {}},\n  \"enabledPlugins\": {},\n}\n"
	o := options(t, []byte(before))
	dry := o
	dry.DryRun = true
	planned := mustInstall(t, dry)
	if read(t, o.File) != before {
		t.Error("a dry run wrote")
	}
	if _, err := os.Stat(o.State); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dry run made the state folder: %v", err)
	}
	first := mustInstall(t, o)
	if !first.Changed || len(first.Hooks) != 1 || first.Hooks[0].Command != "'/opt/my tools/session-end-archive' || exit 1" || first.Hooks[0].Event != "SessionEnd" {
		t.Errorf("first install: %+v", first)
	}
	if first.Diff != planned.Diff || !strings.Contains(first.Diff, "+  \"hooks\": {") || strings.Contains(first.Diff, "\n-") && !strings.Contains(first.Diff, "\n---") {
		t.Errorf("planned\n%s\ndone\n%s", planned.Diff, first.Diff)
	}
	if got := read(t, first.Backup); got != before {
		t.Errorf("backup holds %q", got)
	}
	for range 3 {
		again := mustInstall(t, o)
		if again.Changed || len(again.Hooks) != 1 {
			t.Errorf("later install: %+v", again)
		}
	}
	res := mustUninstall(t, o)
	if !res.Changed || len(res.Hooks) != 0 || read(t, o.File) != before {
		t.Errorf("uninstall: %+v\n%s", res, read(t, o.File))
	}
	if res := mustUninstall(t, o); res.Changed {
		t.Errorf("second uninstall changed something: %s", res.Diff)
	}
	wantTree(t, filepath.Dir(o.File), SettingsName)
	wantTree(t, o.State, "backups")
}

// What did not exist before is gone afterwards, the folder too.
func TestInstallUninstallFromNothing(t *testing.T) {
	o := options(t, nil)
	res := mustInstall(t, o)
	if !res.Created || res.Backup != "" {
		t.Errorf("install: %+v", res)
	}
	fi, err := os.Stat(o.File)
	if err != nil || fi.Mode().Perm() != 0o600 { // SM-06
		t.Errorf("settings: %v, %v", fi.Mode(), err)
	}
	if res := mustUninstall(t, o); !res.Removed {
		t.Errorf("uninstall: %+v", res)
	}
	if _, err := os.Stat(filepath.Dir(o.File)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the client's folder is still there: %v", err)
	}
	// The client made use of the folder meanwhile: it stays.
	mustInstall(t, o)
	if err := os.Mkdir(filepath.Join(filepath.Dir(o.File), "projects"), 0o755); err != nil {
		t.Fatal(err)
	}
	mustUninstall(t, o)
	wantTree(t, filepath.Dir(o.File), "projects")
}

// The record of an uninstalled wiring does not decide about the next one.
func TestRecordIsRenewed(t *testing.T) {
	o := options(t, nil)
	mustInstall(t, o)
	// The user writes a file of his own over it.
	own := "{\"hooks\": {\"SessionEnd\": [ ]}}"
	if err := os.WriteFile(o.File, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	mustInstall(t, o)
	mustUninstall(t, o)
	if got := read(t, o.File); got != own {
		t.Errorf("got %q, want %q", got, own)
	}
	// A second event later keeps what is known about the first.
	mustInstall(t, o)
	o.Events = []string{"SessionEnd", "Stop"}
	if res := mustInstall(t, o); len(res.Hooks) != 2 {
		t.Errorf("hooks: %+v", res.Hooks)
	}
	mustUninstall(t, o)
	if got := read(t, o.File); got != own {
		t.Errorf("got %q, want %q", got, own)
	}
}

// Mode, symbolic link (FS-05) and hard link stay.
func TestFileStaysTheSame(t *testing.T) {
	for _, kind := range []string{"plain", "link", "relative link", "dangling link", "hard link"} {
		t.Run(kind, func(t *testing.T) {
			before := "{\n  \"a\": 1\n}\n"
			o := options(t, []byte(before))
			dotfiles := filepath.Join(filepath.Dir(filepath.Dir(o.File)), "dotfiles")
			target := filepath.Join(dotfiles, "claude.json")
			if err := os.Mkdir(dotfiles, 0o755); err != nil {
				t.Fatal(err)
			}
			move := func(link string) {
				if err := os.Rename(o.File, target); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(link, o.File); err != nil {
					t.Fatal(err)
				}
			}
			switch kind {
			case "plain":
				target = o.File
			case "link":
				move(target)
			case "relative link":
				move("../dotfiles/claude.json")
			case "dangling link":
				move(target)
				if err := os.Remove(target); err != nil {
					t.Fatal(err)
				}
			case "hard link":
				if err := os.Link(o.File, target); err != nil {
					t.Fatal(err)
				}
			}
			if kind != "dangling link" {
				if err := os.Chmod(target, 0o640); err != nil {
					t.Fatal(err)
				}
			}
			linkBefore, err := os.Lstat(o.File)
			if err != nil {
				t.Fatal(err)
			}
			res := mustInstall(t, o)
			if len(res.Hooks) != 1 || !strings.Contains(read(t, target), "session-end-archive") {
				t.Errorf("install: %+v", res)
			}
			if res.InPlace != (kind == "hard link") {
				t.Errorf("in place: %v", res.InPlace)
			}
			linkAfter, err := os.Lstat(o.File)
			if err != nil {
				t.Fatal(err)
			}
			if linkAfter.Mode() != linkBefore.Mode() {
				t.Errorf("mode %v became %v", linkBefore.Mode(), linkAfter.Mode())
			}
			if fi, err := os.Stat(target); err != nil || kind != "dangling link" && fi.Mode().Perm() != 0o640 {
				t.Errorf("target: %v %v", fi.Mode(), err)
			}
			mustUninstall(t, o)
			if kind == "dangling link" {
				if _, err := os.Stat(target); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("target is still there: %v", err)
				}
				return
			}
			if got := read(t, target); got != before {
				t.Errorf("got %q, want %q", got, before)
			}
		})
	}
}

// failAt makes operations on paths that match fail with err.
func failAt(t *testing.T, op string, match func(path string) bool, err error) {
	t.Helper()
	t.Cleanup(durable.SetFault(func(o, path string, after bool) error {
		if o == op && !after && match(path) {
			return &fs.PathError{Op: op, Path: path, Err: err}
		}
		return nil
	}))
}

// FS-05: a single file mounted into a read-only folder cannot be replaced, so
// it is written where it is.
func TestMountedFile(t *testing.T) {
	for _, test := range []struct {
		op  string
		err error
	}{{"create", syscall.EROFS}, {"create", syscall.EACCES}, {"rename", syscall.EBUSY}, {"rename", syscall.EXDEV}} {
		t.Run(fmt.Sprint(test.op, " ", test.err), func(t *testing.T) {
			before := "{\n  \"a\": 1\n}\n"
			o := options(t, []byte(before))
			dir := filepath.Dir(o.File)
			failAt(t, test.op, func(path string) bool { return filepath.Dir(path) == dir }, test.err)
			res := mustInstall(t, o)
			if !res.InPlace || len(res.Hooks) != 1 {
				t.Errorf("install: %+v", res)
			}
			if got := read(t, res.Backup); got != before {
				t.Errorf("backup holds %q", got)
			}
			res = mustUninstall(t, o)
			if got := read(t, o.File); got != before || !res.InPlace {
				t.Errorf("got %q, want %q; %+v", got, before, res)
			}
			wantTree(t, dir, SettingsName)
		})
	}
}

// FS-01: a full disk leaves the file as it was, and no temporary.
func TestFullDisk(t *testing.T) {
	for _, where := range []string{"settings", "backup", "record"} {
		for _, op := range []string{"create", "write", "sync"} {
			t.Run(where+" "+op, func(t *testing.T) {
				before := "{\n  \"a\": 1\n}\n"
				o := options(t, []byte(before))
				dir := map[string]string{"settings": filepath.Dir(o.File), "backup": filepath.Join(o.State, "backups"), "record": o.State}[where]
				failAt(t, op, func(path string) bool { return filepath.Dir(path) == dir }, syscall.ENOSPC)
				if _, err := Install(o); !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("install: %v", err)
				}
				if got := read(t, o.File); got != before {
					t.Errorf("settings became %q", got)
				}
				wantTree(t, filepath.Dir(o.File), SettingsName)
			})
		}
	}
}

// IN-06: what another tool writes between our read and our write is kept, and
// ours is added to it.
func TestOvertaken(t *testing.T) {
	o := options(t, []byte("{\"a\": 1}"))
	theirs := "{\"a\": 2, \"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}]}}"
	dir, times := filepath.Dir(o.File), 0
	restore := durable.SetFault(func(op, path string, after bool) error {
		if op == "sync" && after && filepath.Dir(path) == dir {
			if times++; times == 1 {
				return os.WriteFile(o.File, []byte(theirs), 0o644)
			}
		}
		return nil
	})
	defer restore()
	res := mustInstall(t, o)
	got := read(t, o.File)
	if len(res.Hooks) != 1 || !strings.Contains(got, `"command": "x"`) || !strings.Contains(got, `"a": 2`) {
		t.Errorf("got %s", got)
	}
	restore()
	mustUninstall(t, o)
	if got := read(t, o.File); got != theirs {
		t.Errorf("got %q, want %q", got, theirs)
	}
	wantTree(t, dir, SettingsName)

	// One that never rests is not overwritten either.
	n := 0
	defer durable.SetFault(func(op, path string, after bool) error {
		if op == "sync" && after && filepath.Dir(path) == dir {
			n++
			return os.WriteFile(o.File, fmt.Appendf(nil, "{\"n\": %d}", n), 0o644)
		}
		return nil
	})()
	if _, err := Install(o); !errors.Is(err, errOvertaken) {
		t.Errorf("install: %v", err)
	}
	if got, want := read(t, o.File), fmt.Sprintf("{\"n\": %d}", n); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	wantTree(t, dir, SettingsName)
}

// A file that appears where there was none is not overwritten.
func TestOvertakenByNewFile(t *testing.T) {
	o := options(t, nil)
	dir, done := filepath.Dir(o.File), false
	defer durable.SetFault(func(op, path string, after bool) error {
		if op == "rename" && !after && path == o.File && !done {
			done = true
			return os.WriteFile(o.File, []byte("{\"new\": true}"), 0o644)
		}
		return nil
	})()
	mustInstall(t, o)
	if got := read(t, o.File); !strings.Contains(got, `"new": true`) || !strings.Contains(got, "session-end-archive") {
		t.Errorf("got %s", got)
	}
	wantTree(t, dir, SettingsName)
}

// IN-08: a file that does not parse is named with the reason, and not touched.
func TestRefusedFile(t *testing.T) {
	for _, content := range []string{"{", "[]", "\xff\xfe{\x00}\x00"} {
		o := options(t, []byte(content))
		_, err := Install(o)
		if err == nil || !strings.HasPrefix(err.Error(), o.File+" ") {
			t.Errorf("install on %q: %v", content, err)
		}
		if _, err := Uninstall(o); err == nil {
			t.Errorf("uninstall on %q: no error", content)
		}
		if got := read(t, o.File); got != content {
			t.Errorf("%q became %q", content, got)
		}
		if _, err := os.Stat(o.State); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("something was written to the state folder: %v", err)
		}
	}
	o := options(t, nil)
	if err := os.MkdirAll(o.File, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(o); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("install on a folder: %v", err)
	}
}

// A path that JSON cannot hold, or that means something else elsewhere, is not
// wired.
func TestRefusedBinary(t *testing.T) {
	for _, path := range []string{"bin/session-end-archive", "", "/opt/\xff/session-end-archive"} {
		o := options(t, []byte("{}"))
		o.Binary = path
		if _, err := Install(o); err == nil || read(t, o.File) != "{}" {
			t.Errorf("install of %q: %v", path, err)
		}
	}
}

// AR-12: fifty installs leave a bounded number of backups and no temporary.
// SM-06: all of it is the user's alone.
func TestBackupsAreBounded(t *testing.T) {
	o := options(t, []byte("{}"))
	backups := filepath.Join(o.State, "backups")
	for i := range 50 {
		o.Now = testNow.Add(time.Duration(i) * time.Minute)
		if err := os.WriteFile(o.File, fmt.Appendf(nil, "{\"n\": %d}", i), 0o644); err != nil {
			t.Fatal(err)
		}
		mustInstall(t, o)
	}
	entries, err := os.ReadDir(backups)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != keptBackups {
		t.Errorf("%d backups, want %d", len(entries), keptBackups)
	}
	if got := read(t, filepath.Join(backups, entries[len(entries)-1].Name())); got != "{\"n\": 49}" {
		t.Errorf("newest backup holds %q", got)
	}
	err = filepath.WalkDir(o.State, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		if fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, fi.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantTree(t, filepath.Dir(o.File), SettingsName)

	// The same content is not copied twice.
	o = options(t, []byte("{}"))
	for range 5 {
		mustInstall(t, o)
		mustUninstall(t, o)
	}
	entries, err = os.ReadDir(filepath.Join(o.State, "backups"))
	if err != nil || len(entries) != 2 {
		t.Errorf("%d backups, want the one before and the one after: %v", len(entries), err)
	}
}

// On Windows there is no sh to count on: exec form, with the program's whole name.
// PL-05, PL-15
func TestWindowsForm(t *testing.T) {
	o := options(t, []byte("{}"))
	o.GOOS, o.Binary = "windows", `C:\Tools\session-end-archive.exe`
	res := mustInstall(t, o)
	if len(res.Hooks) != 1 || !res.Hooks[0].Exec || res.Hooks[0].Command != o.Binary || !res.Hooks[0].Plain {
		t.Errorf("hooks: %+v", res.Hooks)
	}
	if res := mustInstall(t, o); res.Changed {
		t.Errorf("not idempotent: %s", res.Diff)
	}
	mustUninstall(t, o)
	if got := read(t, o.File); got != "{}" {
		t.Errorf("got %q", got)
	}
}

func TestRead(t *testing.T) {
	o := options(t, []byte("\xef\xbb\xbf{\n  \"cleanupPeriodDays\": 7, // short\n  \"env\": {\"A\": \"1\", \"B\": 2,},\n}"))
	s, err := Read(o.File)
	if err != nil {
		t.Fatal(err)
	}
	if raw, line := s.Value("cleanupPeriodDays"); string(raw) != "7" || line != 2 {
		t.Errorf("got %s in line %d", raw, line)
	}
	if raw, _ := s.Value("nope"); raw != nil {
		t.Errorf("got %s", raw)
	}
	if env := s.Env(); env["A"] != "1" || env["B"] != "2" {
		t.Errorf("env %v", env)
	}
	for text, line := range map[string]int{
		"\xef\xbb\xbf{\n\"a\": 1}":          0,
		"{\"a\": 1, \"a\": 2}\n":            0,
		"{\n\"a\": \"// no comment,}\"}":    0,
		"{\n  // mine\n  \"a\": 1}":         2,
		"{\n  \"a\": 1,\n  /* b */\n}":      3,
		"{\n  \"a\": [\n1,\n\n],\n\"b\":1}": 3,
		"{\n  \"a\": 1,\n\n}":               2,
		"{\"a\": 1}\n\n// end":              3,
	} {
		file := filepath.Join(t.TempDir(), SettingsName)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Read(file)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got := s.Loose(); got != line {
			t.Errorf("%q: line %d is not strict, want %d", text, got, line)
		}
	}
	if s, err := Read(filepath.Join(o.State, "none")); s != nil || err != nil {
		t.Errorf("missing file: %v %v", s, err)
	}
}

// What an install wires unless it is told otherwise: each event runs the hook
// that is for it, and a second install changes nothing. Uninstall takes all of it
// out.
func TestDefaultEvents(t *testing.T) {
	before := "{\n  \"model\": \"opus\"\n}\n"
	o := options(t, []byte(before))
	o.Events = nil
	want := []string{
		"SessionEnd '/opt/my tools/session-end-archive' || exit 1",
		"PreCompact '/opt/my tools/pre-compact-snapshot' || exit 1",
	}
	for range 2 {
		var got []string
		for _, h := range mustInstall(t, o).Hooks {
			got = append(got, h.Event+" "+h.Command)
			if !h.Plain || h.Timeout != "60" || h.Matcher != "" {
				t.Errorf("%+v", h)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	// An install for fewer events takes none out; one from another place takes
	// them all over.
	o.Events = []string{"SessionEnd"}
	o.Binary = "/usr/bin/session-end-archive"
	if res := mustInstall(t, o); len(res.Hooks) != 2 || res.Hooks[0].Binary != o.Binary {
		t.Errorf("%+v", res.Hooks)
	}
	o.Events = nil
	if res := mustInstall(t, o); len(res.Hooks) != 2 || res.Hooks[1].Binary != "/usr/bin/pre-compact-snapshot" {
		t.Errorf("%+v", res.Hooks)
	}
	mustUninstall(t, o)
	if got := read(t, o.File); got != before {
		t.Errorf("after uninstall: %q", got)
	}
}

func TestBeside(t *testing.T) {
	for in, want := range map[string]string{
		"/opt/my tools/session-end-archive": "/opt/my tools/x", `C:\Tools\session-end-archive.exe`: `C:\Tools\x.exe`,
		"session-end-archive": "x", "./a/session-end-archive.EXE": "./a/x.EXE",
	} {
		if got := Beside(in, "x"); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
