package sessions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/transcript"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// sid makes a session id.
func sid(n int) string { return fmt.Sprintf("0a1b2c3d-0000-4000-8000-%012d", n) }

// A world is a config folder of the client, a store and a catalog of both.
type world struct {
	t       *testing.T
	config  string
	store   *archive.Store
	catalog *Catalog
	out     map[string]bool // kept out
}

func newWorld(t *testing.T) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	store, err := archive.Create(filepath.Join(root, "store"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, config: filepath.Join(root, "config"), store: store, out: map[string]bool{}}
	w.catalog = &Catalog{
		Store:     store,
		Locator:   &transcript.Locator{ConfigDirs: []string{w.config}},
		CacheFile: filepath.Join(root, "cache", "sessions.json"),
		Now:       now,
		Alive:     func(pid int) bool { return pid == 4242 },
		KeptOut:   func(id string, dirs []string, last time.Time) (bool, error) { return w.out[id], nil },
		Retention: func(configDir, cwd string) int64 { return 30 },
	}
	return w
}

// A script is the transcript of a session for tests.
type script struct {
	cwd, branch, title, entrypoint, prompt string
	turns                                  int
	last                                   time.Time // of the last message
	extra                                  string    // lines at the end
	first                                  string    // lines at the start
	sidechain                              bool
}

func (s script) text() string {
	var b strings.Builder
	b.WriteString(s.first)
	if s.cwd == "" {
		s.cwd = "/home/a/app"
	}
	if s.entrypoint == "" {
		s.entrypoint = "cli"
	}
	if s.prompt == "" {
		s.prompt = "prompt"
	}
	parent := "null"
	for i := range s.turns {
		u, v := fmt.Sprintf(`"u%d"`, i), fmt.Sprintf(`"a%d"`, i)
		at := s.last.Add(time.Duration(i-s.turns+1) * time.Minute)
		head := fmt.Sprintf(`"cwd":%q,"gitBranch":%q,"entrypoint":%q,"version":"2.1.332","isSidechain":%v`, s.cwd, s.branch, s.entrypoint, s.sidechain)
		fmt.Fprintf(&b, `{"type":"user","uuid":%s,"parentUuid":%s,"timestamp":%q,%s,"message":{"role":"user","content":"%s %d"}}`+"\n",
			u, parent, at.Add(-time.Second).Format(time.RFC3339Nano), head, s.prompt, i)
		fmt.Fprintf(&b, `{"type":"assistant","uuid":%s,"parentUuid":%s,"timestamp":%q,%s,"message":{"id":"m%d","role":"assistant","model":"m","content":[{"type":"text","text":"answer %d"}]}}`+"\n",
			v, u, at.Format(time.RFC3339Nano), head, i, i)
		parent = v
	}
	if s.title != "" {
		fmt.Fprintf(&b, `{"type":"custom-title","customTitle":%q,"sessionId":"x"}`+"\n", s.title)
	}
	b.WriteString(s.extra)
	return b.String()
}

func (w *world) write(path, content string, mtime time.Time) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chtimes(path, mtime, mtime); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) path(id string) string {
	return filepath.Join(w.config, "projects", "-home-a-app", id+".jsonl")
}

// live writes a live session.
func (w *world) live(id string, s script, mtime time.Time) {
	w.t.Helper()
	if s.last.IsZero() {
		s.last = mtime
	}
	w.write(w.path(id), s.text(), mtime)
}

// archive archives a session as it is.
func (w *world) archive(id string, events ...archive.Event) {
	w.t.Helper()
	b, err := w.catalog.Locator.Locate(id, "")
	if err != nil {
		w.t.Fatal(err)
	}
	files, _, err := b.Files()
	if err != nil {
		w.t.Fatal(err)
	}
	snap := archive.Snapshot{SessionID: id, Reason: archive.SessionEnd, Events: events, Project: archive.Project{Folder: b.Folder}}
	for _, f := range files {
		snap.Sources = append(snap.Sources, archive.Source{Family: f.Family, Path: f.Rel, File: f.Path})
	}
	if _, err := w.store.Archive(context.Background(), snap, archive.Options{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(id string) {
	w.t.Helper()
	if err := os.Remove(w.path(id)); err != nil {
		w.t.Fatal(err)
	}
	if err := os.RemoveAll(strings.TrimSuffix(w.path(id), ".jsonl")); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) load() *List {
	w.t.Helper()
	l, err := w.catalog.Load(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range l.Sessions {
		for _, err := range s.Errors {
			w.t.Errorf("session %s: %v", s.ID, err)
		}
	}
	return l
}

func (w *world) get(id string) *Session {
	w.t.Helper()
	for _, s := range w.load().Sessions {
		if s.ID == id {
			return s
		}
	}
	w.t.Fatalf("session %s is not listed", id)
	return nil
}

func ids(list []*Session) []string {
	var all []string
	for _, s := range list {
		all = append(all, s.ID)
	}
	return all
}

const costState = `{"type":"cost-state","sessionId":"x"}` + "\n"

func TestStates(t *testing.T) {
	ended := archive.Event{Name: "SessionEnd", Reason: "other", Time: now}
	for _, c := range []struct {
		name  string
		setup func(w *world)
		want  []State
	}{
		{"never archived", func(w *world) {
			w.live(sid(1), script{turns: 2, extra: costState}, now.Add(-day))
		}, []State{Behind}},
		{"archived", func(w *world) {
			w.live(sid(1), script{turns: 2, extra: costState}, now.Add(-day))
			w.archive(sid(1), ended)
		}, []State{Archived}},
		{"grown since", func(w *world) {
			w.live(sid(1), script{turns: 2, extra: costState}, now.Add(-day))
			w.archive(sid(1), ended)
			w.live(sid(1), script{turns: 3, extra: costState}, now.Add(-day))
		}, []State{Behind}},
		// What the client adds after the hook, when it leaves a session for another.
		{"costs since", func(w *world) {
			w.live(sid(1), script{turns: 2}, now.Add(-day))
			w.archive(sid(1), ended)
			w.live(sid(1), script{turns: 2, extra: costState}, now.Add(-day))
		}, []State{Archived}},
		{"costs and more since", func(w *world) {
			w.live(sid(1), script{turns: 2}, now.Add(-day))
			w.archive(sid(1), ended)
			w.live(sid(1), script{turns: 2, extra: costState + `{"type":"user","message":{"content":"x"}}` + "\n"}, now.Add(-day))
		}, []State{Behind}},
		{"costs, torn", func(w *world) {
			w.live(sid(1), script{turns: 2}, now.Add(-day))
			w.archive(sid(1), ended)
			w.live(sid(1), script{turns: 2, extra: costState + `{"type":"cost-st`}, now.Add(-day))
		}, []State{Behind}},
		{"much of it", func(w *world) {
			w.live(sid(1), script{turns: 2}, now.Add(-day))
			w.archive(sid(1), ended)
			w.live(sid(1), script{turns: 2, extra: strings.Repeat(costState, 1000)}, now.Add(-day))
		}, []State{Behind}},
		{"touched only", func(w *world) { // RM-02
			w.live(sid(1), script{turns: 2, extra: costState, last: now.Add(-2 * day)}, now.Add(-day))
			w.write(filepath.Join(strings.TrimSuffix(w.path(sid(1)), ".jsonl"), "subagents/agent-a.jsonl"), "{}\n", now.Add(-day))
			w.archive(sid(1), ended)
			w.live(sid(1), script{turns: 2, extra: costState, last: now.Add(-2 * day)}, now.Add(-time.Hour))
			w.write(filepath.Join(strings.TrimSuffix(w.path(sid(1)), ".jsonl"), "subagents/agent-a.jsonl"), "{}\n", now.Add(-time.Hour))
		}, []State{Archived}},
		{"new side file", func(w *world) { // SA-02
			w.live(sid(1), script{turns: 2, extra: costState}, now.Add(-day))
			w.archive(sid(1), ended)
			w.write(filepath.Join(strings.TrimSuffix(w.path(sid(1)), ".jsonl"), "subagents/agent-a.jsonl"), "{}\n", now.Add(-day))
		}, []State{Behind}},
		{"about to be deleted", func(w *world) { // CL-01
			w.live(sid(1), script{turns: 2, extra: costState}, now.Add(-25*day))
		}, []State{Expiring, Behind}},
		{"archived and old", func(w *world) {
			w.live(sid(1), script{turns: 2, extra: costState}, now.Add(-25*day))
			w.archive(sid(1), ended)
		}, []State{Archived}},
		{"source gone", func(w *world) { // CL-01
			w.live(sid(1), script{turns: 2, extra: costState}, now.Add(-day))
			w.archive(sid(1), ended)
			w.remove(sid(1))
		}, []State{Gone, Archived}},
		{"killed", func(w *world) {
			w.live(sid(1), script{turns: 2}, now.Add(-day))
			w.archive(sid(1))
		}, []State{Unclean, Archived}},
		{"killed, but a hook saw the end", func(w *world) {
			w.live(sid(1), script{turns: 2}, now.Add(-day))
			w.archive(sid(1), ended)
		}, []State{Archived}},
		{"running", func(w *world) {
			w.live(sid(1), script{turns: 2}, now)
			w.write(filepath.Join(w.config, "sessions", "4242.json"), `{"pid":4242,"sessionId":"`+sid(1)+`"}`, now)
		}, []State{Live, Behind}},
		{"left by a client that is dead", func(w *world) {
			w.live(sid(1), script{turns: 2}, now)
			w.write(filepath.Join(w.config, "sessions", "4243.json"), `{"pid":4243,"sessionId":"`+sid(1)+`"}`, now)
		}, []State{Behind, Unclean}},
		{"kept out", func(w *world) {
			w.live(sid(1), script{turns: 2, extra: costState}, now.Add(-25*day))
			w.out[sid(1)] = true
		}, []State{KeptOut}},
		{"kept out only now", func(w *world) {
			w.live(sid(1), script{turns: 2, extra: costState}, now.Add(-day))
			w.archive(sid(1), ended)
			w.out[sid(1)] = true
		}, []State{KeptOut, Archived}},
		{"forgotten, still live", func(w *world) {
			w.live(sid(1), script{turns: 2, extra: costState}, now.Add(-day))
			w.archive(sid(1), ended)
			if _, err := w.store.Forget(context.Background(), sid(1), archive.ForgetOptions{}); err != nil {
				w.t.Fatal(err)
			}
		}, []State{KeptOut}},
		{"agents only, archived", func(w *world) {
			w.write(filepath.Join(w.config, "projects", "-home-a-app", sid(1), "subagents", "agent-x.jsonl"), "{}\n", now.Add(-4*day))
			w.archive(sid(1))
		}, []State{Archived}},
		{"agents only, grown since", func(w *world) {
			w.write(filepath.Join(w.config, "projects", "-home-a-app", sid(1), "subagents", "agent-x.jsonl"), "{}\n", now.Add(-4*day))
			w.archive(sid(1))
			w.write(filepath.Join(w.config, "projects", "-home-a-app", sid(1), "subagents", "agent-x.jsonl"), "{}\n{}\n", now.Add(-4*day))
		}, []State{Behind}},
		{"agents only, all gone", func(w *world) {
			w.write(filepath.Join(w.config, "projects", "-home-a-app", sid(1), "subagents", "agent-x.jsonl"), "{}\n", now.Add(-4*day))
			w.archive(sid(1))
			if err := os.RemoveAll(strings.TrimSuffix(w.path(sid(1)), ".jsonl")); err != nil {
				w.t.Fatal(err)
			}
		}, []State{Gone, Archived}},
		{"agents only", func(w *world) { // SA-08
			w.write(filepath.Join(w.config, "projects", "-home-a-app", sid(1), "subagents", "agent-x.jsonl"), "{}\n", now.Add(-4*day))
		}, []State{Lost}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.setup(w)
			s := w.get(sid(1))
			if !slices.Equal(s.States, c.want) {
				t.Errorf("states %q, want %q", s.States, c.want)
			}
			main := c.want[0]
			if main == KeptOut && len(c.want) > 1 {
				main = c.want[1]
			}
			if s.State != main {
				t.Errorf("main state %q, want %q", s.State, main)
			}
			data, err := os.ReadFile(w.catalog.CacheFile)
			if err == nil && s.Forgotten && strings.Contains(string(data), s.ID) {
				t.Error("a forgotten session is cached")
			}
		})
	}
}

func TestKinds(t *testing.T) {
	for _, c := range []struct {
		name string
		text string
		want Kind
	}{
		{"a person's", script{turns: 1, last: now}.text(), Person},
		{"print mode", script{turns: 1, last: now, entrypoint: "sdk-cli"}.text(), Print},                                                                            // LI-10
		{"the SDK", script{turns: 1, last: now, entrypoint: "sdk-ts"}.text(), Print},                                                                                // LI-10
		{"an editor", script{turns: 1, last: now, entrypoint: "claude-vscode"}.text(), Person},                                                                      // LI-10
		{"metadata first", script{turns: 1, last: now, first: `{"type":"pr-link","prNumber":1}` + "\n" + `{"type":"file-history-snapshot"}` + "\n"}.text(), Person}, // LI-04, LI-07
		{"sidechain behind metadata", script{turns: 1, last: now, sidechain: true, first: `{"type":"mode","mode":"default"}` + "\n"}.text(), Agent},                 // LI-09
		{"agent team", strings.ReplaceAll(script{turns: 1, last: now}.text(), `"version"`, `"teamName":"t","version"`), Agent},                                      // LI-09
		{"shell with a title", script{title: "kept"}.text(), Empty},                                                                                                 // LI-06
		{"foreign summaries only", `{"type":"summary","summary":"Other work","leafUuid":"elsewhere"}` + "\n", Empty},                                                // TI-05
		{"no bytes", "", Empty},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.write(w.path(sid(1)), c.text, now.Add(-time.Hour))
			if got := w.get(sid(1)).Kind; got != c.want {
				t.Errorf("kind %q, want %q", got, c.want)
			}
		})
	}
}

func TestOtherFormat(t *testing.T) { // OS-04
	w := newWorld(t)
	lines := strings.TrimSpace(script{turns: 1, last: now}.text())
	w.write(w.path(sid(1)), "["+strings.ReplaceAll(lines, "\n", ",\n")+"]\n", now.Add(-time.Hour))
	if got := w.get(sid(1)).Title(); !strings.Contains(got, "no transcript") {
		t.Errorf("title %q does not tell that it is another format", got)
	}
}

// CL-05, CL-06: what is only in the archive is listed like the rest.
func TestArchiveOnly(t *testing.T) {
	w := newWorld(t)
	w.live(sid(1), script{turns: 3, title: "by hand", branch: "topic", cwd: "/home/a/app", extra: costState}, now.Add(-day))
	w.archive(sid(1))
	before := w.get(sid(1))
	w.remove(sid(1))
	after := w.get(sid(1))
	if after.Title() != "by hand" || after.Branch() != "topic" || after.Project() != "/home/a/app" || !after.Last.Equal(before.Last) || after.Size != before.Size {
		t.Errorf("listed as %q %q %q %v %d, want what it was live", after.Title(), after.Branch(), after.Project(), after.Last, after.Size)
	}
	if after.Facts.Prompts != 3 {
		t.Errorf("%d prompts, want 3", after.Facts.Prompts)
	}
}

func TestSidecarTitleFromArchive(t *testing.T) { // TI-04
	w := newWorld(t)
	w.live(sid(1), script{turns: 1}, now.Add(-day))
	w.write(filepath.Join(strings.TrimSuffix(w.path(sid(1)), ".jsonl"), "custom-title.json"), `{"customTitle":"from the side","by":"user"}`, now.Add(-day))
	if got := w.get(sid(1)).Title(); got != "from the side" {
		t.Errorf("live title %q", got)
	}
	w.archive(sid(1))
	w.remove(sid(1))
	if got := w.get(sid(1)).Title(); got != "from the side" {
		t.Errorf("archived title %q", got)
	}
}

// AR-07, AR-08: a source that was cut short or begun anew does not hide what
// the archive has.
func TestShrunkSource(t *testing.T) {
	w := newWorld(t)
	w.live(sid(1), script{turns: 57, title: "long work", extra: costState}, now.Add(-day))
	w.archive(sid(1))
	w.write(w.path(sid(1)), `{"type":"mode","mode":"default"}`+"\n", now.Add(-time.Hour))
	s := w.get(sid(1))
	if s.Title() != "long work" || s.Kind != Person || s.Facts.Prompts != 57 {
		t.Errorf("listed as %q, %s, %d prompts, want the archived work", s.Title(), s.Kind, s.Facts.Prompts)
	}
	if !s.Is(Behind) {
		t.Errorf("states %q, want behind: the source has bytes that the archive lacks", s.States)
	}
	// The shell is archived too, and then all there is: the work is in an older
	// generation, and the session is not an empty one. AR-07, LI-06
	w.archive(sid(1))
	for _, where := range []string{"live", "archived"} {
		s := w.get(sid(1))
		if s.Title() != "long work" || s.Kind != Person || s.Facts.Prompts != 57 || s.FactsOf == "" || s.FactsOf == s.Kept.Hash {
			t.Errorf("%s: listed as %q, %s, %d prompts of %q, want the archived work", where, s.Title(), s.Kind, s.Facts.Prompts, s.FactsOf)
		}
		if s.Is(Behind) {
			t.Errorf("%s: states %q", where, s.States)
		}
		if where == "live" {
			w.remove(sid(1))
		}
	}
}

func TestOrder(t *testing.T) { // RM-01
	w := newWorld(t)
	// The first was written to just now, with records that have no time.
	w.live(sid(1), script{turns: 1, last: now.Add(-9 * day), extra: `{"type":"last-prompt"}` + "\n" + `{"type":"mode"}` + "\n"}, now)
	w.live(sid(2), script{turns: 1, last: now.Add(-2 * day)}, now.Add(-2*day))
	w.live(sid(3), script{turns: 1, last: now.Add(-5 * day)}, now.Add(-time.Hour))
	if got, want := ids(w.load().Sessions), []string{sid(2), sid(3), sid(1)}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

func TestIndexIsNotTrusted(t *testing.T) { // LI-01, LI-02, LI-03
	w := newWorld(t)
	w.live(sid(1), script{turns: 1}, now.Add(-day))
	w.live(sid(2), script{turns: 1}, now.Add(-2*day))
	for _, index := range []string{
		`{"version":1,"entries":[{"sessionId":"` + sid(9) + `","fullPath":"/gone.jsonl","summary":"ghost"}]}`,
		strings.Repeat("\x00", 100), // DL-08
	} {
		w.write(filepath.Join(filepath.Dir(w.path(sid(1))), "sessions-index.json"), index, now)
		if got, want := ids(w.load().Sessions), []string{sid(1), sid(2)}; !slices.Equal(got, want) {
			t.Errorf("sessions %v, want %v", got, want)
		}
	}
}

func TestReadingLeavesNoTrace(t *testing.T) { // RM-04
	w := newWorld(t)
	mtime := now.Add(-20 * day)
	w.live(sid(1), script{turns: 2}, mtime)
	before, err := os.ReadFile(w.path(sid(1)))
	if err != nil {
		t.Fatal(err)
	}
	w.load()
	if _, err := w.catalog.Get(context.Background(), sid(1)); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(w.path(sid(1)))
	if err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(w.path(sid(1)))
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) || !fi.ModTime().Equal(mtime) {
		t.Errorf("reading changed the file: %d and %d bytes, %v", len(before), len(after), fi.ModTime())
	}
	count := 0
	err = filepath.WalkDir(w.config, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			count++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if count != 1 {
		t.Errorf("%d files in the client's folder, want the one", count)
	}
}

func TestCache(t *testing.T) { // DL-08
	w := newWorld(t)
	w.live(sid(1), script{turns: 2, title: "one"}, now.Add(-day))
	w.live(sid(2), script{turns: 2, title: "two"}, now.Add(-2*day))
	w.archive(sid(2))
	w.remove(sid(2))
	titles := func() string { // in order
		var all []string
		for _, s := range w.load().Sessions {
			all = append(all, s.Title())
		}
		return strings.Join(all, " ")
	}
	const want = "one two"
	if got := titles(); got != want {
		t.Fatalf("titles %q, want %q", got, want)
	}
	good, err := os.ReadFile(w.catalog.CacheFile)
	if err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(w.catalog.CacheFile)
	if err != nil {
		t.Fatal(err)
	}
	if fi.Mode().Perm() != 0o600 { // SM-06
		t.Errorf("cache has mode %o", fi.Mode().Perm())
	}
	// It is used: facts that only the cache has come out.
	w.write(w.catalog.CacheFile, strings.ReplaceAll(string(good), `"Title":"one"`, `"Title":"cached"`), now)
	if got := titles(); got != "cached two" {
		t.Errorf("titles %q: the cache is not used", got)
	}
	for name, bad := range map[string]string{
		"NULs": strings.Repeat("\x00", len(good)), "empty": "", "cut off": string(good[:len(good)/2]),
		"another version": strings.Replace(string(good), `"Version":`, `"Version":9`, 1), "null": "null", "list": "[]",
	} {
		w.write(w.catalog.CacheFile, bad, now)
		if got := titles(); got != want {
			t.Errorf("%s: titles %q, want %q", name, got, want)
		}
		mended, err := os.ReadFile(w.catalog.CacheFile)
		if err != nil {
			t.Fatal(err)
		}
		if string(mended) == bad {
			t.Errorf("%s: the cache was not rebuilt", name)
		}
	}
	// A changed file is read again.
	w.live(sid(1), script{turns: 2, title: "new"}, now.Add(-day+time.Second))
	if got := titles(); got != "new two" {
		t.Errorf("titles %q, want the changed one", got)
	}
	if err := ForgetCached(filepath.Dir(w.catalog.CacheFile), sid(2)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(w.catalog.CacheFile)
	if err == nil && strings.Contains(string(data), sid(2)) {
		t.Error("the cache still names a forgotten session")
	}
}

func TestUnwritableCache(t *testing.T) {
	w := newWorld(t)
	w.live(sid(1), script{turns: 1}, now.Add(-day))
	w.write(filepath.Dir(w.catalog.CacheFile), "a file where the folder belongs", now)
	l, err := w.catalog.Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Sessions) != 1 || len(l.Problems) == 0 {
		t.Errorf("%d sessions, problems %v; want the session and a problem told", len(l.Sessions), l.Problems)
	}
}

func TestFind(t *testing.T) {
	w := newWorld(t)
	a, b := "aaaa0000-0000-4000-8000-000000000001", "aaaa1111-0000-4000-8000-000000000002"
	w.live(a, script{turns: 1, title: "Retry Budget", last: now.Add(-3 * day)}, now.Add(-3*day))
	w.live(b, script{turns: 1, title: "twice", last: now.Add(-2 * day)}, now.Add(-2*day))
	w.live(sid(3), script{turns: 1, title: "Twice", last: now.Add(-4 * day)}, now.Add(-4*day))
	w.live(sid(4), script{turns: 1, entrypoint: "sdk-cli", last: now}, now)                                         // LI-10
	w.live(sid(5), script{turns: 1, sidechain: true, last: now}, now)                                               // LI-09
	w.live(sid(6), script{title: "shell"}, now)                                                                     // LI-06
	w.write(filepath.Join(filepath.Dir(w.path(a)), "agent-a02b21e.jsonl"), script{turns: 1, last: now}.text(), now) // RS-06
	for _, c := range []struct{ name, want string }{
		{a, a},
		{"aaaa0", a},
		{"aaaa1111-0000", b},
		{"retry budget", a},
		{" RETRY BUDGET ", a},
		{"last", b},
		{"shell", sid(6)},
	} {
		s, err := w.catalog.Find(context.Background(), c.name)
		if err != nil {
			t.Errorf("%q: %v", c.name, err)
		} else if s.ID != c.want {
			t.Errorf("%q is %s, want %s", c.name, s.ID, c.want)
		}
	}
	for _, name := range []string{"aaaa", "twice"} { // CO-02
		_, err := w.catalog.Find(context.Background(), name)
		var e *AmbiguousError
		if !errors.As(err, &e) || len(e.Sessions) != 2 {
			t.Errorf("%q: error %v, want two sessions named", name, err)
		}
	}
	for _, name := range []string{"", "aaa", "ffff", "no such title", "agent-a02b21e", strings.ToUpper(a), a + ".jsonl", sid(99)} {
		if _, err := w.catalog.Find(context.Background(), name); !errors.Is(err, transcript.ErrNotFound) {
			t.Errorf("%q: error %v, want not found", name, err)
		}
	}
	if _, err := w.catalog.Find(context.Background(), "aaa"); !errors.Is(err, ErrShortPrefix) {
		t.Errorf("short prefix: %v", err)
	}
}

func TestLastWithoutAny(t *testing.T) {
	w := newWorld(t)
	w.live(sid(5), script{turns: 1, sidechain: true}, now)
	if _, err := w.catalog.Find(context.Background(), "last"); !errors.Is(err, transcript.ErrNotFound) {
		t.Errorf("error %v, want not found: an agent's session is never the last one", err)
	}
	w.live(sid(4), script{turns: 1, entrypoint: "sdk-cli"}, now)
	if s, err := w.catalog.Find(context.Background(), "last"); err != nil || s.ID != sid(4) {
		t.Errorf("%v, %v; want the print mode session where there is no other", s, err)
	}
}

func TestFilter(t *testing.T) {
	w := newWorld(t)
	w.live(sid(1), script{turns: 1, cwd: "/home/a/app", branch: "main"}, now.Add(-day))
	w.live(sid(2), script{turns: 1, cwd: "/home/a_app", branch: "topic"}, now.Add(-2*day)) // same folder name, another project
	w.live(sid(3), script{turns: 1, cwd: "/home/a/app/sub", branch: "main"}, now.Add(-10*day))
	w.live(sid(4), script{turns: 1, cwd: "/home/a/app", entrypoint: "sdk-cli"}, now.Add(-day))
	w.live(sid(5), script{turns: 1, cwd: "/home/a/app", sidechain: true}, now.Add(-day))
	w.live(sid(6), script{title: "x"}, now.Add(-day))
	w.archive(sid(2))
	list := w.load()
	for _, c := range []struct {
		name   string
		filter Filter
		want   []string
		hidden Hidden
	}{
		{"plain", Filter{}, []string{sid(1), sid(2), sid(3)}, Hidden{1, 1, 1}},
		{"all", Filter{All: true}, []string{sid(1), sid(4), sid(5), sid(6), sid(2), sid(3)}, Hidden{}},
		{"project", Filter{Project: "/home/a/app"}, []string{sid(1), sid(3)}, Hidden{1, 1, 0}}, // PA-03
		{"collision", Filter{Project: "/home/a_app"}, []string{sid(2)}, Hidden{}},              // PA-03
		{"other spelling", Filter{Project: "/home/A/app"}, nil, Hidden{}},                      // PA-11
		{"since", Filter{Since: now.Add(-3 * day)}, []string{sid(1), sid(2)}, Hidden{1, 1, 1}},
		{"state", Filter{State: Archived}, []string{sid(2)}, Hidden{}},
		{"branch", Filter{Branch: "topic"}, []string{sid(2)}, Hidden{}},
		{"limit", Filter{Limit: 1}, []string{sid(1)}, Hidden{1, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			shown, hidden := list.Apply(c.filter)
			got := ids(shown)
			slices.Sort(got)
			want := slices.Sorted(slices.Values(c.want))
			if !slices.Equal(got, want) || hidden != c.hidden {
				t.Errorf("shown %v, hidden %+v; want %v, %+v", got, hidden, want, c.hidden)
			}
		})
	}
}

// ID-01: whose records stand in a transcript is known, of the forgotten excepted:
// they must not come back by the cache. TI-02: a session without a title has that
// of the one it goes on from.
func TestFromAnother(t *testing.T) {
	w := newWorld(t)
	forgotten := map[string]bool{}
	w.catalog.Forgotten = func(id string) (bool, error) { return forgotten[id], nil }
	w.live(sid(1), script{turns: 1, title: "begun"}, now.Add(-2*day))
	from := func(id string) string { return fmt.Sprintf(`{"type":"mode","sessionId":%q}`, id) + "\n" }
	w.live(sid(2), script{turns: 1, prompt: "[Request interrupted by user]", first: from(sid(1)) + from(sid(2)) + from("../x")}, now.Add(-day))
	s := w.get(sid(2))
	if got := s.From(); !slices.Equal(got, []string{sid(1)}) || s.Title() != "begun" {
		t.Errorf("from %q, title %q", got, s.Title())
	}
	if s, err := w.catalog.Get(context.Background(), sid(2)); err != nil || s.Title() != "begun" {
		t.Errorf("alone: %+v, %v", s, err)
	}
	forgotten[sid(1)] = true
	if err := ForgetCached(filepath.Dir(w.catalog.CacheFile), sid(1)); err != nil {
		t.Fatal(err)
	}
	w.remove(sid(1))
	s = w.get(sid(2))
	if got := s.From(); len(got) > 0 || s.Title() != "(session)" {
		t.Errorf("from %q, title %q", got, s.Title())
	}
	if data, err := os.ReadFile(w.catalog.CacheFile); err != nil || strings.Contains(string(data), sid(1)) {
		t.Errorf("a forgotten session is cached with another one (%v)", err)
	}
}

// The client records HEAD outside of git; that is no branch.
func TestNoBranch(t *testing.T) {
	w := newWorld(t)
	w.live(sid(1), script{turns: 1, branch: "HEAD"}, now.Add(-day))
	w.live(sid(2), script{turns: 1, branch: "HEADs"}, now.Add(-day))
	if got := w.get(sid(1)).Branch() + "," + w.get(sid(2)).Branch(); got != ",HEADs" {
		t.Errorf("branches %q", got)
	}
}

func TestOnlyPrintMode(t *testing.T) { // LI-10
	w := newWorld(t)
	w.live(sid(4), script{turns: 1, entrypoint: "sdk-cli"}, now.Add(-day))
	shown, hidden := w.load().Apply(Filter{})
	if len(shown) != 1 || hidden.Print != 0 {
		t.Errorf("shown %v, hidden %+v; want it shown where there is nothing else", ids(shown), hidden)
	}
}

func TestRetentionDays(t *testing.T) {
	w := newWorld(t)
	cwd := filepath.Join(filepath.Dir(w.config), "app")
	managed := filepath.Join(filepath.Dir(w.config), "managed.json")
	days := func() int64 { return RetentionDays(w.config, cwd, managed) }
	if got := days(); got != 30 {
		t.Errorf("default %d, want 30", got)
	}
	w.write(filepath.Join(w.config, "settings.json"), `{"cleanupPeriodDays":36500}`, now)
	if got := days(); got != 36500 {
		t.Errorf("user's %d, want 36500", got)
	}
	w.write(filepath.Join(cwd, ".claude", "settings.json"), `{"cleanupPeriodDays":1}`, now)
	if got := days(); got != 1 {
		t.Errorf("project's %d, want 1", got)
	}
	w.write(filepath.Join(cwd, ".claude", "settings.local.json"), "{ // short\n\"cleanupPeriodDays\": 7, }", now)
	if got := days(); got != 1 {
		t.Errorf("%d, want the project's 1 beside a file that is not loaded", got)
	}
	w.write(filepath.Join(cwd, ".claude", "settings.json"), `{"cleanupPeriodDays":9}`, now)
	if got := days(); got != 7 {
		t.Errorf("%d, want the 7 of a file that other versions may load", got)
	}
	w.write(filepath.Join(cwd, ".claude", "settings.local.json"), "{ // long\n\"cleanupPeriodDays\": 36500, }", now)
	if got := days(); got != 9 {
		t.Errorf("%d, want 9: what is not loaded makes nothing longer", got)
	}
	w.write(filepath.Join(w.config, "settings.json"), "{ \"cleanupPeriodDays\": 5, }", now)
	if got := days(); got != 5 {
		t.Errorf("%d, want 5: the shortest that some version may load", got)
	}
	w.write(filepath.Join(w.config, "settings.json"), "{}", now)
	w.write(managed, `{"cleanupPeriodDays":90}`, now)
	if got := days(); got != 90 {
		t.Errorf("managed %d, want 90", got)
	}
}
