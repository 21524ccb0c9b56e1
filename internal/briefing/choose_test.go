package briefing

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/session-keeper/session-keeper/internal/config"
)

// statuses gives for each verdict the file's name and what became of it.
func statuses(r Result) string {
	var out []string
	for _, v := range r.Verdicts {
		out = append(out, v.Name+" "+string(v.Status))
	}
	return strings.Join(out, ", ")
}

// with makes a personal briefing and lets set change it.
func with(name string, set func(*Briefing)) Entry {
	e := entry(name, 0, "The text of "+name+".")
	if set != nil {
		set(e.Briefing)
	}
	return e
}

var wide = Options{Budget: Budget{Limit: MaxBudget}}

// What the sources of a briefing let in: each source that is known, one that is
// not, and none. A compaction gets what is meant for it alone, and a new or
// unknown source what a new session gets. SS-08, SS-13
func TestSources(t *testing.T) {
	entries := []Entry{
		with("all.md", nil),
		with("compact.md", func(b *Briefing) { b.Sources = []string{Compact} }),
		with("startup.md", func(b *Briefing) { b.Sources = []string{Startup, Resume} }),
		with("teleport.md", func(b *Briefing) { b.Sources = []string{"teleport"} }),
	}
	for source, want := range map[string]string{
		Startup:    "all startup",
		Resume:     "all startup",
		Clear:      "all",
		Compact:    "all compact",
		Fork:       "all",
		"teleport": "all startup teleport",
		"":         "all startup",
		"STARTUP":  "all startup",
	} {
		r := Choose(entries, Session{Source: source, Now: day}, wide)
		var got []string
		for _, v := range r.Verdicts {
			in := strings.Contains(r.Text, v.Briefing.Body)
			if in != v.Status.In() || !in && (v.Status != OtherSource || v.Why == "") {
				t.Errorf("%q, %s: %s, %q, in the text: %v", source, v.Name, v.Status, v.Why, in)
			}
			if in {
				got = append(got, strings.TrimSuffix(v.Name, ".md"))
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%q gets %s, want %s", source, got, want)
		}
	}
}

// A source is anybody's text: the reason shows it bounded and on one line. SS-08
func TestReasonsAreBounded(t *testing.T) {
	hostile := "x\x1b[2J\n" + strings.Repeat("y", 10_000)
	entries := []Entry{
		with("a.md", func(b *Briefing) { b.Sources = []string{hostile} }),
		with("b.md", func(b *Briefing) { b.Branches = []string{"main"} }),
		with("c.md", func(b *Briefing) { b.Projects = []string{"/nowhere"} }),
	}
	for _, source := range []string{Compact, hostile + "2"} {
		for _, v := range Choose(entries, Session{Source: source, Branch: hostile, Dir: "/none", Now: day}, wide).Verdicts {
			if v.Status.In() || v.Why == "" || len(v.Why) > 700 || strings.ContainsAny(v.Why, "\x1b\n") {
				t.Errorf("%s is %s: %d bytes, %.100q", v.Name, v.Status, len(v.Why), v.Why)
			}
		}
	}
}

// Each reason to leave a briefing out, and what of it is told.
func TestChooseStatuses(t *testing.T) {
	dir := RealDir(t.TempDir())
	broken := &config.Error{File: "bad.md", Line: 3, Err: errors.New("odd")}
	entries := []Entry{
		{Kind: Personal, Name: "broken.md", Err: broken},
		{Kind: Personal, Name: "nothing.md"},
		with("branch.md", func(b *Briefing) { b.Branches = []string{"release/*"} }),
		with("copy.md", func(b *Briefing) { b.Body = "The text of whole.md." }),
		with("empty.md", func(b *Briefing) { b.Body = "" }),
		with("blank.md", func(b *Briefing) { b.Body = "\u2028\u2029" }),
		with("expired.md", func(b *Briefing) { b.Expires = Expiry{instant, day} }),
		with("first.md", func(b *Briefing) { b.Priority = 7; b.Body = strings.Repeat("long ", 9000) }),
		with("project.md", func(b *Briefing) { b.Projects = []string{"~/other"} }),
		with("source.md", func(b *Briefing) { b.Sources = []string{Fork} }),
		with("unattended.md", nil),
		with("whole.md", func(b *Briefing) { b.Priority = 9 }),
	}
	for i := range entries {
		if b := entries[i].Briefing; b != nil {
			b.Print = entries[i].Name != "unattended.md"
		}
	}
	s := Session{Source: Startup, Dir: dir, Branch: "main", Now: day, Unattended: true, Env: config.Env{Home: dir}}
	r := Choose(entries, s, Options{Budget: Budget{Limit: 2000}})
	want := []string{
		"whole.md whole", "first.md cut", "blank.md empty", "branch.md other branch", "copy.md duplicate", "empty.md empty",
		"expired.md expired", "project.md other project", "source.md other source", "unattended.md unattended",
		"broken.md broken", "nothing.md broken",
	}
	if diff := cmp.Diff(want, strings.Split(statuses(r), ", ")); diff != "" {
		t.Error(diff)
	}
	for _, v := range r.Verdicts {
		if (v.Why == "") != (v.Status == Whole) {
			t.Errorf("%s is %s: %q", v.Name, v.Status, v.Why)
		}
	}
	if r.Length != Measure(r.Text) || r.Length.UTF16 > 2000 || len(r.Problems) > 0 {
		t.Errorf("%+v, %v", r.Length, r.Problems)
	}
	if err := r.Err(); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if l := r.Verdicts[1].Length(); l.Bytes != 45_000 {
		t.Errorf("the length of the long one is %+v", l)
	}
	if l := r.Verdicts[11].Length(); l != (Length{}) {
		t.Errorf("the length of nothing is %+v", l)
	}
	small := Choose(entries, s, Options{Budget: Budget{Limit: 150}})
	if small.Verdicts[0].Status != NoRoom || !strings.Contains(small.Text, "Left out") {
		t.Errorf("%s\n%s", statuses(small), small.Text)
	}
	if none := Choose(nil, s, wide); none.Text != "" || none.Err() != nil {
		t.Errorf("%+v", none)
	}
}

// The order is priority, home, name; the same bytes come out in whatever order
// the files went in. SS-06
func TestByteStable(t *testing.T) {
	var entries []Entry
	for i := range 40 {
		e := entry(fmt.Sprintf("%02d.md", i/3), i%5-2, fmt.Sprint("Text ", i, ". ", strings.Repeat("words ", i*7)))
		e.Kind = []Kind{Personal, Repository, Store}[i%3]
		e.Path = fmt.Sprint("/home/", e.Kind, "/", e.Name)
		if i%11 == 0 {
			e.Briefing.Body = "The same text."
		}
		entries = append(entries, e)
	}
	entries = append(entries, Entry{Kind: Store, Name: "bad.md", Err: errors.New("bad")}, Entry{Kind: Personal, Err: errors.New("worse")})
	for _, limit := range []int{0, 500, 2_000, 6_000, 10_000} {
		o := Options{Budget: Budget{Limit: limit}, Trust: func() Trust { return Trust{Trusted: true} }}
		s := Session{ID: "s", Source: Startup, Now: day}
		want := Choose(entries, s, o)
		for i, v := range want.Verdicts[1:] {
			before := want.Verdicts[i]
			if v.Briefing == nil || before.Briefing == nil {
				if before.Briefing == nil && v.Briefing != nil {
					t.Errorf("%s comes before %s", before.Name, v.Name)
				}
				continue
			}
			if before.Briefing.Priority < v.Briefing.Priority || before.Briefing.Priority == v.Briefing.Priority && before.Kind.rank() > v.Kind.rank() {
				t.Errorf("%s (%d) comes before %s (%d)", before.from(), before.Briefing.Priority, v.from(), v.Briefing.Priority)
			}
		}
		for seed := range uint64(20) {
			mixed := append([]Entry(nil), entries...)
			random := rand.New(rand.NewPCG(seed, 1))
			random.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
			got := Choose(mixed, s, o)
			if got.Text != want.Text || statuses(got) != statuses(want) {
				t.Fatalf("budget %d, order %d: another output:\n%s\nthan\n%s", limit, seed, got.Text, want.Text)
			}
		}
	}
}

// A folder that was filled in another order, and lies elsewhere, gives the same
// text: nothing of the machine is in it. SS-06
func TestByteStableFromDisk(t *testing.T) {
	var texts []string
	for _, order := range [][]int{{0, 1, 2, 3, 4, 5}, {5, 3, 1, 0, 2, 4}} {
		root := t.TempDir()
		for _, i := range order {
			put(t, filepath.Join(root, InRepository, fmt.Sprintf("%d.md", i)), fmt.Sprintf("+++\npriority = %d\n+++\nText %d.", i%2, i))
			put(t, filepath.Join(root, "own", fmt.Sprintf("%d.md", i)), fmt.Sprintf("+++\n+++\nOwn text %d.", i))
		}
		entries := append(Folder{Kind: Personal, Dir: filepath.Join(root, "own")}.Load(), Folder{Kind: Repository, Dir: root}.Load()...)
		r := Choose(entries, Session{Source: Startup, Dir: root, Now: day}, Options{
			Budget: Budget{Limit: DefaultBudget}, Trust: func() Trust { return Trust{Trusted: true} },
		})
		if strings.Contains(r.Text, root) || !strings.Contains(r.Text, "Own text 5.") {
			t.Errorf("the text is %s", r.Text)
		}
		texts = append(texts, r.Text)
	}
	if texts[0] != texts[1] {
		t.Error(cmp.Diff(texts[0], texts[1]))
	}
}

// Trust is asked once, and only where a briefing of the repository's would be
// used.
func TestChooseAsksForTrust(t *testing.T) {
	team := func(name, source string) Entry {
		e := with(name, func(b *Briefing) { b.Sources = []string{source} })
		e.Kind = Repository
		return e
	}
	entries := []Entry{team("a.md", Startup), team("b.md", Startup), team("c.md", Clear), with("own.md", nil)}
	for _, trusted := range []bool{true, false} {
		asked := 0
		trouble := errors.New("the record is cut off")
		o := wide
		o.Trust = func() Trust {
			asked++
			return Trust{Trusted: trusted, Why: "as the test wants it", Problems: []error{trouble}}
		}
		r := Choose(entries, Session{Source: Startup, Now: day}, o)
		want := "a.md untrusted, b.md untrusted, c.md other source, own.md whole"
		if trusted {
			want = "a.md whole, b.md whole, c.md other source, own.md whole"
		}
		if got := statuses(r); got != want || asked != 1 || len(r.Problems) != 1 || !errors.Is(r.Problems[0], trouble) {
			t.Errorf("asked %d times, %v, %s", asked, r.Problems, got)
		}
		if strings.Contains(r.Text, "The text of a.md") != trusted {
			t.Errorf("trusted %v: %s", trusted, r.Text)
		}
		Choose(entries, Session{Source: Compact, Now: day}, o)
		if asked != 1 {
			t.Error("asked for nothing")
		}
	}
	if got := statuses(Choose(entries, Session{Source: Startup, Now: day}, wide)); !strings.HasPrefix(got, "a.md untrusted, b.md untrusted") {
		t.Errorf("with nobody to ask: %s", got)
	}
}

// A session's title comes from the most important personal briefing that is in.
func TestSessionTitle(t *testing.T) {
	titled := func(name string, priority int, title string) Entry {
		return with(name, func(b *Briefing) { b.Priority, b.SessionTitle = priority, title })
	}
	store := titled("store.md", 9, "of the store")
	store.Kind = Store
	out := titled("out.md", 8, "of one that is over")
	out.Briefing.Expires = Expiry{instant, day}
	r := Choose([]Entry{titled("a.md", 1, "low"), titled("b.md", 5, "two\nlines `\x1b[2J"+strings.Repeat("z", 200)), store, out}, Session{Now: day}, wide)
	if !strings.HasPrefix(r.SessionTitle, "two lines '[hidden U+001B][2Jzz") || units(r.SessionTitle) > maxTitleUnits {
		t.Errorf("%q", r.SessionTitle)
	}
	if none := Choose([]Entry{store}, Session{Now: day}, wide); none.SessionTitle != "" {
		t.Errorf("%q", none.SessionTitle)
	}
}

// fakeMemory has fixed answers and remembers what was asked of it.
type fakeMemory struct {
	said, taken map[string]bool // by the file's name; taken: by somebody a moment ago
	err         error
	claims      []string
}

func (m *fakeMemory) name(key string) string {
	_, path, _ := strings.Cut(key, "\x00")
	return filepath.Base(path)
}

func (m *fakeMemory) Said(session, key string) (bool, error) { return m.said[m.name(key)], m.err }

func (m *fakeMemory) Claim(session, key string) (bool, error) {
	m.claims = append(m.claims, "+"+m.name(key))
	return !m.taken[m.name(key)], m.err
}

func (m *fakeMemory) Release(session, key string) error {
	m.claims = append(m.claims, "-"+m.name(key))
	return m.err
}

// What is said once is claimed when it has its room, and not before. Where
// another process claims it first, the rest is placed anew; what then has no
// room any more is not lost for the session. SS-05, SS-06
func TestOnce(t *testing.T) {
	once := func(name string, priority int, body string) Entry {
		e := entry(name, priority, body)
		e.Briefing.Once = true
		return e
	}
	entries := []Entry{
		once("a.md", 3, strings.Repeat("Taken by another. ", 60)),
		once("b.md", 2, strings.Repeat("Too long beside a. ", 70)),
		once("c.md", 1, "Small. "+strings.Repeat("Beside a, not beside b. ", 20)),
		entry("d.md", 0, "Always."),
	}
	session := Session{ID: "s", Source: Startup, Now: day}
	budget := Options{Budget: Budget{Limit: 2200}}
	for _, test := range []struct {
		name, want, claims string
		session            Session
		memory             *fakeMemory
		problems           int
	}{
		{"all new", "a.md whole, b.md no room, c.md whole, d.md whole", "+a.md +c.md", session, &fakeMemory{}, 0},
		{"said before", "a.md said, b.md whole, c.md said, d.md whole", "+b.md", session, &fakeMemory{said: map[string]bool{"a.md": true, "c.md": true}}, 0},
		{"taken at once", "a.md said, b.md whole, c.md cut, d.md whole", "+a.md +b.md +c.md", session, &fakeMemory{taken: map[string]bool{"a.md": true}}, 0},
		{"no memory left", "a.md whole, b.md no room, c.md whole, d.md whole", "+a.md +c.md", session, &fakeMemory{err: errors.New("disk full")}, 5},
		{"no id", "a.md whole, b.md no room, c.md whole, d.md whole", "", Session{Source: Startup, Now: day}, &fakeMemory{taken: map[string]bool{"a.md": true}}, 0},
	} {
		o := budget
		o.Memory = test.memory
		r := Choose(entries, test.session, o)
		if got := statuses(r); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		if got := strings.Join(test.memory.claims, " "); got != test.claims {
			t.Errorf("%s: claims %s, want %s", test.name, got, test.claims)
		}
		if len(r.Problems) != test.problems {
			t.Errorf("%s: %v", test.name, r.Problems)
		}
		for _, v := range r.Verdicts {
			if strings.Contains(r.Text, v.Briefing.Body[:6]) != v.Status.In() {
				t.Errorf("%s: %s is %s:\n%s", test.name, v.Name, v.Status, r.Text)
			}
		}
	}
}

// A claim is given back if its briefing lost its room to one that moved up.
func TestOnceGivesBack(t *testing.T) {
	var entries []Entry
	for _, e := range []Entry{
		entry("a.md", 4, strings.Repeat("First and claimed. ", 30)),
		entry("b.md", 1, strings.Repeat("Claimed by another. ", 30)),
	} {
		e.Briefing.Once = true
		entries = append(entries, e)
	}
	memory := &fakeMemory{taken: map[string]bool{"b.md": true}}
	r := Result{Verdicts: []Verdict{{Entry: entries[0]}, {Entry: entries[1]}}}
	s := Session{ID: "s"}
	// The budget shrinks between the two placements, as the room of a briefing
	// does when a longer one moves up.
	shrinking := &shrink{fakeMemory: memory}
	o := Options{Budget: Budget{Limit: 3000}, Memory: shrinking}
	shrinking.entries = r.Verdicts
	r.place(s, o)
	if got := strings.Join(memory.claims, " "); got != "+a.md +b.md -a.md" || r.Verdicts[0].Status.In() {
		t.Errorf("claims %s, %s", got, statuses(r))
	}
}

// shrink makes the first briefing longer than any budget when the second is
// asked for.
type shrink struct {
	*fakeMemory
	entries []Verdict
}

func (m *shrink) Claim(session, key string) (bool, error) {
	first, err := m.fakeMemory.Claim(session, key)
	if !first {
		m.entries[0].Briefing.Body = strings.Repeat("\u0301", 20_000) // one character, not to be cut
	}
	return first, err
}

// A start and its compaction, and a hook that is run twice: what is said once
// is said once in all of them together. SS-05, SS-13
func TestOnceInASession(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "said")
	entries := []Entry{with("once.md", func(b *Briefing) { b.Once = true }), with("always.md", nil)}
	o := wide
	o.Memory = SaidFolder(dir)
	get := func(id, source string) Result { return Choose(entries, Session{ID: id, Source: source, Now: day}, o) }

	o.Memory = ReadOnly(SaidFolder(dir))
	for range 2 { // looking does not count
		if got := statuses(get("s", Startup)); got != "always.md whole, once.md whole" {
			t.Error(got)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking left something: %v", err)
	}
	o.Memory = SaidFolder(dir)
	for i, want := range []string{"always.md whole, once.md whole", "always.md whole, once.md said", "always.md whole, once.md said"} {
		if r := get("s", []string{Startup, Startup, Compact}[i]); statuses(r) != want || len(r.Problems) > 0 {
			t.Errorf("%d: %s, %v", i, statuses(r), r.Problems)
		}
	}
	if got := statuses(get("another", Startup)); got != "always.md whole, once.md whole" {
		t.Error(got)
	}
	// The same with another text is the same briefing; in another home it is not.
	entries[0].Briefing.Body = "Edited."
	if got := statuses(get("s", Resume)); got != "always.md whole, once.md said" {
		t.Error(got)
	}
	entries[0].Kind = Store
	if got := statuses(get("s", Resume)); got != "once.md whole, always.md whole" {
		t.Error(got)
	}
}
