package transcript

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	idA = "aaaaaaaa-0000-4000-8000-000000000001"
	idB = "bbbbbbbb-0000-4000-8000-000000000002"
	idC = "cccccccc-0000-4000-8000-000000000003"
)

// message is a transcript's line with a time, so that the newest copy can be told.
func message(day int) string {
	return fmt.Sprintf(`{"type":"user","uuid":"u%d","timestamp":"2026-11-%02dT09:00:00Z","cwd":"/home/alice/app","message":{"content":"q"}}`+"\n", day, day)
}

// configDir makes a config folder. Its path has no symbolic link in it.
func configDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "config")
	if err := os.MkdirAll(filepath.Join(dir, "projects"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func transcriptPath(config, folder, id string) string {
	return filepath.Join(config, "projects", folder, id+".jsonl")
}

func symlink(t testing.TB, target, link string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		if runtime.GOOS == "windows" {
			t.Skip("links need a privilege here: ", err)
		}
		t.Fatal(err)
	}
}

func TestValidSessionID(t *testing.T) {
	for id, want := range map[string]bool{
		idA:                  true,
		strings.ToUpper(idA): false, strings.ReplaceAll(idA, "-", ""): false, idA + " ": false, idA[:35]: false, "": false,
		"{" + idA[1:35] + "}": false, strings.Repeat("a", 36): false, idA[:35] + "g": false, idA[:35] + "\x00": false,
		"agent-a02b21e": false, strings.Replace(idA, "-", "_", 1): false,
	} {
		if ValidSessionID(id) != want {
			t.Errorf("%q: %v", id, !want)
		}
	}
}

// TP-10: an id is never a path.
func TestLocateRefusesHostileIDs(t *testing.T) {
	config := configDir(t)
	write(t, filepath.Join(config, "secret.jsonl"), message(1))
	l := &Locator{ConfigDirs: []string{config}}
	for _, id := range []string{
		"../../secret", "..", ".", "", "/etc/passwd", "a\x00b", "con", "NUL", "a\nb", strings.Repeat("a", 300), "*", "~", "$(touch x)",
		idA + "/../../../secret", idA + "\x00", idA + "\n", strings.ToUpper(idA), "../" + idA, `..\` + idA, idA + ".jsonl",
	} {
		for name, err := range map[string]error{
			"locate": second(l.Locate(id, transcriptPath(config, "-p", id))),
			"all":    third(l.LocateAll(id)),
			"files":  third((Bundle{SessionID: id, ConfigDir: config, ProjectDir: config}).Files()),
			"place":  second(Place(config, "-p", id, FamilySession, "x")),
		} {
			if !errors.Is(err, ErrInvalidID) {
				t.Errorf("%s of %.50q: %v", name, id, err)
			}
			if len(err.Error()) > 400 {
				t.Errorf("%s of %.50q: an error of %d bytes", name, id, len(err.Error()))
			}
		}
	}
}

func second[A any](_ A, err error) error        { return err }
func third[A, B any](_ A, _ B, err error) error { return err }

// TP-10, TP-11: a payload's path that breaks the rules is not read; the id is looked
// for instead.
func TestLocateRefusesHostilePaths(t *testing.T) {
	config := configDir(t)
	base := filepath.Dir(config)
	good := transcriptPath(config, "-p", idA)
	write(t, good, message(1))
	outside := filepath.Join(base, "outside")
	write(t, filepath.Join(outside, idA+".jsonl"), message(1))
	write(t, filepath.Join(outside, "secret.txt"), "secret")
	write(t, transcriptPath(config, "-q", idB), message(1))
	if err := os.MkdirAll(transcriptPath(config, "-dir", idA), 0o700); err != nil {
		t.Fatal(err)
	}
	symlink(t, filepath.Join(outside, "secret.txt"), transcriptPath(config, "-link", idA))
	symlink(t, transcriptPath(config, "-q", idB), transcriptPath(config, "-other", idA))
	symlink(t, filepath.Join(outside, "gone"), transcriptPath(config, "-dangling", idA))
	symlink(t, transcriptPath(config, "-loop", idA), transcriptPath(config, "-loop", idA))
	symlink(t, os.DevNull, transcriptPath(config, "-device", idA))
	l := &Locator{ConfigDirs: []string{config}}
	for _, hint := range []string{
		"relative/projects/-p/" + idA + ".jsonl",
		filepath.Join(outside, idA+".jsonl"),
		filepath.Join(outside, "secret.txt"),
		"/etc/shadow", "/etc/passwd", "/dev/zero", "/dev/null", "/proc/self/mem", ".", "/", "\x00", good + "\x00", good + "\n",
		strings.Repeat("/x", 5000), "/" + strings.Repeat("x", 300) + "/projects/p/" + idA + ".jsonl",
		transcriptPath(config, "-q", idB),
		transcriptPath(config, "-dir", idA), transcriptPath(config, "-link", idA), transcriptPath(config, "-other", idA),
		transcriptPath(config, "-dangling", idA), transcriptPath(config, "-loop", idA), transcriptPath(config, "-device", idA),
		filepath.Join(config, "projects") + "/-p/../../../outside/" + idA + ".jsonl",
		transcriptPath(config, "-missing", idA), // TP-01, TP-07
		filepath.Join(config, "projects", idA+".jsonl"),
	} {
		b, err := l.Locate(idA, hint)
		if err != nil || b.Transcript != good || b.Found != ByID {
			t.Errorf("%.80q: %v, %+v", hint, err, b)
		}
		if len(b.Passed) == 0 || b.Passed[0].Path != hint || b.Passed[0].Reason == "" {
			t.Errorf("%.80q was passed over without a word: %+v", hint, b.Passed)
		}
	}
	if b, err := l.Locate(idA, good); err != nil || b.Found != ByPath || b.Transcript != good || b.Folder != "-p" || b.ConfigDir != config || b.Passed != nil {
		t.Errorf("%v, %+v", err, b)
	}
	if b, err := l.Locate(idA, ""); err != nil || b.Found != ByID || len(b.Passed) != 6 {
		t.Errorf("without a path: %v, %+v", err, b)
	}
}

// TP-01, TP-04: worktrees and moves; the file is found by its id, its folder named.
func TestLocateByID(t *testing.T) {
	config, second := configDir(t), configDir(t)
	write(t, transcriptPath(config, "-ws", idA), message(1))
	write(t, transcriptPath(second, "my-project_1", idB), message(1)) // CLAUDE_CODE_PROJECT_DIR_NAME
	write(t, filepath.Join(config, "projects", "a file"), "x")
	l := &Locator{ConfigDirs: []string{filepath.Join(config, "none"), config, second, config}}
	b, err := l.Locate(idA, transcriptPath(config, "-ws--claude-worktrees-b", idA))
	if err != nil || b.Folder != "-ws" || b.Found != ByID || len(b.Others) != 0 {
		t.Errorf("%v, %+v", err, b)
	}
	if err := os.MkdirAll(filepath.Join(config, "projects", "-moved"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(transcriptPath(config, "-ws", idA), transcriptPath(config, "-moved", idA)); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Locate(idA, b.Transcript); err != nil || b.Folder != "-moved" || b.Transcript != transcriptPath(config, "-moved", idA) {
		t.Errorf("moved: %v, %+v", err, b)
	}
	if b, err = l.Locate(idB, ""); err != nil || b.Folder != "my-project_1" || b.ConfigDir != second {
		t.Errorf("second config folder: %v, %+v", err, b)
	}
	if _, err = l.Locate(idC, transcriptPath(config, "-ws", idC)); !errors.Is(err, ErrNotFound) { // NW-04, CL-07
		t.Errorf("a file that never existed: %v", err)
	}
	if _, err = (&Locator{}).Locate(idC, ""); !errors.Is(err, ErrNotFound) {
		t.Errorf("no config folder: %v", err)
	}
	if _, err = (&Locator{ConfigDirs: []string{"relative"}}).Locate(idC, ""); !errors.Is(err, ErrNotFound) {
		t.Errorf("a relative config folder: %v", err)
	}
}

// PA-08: a payload's path also counts below a config folder that is not configured.
func TestLocateInAnotherConfigFolder(t *testing.T) {
	config, other := configDir(t), configDir(t)
	write(t, transcriptPath(other, "-p", idA), message(1))
	l := &Locator{ConfigDirs: []string{config}}
	b, err := l.Locate(idA, transcriptPath(other, "-p", idA))
	if err != nil || b.ConfigDir != other || b.Found != ByPath {
		t.Errorf("%v, %+v", err, b)
	}
	// A trailing slash, a link to the config folder: it gets the configured name.
	link := filepath.Join(filepath.Dir(other), "link")
	symlink(t, other, link)
	l.ConfigDirs = []string{link + "/"}
	if b, err = l.Locate(idA, transcriptPath(other, "-p", idA)); err != nil || b.ConfigDir != link+"/" {
		t.Errorf("%v, %+v", err, b)
	}
}

// Several copies: the payload's wins, else the one with the newest message; RM-01: not
// the one with the newest mtime. The rest are named.
func TestLocateCopies(t *testing.T) {
	config := configDir(t)
	bookkeeping := strings.Repeat(`{"type":"mode"}`+"\n", 100)
	write(t, transcriptPath(config, "-a", idA), message(3)+bookkeeping)
	write(t, transcriptPath(config, "-b", idA), message(9))
	write(t, transcriptPath(config, "-c", idA), "")
	write(t, transcriptPath(config, "-d", idA), message(1)+message(2))
	now := time.Now()
	for folder, age := range map[string]time.Duration{"-a": 0, "-b": 9 * time.Hour, "-c": 0, "-d": time.Hour} {
		if err := os.Chtimes(transcriptPath(config, folder, idA), now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	l := &Locator{ConfigDirs: []string{config}}
	paths := func(folders ...string) (all []string) {
		for _, f := range folders {
			all = append(all, transcriptPath(config, f, idA))
		}
		return all
	}
	b, err := l.Locate(idA, "")
	if err != nil || b.Folder != "-b" || !slices.Equal(b.Others, paths("-a", "-d", "-c")) {
		t.Errorf("%v, %+v", err, b)
	}
	if b, err = l.Locate(idA, transcriptPath(config, "-d", idA)); err != nil || b.Folder != "-d" {
		t.Errorf("the payload's: %v, %+v", err, b)
	}
	all, _, err := l.LocateAll(idA)
	if err != nil || len(all) != 4 || all[3].Folder != "-c" {
		t.Errorf("%v, %+v", err, all)
	}
	sessions, _, err := l.Sessions(context.Background())
	if err != nil || len(sessions) != 1 || sessions[0].Folder != "-b" || len(sessions[0].Others) != 3 {
		t.Errorf("%v, %+v", err, sessions)
	}
}

// PA-09: links are followed, dangling ones and loops end with a note, and each file
// comes once.
func TestSymlinks(t *testing.T) {
	config := configDir(t)
	data := filepath.Join(filepath.Dir(config), "data")
	projects := filepath.Join(config, "projects")
	write(t, filepath.Join(data, "-p", idA+".jsonl"), message(1))
	write(t, filepath.Join(data, "-p", idA, "tool-results", "x.txt"), "x")
	write(t, filepath.Join(data, "kept", idB+".jsonl"), message(1))
	write(t, transcriptPath(config, "-real", idC), message(1))
	symlink(t, filepath.Join(data, "-p"), filepath.Join(projects, "-p"))
	symlink(t, filepath.Join(data, "-p"), filepath.Join(projects, "-p-again"))
	symlink(t, filepath.Join(projects, "-real"), filepath.Join(projects, "-alias"))
	symlink(t, filepath.Join(data, "kept", idB+".jsonl"), transcriptPath(config, "-q", idB))
	symlink(t, filepath.Join(data, "gone"), filepath.Join(projects, "-dangling"))
	symlink(t, filepath.Join(projects, "-loop"), filepath.Join(projects, "-loop"))
	symlink(t, projects, filepath.Join(projects, "-up"))
	home := filepath.Join(filepath.Dir(config), "dot-claude")
	symlink(t, config, home)

	l := &Locator{ConfigDirs: []string{home, config}}
	sessions, skipped, err := l.Sessions(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, b := range sessions {
		if got[b.SessionID] != "" || len(b.Others) != 0 {
			t.Errorf("%s twice: %+v", b.SessionID, b)
		}
		got[b.SessionID] = b.Folder + " " + b.Transcript
	}
	want := map[string]string{
		idA: "-p " + filepath.Join(data, "-p", idA+".jsonl"),
		idB: "-q " + filepath.Join(data, "kept", idB+".jsonl"),
		idC: "-real " + transcriptPath(config, "-real", idC),
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if len(skipped) != 2 || !strings.HasSuffix(skipped[0].Path, "-dangling") || !strings.HasSuffix(skipped[1].Path, "-loop") {
		t.Errorf("skipped %+v", skipped)
	}
	for id, place := range want {
		b, err := l.Locate(id, "")
		if err != nil || b.Folder+" "+b.Transcript != place || len(b.Others) != 0 {
			t.Errorf("%v, %+v", err, b)
		}
		hint := transcriptPath(home, b.Folder, id)
		if b, err = l.Locate(id, hint); err != nil || b.Found != ByPath || b.Folder+" "+b.Transcript != place || b.ConfigDir != home {
			t.Errorf("by path: %v, %+v", err, b)
		}
	}
	b, err := l.Locate(idA, "")
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := b.Files()
	if err != nil || rels(files) != "transcript:"+idA+".jsonl session:tool-results/x.txt" {
		t.Errorf("%v, %s", err, rels(files))
	}
}

// A path that is swapped after it was found is checked again when it is opened.
func TestOpenChecksWhatItOpened(t *testing.T) {
	config := configDir(t)
	path := transcriptPath(config, "-p", idA)
	write(t, path, message(1))
	secret := filepath.Join(config, "secret")
	write(t, secret, "secret")
	l := &Locator{ConfigDirs: []string{config}}
	b, err := l.Locate(idA, "")
	if err != nil {
		t.Fatal(err)
	}
	f, fi, err := b.Open()
	if err != nil || fi.Size() != b.Size {
		t.Fatal(err)
	}
	text, err := io.ReadAll(f)
	f.Close()
	if err != nil || string(text) != message(1) {
		t.Fatal(err, string(text))
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	symlink(t, secret, path)
	if f, _, err := b.Open(); !errors.Is(err, ErrRefused) {
		t.Errorf("a link to another name was opened: %v %v", f, err)
	}
	if _, _, err := b.Files(); !errors.Is(err, ErrRefused) {
		t.Errorf("and listed: %v", err)
	}
	if _, _, err := (Bundle{SessionID: idA}).Open(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a husk was opened: %v", err)
	}
}

// RM-04: reading changes nothing.
func TestReadingLeavesFilesAlone(t *testing.T) {
	config := configDir(t)
	path := transcriptPath(config, "-p", idA)
	write(t, path, message(1))
	old := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	l := &Locator{ConfigDirs: []string{config}}
	if _, _, err := l.Sessions(context.Background()); err != nil {
		t.Fatal(err)
	}
	b, err := l.Locate(idA, path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Files(); err != nil {
		t.Fatal(err)
	}
	f, _, err := b.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := ReadFacts(context.Background(), f, b.SidecarTitle()); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTail(f, b.Size); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Slugs(context.Background(), 0, nil); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != message(1) {
		t.Errorf("%v: %q", err, text)
	}
	after, err := os.Stat(path)
	if err != nil || !after.ModTime().Equal(old) || after.Mode() != before.Mode() || after.Size() != before.Size() {
		t.Errorf("%v: %v, %v", err, before, after)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v: %v", err, entries)
	}
}

// SA-08, RS-06, LI-01: what is a session and what is not.
func TestSessions(t *testing.T) {
	config := configDir(t)
	p := filepath.Join(config, "projects", "-p")
	write(t, filepath.Join(p, idA+".jsonl"), message(1))
	write(t, filepath.Join(p, idA, "subagents", "agent-1.jsonl"), "{}")
	write(t, filepath.Join(p, idB, "subagents", "agent-2.jsonl"), "{}") // a husk
	write(t, filepath.Join(p, idB, "subagents", ".tmp-sk-0123456789abcdef"), "half a file, of a restore")
	write(t, filepath.Join(p, "agent-a02b21e.jsonl"), message(9))
	write(t, filepath.Join(p, "notes.jsonl"), "{}")
	write(t, filepath.Join(p, strings.ToUpper(idC)+".jsonl"), "{}")
	write(t, filepath.Join(p, idC+".jsonl.bak"), "{}")
	write(t, filepath.Join(p, "memory", "MEMORY.md"), "x")
	write(t, filepath.Join(p, "sessions-index.json"), `{"version":1,"entries":[{"sessionId":"`+idC+`","fullPath":"/gone"}]}`) // LI-02
	write(t, filepath.Join(config, "projects", "stray.jsonl"), "{}")
	if err := os.MkdirAll(filepath.Join(p, idC+".jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(p, idB), now, now); err != nil {
		t.Fatal(err)
	}
	l := &Locator{ConfigDirs: []string{config}}
	sessions, skipped, err := l.Sessions(context.Background())
	if err != nil || len(sessions) != 2 || sessions[0].SessionID != idA || sessions[1].SessionID != idB {
		t.Fatalf("%v, %+v", err, sessions)
	}
	if sessions[0].Husk() || !sessions[1].Husk() || sessions[1].Size != 0 || sessions[0].Size != int64(len(message(1))) {
		t.Errorf("%+v", sessions)
	}
	if len(skipped) != 1 || !strings.HasSuffix(skipped[0].Path, idC+".jsonl") {
		t.Errorf("skipped %+v", skipped)
	}
	// LI-02, LI-03, DL-08: whatever the client's index says, and without one.
	for _, index := range []string{
		`{"version":1,"entries":[]}`, `{"version":1,"entries":[{"sessionId":"` + idA + `","fileMtime":1,"fullPath":"` + filepath.Join(p, idC) + `.jsonl"}]}`,
		strings.Repeat("\x00", 500), "",
	} {
		path := filepath.Join(p, "sessions-index.json")
		write(t, path, index)
		if index == "" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		again, _, err := (&Locator{ConfigDirs: []string{config}}).Sessions(context.Background())
		if err != nil || len(again) != 2 || again[0].SessionID != idA || again[1].SessionID != idB {
			t.Errorf("with the index %.40q: %v, %+v", index, err, again)
		}
	}
	b, err := l.Locate(idB, filepath.Join(p, idB+".jsonl"))
	if err != nil || !b.Husk() || b.Folder != "-p" {
		t.Errorf("husk: %v, %+v", err, b)
	}
	files, _, err := b.Files()
	if err != nil || rels(files) != "session:subagents/agent-2.jsonl" {
		t.Errorf("%v, %s", err, rels(files))
	}
	// A transcript elsewhere makes it a session again, with that folder.
	write(t, transcriptPath(config, "-q", idB), message(2))
	if b, err = l.Locate(idB, ""); err != nil || b.Husk() || b.Folder != "-q" {
		t.Errorf("%v, %+v", err, b)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := l.Sessions(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// rels describes files by family and name.
func rels(files []File) string {
	var all []string
	for _, f := range files {
		all = append(all, f.Family+":"+f.Rel)
	}
	return strings.Join(all, " ")
}

// A bundle with something in every family, and things that are none of its.
func fullBundle(t testing.TB) (config string, want []string) {
	config = configDir(t)
	p := filepath.Join(config, "projects", "-p")
	slugged := strings.Replace(message(1), `"uuid"`, `"slug":"brave-fox","uuid"`, 1)
	write(t, filepath.Join(p, idA+".jsonl"), slugged+strings.Repeat(message(2), 2000)+strings.Replace(slugged, "brave-fox", "calm-owl", 1)+strings.Repeat(message(3), 2000))
	for path, content := range map[string]string{
		"projects/-p/" + idA + ".cast":                        "x",
		"projects/-p/" + idA + "/custom-title.json":           `{"customTitle":"my name","by":"user"}`,
		"projects/-p/" + idA + "/subagents/agent-1.jsonl":     "{}",
		"projects/-p/" + idA + "/subagents/agent-1.meta.json": "{}",
		"projects/-p/" + idA + "/tool-results/a b.txt":        "x",
		"projects/-p/" + idA + "/new-kind/deep/er/x":          "x",
		"projects/-p/agent-old.jsonl":                         `{"type":"mode"}` + "\n" + `{"type":"user","sessionId":"` + idA + `"}`,
		"file-history/" + idA + "/0123456789abcdef@v1":        "x",
		"session-env/" + idA + "/sessionstart-hook-0.sh":      "x",
		"tasks/" + idA + "/1.output":                          "x",
		"todos/" + idA + "-agent-" + idA + ".json":            "[]",
		"image-cache/" + idA + "/1.png":                       "x",
		"uploads/" + idA + "/f/g.bin":                         "x",
		"plans/brave-fox.md":                                  "x",
		"plans/calm-owl.md":                                   "x",
		// Not of this session:
		"projects/-p/" + idB + ".jsonl":            message(1),
		"projects/-p/" + idB + "/x":                "x",
		"projects/-p/agent-other.jsonl":            `{"type":"user","sessionId":"` + idB + `","agentId":"` + idA + `"}`, // SA-01
		"projects/-p/agent-orphan.jsonl":           `{"type":"user","uuid":"` + idA + `"}`,
		"projects/-p/agent-empty.jsonl":            "",
		"projects/-p/memory/MEMORY.md":             "x",
		"plans/other.md":                           "x",
		"debug/" + idA + ".txt":                    "x",
		"history.jsonl":                            "x",
		"sessions/1.json":                          "{}",
		"todos/" + idB + "-agent-" + idB + ".json": "[]",
		"file-history/" + idB + "/x":               "x",
	} {
		write(t, filepath.Join(config, filepath.FromSlash(path)), content)
	}
	want = []string{
		"transcript:" + idA + ".jsonl", "beside:" + idA + ".cast",
		"session:custom-title.json", "session:new-kind/deep/er/x", "session:subagents/agent-1.jsonl", "session:subagents/agent-1.meta.json", "session:tool-results/a b.txt",
		"agents:agent-old.jsonl", "file-history:0123456789abcdef@v1", "session-env:sessionstart-hook-0.sh", "tasks:1.output",
		"todos:" + idA + "-agent-" + idA + ".json", "image-cache:1.png", "uploads:f/g.bin", "plans:brave-fox.md", "plans:calm-owl.md",
	}
	return config, want
}

// SA-01, SA-02, TI-04: the whole bundle and nothing else; Place is the inverse.
func TestFiles(t *testing.T) {
	config, want := fullBundle(t)
	l := &Locator{ConfigDirs: []string{config}}
	b, err := l.Locate(idA, "")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time from what is remembered
		files, skipped, err := b.Files()
		if err != nil || len(skipped) != 0 {
			t.Fatal(err, skipped)
		}
		if got := rels(files); got != strings.Join(want, " ") {
			t.Errorf("got  %s\nwant %s", got, strings.Join(want, " "))
		}
		families := Families()
		for _, f := range files {
			if !slices.Contains(families, f.Family) || f.Mode != 0o600 && runtime.GOOS != "windows" || f.ModTime.IsZero() {
				t.Errorf("%+v", f)
			}
			place, err := Place(b.ConfigDir, b.Folder, idA, f.Family, f.Rel)
			if err != nil || place != f.Path {
				t.Errorf("%s:%s: placed at %s (%v), it lies at %s", f.Family, f.Rel, place, err, f.Path)
			}
		}
	}
	if b.SidecarTitle() != "my name" {
		t.Errorf("title %q", b.SidecarTitle())
	}
	// Without reading: neither the older agents nor the plans, but those that are known.
	files, _, err := b.ListFiles(context.Background(), FilesOptions{NoReads: true, Slugs: []string{"calm-owl", "calm-owl", "gone"}})
	if got := rels(files); err != nil || strings.Contains(got, "agents:") || !strings.HasSuffix(got, "uploads:f/g.bin plans:calm-owl.md") {
		t.Errorf("%v, %s", err, got)
	}
	// What was searched before is not searched again.
	files, _, err = b.ListFiles(context.Background(), FilesOptions{SlugsEnd: int64(len(message(2))) * 1000})
	if got := rels(files); err != nil || strings.Contains(got, "brave-fox") || !strings.HasSuffix(got, "plans:calm-owl.md") {
		t.Errorf("%v, %s", err, got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := b.ListFiles(ctx, FilesOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	// A bundle made by hand lists the same.
	files, _, err = Bundle{SessionID: idA, ConfigDir: config, Folder: b.Folder, ProjectDir: b.ProjectDir, Transcript: b.Transcript}.Files()
	if err != nil || rels(files) != strings.Join(want, " ") {
		t.Errorf("%v, %s", err, rels(files))
	}
}

// A folder that changes is listed anew.
func TestListingsAreFresh(t *testing.T) {
	config := configDir(t)
	path := transcriptPath(config, "-p", idA)
	write(t, path, message(1))
	dir := filepath.Dir(path)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(dir, old, old); err != nil {
		t.Fatal(err)
	}
	l := &Locator{ConfigDirs: []string{config}}
	b, err := l.Locate(idA, path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{idA + ".one", idA + ".two"} {
		before, _, err := b.Files()
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), "x")
		after, _, err := b.Files()
		if err != nil || len(after) != len(before)+1 {
			t.Errorf("%s: %v, %s", name, err, rels(after))
		}
	}
}

// Hostile names of plans lead nowhere.
func TestSlugsAreNames(t *testing.T) {
	config := configDir(t)
	write(t, filepath.Join(config, "secret.md"), "x")
	write(t, filepath.Join(config, "plans", "good.md"), "x")
	var lines string
	for _, slug := range []string{"../secret", "/etc/passwd", "a/b", "..", "a\x00", "good", strings.Repeat("x", 300)} {
		lines += fmt.Sprintf(`{"type":"user","slug":%s}`+"\n", quote(slug))
	}
	lines += `{"type":"user","message":{"slug":"nested"},"x":"\"slug\":\"text\""}` + "\n" + `{"type":"user","slug":5}` + "\n" + `{"slug" : "good","cut":`
	write(t, transcriptPath(config, "-p", idA), lines)
	b, err := (&Locator{ConfigDirs: []string{config}}).Locate(idA, "")
	if err != nil {
		t.Fatal(err)
	}
	files, skipped, err := b.Files()
	if err != nil || rels(files) != "transcript:"+idA+".jsonl plans:good.md" || len(skipped) != 6 {
		t.Errorf("%v, %s, %+v", err, rels(files), skipped)
	}
}

func quote(s string) string {
	return `"` + strings.NewReplacer("\x00", `\u0000`, `\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// Links inside a bundle are not followed; they and other things are named.
func TestFilesSkips(t *testing.T) {
	config := configDir(t)
	p := filepath.Join(config, "projects", "-p")
	write(t, filepath.Join(p, idA+".jsonl"), message(1))
	write(t, filepath.Join(p, idA, "kept"), "x")
	write(t, filepath.Join(config, "secret"), "x")
	symlink(t, filepath.Join(config, "secret"), filepath.Join(p, idA, "link"))
	symlink(t, config, filepath.Join(p, idA, "folder-link"))
	symlink(t, filepath.Join(config, "secret"), filepath.Join(p, idA+".link"))
	symlink(t, config, filepath.Join(config, "tasks", idA))
	symlink(t, filepath.Join(config, "secret"), filepath.Join(p, "agent-link.jsonl"))
	write(t, filepath.Join(config, "uploads", idA), "no folder")
	if err := os.MkdirAll(filepath.Join(p, idA+".dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := (&Locator{ConfigDirs: []string{config}}).Locate(idA, "")
	if err != nil {
		t.Fatal(err)
	}
	files, skipped, err := b.Files()
	if err != nil || rels(files) != "transcript:"+idA+".jsonl session:kept" {
		t.Errorf("%v, %s", err, rels(files))
	}
	var got []string
	for _, s := range skipped {
		got = append(got, filepath.Base(s.Path)+" "+s.Reason)
	}
	want := []string{
		idA + ".dir is a folder", idA + ".link is a symbolic link", "folder-link is a symbolic link", "link is a symbolic link",
		idA + " is no folder", idA + " is no folder",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TP-10: an archive may hold any path. It comes to rest inside the session's places
// or nowhere.
func TestPlaceRefuses(t *testing.T) {
	config := configDir(t)
	for _, c := range []struct{ folder, family, rel string }{
		{"-p", "session", "../x"}, {"-p", "session", "a/../../x"}, {"-p", "session", "/etc/passwd"}, {"-p", "session", ""}, {"-p", "session", "."},
		{"-p", "session", "a//b"}, {"-p", "session", "a/"}, {"-p", "session", "./a"}, {"-p", "session", "a\x00b"}, {"-p", "session", ".."},
		{"-p", "file-history", "../../settings.json"}, {"-p", "tasks", "../" + idB + "/x"},
		{"-p", "transcript", idB + ".jsonl"}, {"-p", "transcript", idA + "/x.jsonl"}, {"-p", "transcript", "../" + idA + ".jsonl"},
		{"-p", "beside", idA + ".jsonl"}, {"-p", "beside", idA + ".JSONL"}, {"-p", "beside", idB + ".cast"}, {"-p", "beside", idA + ".x/y"}, {"-p", "beside", "settings.json"},
		{"-p", "agents", idB + ".jsonl"}, {"-p", "agents", "agent-x"}, {"-p", "agents", "agent-x/y.jsonl"},
		{"-p", "todos", "x.json"}, {"-p", "todos", idA + "/x.json"}, {"-p", "todos", idA},
		{"-p", "plans", "x"}, {"-p", "plans", "../x.md"}, {"-p", "plans", ".md"}, {"-p", "plans", "a b.md"}, {"-p", "plans", "a/b.md"},
		{"-p", "memory", "MEMORY.md"}, {"-p", "", "x"}, {"-p", "debug", "x"}, {"-p", "Session", "x"}, {"-p", "../session", "x"},
		{"..", "session", "x"}, {".", "session", "x"}, {"", "session", "x"}, {"a/b", "session", "x"}, {`a\b`, "session", "x"}, {"a\x00", "session", "x"},
		{"a\nb", "session", "x"}, {"C:", "session", "x"}, {strings.Repeat("x", 256), "session", "x"},
	} {
		if got, err := Place(config, c.folder, idA, c.family, c.rel); err == nil || got != "" || !errors.Is(err, ErrPlace) {
			t.Errorf("%q %q %q: %q, %v", c.folder, c.family, c.rel, got, err)
		}
	}
	for _, relative := range []string{"", "relative", "./x", "../x"} {
		if _, err := Place(relative, "-p", idA, FamilySession, "x"); !errors.Is(err, ErrPlace) {
			t.Errorf("config folder %q: %v", relative, err)
		}
	}
	if got, err := Place(config, "any name", idA, FamilySession, "...x/y"); err != nil || got != filepath.Join(config, "projects", "any name", idA, "...x", "y") {
		t.Errorf("%q, %v", got, err)
	}
}

func FuzzPlace(f *testing.F) {
	for _, family := range Families() {
		f.Add("-p", family, "x")
		f.Add("-p", family, "../x")
	}
	f.Add("..", "session", "a/../../b")
	f.Fuzz(func(t *testing.T, folder, family, rel string) {
		config, err := filepath.Abs("config")
		if err != nil {
			t.Fatal(err)
		}
		got, err := Place(config, folder, idA, family, rel)
		if err != nil {
			return
		}
		inside, err := filepath.Rel(config, got)
		if err != nil || !filepath.IsLocal(inside) || !strings.Contains(inside, string(filepath.Separator)) || got != filepath.Clean(got) {
			t.Fatalf("%q %q %q: %q", folder, family, rel, got)
		}
		if !strings.Contains(inside, idA) && family != FamilyAgents && family != FamilyPlans {
			t.Fatalf("%q %q %q: %q is not this session's", folder, family, rel, got)
		}
	})
}

// ID-02: what the client says of its processes is a hint.
func TestProcesses(t *testing.T) {
	config := configDir(t)
	for name, content := range map[string]string{
		"12.json":       `{"pid":99,"sessionId":"` + idA + `","cwd":"/w","status":"idle","name":"n","new":[1]}`,
		"13.json":       `{"sessionId":"` + idB + `"}`,
		"14.json":       strings.Repeat("\x00", 300), // DL-08
		"15.json":       `{"sessionId":"../../x"}`,
		"16.json":       `{"SessionId":"` + idA + `"}`,
		"17.json":       strings.Repeat(" ", maxSmall+1),
		"12.abcdef.key": "secret", "x.json": "{}", "-5.json": "{}", "0.json": "{}",
	} {
		write(t, filepath.Join(config, "sessions", name), content)
	}
	alive, skipped := Processes(config, func(pid int) bool { return pid == 12 })
	if len(alive) != 1 || alive[0] != (Process{12, idA, "/w", "idle", "n"}) {
		t.Errorf("%+v", alive)
	}
	if len(skipped) != 4 {
		t.Errorf("%+v", skipped)
	}
	if alive, skipped := Processes(filepath.Join(config, "none"), nil); alive != nil || skipped != nil {
		t.Errorf("%v, %v", alive, skipped)
	}
}

// DL-08: a small file beside the transcript that is all NUL bytes costs its title,
// no more.
func TestZeroedSidecar(t *testing.T) {
	config := configDir(t)
	write(t, transcriptPath(config, "-p", idA), message(1))
	side := filepath.Join(config, "projects", "-p", idA, "custom-title.json")
	for content, want := range map[string]string{strings.Repeat("\x00", 40): "", "": "", strings.Repeat(" ", maxSmall) + `{"customTitle":"n"}`: "", `{"customTitle":"n"}`: "n"} {
		write(t, side, content)
		b, err := (&Locator{ConfigDirs: []string{config}}).Locate(idA, "")
		if err != nil || b.SidecarTitle() != want {
			t.Errorf("%.20q: %q, %v", content, b.SidecarTitle(), err)
		}
		if files, skipped, err := b.Files(); err != nil || len(skipped) != 0 || rels(files) != "transcript:"+idA+".jsonl session:custom-title.json" {
			t.Errorf("%.20q: %s, %v, %v", content, rels(files), skipped, err)
		}
	}
}

func TestParseSidecarTitle(t *testing.T) {
	for in, want := range map[string]string{
		`{"customTitle":"a","by":"user"}`: "a", ` {"customTitle":"a"}`: "a", `{"customtitle":"a"}`: "", `{"customTitle":5}`: "", `[]`: "", ``: "", "\x00": "",
	} {
		if got := ParseSidecarTitle([]byte(in)); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}
