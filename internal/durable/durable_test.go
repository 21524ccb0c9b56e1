package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var errCrash = errors.New("the machine stopped here")

// crashAt makes the n-th operation (from 1) and all after it fail. With after
// the n-th itself still takes place. It returns the number of operations that
// were begun, and the restore function.
func crashAt(n int, after bool) (count *int, restore func()) {
	count = new(int)
	return count, SetFault(func(op, path string, isAfter bool) error {
		if !isAfter {
			*count++
			if *count > n || (*count == n && !after) {
				return errCrash
			}
			return nil
		}
		if *count >= n && after {
			return errCrash
		}
		return nil
	})
}

// record collects the operations that do performs, as "op base".
func record(t *testing.T, do func()) []string {
	t.Helper()
	var ops []string
	restore := SetFault(func(op, path string, after bool) error {
		if !after {
			base := filepath.Base(path)
			if IsTemp(base) {
				base = "temp"
			}
			ops = append(ops, op+" "+base)
		}
		return nil
	})
	defer restore()
	do()
	return ops
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestOrderOfOperations(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "file")
	for _, tt := range []struct {
		name string
		do   func() error
		want string
	}{
		{"write", func() error { return WriteFile(path, []byte("a")) }, "create temp, write temp, sync temp, rename file, syncdir d"},
		{"write again", func() error { return WriteFile(path, []byte("a")) }, "create temp, write temp, sync temp, rename file, remove temp, syncdir d"},
		{"replace", func() error { return ReplaceFile(path, []byte("b")) }, "create temp, write temp, sync temp, rename file, syncdir d"},
		{"folders", func() error { return MkdirAll(filepath.Join(dir, "x", "y")) }, "mkdir x, syncdir d, mkdir y, syncdir x"},
		{"folders again", func() error { return MkdirAll(filepath.Join(dir, "x", "y")) }, ""},
	} {
		var err error
		ops := record(t, func() { err = tt.do() })
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got := strings.Join(ops, ", "); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func TestWriteFileIsWriteOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, data := range []string{"", "one", strings.Repeat("long", 100_000)} {
		if err := WriteFile(path+data[:min(1, len(data))], []byte(data)); err != nil {
			t.Fatal(err)
		}
		if err := WriteFile(path+data[:min(1, len(data))], []byte(data)); err != nil {
			t.Errorf("same bytes again: %v", err)
		}
	}
	for _, other := range []string{"", "on", "onf", "onee"} {
		if err := WriteFile(path+"o", []byte(other)); !errors.Is(err, ErrDiffers) {
			t.Errorf("other bytes %q: %v, want ErrDiffers", other, err)
		}
	}
	if got, _ := os.ReadFile(path + "o"); string(got) != "one" {
		t.Errorf("the file is now %q", got)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"f", "fl", "fo"}) {
		t.Errorf("left in the folder: %q", got)
	}
}

// SE-04, FS-01, FS-02, FS-03: whatever call fails, and whether or not it took
// effect, the file is old or new and whole; the next run goes through.
func TestCrashAtEachOperation(t *testing.T) {
	const older, newer = "older", "newer"
	for _, tt := range []struct {
		name  string
		write func(path string) error
		old   bool
	}{
		{"write new", func(p string) error { return WriteFile(p, []byte(newer)) }, false},
		{"replace new", func(p string) error { return ReplaceFile(p, []byte(newer)) }, false},
		{"replace old", func(p string) error { return ReplaceFile(p, []byte(newer)) }, true},
		{"write in new folder", func(p string) error {
			if err := MkdirAll(filepath.Join(filepath.Dir(p), "new", "er")); err != nil {
				return err
			}
			return WriteFile(p, []byte(newer))
		}, false},
	} {
		for n := 1; ; n++ {
			finished := false
			for _, after := range []bool{false, true} {
				name := fmt.Sprintf("%s, operation %d, after %v", tt.name, n, after)
				dir := t.TempDir()
				path := filepath.Join(dir, "file")
				if tt.old {
					if err := os.WriteFile(path, []byte(older), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				count, restore := crashAt(n, after)
				err := tt.write(path)
				restore()
				if *count < n {
					finished = true
					if err != nil {
						t.Fatalf("%s: no operation failed, and yet: %v", name, err)
					}
					break
				}
				if !errors.Is(err, errCrash) {
					t.Errorf("%s: error %v does not tell", name, err)
				}
				got, err := os.ReadFile(path)
				switch {
				case err == nil && (string(got) == newer || tt.old && string(got) == older):
				case errors.Is(err, fs.ErrNotExist) && !tt.old:
				default:
					t.Errorf("%s: file holds %q, %v", name, got, err)
				}
				if err := tt.write(path); err != nil {
					t.Errorf("%s: the next run: %v", name, err)
				}
				if got, _ := os.ReadFile(path); string(got) != newer {
					t.Errorf("%s: after the next run the file holds %q", name, got)
				}
				// AR-12: nothing piles up.
				if _, err := Sweep(dir, time.Hour, time.Now().Add(2*time.Hour)); err != nil {
					t.Error(err)
				}
				for _, left := range names(t, dir) {
					if left != "file" && left != "new" {
						t.Errorf("%s: %q is left over", name, left)
					}
				}
			}
			if finished {
				if n < 5 {
					t.Fatalf("%s: only %d operations pass the hook point", tt.name, n-1)
				}
				break
			}
		}
	}
}

func TestPlaceDoesNotReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	temp, err := CreateTemp(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := temp.WriteString("ours"); err != nil {
		t.Fatal(err)
	}
	if err := temp.Place(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	if err := temp.Discard(); err != nil {
		t.Error(err)
	}
	if err := temp.Discard(); err != nil {
		t.Errorf("a second time: %v", err)
	}
	if err := temp.Place(filepath.Join(dir, "g")); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("placed after it was discarded: %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "theirs" {
		t.Errorf("the file is now %q", got)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"f"}) {
		t.Errorf("left in the folder: %q", got)
	}
}

func TestTempWritesInEveryWay(t *testing.T) {
	dir := t.TempDir()
	temp, err := CreateTemp(dir)
	if err != nil {
		t.Fatal(err)
	}
	ops := record(t, func() {
		_, err1 := temp.Write([]byte("a"))
		_, err2 := temp.WriteString("b")
		_, err3 := temp.ReadFrom(strings.NewReader("cd"))
		_, err4 := temp.WriteAt([]byte("B"), 1)
		if err := errors.Join(err1, err2, err3, err4, temp.Place(filepath.Join(dir, "f"))); err != nil {
			t.Fatal(err)
		}
	})
	if want := "write temp, write temp, write temp, write temp, sync temp, rename f"; strings.Join(ops, ", ") != want {
		t.Errorf("operations: %q", ops)
	}
	if err := temp.Discard(); err != nil {
		t.Errorf("after it was placed: %v", err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "f")); string(got) != "aBcd" {
		t.Errorf("the file holds %q", got)
	}
}

func TestRenameOfTwoNamesOfOneFile(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := os.WriteFile(a, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Link(a, b); err != nil {
		t.Fatal(err)
	}
	if err := RenameNew(a, b); !errors.Is(err, fs.ErrExist) {
		t.Errorf("RenameNew: %v", err)
	}
	if err := Rename(a, b); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"b"}) {
		t.Errorf("names after the rename: %q", got)
	}
	if err := Rename(b, b); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"b"}) {
		t.Errorf("renaming a file to itself left %q", got)
	}
}

func TestSweepTakesOldTemporariesAlone(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for name, age := range map[string]time.Duration{
		tempPrefix + "old":   61 * time.Minute,
		tempPrefix + "edge":  60 * time.Minute,
		tempPrefix + "young": 59 * time.Minute,
		"data":               1000 * time.Hour,
		".tmp-other":         1000 * time.Hour,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, tempPrefix+"folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	n, err := Sweep(dir, time.Hour, now)
	if err != nil || n != 1 {
		t.Errorf("swept %d, %v", n, err)
	}
	want := []string{".tmp-other", tempPrefix + "edge", tempPrefix + "folder", tempPrefix + "young", "data"}
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("left: %q\nwant: %q", got, want)
	}
	if n, err := Sweep(filepath.Join(dir, "absent"), 0, now); n != 0 || err != nil {
		t.Errorf("a folder that is not there: %d, %v", n, err)
	}
}

func TestMkdirAllRefusesAFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"f", "f/x", "f/x/y"} {
		if err := MkdirAll(filepath.Join(dir, path)); err == nil {
			t.Errorf("%s: made below a file", path)
		}
	}
}

func TestCloneIsASnapshotOrNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "src")
	before := bytes.Repeat([]byte("x"), 10_000)
	if err := os.WriteFile(path, before, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	snap := filepath.Join(dir, "snap")
	err = Clone(f, snap)
	if errors.Is(err, ErrNoClone) {
		if got := names(t, dir); !slices.Equal(got, []string{"src"}) {
			t.Errorf("a refused clone left %q", got)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("y"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(snap); err != nil || !bytes.Equal(got, before) {
		t.Errorf("the snapshot holds %d bytes, %v", len(got), err)
	}
	if fi, err := os.Stat(snap); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the snapshot's mode: %v, %v", fi.Mode(), err)
	}
	if err := Clone(f, snap); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
}

func TestFilesystemOfAPathThatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	kind, local, err := Filesystem(dir)
	if err != nil || kind == "" {
		t.Fatalf("%q, %v", kind, err)
	}
	kind2, local2, err := Filesystem(filepath.Join(dir, "not", "yet"))
	if err != nil || kind2 != kind || local2 != local {
		t.Errorf("below it: %q %v %v, want %q %v", kind2, local2, err, kind, local)
	}
}
