package restore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/transcript"
)

const (
	id      = "0a1b2c3d-0000-4000-8000-000000000001"
	otherID = "0a1b2c3d-0000-4000-8000-000000000002"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// conversation is a transcript of n turns in dir.
func conversation(dir string, n int) string {
	var b strings.Builder
	parent := "null"
	for i := range n {
		u := fmt.Sprintf("00000000-0000-4000-8000-%012d", 2*i)
		v := fmt.Sprintf("00000000-0000-4000-8000-%012d", 2*i+1)
		fmt.Fprintf(&b, `{"type":"user","uuid":%q,"parentUuid":%s,"cwd":%q,"message":{"role":"user","content":"prompt %d"}}`+"\n", u, parent, dir, i)
		fmt.Fprintf(&b, `{"type":"assistant","uuid":%q,"parentUuid":%q,"cwd":%q,"message":{"role":"assistant","content":"answer %d"}}`+"\n", v, u, dir, i)
		parent = `"` + v + `"`
	}
	return b.String()
}

func item(family, path, content string, age time.Duration) Item {
	sum := sha256.Sum256([]byte(content))
	return Item{
		Family: family, Path: path, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]),
		Mode: 0o644, ModTime: now.Add(-age),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil },
	}
}

// world is a machine with a project and a config folder of the client.
type world struct {
	t          *testing.T
	config     string
	project    string
	folder     string
	lock       string
	transcript string // content
}

func newWorld(t *testing.T) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, config: filepath.Join(root, "config"), project: filepath.Join(root, "app"), lock: filepath.Join(root, "lock")}
	w.mkdir(w.project)
	w.folder = transcript.FolderName(w.project)
	w.transcript = conversation(w.project, 3)
	return w
}

func (w *world) mkdir(dir string) {
	w.t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(path, content string, age time.Duration) {
	w.t.Helper()
	w.mkdir(filepath.Dir(path))
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(path string) string {
	w.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func (w *world) items() []Item {
	return []Item{
		item("transcript", id+".jsonl", w.transcript, 10*day),
		item("session", "subagents/agent-a1.jsonl", "agent records\n", 10*day),
		item("session", "tool-results/b1.txt", "a long result\n", 40*day),
		item("file-history", "0123456789abcdef@v1", "old text", 40*day),
	}
}

func (w *world) request(items ...Item) Request {
	if items == nil {
		items = w.items()
	}
	return Request{
		SessionID: id, Items: items, ConfigDir: w.config, Folder: w.folder, Cwds: []string{w.project},
		Retention: 30 * day, Now: now, Home: "/nowhere", GOOS: "linux",
	}
}

func (w *world) path(family, rel string) string {
	w.t.Helper()
	p, err := transcript.Place(w.config, w.folder, id, family, rel)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) main() string { return w.path("transcript", id+".jsonl") }

func (w *world) make(r Request) *Plan {
	w.t.Helper()
	p, err := Make(r)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) apply(p *Plan) *Result {
	w.t.Helper()
	res, err := Apply(context.Background(), p, Options{Lock: w.lock, Now: time.Now()})
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

// tree gives every file under the config folder with its content.
func (w *world) tree() map[string]string {
	w.t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(w.config, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		files[path] = w.read(path)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return files
}

func conflicts(t *testing.T, err error) []Conflict {
	t.Helper()
	var c *ConflictError
	if !errors.As(err, &c) {
		t.Fatalf("error is %v, want a conflict", err)
	}
	return c.Conflicts
}

func notes(p *Plan) string {
	var codes []string
	for _, n := range p.Notes {
		codes = append(codes, n.Code)
	}
	return strings.Join(codes, " ")
}

func TestWholeBundle(t *testing.T) { // SA-02, TI-04
	w := newWorld(t)
	items := append(w.items(), item("session", "custom-title.json", `{"customTitle":"x"}`, day), item("session", "subagents/deep/agent-b.meta.json", `{"spawnDepth":2}`, day))
	p := w.make(w.request(items...))
	res := w.apply(p)
	if !res.Conversation || !res.Anywhere || res.Written != len(items) {
		t.Errorf("result %+v, want a conversation of %d files that is found anywhere", res, len(items))
	}
	if got := w.read(w.main()); got != w.transcript {
		t.Errorf("transcript has %d bytes, want %d", len(got), len(w.transcript))
	}
	for _, it := range items {
		path := w.path(it.Family, it.Path)
		r, _ := it.Open()
		want, _ := io.ReadAll(r)
		if got := w.read(path); got != string(want) {
			t.Errorf("%s holds %q, want %q", path, got, want)
		}
	}
	if got, want := p.ResumeCommand(""), "cd "+w.project+" && claude --resume "+id; got != want {
		t.Errorf("command %q, want %q", got, want) // RS-03, RS-05
	}
	// Once more is no work.
	if again := w.apply(w.make(w.request(items...))); again.Written != 0 || !again.Conversation {
		t.Errorf("second run %+v, want nothing written", again)
	}
}

func TestModes(t *testing.T) { // SM-06
	w := newWorld(t)
	items := w.items()
	items[1].Mode = 0o666
	items[2].Mode = 0o400
	items[3].Mode = 0o755 // a script from before an edit, which the client may put back
	w.apply(w.make(w.request(items...)))
	for path, want := range map[string]fs.FileMode{
		w.main(): 0o600,
		w.path("session", "subagents/agent-a1.jsonl"): 0o600,
		w.path("session", "tool-results/b1.txt"):      0o400,
		w.path("file-history", "0123456789abcdef@v1"): 0o700,
		filepath.Dir(w.main()):                        0o700,
		filepath.Join(filepath.Dir(w.main()), id):     0o700,
		filepath.Join(w.config, "projects"):           0o700,
	} {
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := fi.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

func TestRefusesBeforeWriting(t *testing.T) { // AR-07, AR-08
	base := conversation("/p", 3)
	for _, c := range []struct {
		name, live, want string
	}{
		{"live is longer", base + conversation("/p", 1), "nothing of this session is missing here"},
		{"live is a beginning", base[:200], "holds only the first 200"},
		{"live is metadata only", `{"type":"mode","mode":"default"}` + "\n", "differs from the archived transcript from byte"},
		{"live is empty", "", "holds only the first 0"},
		{"same size", strings.Replace(base, "prompt 2", "prompt 9", 1), "from byte"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.transcript = base
			w.write(w.main(), c.live, 0)
			before := w.tree()
			_, err := Make(w.request())
			got := conflicts(t, err)
			if len(got) != 1 || got[0].Path != w.main() || !strings.Contains(got[0].Text, c.want) {
				t.Errorf("conflicts %v, want one on the transcript with %q", got, c.want)
			}
			if after := w.tree(); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Error("files changed")
			}
		})
	}
}

func TestSideFileInTheWay(t *testing.T) {
	w := newWorld(t)
	path := w.path("session", "subagents/agent-a1.jsonl")
	w.write(path, "other records\n", 0)
	p, err := Make(w.request())
	if got := conflicts(t, err); len(got) != 1 || got[0].Path != path {
		t.Errorf("conflicts %v, want %s", got, path)
	}
	if p == nil || p.Transcript == nil {
		t.Error("no plan beside the conflict")
	}
	if got := w.tree(); len(got) != 1 {
		t.Errorf("files %v, want the one in the way", got)
	}
}

func TestFolderInTheWay(t *testing.T) {
	w := newWorld(t)
	w.mkdir(w.main())
	_, err := Make(w.request())
	if got := conflicts(t, err); !strings.Contains(got[0].Text, "no file") {
		t.Errorf("conflicts %v", got)
	}
}

func TestLinksInTheWay(t *testing.T) {
	w := newWorld(t)
	elsewhere := t.TempDir()
	side := filepath.Join(w.config, "projects", w.folder, id)
	w.mkdir(filepath.Dir(side))
	if err := os.Symlink(elsewhere, side); err != nil {
		t.Fatal(err)
	}
	_, err := Make(w.request())
	if got := conflicts(t, err); got[0].Path != side {
		t.Errorf("conflicts %v, want %s", got, side)
	}
	if err := os.Remove(side); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(elsewhere, "nothing"), w.main()); err != nil {
		t.Fatal(err)
	}
	_, err = Make(w.request())
	if got := conflicts(t, err); got[0].Path != w.main() || !strings.Contains(got[0].Text, "link to nothing") {
		t.Errorf("conflicts %v", got)
	}
}

func TestLinkedProjectFolder(t *testing.T) { // PA-09: the user's own arrangement is followed
	w := newWorld(t)
	data := t.TempDir()
	w.mkdir(filepath.Join(w.config, "projects"))
	if err := os.Symlink(data, filepath.Join(w.config, "projects", w.folder)); err != nil {
		t.Fatal(err)
	}
	w.apply(w.make(w.request()))
	if got := w.read(filepath.Join(data, id+".jsonl")); got != w.transcript {
		t.Error("transcript is not in the linked folder")
	}
}

func TestSharedFiles(t *testing.T) {
	w := newWorld(t)
	items := append(w.items(), item("plans", "happy-plan.md", "archived plan", day), item("plans", "same-plan.md", "same", day), item("todos", id+"-agent-"+id+".json", "[]", day))
	w.write(w.path("plans", "happy-plan.md"), "newer plan", 0)
	w.write(w.path("plans", "same-plan.md"), "same", 40*day)
	p := w.make(w.request(items...))
	w.apply(p)
	if got := w.read(w.path("plans", "happy-plan.md")); got != "newer plan" {
		t.Errorf("shared plan became %q", got)
	}
	if !strings.Contains(notes(p), "shared-differs") {
		t.Errorf("notes %q, want the plan named", notes(p))
	}
	fi, err := os.Stat(w.path("plans", "same-plan.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !fi.ModTime().Equal(now.Add(-40 * day)) {
		t.Error("a shared file got another time")
	}
	if got := w.read(w.path("todos", id+"-agent-"+id+".json")); got != "[]" {
		t.Errorf("todos hold %q", got)
	}
}

func TestMergesIntoHusk(t *testing.T) {
	w := newWorld(t)
	husk := w.path("session", "tool-results/b1.txt")
	w.write(husk, "a long result\n", 40*day)
	w.write(w.path("session", "tool-results/new.txt"), "not archived\n", day)
	p := w.make(w.request())
	res := w.apply(p)
	if !res.Conversation || res.Written != 3 {
		t.Errorf("result %+v, want 3 files written", res)
	}
	if got := w.read(w.path("session", "tool-results/new.txt")); got != "not archived\n" {
		t.Errorf("husk's own file holds %q", got)
	}
	fi, err := os.Stat(husk)
	if err != nil {
		t.Fatal(err)
	}
	// Clean-up takes tool results by their own time (observed on 2.1.332).
	if got, want := fi.ModTime(), now.Add(-15*day); !got.Equal(want) {
		t.Errorf("tool result is of %v, want %v", got, want)
	}
}

func TestAgentsOnly(t *testing.T) { // SA-08
	w := newWorld(t)
	p := w.make(w.request(w.items()[1:]...))
	res := w.apply(p)
	if res.Written != 3 || res.Conversation {
		t.Errorf("result %+v", res)
	}
	if got := p.ResumeCommand(""); got != "" {
		t.Errorf("command %q for a session that cannot be resumed", got)
	}
	if !strings.Contains(notes(p), "agents-only") {
		t.Errorf("notes %q", notes(p))
	}
}

func TestGoneFiles(t *testing.T) {
	w := newWorld(t)
	items := w.items()
	items[1].Gone = true
	r := w.request(items...)
	r.AsWas = true
	w.apply(w.make(r))
	if _, err := os.Stat(w.path("session", "subagents/agent-a1.jsonl")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a gone file was restored: %v", err)
	}
	r.AsWas = false
	w.apply(w.make(r))
	if got := w.read(w.path("session", "subagents/agent-a1.jsonl")); got != "agent records\n" {
		t.Errorf("gone file holds %q", got)
	}
}

func TestElsewhere(t *testing.T) { // client-facts: an id in two other folders is not found
	w := newWorld(t)
	moved := filepath.Join(w.config, "projects", "-elsewhere", id+".jsonl")
	w.write(moved, w.transcript, day)

	t.Run("asked for another project", func(t *testing.T) {
		r := w.request()
		r.Project = w.project
		_, err := Make(r)
		if got := conflicts(t, err); got[0].Path != moved {
			t.Errorf("conflicts %v, want %s", got, moved)
		}
	})
	t.Run("the client moved it", func(t *testing.T) {
		p := w.make(w.request())
		if p.Folder != "-elsewhere" || p.Transcript.Action != Keep || !strings.Contains(notes(p), "other-folder") {
			t.Errorf("folder %s, action %s, notes %q", p.Folder, p.Transcript.Action, notes(p))
		}
		if res := w.apply(p); res.Written != 3 {
			t.Errorf("result %+v, want the side files written", res)
		}
	})
	t.Run("a shell does not count", func(t *testing.T) {
		w := newWorld(t)
		w.write(filepath.Join(w.config, "projects", "-elsewhere", id+".jsonl"), `{"type":"mode"}`+"\n", 0)
		p := w.make(w.request())
		if p.Folder != w.folder || !strings.Contains(notes(p), "shell-elsewhere") {
			t.Errorf("folder %s, notes %q", p.Folder, notes(p))
		}
	})
	t.Run("two of them", func(t *testing.T) {
		w.write(filepath.Join(w.config, "projects", "-third", id+".jsonl"), w.transcript, day)
		_, err := Make(w.request())
		if got := conflicts(t, err); len(got) != 2 {
			t.Errorf("conflicts %v, want both", got)
		}
	})
}

func TestOtherProject(t *testing.T) { // RS-02, PA-05
	w := newWorld(t)
	target := filepath.Join(filepath.Dir(w.project), "it's new")
	w.mkdir(target)
	r := w.request()
	r.Project = target
	r.Home = "/home/me"
	r.Cwds = []string{"/home/someone/app"}
	p := w.make(r)
	if want := transcript.FolderName(target); p.Folder != want {
		t.Errorf("folder %q, want %q", p.Folder, want)
	}
	if got, want := p.ResumeCommand(""), "cd '"+strings.ReplaceAll(target, "'", `'\''`)+"' && claude --resume "+id; got != want {
		t.Errorf("command %q, want %q", got, want)
	}
	for _, code := range []string{"moved", "other-home"} {
		if !strings.Contains(notes(p), code) {
			t.Errorf("notes %q, want %s", notes(p), code)
		}
	}
	w.apply(p)
	if got := w.read(filepath.Join(w.config, "projects", p.Folder, id+".jsonl")); got != w.transcript {
		t.Error("records were rewritten")
	}
}

func TestLinkedProject(t *testing.T) { // the client knows the real path
	w := newWorld(t)
	link := filepath.Join(filepath.Dir(w.project), "link")
	if err := os.Symlink(w.project, link); err != nil {
		t.Fatal(err)
	}
	r := w.request()
	r.Project = link
	if p := w.make(r); p.Folder != w.folder {
		t.Errorf("folder %q, want that of the real directory, %q", p.Folder, w.folder)
	}
}

func TestLongProject(t *testing.T) { // PA-06
	w := newWorld(t)
	long := filepath.Join(filepath.Dir(w.project), strings.Repeat("deep/", 40)+"end")
	w.mkdir(long)
	name := transcript.FolderName(long)
	r := w.request()
	r.Project = long
	if p := w.make(r); p.Folder != name {
		t.Errorf("folder %q, want %q", p.Folder, name)
	}
	// A build with another hash made a folder for the same directory.
	old := name[:200] + "-zzzzzz"
	w.write(filepath.Join(w.config, "projects", old, otherID+".jsonl"), conversation(long, 1), day)
	if p := w.make(r); p.Folder != old {
		t.Errorf("folder %q, want the existing %q", p.Folder, old)
	}
}

func TestProjectDirName(t *testing.T) {
	w := newWorld(t)
	r := w.request()
	r.Project, r.ProjectDirName = w.project, "fixed"
	if p := w.make(r); p.Folder != "fixed" {
		t.Errorf("folder %q, want the one that the client is told to use", p.Folder)
	}
}

func TestDirectoryGone(t *testing.T) {
	for _, c := range []struct {
		name, dir, code string
	}{
		{"gone", "/nonexistent/app", "directory-gone"},
		{"worktree", "/nonexistent/app/.claude/worktrees/wt1", "worktree-gone"},
		{"another system", `C:\Users\a\app`, "foreign-directory"},                // PA-13
		{"network path", `\\wsl.localhost\Ubuntu\home\u\p`, "foreign-directory"}, // PA-12
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			r := w.request()
			r.Folder, r.Cwds = transcript.FolderName(c.dir), []string{c.dir}
			p := w.make(r)
			if !strings.Contains(notes(p), c.code) {
				t.Errorf("notes %q, want %s", notes(p), c.code)
			}
			if got, want := p.ResumeCommand(""), "claude --resume "+id; got != want {
				t.Errorf("command %q, want %q", got, want)
			}
			if p.ResumeDir != c.dir {
				t.Errorf("directory %q, want it as recorded, %q", p.ResumeDir, c.dir)
			}
		})
	}
}

func TestResumeDirAboveCd(t *testing.T) { // a cwd follows each cd
	if got := resumeDir("-home-a-app", []string{"/home/a/app/sub/dir"}); got != "/home/a/app" {
		t.Errorf("directory %q, want /home/a/app", got)
	}
	// PA-11: two spellings are two directories.
	if got := resumeDir("-mnt-c-Foo", []string{"/mnt/c/foo", "/mnt/c/Foo"}); got != "/mnt/c/Foo" {
		t.Errorf("directory %q, want the spelling of the folder", got)
	}
}

func TestNoFolderKnown(t *testing.T) {
	w := newWorld(t)
	r := w.request()
	r.Folder = ""
	if p := w.make(r); p.Folder != w.folder {
		t.Errorf("folder %q, want %q", p.Folder, w.folder)
	}
	r.Cwds = nil
	if _, err := Make(r); err == nil || !strings.Contains(err.Error(), "--project") {
		t.Errorf("error %v, want one that tells of --project", err)
	}
}

func TestEvilNames(t *testing.T) {
	w := newWorld(t)
	for _, folder := range []string{"..", ".", "a/b", `a\b`, "../../x"} {
		r := w.request()
		r.Folder = folder
		if _, err := Make(r); err == nil {
			t.Errorf("folder %q was accepted", folder)
		}
	}
	r := w.request(append(w.items(), item("session", "../../../evil", "x", 0), item("unheard-of", "x", "x", 0))...)
	p := w.make(r)
	w.apply(p)
	if n := strings.Count(notes(p), "no-place"); n != 2 {
		t.Errorf("notes %q, want two files without a place", notes(p))
	}
	for path := range w.tree() {
		if strings.Contains(path, "evil") {
			t.Errorf("wrote %s", path)
		}
	}
	r.SessionID = strings.ToUpper(id)
	if _, err := Make(r); err == nil {
		t.Error("an id in upper case was accepted")
	}
}

func TestSpacedRecords(t *testing.T) { // found from its own directory only
	w := newWorld(t)
	w.transcript = strings.ReplaceAll(w.transcript, `":`, `": `)
	res := w.apply(w.make(w.request()))
	if !res.Conversation || res.Anywhere {
		t.Errorf("result %+v, want a conversation that is not found anywhere", res)
	}
}

func TestTranscriptTime(t *testing.T) { // CL-09, AR-06
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, c := range []struct {
		name                     string
		archived, newest, period time.Duration // ages; newest 0: none
		want                     time.Duration
		over                     bool
	}{
		{"fresh keeps its time", 3 * day, day, 30 * day, 3 * day, false},
		{"half left keeps its time", 15 * day, day, 30 * day, 15 * day, false},
		{"old gets half", 60 * day, day, 30 * day, 15 * day, false},
		{"old, alone", 60 * day, 0, 30 * day, 15 * day, false},
		{"below an older newest", 60 * day, 20 * day, 30 * day, 20*day + below, false},
		{"at the newest", 60 * day, 15 * day, 30 * day, 15*day + below, false},
		{"the newest is about to go", 60 * day, 29 * day, 30 * day, 15 * day, true},
		{"it was the newest", 20 * day, 25 * day, 30 * day, 15 * day, false},
		{"from the future", -5 * day, day, 30 * day, 0, false},
		{"one day of retention", 10 * day, 6 * time.Hour, day, 12 * time.Hour, false},
		{"kept for ever", 900 * day, day, 36500 * day, 900 * day, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var newest time.Time
			if c.newest != 0 {
				newest = ago(c.newest)
			}
			got, over := transcriptTime(ago(c.archived), now, c.period, newest)
			if want := ago(c.want); !got.Equal(want) || over != c.over {
				t.Errorf("time is %v ago, over %v; want %v ago, %v", now.Sub(got), over, c.want, c.over)
			}
			if !now.Add(-c.period).Before(got) {
				t.Error("the next clean-up takes it")
			}
		})
	}
}

func TestContinueKeepsItsMeaning(t *testing.T) { // CL-09
	w := newWorld(t)
	newer := filepath.Join(w.config, "projects", w.folder, otherID+".jsonl")
	w.write(newer, conversation(w.project, 1), 16*day)
	w.write(filepath.Join(w.config, "projects", w.folder, "agent-0a1b.jsonl"), "{}\n", 0) // never continued, RS-06
	items := w.items()
	items[0].ModTime = now.Add(-60 * day)
	w.apply(w.make(w.request(items...)))
	fi, err := os.Stat(w.main())
	if err != nil {
		t.Fatal(err)
	}
	if !fi.ModTime().Before(now.Add(-16 * day)) {
		t.Errorf("restored transcript is of %v, not below the newest other one", fi.ModTime())
	}
	if !fi.ModTime().After(now.Add(-28 * day)) {
		t.Errorf("restored transcript is of %v, the next clean-up takes it", fi.ModTime())
	}
	if fi, err := os.Stat(newer); err != nil || !fi.ModTime().Equal(now.Add(-16*day)) {
		t.Errorf("the other transcript's time changed: %v, %v", fi.ModTime(), err)
	}
	// Folders that clean-up judges by their own time are fresh.
	dir, err := os.Stat(filepath.Dir(w.path("file-history", "0123456789abcdef@v1")))
	if err != nil {
		t.Fatal(err)
	}
	if time.Since(dir.ModTime()) > time.Hour {
		t.Errorf("file-history folder is of %v", dir.ModTime())
	}
}

func TestDamagedArchive(t *testing.T) {
	broken := errors.New("segment is cut off")
	for _, c := range []struct {
		name string
		open func() (io.ReadCloser, error)
	}{
		{"does not open", func() (io.ReadCloser, error) { return nil, broken }},
		{"fails in the middle", func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader("agent"), errReader{broken})), nil
		}},
		{"other bytes", func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("agent recordz\n")), nil }},
		{"short", func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("agent")), nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			items := w.items()
			items[1].Open = c.open
			_, err := Apply(context.Background(), w.make(w.request(items...)), Options{Lock: w.lock, Now: now})
			var d *DamageError
			if !errors.As(err, &d) || d.Item != "session/subagents/agent-a1.jsonl" {
				t.Errorf("error %v, want damage of the agent's file", err)
			}
			if _, err := os.Stat(w.config); !errors.Is(err, fs.ErrNotExist) {
				t.Error("something was written")
			}
		})
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func TestFirstDifference(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int64
	}{{"", "", 0}, {"a", "", 0}, {"ab", "ab", 2}, {"abc", "abd", 2}, {"ab", "abc", 2}} {
		w := newWorld(t)
		path := filepath.Join(w.config, "f")
		w.write(path, c.a, 0)
		text, err := compare(path, int64(len(c.a)), item("transcript", "x", c.b, 0))
		if err != nil {
			t.Fatal(err)
		}
		if c.a != c.b && len(c.a) == len(c.b) && !strings.Contains(text, fmt.Sprintf("byte %d on", c.want)) {
			t.Errorf("%q and %q: %s", c.a, c.b, text)
		}
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"/home/a/app": "/home/a/app", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "~": "'~'", "-x": "'-x'", "a\nb": "'a\nb'", "日本": "'日本'",
	} {
		if got := Quote(in); got != want {
			t.Errorf("Quote(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestInterrupted(t *testing.T) {
	w := newWorld(t)
	p := w.make(w.request())
	ctx, cancel := context.WithCancel(context.Background())
	var bytesDone int64
	total := int64(0)
	for _, it := range w.items() {
		total += it.Size
	}
	_, err := Apply(ctx, p, Options{Lock: w.lock, Now: now, Progress: func(n int64) {
		if bytesDone += n; bytesDone > total+20 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want that of the cancelled context", err)
	}
	for path, content := range w.tree() {
		if strings.Contains(path, ".jsonl") && strings.HasSuffix(path, id+".jsonl") {
			t.Error("the transcript is there")
		}
		if strings.Contains(filepath.Base(path), ".tmp") {
			t.Errorf("a temporary is left: %s (%d bytes)", path, len(content))
		}
	}
	w.apply(w.make(w.request()))
	if !bytes.Equal([]byte(w.read(w.main())), []byte(w.transcript)) {
		t.Error("the second run did not finish")
	}
}
