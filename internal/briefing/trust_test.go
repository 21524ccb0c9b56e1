package briefing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/durable"
)

// marked writes a client's record in which these folders are trusted.
func marked(t *testing.T, path string, folders ...string) {
	t.Helper()
	projects := map[string]any{}
	for _, folder := range folders {
		projects[filepath.ToSlash(folder)] = map[string]any{"hasTrustDialogAccepted": true, "history": []any{}}
	}
	data, err := json.Marshal(map[string]any{"projects": projects})
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, string(data))
}

// Who trusts a folder: the one that was marked and all below it, by their real
// names, and none beside or above.
func TestCheckTrust(t *testing.T) {
	top := RealDir(t.TempDir())
	at := func(path string) string { return filepath.Join(top, filepath.FromSlash(path)) }
	for _, dir := range []string{"team/app/sub", "team/app2", "own/x", "evil"} {
		if err := os.MkdirAll(at(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link(t, at("evil"), at("team/app/out"))
	link(t, at("team"), at("linked"))
	list, record := at("trusted.json"), at("record.json")
	marked(t, record, at("team/app"), at("team/app/out"), "relative", ".", "", at("own")+"/../evil", at("linked/app2"))
	put(t, list, fmt.Sprintf(`{"folders": [%q, "own", "~", ""]}`, at("own")+"/"))

	for _, test := range []struct{ dir, by, folder string }{
		{"team/app", "client", "team/app"},
		{"team/app/sub", "client", "team/app"},
		{"team/app/none/at/all", "client", "team/app"},
		{"linked/app/sub", "client", "team/app"},
		{"own", "user", "own"},
		{"own/x", "user", "own"},
		{"team/app2", "", ""}, // the record names it by a link, and the client never does
		{"team", "", ""},
		{"team/app/out", "", ""}, // a link to a folder that nobody trusts
		{"evil", "", ""},
		{"", "", ""},
		{"team/ap", "", ""},
	} {
		got := CheckTrust(at(test.dir), list, record)
		if got.Trusted != (test.by != "") || got.By != test.by || test.by != "" && got.Folder != at(test.folder) || got.Why == "" || len(got.Problems) > 0 {
			t.Errorf("%s: %+v", test.dir, got)
		}
	}
	for _, dir := range []string{"", ".", "relative"} {
		if got := CheckTrust(dir, list, record); got.Trusted {
			t.Errorf("%q: %+v", dir, got)
		}
	}
	if runtime.GOOS == "linux" {
		if got := CheckTrust(at("TEAM/app"), list, record); got.Trusted {
			t.Errorf("%+v", got)
		}
	}
	// With neither list nor record nobody trusts anything, and nothing is wrong.
	if got := CheckTrust(at("own"), at("none.json"), ""); got.Trusted || len(got.Problems) > 0 {
		t.Errorf("%+v", got)
	}
}

// A list or record that cannot be read trusts nothing, is named, and leaves the
// other in force.
func TestCheckTrustDamaged(t *testing.T) {
	top := RealDir(t.TempDir())
	file := func(name, text string) string {
		put(t, filepath.Join(top, name), text)
		return filepath.Join(top, name)
	}
	good := filepath.Join(top, "good-record")
	marked(t, good, top)
	list := file("good-list", fmt.Sprintf("\uFEFF{\"folders\": [%q], \"more\": 1}\n", top))
	huge := file("huge", "")
	if err := os.Truncate(huge, maxRecordBytes+1); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		huge, top,
		file("empty", ""), file("blank", "   "), file("binary", "\x00\x01"), file("cut", fmt.Sprintf(`{"projects": {%q: {"hasTrustDialogAccepted": true}`, top)),
		file("twice", fmt.Sprintf(`{"folders": [%q], "projects": {%q: {"hasTrustDialogAccepted": true}}}{}`, top, top)), file("a list", fmt.Sprintf("[%q]", top)),
	} {
		for i, got := range []Trust{CheckTrust(top, bad, good), CheckTrust(top, filepath.Join(top, "none"), bad), CheckTrust(top, bad, bad)} {
			problems := []int{1, 1, 2}[i]
			if got.Trusted != (i == 0) || len(got.Problems) != problems {
				t.Errorf("%s, %d: %+v", bad, i, got)
			}
			for _, problem := range got.Problems {
				var where *config.Error
				if !errors.As(problem, &where) || where.File != bad || len(problem.Error()) > len(bad)+200 || strings.Count(problem.Error(), bad) != 1 {
					t.Errorf("%s: %v", bad, problem)
				}
			}
		}
		if got := CheckTrust(top, list, bad); !got.Trusted || got.By != "user" {
			t.Errorf("%s: %+v", bad, got)
		}
	}
	for _, bad := range []string{`{"folders": "/"}`, fmt.Sprintf(`{"folders": [%q, 1]}`, top), fmt.Sprintf(`{"folders": {%q: true}}`, top)} {
		if got := CheckTrust(top, file("shape", bad), ""); got.Trusted || len(got.Problems) != 1 {
			t.Errorf("%s: %+v", bad, got)
		}
	}
	for _, none := range []string{`{}`, `null`, `{"folders": null}`, `{"folders": []}`} {
		if got := CheckTrust(top, file("shape", none), ""); got.Trusted || len(got.Problems) != 0 {
			t.Errorf("%s: %+v", none, got)
		}
	}
}

// The list at its largest is read, and one byte more is refused.
func TestTrustListIsBounded(t *testing.T) {
	list := filepath.Join(t.TempDir(), "trusted.json")
	for more, refused := range map[int]bool{0: false, 1: true} {
		text := `{"folders": ["/a"]}`
		put(t, list, text+strings.Repeat(" ", maxListBytes-len(text)+more))
		folders, err := Trusted(list)
		if (err != nil) != refused || !refused && len(folders) != 1 {
			t.Errorf("%d more: %v, %v", more, folders, err)
		}
	}
}

func TestAddAndRemoveTrust(t *testing.T) {
	top := RealDir(t.TempDir())
	at := func(path string) string { return filepath.Join(top, filepath.FromSlash(path)) }
	put(t, at("b/file"), "")
	put(t, at("a/file"), "")
	link(t, at("b"), at("to-b"))
	list := at("config/deep/trusted.json")
	ctx := t.Context()
	add := func(dir, want string) {
		t.Helper()
		if got, err := AddTrust(ctx, list, dir); got != want || err != nil {
			t.Errorf("%s: %q, %v", dir, got, err)
		}
	}
	remove := func(dir string, want bool) {
		t.Helper()
		if got, err := RemoveTrust(ctx, list, dir); got != want || err != nil {
			t.Errorf("%s: %v, %v", dir, got, err)
		}
	}
	holds := func(want ...string) {
		t.Helper()
		got, err := Trusted(list)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
			t.Error(diff)
		}
	}
	add(at("to-b"), at("b"))
	add(at("a")+"/", at("a"))
	add(at("b"), at("b"))
	holds(at("a"), at("b"))
	if !CheckTrust(at("b"), list, "").Trusted {
		t.Error("not trusted")
	}
	t.Chdir(at("a"))
	remove(".", true)
	remove(".", false)
	holds(at("b"))
	add(".", at("a"))
	remove(at("to-b"), true)
	// A folder that is gone, and one that somebody wrote in another way.
	if err := os.Rename(at("a"), at("c")); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	remove(at("a"), true)
	holds()
	put(t, list, fmt.Sprintf(`{"folders": [%q, %q]}`, at("x")+"//", at("y")))
	remove(at("x"), true)
	holds(at("y"))
	if CheckTrust(at("x"), list, "").Trusted {
		t.Error("removed and still trusted")
	}
}

// What cannot be trusted is refused, and the list stays as it is.
func TestAddTrustRefuses(t *testing.T) {
	top := RealDir(t.TempDir())
	list := filepath.Join(top, "trusted.json")
	put(t, filepath.Join(top, "file"), "")
	volume := filepath.VolumeName(top) + string(filepath.Separator)
	link(t, volume, filepath.Join(top, "everything"))
	link(t, "loop", filepath.Join(top, "loop"))
	dirs := []string{filepath.Join(top, "file"), filepath.Join(top, "none"), filepath.Join(top, "loop")}
	if runtime.GOOS == "linux" {
		dirs = append(dirs, filepath.Join(top, "\xff"))
		if err := os.Mkdir(filepath.Join(top, "\xff"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range dirs {
		if got, err := AddTrust(t.Context(), list, dir); got != "" || err == nil || errors.Is(err, ErrWholeDisk) {
			t.Errorf("%q: %q, %v", dir, got, err)
		}
	}
	for _, dir := range []string{volume, filepath.Join(top, "everything")} {
		if got, err := AddTrust(t.Context(), list, dir); got != "" || !errors.Is(err, ErrWholeDisk) {
			t.Errorf("%q: %q, %v", dir, got, err)
		}
	}
	if _, err := os.Stat(list); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a list: %v", err)
	}
	// A list that somebody broke is not written over.
	put(t, list, "{broken")
	if _, err := AddTrust(t.Context(), list, top); err == nil {
		t.Error("a broken list was taken")
	}
	if _, err := RemoveTrust(t.Context(), list, top); err == nil {
		t.Error("a broken list was taken")
	}
	if data, err := os.ReadFile(list); string(data) != "{broken" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}

// Commands at the same time lose nothing of each other's. SS-05
func TestTrustTogether(t *testing.T) {
	top := RealDir(t.TempDir())
	list := filepath.Join(top, "config", "trusted.json")
	const n = 12
	var wg sync.WaitGroup
	for i := range n {
		dir := filepath.Join(top, fmt.Sprint("dir", i))
		put(t, filepath.Join(dir, "x"), "")
		wg.Go(func() {
			if _, err := AddTrust(t.Context(), list, dir); err != nil {
				t.Error(err)
			}
			if i%2 == 0 {
				if was, err := RemoveTrust(t.Context(), list, dir); !was || err != nil {
					t.Error(was, err)
				}
			}
		})
	}
	wg.Wait()
	if folders, err := Trusted(list); err != nil || len(folders) != n/2 {
		t.Errorf("%q, %v", folders, err)
	}
}

// A held lock is waited for as long as the caller wants, and no longer; a
// failed write leaves the old list.
func TestTrustFailures(t *testing.T) {
	top := RealDir(t.TempDir())
	list := filepath.Join(top, "trusted.json")
	if _, err := AddTrust(t.Context(), list, top); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := durable.Lock(t.Context(), list+".lock", durable.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := RemoveTrust(ctx, list, top); !errors.Is(err, context.Canceled) && !errors.Is(err, durable.ErrLocked) {
		t.Error(err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left")
	for _, at := range []string{"create", "write", "sync", "rename"} {
		restore := durable.SetFault(func(op, path string, after bool) error {
			if op == at && !strings.HasSuffix(path, ".lock") {
				return full
			}
			return nil
		})
		_, err := RemoveTrust(t.Context(), list, top)
		restore()
		if !errors.Is(err, full) {
			t.Errorf("%s: %v", at, err)
		}
		if data, err := os.ReadFile(list); string(data) != string(before) || err != nil {
			t.Errorf("%s: %q, %v", at, data, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(top, "*")); err != nil || len(left) != 2 {
		t.Errorf("%q, %v", left, err)
	}
}

// A list that is a link stays one.
func TestTrustListIsALink(t *testing.T) {
	top := RealDir(t.TempDir())
	put(t, filepath.Join(top, "dotfiles", "trusted.json"), "{}")
	put(t, filepath.Join(top, "config", "x"), "")
	list := filepath.Join(top, "config", "trusted.json")
	link(t, filepath.Join("..", "dotfiles", "trusted.json"), list)
	if _, err := AddTrust(t.Context(), list, top); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(list); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("%v, %v", info, err)
	}
	if folders, err := Trusted(filepath.Join(top, "dotfiles", "trusted.json")); err != nil || len(folders) != 1 {
		t.Errorf("%q, %v", folders, err)
	}
}

func TestWhereTrustIs(t *testing.T) {
	env := func(home, dir string) config.Env {
		return config.Env{Home: home, Getenv: func(name string) string {
			if name == "CLAUDE_CONFIG_DIR" {
				return dir
			}
			return ""
		}}
	}
	home, dir := t.TempDir(), t.TempDir()
	for _, test := range []struct{ home, dir, want string }{
		{home, "", filepath.Join(home, ".claude.json")},
		{home, dir + "/", filepath.Join(dir, ".claude.json")},
		{"", dir, filepath.Join(dir, ".claude.json")},
		{"", "", ""},
		{home, "in/the/repository", ""},
		{home, "~/config", ""},
		{"home", "", ""},
	} {
		if got := ClientRecord(env(test.home, test.dir)); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
	if got := TrustList(config.Paths{Config: filepath.Join("c", "config.toml")}); got != filepath.Join("c", "trusted.json") {
		t.Error(got)
	}
}
