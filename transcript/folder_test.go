package transcript

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(path, err)
	}
}

// PA-01, PA-06, PA-07: names that the real client made.
func TestFolderNameVectors(t *testing.T) {
	var file struct{ Vectors []struct{ Path, Dir string } }
	readJSON(t, "../testdata/vectors/paths.json", &file)
	if len(file.Vectors) < 30 {
		t.Fatalf("only %d vectors", len(file.Vectors))
	}
	for _, v := range file.Vectors {
		if got := FolderName(v.Path); got != v.Dir {
			t.Errorf("%q:\n got %q\nwant %q", v.Path, got, v.Dir)
		}
	}
}

func TestFolderName(t *testing.T) {
	for _, c := range []struct{ dir, want string }{
		{"", ""},
		{"/p/외주/app", "-p----app"},               // PA-01
		{"/p/개인/app", "-p----app"},               // the same folder
		{`D:\Projects\大明科技`, "D--Projects-----"}, // PA-02
		{`D:\Projects\天成企業`, "D--Projects-----"},
		{"c:/Users/a+b(c)&d", "c--Users-a-b-c--d"},
		{`Z:\home\u\p`, "Z--home-u-p"}, // PA-12: nothing is cleaned
		{`\\wsl.localhost\Ubuntu\home\u\p`, "--wsl-localhost-Ubuntu-home-u-p"},
		{"/w/my.app/.claude/worktrees/x", "-w-my-app--claude-worktrees-x"}, // TP-05
		{"/w/my-app--claude-worktrees-x", "-w-my-app--claude-worktrees-x"},
		{"/a//b/../c/", "-a--b----c-"},
		{"/home/u/👩", "-home-u---"},
		{"/" + strings.Repeat("k", 199), "-" + strings.Repeat("k", 199)},
	} {
		if got := FolderName(c.dir); got != c.want {
			t.Errorf("%q: got %q, want %q", c.dir, got, c.want)
		}
	}
	if got := FolderName("/" + strings.Repeat("k", 200)); len(got) <= 201 || got[200] != '-' {
		t.Errorf("201 units: %q has no suffix", got)
	}
	if got := suffix31([]uint16{0}); got != "0" {
		t.Errorf("hash 0 is written %q", got)
	}
}

// What older builds of the client put behind the 200th unit.
func TestWyhashVectors(t *testing.T) {
	var file struct {
		Vectors []struct{ S, Hash, B36 string }
	}
	readJSON(t, "../testdata/vectors/wyhash.json", &file)
	if len(file.Vectors) < 20 {
		t.Fatalf("only %d vectors", len(file.Vectors))
	}
	for _, v := range file.Vectors {
		h := wyhash([]byte(v.S))
		if strconv.FormatUint(h, 10) != v.Hash || strconv.FormatUint(h, 36) != v.B36 {
			t.Errorf("%d bytes: got %d, want %s", len(v.S), h, v.Hash)
		}
	}
}

func TestFindFolder(t *testing.T) {
	long := "/srv/" + strings.Repeat("deep/", 60) + "end"
	other := "/srv/" + strings.Repeat("deep/", 60) + "fin"
	const id = "00000000-0000-4000-8000-000000000001"
	record := func(dir string) string {
		return `{"type":"mode"}` + "\n" + `{"type":"user","cwd":"` + dir + `","entrypoint":"cli","message":{"role":"user","content":"q"}}` + "\n"
	}
	for _, c := range []struct {
		name    string
		dir     string
		folders map[string]string // folder to the cwd recorded in it, "" for an empty folder
		want    string
	}{
		{"nothing there", "/home/a", nil, "-home-a"},
		{"exact", "/home/a", map[string]string{"-home-a": ""}, "-home-a"},
		{"long, nothing there", long, nil, FolderName(long)},
		{"long, exact", long, map[string]string{FolderName(long): "", FolderName(long)[:201] + "zzz": long}, FolderName(long)},
		{"long, hash of older builds", long, map[string]string{olderFolderName(long): ""}, olderFolderName(long)},
		{"long, another suffix", long, map[string]string{FolderName(long)[:201] + "0ther": long}, FolderName(long)[:201] + "0ther"},
		{"long, no suffix", long, map[string]string{FolderName(long)[:200]: long}, FolderName(long)[:200]},
		{"long, another directory's", long, map[string]string{FolderName(other): other, FolderName(long)[:200] + "-x": ""}, FolderName(long)},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "projects")
			for folder, cwd := range c.folders {
				dir := filepath.Join(root, folder)
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if cwd != "" {
					write(t, filepath.Join(dir, id+".jsonl"), record(cwd))
				}
			}
			got, err := FindFolder(root, c.dir)
			if err != nil || got != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestFolderWithFixedName(t *testing.T) {
	l := &Locator{ProjectDirName: "my-project_1"}
	if got, err := l.Folder(t.TempDir(), "/home/a"); err != nil || got != "my-project_1" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{"..", "a/b", "a b", "é", strings.Repeat("x", 65)} {
		l.ProjectDirName = bad
		if got, err := l.Folder(t.TempDir(), "/home/a"); err == nil {
			t.Errorf("%q was taken and gave %q", bad, got)
		}
	}
	l.ProjectDirName = ""
	if got, err := l.Folder(t.TempDir(), "/home/a"); err != nil || got != "-home-a" {
		t.Errorf("without one: got %q, %v", got, err)
	}
}

// PA-06, PA-11, PA-12: what counts as the same depends on the system alone.
func TestSameDir(t *testing.T) {
	for _, c := range []struct {
		a, b, goos string
		want       bool
	}{
		{"/mnt/c/Foo", "/mnt/c/foo", "linux", false},
		{"/mnt/c/Foo", "/mnt/c/Foo", "linux", true},
		{`C:\Foo`, `c:\foo`, "windows", true},
		{`C:\Foo`, `c:/foo`, "windows", true},
		{`Z:\home`, `\\wsl.localhost\Ubuntu\home`, "windows", false},
		{"/caf\u00e9", "/cafe\u0301", "darwin", false},
	} {
		if got := SameDir(c.a, c.b, c.goos); got != c.want {
			t.Errorf("%q and %q on %s: %v", c.a, c.b, c.goos, got)
		}
	}
	if !sameFolder("C--Foo", "c--foo", "windows") || sameFolder("C--Foo", "c--foo", "linux") {
		t.Error("case of folder names")
	}
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
