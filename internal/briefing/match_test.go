package briefing

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/internal/config"
)

// matches tells whether a personal briefing with these projects is for dir.
func matches(t *testing.T, home, dir string, projects ...string) bool {
	t.Helper()
	e := with("a.md", func(b *Briefing) { b.Projects = projects })
	status, why := newMatcher(Session{Dir: dir, Now: day, Env: config.Env{Home: home}}).refuse(e)
	if status != "" && (status != OtherProject || why == "") {
		t.Errorf("%q for %q: %s, %q", projects, dir, status, why)
	}
	return status == ""
}

// What a pattern means, for directories that need not exist.
func TestProjectPatterns(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of Unix")
	}
	const home = "/none/ada"
	for _, test := range []struct {
		dir      string
		yes, not []string
	}{
		{"/none/ada/src/app", []string{
			"/none/ada/src/app", "/none/ada/src/app/", "~/src/app", "~/src/app/**", "~/src/*", "~/src/a?p", "~/src/[a-c]pp", "~/**", "/**", "/**/app",
			"/none/*/src/app", "/none/**/app", "~/sr[^a]/app",
		}, []string{
			"/none/ada/src", "~/src", "~", "/none/ada/src/app/sub", "/none/ada/src/app2", "~/src/ap", "~/src/APP", "src/app", "app", "**", "*",
			"~/*", "~/src/app/*", "/none/ada/src[^x]app", "/none[!x]ada/src/app", "~ada/src/app", "-none-ada-src-app", "-*",
		}},
		{"/none/ada", []string{"~", "~/", "~/**", "/none/ada"}, []string{"~/*", "~ada", "/none"}},
		{"/none/ada/we[i]rd *?\\{x}", []string{`~/we\[i\]rd \*\?\\\{x\}`, "~/we*", "~/*/**"}, []string{"~/weird*"}},
		{"/", []string{"/", "/**"}, []string{"/?", "~", "~/**"}},
		{"", nil, []string{"/**", "~/**", "/", "**"}},
	} {
		for _, pattern := range test.yes {
			if !matches(t, home, test.dir, pattern) || !matches(t, home, test.dir, "/elsewhere", pattern) {
				t.Errorf("%q is not for %q", pattern, test.dir)
			}
		}
		for _, pattern := range test.not {
			if matches(t, home, test.dir, pattern) {
				t.Errorf("%q is for %q", pattern, test.dir)
			}
		}
	}
	// Homes that a pattern cannot simply be put behind.
	for _, test := range []struct {
		home, dir, pattern string
		want               bool
	}{
		{"", "/none/a", "~/a", false},
		{"", "/a", "~/a", false},
		{"/", "/none/a", "~/none/**", true},
		{"/", "/none/a", "~/none/a", true},
		{"/", "/none/a", "~/**", true},
		{"/", "/", "~", true},
		{"/", "/none", "~", false},
		{"/none/[a]/", "/none/[a]/b", "~/*", true},
		{"/none/[a]", "/none/a/b", "~/*", false},
		{"/none/*\xff", "/none/*\xff/b", "~/b", true},
		{"/none/*\xff", "/none/*\xfe/b", "~/b", false},
	} {
		if got := matches(t, test.home, test.dir, test.pattern); got != test.want {
			t.Errorf("%q with the home %q for %q: %v", test.pattern, test.home, test.dir, got)
		}
	}
}

// Directories for which the client has one and the same folder get each their
// own briefings: names in other scripts, marks, and bytes that are no text.
// PA-01, PA-02
func TestDirectoriesWithOneFolderName(t *testing.T) {
	top := RealDir(t.TempDir())
	dirs := []string{
		"외주/app", "개인/app", "大明科技", "天成企業", "a.b", "a-b", "a_b", "a b", "a", "A.b", "caf\u00e9", "cafe\u0301", "\uFFFD",
	}
	if runtime.GOOS == "linux" {
		dirs = append(dirs, "\xff", "\xfe", "x\xed\xa0\x80", "x\xed\xa0\x81", "\U0010FFFF")
	}
	var entries []Entry
	for i, dir := range dirs {
		full := filepath.Join(top, filepath.FromSlash(dir))
		if i%2 == 0 { // others are not there
			if err := os.MkdirAll(full, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, below := range []string{"", "/**"} {
			if below != "" && dir == "a" {
				continue // on purpose above others on no disk
			}
			entries = append(entries, with(strings.ReplaceAll(dir, "/", "-")+below+".md", func(b *Briefing) {
				b.Projects = []string{escapeGlob(filepath.ToSlash(full)) + below}
				b.Body = "Secret of <" + dir + ">" + below
			}))
		}
	}
	// As it goes to a file and back, which holds text alone: none but the one
	// whose name is text is matched then.
	for _, e := range entries {
		parsed, _, err := Parse(e.Name, Format(e.Briefing))
		if err != nil {
			t.Fatal(err)
		}
		again := e
		again.Kind, again.Briefing = Store, parsed
		entries = append(entries, again)
	}
	for _, dir := range dirs {
		if runtime.GOOS != "linux" && (strings.EqualFold(dir, "a.b") || strings.HasPrefix(dir, "caf")) {
			continue // may be one directory for the file system
		}
		r := Choose(entries, Session{Dir: filepath.Join(top, filepath.FromSlash(dir)), Now: day}, wide)
		if !strings.Contains(r.Text, Clean("Secret of <"+dir+">")) {
			t.Errorf("%q does not get its own: %s", dir, r.Text)
		}
		for _, v := range r.Verdicts {
			if own := strings.HasPrefix(v.Briefing.Body, "Secret of <"+dir+">"); v.Status.In() && !own {
				t.Errorf("%q gets what is for %q (%s)", dir, v.Briefing.Projects, v.Kind)
			}
		}
	}
}

// A directory is the same by every name that it has.
func TestProjectLinks(t *testing.T) {
	top := RealDir(t.TempDir())
	for _, dir := range []string{"data/app/sub", "data/other", "home"} {
		if err := os.MkdirAll(filepath.Join(top, filepath.FromSlash(dir)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link(t, filepath.Join("..", "data"), filepath.Join(top, "home", "src"))
	link(t, "home", filepath.Join(top, "me"))
	link(t, "loop", filepath.Join(top, "loop"))
	link(t, filepath.Join("data", "other"), filepath.Join(top, "[odd]"))
	at := func(path string) string { return filepath.ToSlash(filepath.Join(top, filepath.FromSlash(path))) }
	for _, test := range []struct {
		dir, pattern string
		want         bool
	}{
		{"data/app", "~/src/app", true},
		{"home/src/app", "~/src/app", true},
		{"me/src/app", at("data/app"), true},
		{"data/app", "~/src/app/**", true},
		{"data/app/sub", "~/src/app/**", true},
		{"data/app/sub", "~/src/*/sub", true},
		{"data/app/sub", "~/src/app", false},
		{"data/app", "~/src", false},
		{"data/app", at("home/src") + "/../data/other/../app", true},
		{"data/app", at("loop") + "/**", false},
		{"data/app", at("loop"), false},
		{"data/app", at("none") + "/**", false},
		{"data/other", escapeGlob(at("[odd]")), true},
		{"data/other", escapeGlob(at("[odd]")) + "/**", true},
		{"data/app", escapeGlob(at("[odd]")) + "/**", false},
		{"none", at("data/app"), false},
	} {
		if got := matches(t, at("me"), at(test.dir), test.pattern); got != test.want {
			t.Errorf("%q for %q: %v", test.pattern, test.dir, got)
		}
	}
}

// A repository's patterns may begin at its root; those of others may not.
func TestProjectsInRepository(t *testing.T) {
	root := filepath.Join(RealDir(t.TempDir()), "r[1]")
	if err := os.MkdirAll(filepath.Join(root, "api", "v1"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		dir, pattern string
		want         bool
	}{
		{"", ".", true}, {"", "./", true}, {"", "**", true}, {"api", "**", true}, {"", "api", false}, {"", "*", false},
		{"api", "api", true}, {"api", "./api", true}, {"api", "api/", true}, {"api", "api/**", true}, {"api/v1", "api/**", true},
		{"api/v1", "api", false}, {"api/v1", "api/*", true}, {"api/v1", "api/.", false}, {"api", "api/.", true}, {"api", "v1", false},
		{"api", "../r*/api", true}, {"api", "../" + `r\[1\]` + "/api", true}, {"", "..", false},
	} {
		e := with("a.md", func(b *Briefing) { b.Projects = []string{test.pattern} })
		e.Kind, e.Root = Repository, root
		status, _ := newMatcher(Session{Dir: filepath.Join(root, filepath.FromSlash(test.dir)), Now: day}).refuse(e)
		if (status == "") != test.want {
			t.Errorf("%q in %q: %q", test.pattern, test.dir, status)
		}
		e.Kind, e.Root = Personal, ""
		if status, _ := newMatcher(Session{Dir: root, Now: day}).refuse(e); status != OtherProject {
			t.Errorf("personal: %q: %q", test.pattern, status)
		}
	}
}

func TestBranches(t *testing.T) {
	for _, test := range []struct {
		branch, pattern string
		want            bool
	}{
		{"main", "main", true}, {"main", "*", true}, {"main", "**", true}, {"main", "Main", false}, {"main", "mai", false},
		{"release/1.2", "release/*", true}, {"release/1.2", "*", false}, {"release/1.2", "**", true}, {"release/a/b", "release/*", false},
		{"release/a/b", "release/**", true}, {"release/1", "release[^x]1", false},
		{"", "**", false}, {"", "*", false}, {"\xff", "\uFFFD", false}, {"\uFFFD", "\uFFFD", true},
	} {
		e := with("a.md", func(b *Briefing) { b.Branches = []string{"none", test.pattern} })
		status, why := newMatcher(Session{Branch: test.branch, Now: day}).refuse(e)
		if (status == "") != test.want || (status != "") != (why != "") {
			t.Errorf("%q on %q: %q, %q", test.pattern, test.branch, status, why)
		}
	}
}

// Patterns that make a matcher go back again and again do not hold a session.
func TestPatternsAreBounded(t *testing.T) {
	dir := "/" + strings.Repeat(strings.Repeat("a", 50)+"/", 70) + "b"
	var entries []Entry
	for range 100 {
		entries = append(entries, with("a.md", func(b *Briefing) {
			b.Projects = []string{
				"/" + strings.Repeat("**/a*a*a*/", 45) + "c",
				"/**/" + strings.Repeat("*a", 200) + "c",
				"/" + strings.Repeat("**/", 160) + "c",
			}
			if err := checkPatterns(b.Projects); err != nil {
				t.Fatal(err)
			}
		}))
	}
	done := make(chan Result)
	go func() { done <- Choose(entries, Session{Dir: dir, Now: day}, wide) }()
	select {
	case r := <-done:
		if r.Text != "" {
			t.Error(r.Text)
		}
	case <-time.After(time.Minute): // a search without bounds would take for ever
		t.Fatal("still matching")
	}
}

// A path on a disk that does not answer holds nobody: the rest is decided
// without looking, and it is told.
func TestDiskThatDoesNotAnswer(t *testing.T) {
	dir := RealDir(t.TempDir())
	never := make(chan struct{})
	defer close(never)
	asked := make(chan string, 10)
	m := newMatcher(Session{Dir: dir, Source: Startup, Now: day})
	m.disk = newDisk(time.Millisecond)
	m.disk.find = func(path string) found {
		asked <- path
		<-never
		return found{}
	}
	entries := []Entry{
		with("a.md", func(b *Briefing) { b.Projects = []string{"/mnt/dead/app/**", "/mnt/dead/other"} }),
		with("b.md", func(b *Briefing) { b.Projects = []string{"/mnt/dead/app", filepath.ToSlash(dir)} }),
		with("c.md", func(b *Briefing) { b.Projects = []string{"/mnt/dead/app"} }),
	}
	r := Result{Verdicts: []Verdict{{Entry: entries[0]}, {Entry: entries[1]}, {Entry: entries[2]}}}
	r.pick(m, wide)
	r.place(m.Session, wide)
	if got := statuses(r); got != "a.md other project, b.md whole, c.md other project" {
		t.Error(got)
	}
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Error(), `"/mnt/dead/app"`) || !strings.Contains(r.Verdicts[0].Why, "did not answer") {
		t.Errorf("%v, %q", r.Problems, r.Verdicts[0].Why)
	}
	if first := <-asked; first != "/mnt/dead/app" || len(asked) > 0 {
		t.Errorf("asked for %q and %d more", first, len(asked))
	}
}

// A path that many briefings name is looked at once.
func TestDiskRemembers(t *testing.T) {
	asked := 0
	m := newMatcher(Session{Dir: RealDir(t.TempDir()), Now: day})
	m.disk = newDisk(time.Hour)
	m.disk.find = func(path string) found {
		asked++
		return find(path)
	}
	for range 3 {
		m.inProject(Entry{}, "/none/x")
		m.inProject(Entry{}, "/none/x/**")
		m.inProject(Entry{}, filepath.ToSlash(m.dir)+"/**")
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}
