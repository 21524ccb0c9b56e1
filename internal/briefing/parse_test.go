package briefing

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/session-keeper/session-keeper/internal/config"
)

// day is one that tests count from.
var day = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func TestParse(t *testing.T) {
	full := `+++
# a remark
title = "How we deploy"
sources = ["startup", "resume"]
projects = ["~/src/app", "/srv/**"]
branches = ["main", "release/*"]
priority = -3
expires = 2027-01-31
once = true
print = true
session_title = "deploy"
+++

  Indented first line.

Second paragraph.

`
	want := &Briefing{
		Title: "How we deploy", Sources: []string{"startup", "resume"},
		Projects: []string{"~/src/app", "/srv/**"}, Branches: []string{"main", "release/*"},
		Priority: -3, Expires: Expiry{localDay, time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)},
		Once: true, Print: true, SessionTitle: "deploy",
		Body: "  Indented first line.\n\nSecond paragraph.",
	}
	for _, test := range []struct {
		name, text string
		want       *Briefing
		warnings   []string
	}{
		{"everything", full, want, nil},
		{"CRLF", strings.ReplaceAll(full, "\n", "\r\n"), want, nil},
		{"byte order mark", "\uFEFF" + full, want, nil},
		{"spaces after the marks", strings.ReplaceAll(full, "+++\n", "+++ \t\n"), want, nil},
		{"nothing but a body", "+++\n+++\nbody", &Briefing{Title: "a", Body: "body"}, nil},
		{"empty title", "+++\ntitle = \" \"\n+++\nbody", &Briefing{Title: "a", Body: "body"}, nil},
		{"lone CRs", "+++\n+++\none\rtwo\r\r", &Briefing{Title: "a", Body: "one\ntwo"}, nil},
		{"a later +++", "+++\n+++\nbody\n+++\nmore", &Briefing{Title: "a", Body: "body\n+++\nmore"}, nil},
		{"unknown keys", "+++\nlater = 1\ntitle = \"t\"\n[table]\nx = 1\n+++\nbody", &Briefing{Title: "t", Body: "body"},
			[]string{`a.md:2: unknown key "later"`, `a.md:4: unknown key "table"`}},
		{"dotted key", "+++\n\na.b = 1\n+++\nbody", &Briefing{Title: "a", Body: "body"}, []string{`a.md:3: unknown key "a"`}},
		{"unknown source", "+++\nsources = [\"teleport\"]\n+++\nbody", &Briefing{Title: "a", Sources: []string{"teleport"}, Body: "body"},
			[]string{`a.md:2: unknown source "teleport"; known are startup, resume, clear, compact, fork`}},
		{"no body", "+++\n+++\n \n\n", &Briefing{Title: "a"}, []string{"a.md:3: there is no text after the front matter"}},
		{"no body, no line end", "+++\n+++", &Briefing{Title: "a"}, []string{"a.md:3: there is no text after the front matter"}},
		{"invalid UTF-8", "+++\n+++\nfine\nna\xefve \uFFFD", &Briefing{Title: "a", Body: "fine\nna\uFFFDve \uFFFD"},
			[]string{"a.md:4: not valid UTF-8; replaced by U+FFFD"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, warnings, err := Parse("a.md", []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(b, test.want) {
				t.Errorf("got  %+v\nwant %+v", b, test.want)
			}
			var got []string
			for _, w := range warnings {
				got = append(got, w.String())
			}
			if diff := cmp.Diff(test.warnings, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	many := "\"x\"" + strings.Repeat(", \"x\"", maxPatterns)
	for _, test := range []struct{ name, text, want string }{
		{"nothing", "", "a.md:1: no front matter: the first line must be +++"},
		{"no front matter", "# Title\n", "a.md:1: no front matter: the first line must be +++"},
		{"blank line first", "\n+++\n+++\nbody", "a.md:1: no front matter: the first line must be +++"},
		{"no end", "+++\ntitle = \"a\"\n\nbody\n++++\n", "a.md:1: the front matter has no end: no second line +++"},
		{"bad TOML", "+++\ntitle = \"a\"\nsources = [\n+++\nbody", "a.md:3: "},
		{"no value", "+++\n\n\ntitle =\n+++\nbody", "a.md:4: "},
		{"a key twice", "+++\nonce = true\nonce = false\n+++\nbody", "a.md:3: "},
		{"invalid UTF-8 in front", "+++\ntitle = \"\xff\"\n+++\nbody", "a.md:2: "},
		{"binary", "+++\n+++\nbo\x00dy", "a.md:3: a binary file: it holds a NUL"},
		{"UTF-16", "\xff\xfe+\x00+\x00+\x00\n\x00", "a.md:1: a binary file: it holds a NUL"},
		{"title", "+++\ntitle = 1\n+++\n", "a.md:2: title: must be a string"},
		{"sources", "+++\nsources = \"startup\"\n+++\n", "a.md:2: sources: must be a list of strings"},
		{"sources, mixed", "+++\nsources = [\"startup\", 1]\n+++\n", "a.md:2: sources: must be a list of strings"},
		{"sources, empty", "+++\nsources = []\n+++\n", "a.md:2: sources: the list is empty; leave the key out to mean all"},
		{"projects, empty", "+++\nprojects = []\n+++\n", "a.md:2: projects: the list is empty; leave the key out to mean all"},
		{"projects, blank", "+++\nprojects = [\" \"]\n+++\n", "a.md:2: projects: an empty entry matches nothing"},
		{"projects, glob", "+++\nprojects = [\"/a/[\"]\n+++\n", `a.md:2: projects: "/a/[" is no valid glob`},
		{"projects, braces", "+++\nprojects = [\"/a/{b,c}\"]\n+++\n", `a.md:2: projects: "/a/{b,c}": {a,b} is not known here; write one entry for each`},
		{"projects, long", "+++\nprojects = [\"" + strings.Repeat("a", maxPatternBytes+1) + "\"]\n+++\n", "a.md:2: projects: \"aaaa"},
		{"branches, many", "+++\nbranches = [" + many + "]\n+++\n", "a.md:2: branches: 101 entries, at most 100 are taken"},
		{"priority", "+++\npriority = 1.5\n+++\n", "a.md:2: priority: must be a whole number"},
		{"priority, large", "+++\npriority = 3000000000\n+++\n", "a.md:2: priority: 3000000000 is out of range"},
		{"expires, time only", "+++\nexpires = 12:00:00\n+++\n", "a.md:2: expires: must be a date"},
		{"expires, words", "+++\nexpires = \"tomorrow\"\n+++\n", "a.md:2: expires: must be a date"},
		{"once", "+++\nonce = \"yes\"\n+++\n", "a.md:2: once: must be true or false"},
		{"print", "+++\nprint = 1\n+++\n", "a.md:2: print: must be true or false"},
		{"session_title", "+++\nsession_title = []\n+++\n", "a.md:2: session_title: must be a string"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, _, err := Parse("a.md", []byte(test.text))
			var bad *config.Error
			if b != nil || !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, %v, want %q", b, err, test.want)
			}
			if err != nil && len(err.Error()) > 512 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestExpiry(t *testing.T) {
	east := time.FixedZone("east", 9*3600)
	for _, test := range []struct {
		value   string
		holds   time.Time // the last second
		written string
	}{
		{"2026-12-01", time.Date(2026, 12, 1, 23, 59, 59, 0, east), "2026-12-01"},
		{`"2026-12-01"`, time.Date(2026, 12, 1, 23, 59, 59, 0, east), "2026-12-01"},
		{"2026-12-31", time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC), "2026-12-31"},
		{"2026-12-01T10:00:00", time.Date(2026, 12, 1, 9, 59, 59, 0, east), "2026-12-01T10:00:00"},
		{`"2026-12-01 10:00"`, time.Date(2026, 12, 1, 9, 59, 59, 0, east), "2026-12-01T10:00:00"},
		{"2026-12-01T10:00:00Z", time.Date(2026, 12, 1, 18, 59, 59, 0, east), "2026-12-01T10:00:00Z"},
		{`"2026-12-01T10:00:00+09:00"`, time.Date(2026, 12, 1, 0, 59, 59, 0, time.UTC), "2026-12-01T10:00:00+09:00"},
	} {
		b, _, err := Parse("a.md", []byte("+++\nexpires = "+test.value+"\n+++\nbody"))
		if err != nil {
			t.Fatalf("%s: %v", test.value, err)
		}
		if b.Expires.Over(test.holds) || !b.Expires.Over(test.holds.Add(time.Second)) {
			t.Errorf("%s: over at %v: %v, a second later: %v", test.value, test.holds,
				b.Expires.Over(test.holds), b.Expires.Over(test.holds.Add(time.Second)))
		}
		if got := b.Expires.String(); got != test.written {
			t.Errorf("%s: written as %s", test.value, got)
		}
	}
}

// FuzzParse: what parses is written by Format so that it parses as the same,
// and nothing makes Parse panic or grow.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "+++", "+++\n+++\nbody", "\uFEFF+++\r\ntitle = \"a\"\r\n+++\r\nbody\r\n",
		"+++\nprojects = [\"~/a/**\", \"/x\\\\{\"]\nbranches = ['a*']\nsources = [\"new\"]\n+++\nb\xff",
		"+++\nexpires = 2027-01-31T10:00:00.5+01:00\npriority = 4\nonce = true\n+++\n\n  x\n```\n",
		"+++\nexpires = 0000-01-01\nsession_title = \"\\u0000\"\nprint = true\n+++\nx",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, _, err := Parse("a.md", data)
		if (b == nil) == (err == nil) {
			t.Fatalf("%v, %v", b, err)
		}
		if err != nil {
			if len(err.Error()) > 1024 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		again, _, err := Parse("a.md", Format(b))
		if err != nil {
			t.Fatalf("%v\n%s", err, Format(b))
		}
		if !b.Expires.time.Equal(again.Expires.time) {
			t.Fatalf("expires: %v, %v", b.Expires, again.Expires)
		}
		again.Expires.time = b.Expires.time // the same instant in another zone
		if !reflect.DeepEqual(b, again) {
			t.Fatalf("got  %+v\nwant %+v", again, b)
		}
	})
}

func ExampleFormat() {
	fmt.Printf("%s", Format(&Briefing{Title: `The "new" queue`, Sources: []string{Startup}, Body: "It is called jobs."}))
	// Output:
	// +++
	// title = "The \"new\" queue"
	// sources = ["startup"]
	// +++
	//
	// It is called jobs.
}
