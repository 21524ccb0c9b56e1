package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/internal/config"
)

// app makes one whose home is the machine's.
func (m *machine) app(out *bytes.Buffer) *app {
	return &app{
		in: strings.NewReader(""), out: out, errw: out,
		env: config.Env{Getenv: func(string) string { return "" }, Home: m.home, Dir: m.home, GOOS: "linux"},
		now: time.Now,
	}
}

// Commands that take a session offer ids with their titles: all, or those that
// they can do something with.
func TestCompletion(t *testing.T) {
	m := newMachine(t)
	m.session(1, true)
	if code, _, errs := m.run("", "archive", interactiveID); code != 0 {
		t.Fatal(errs)
	}
	other := strings.Replace(interactiveID, "0a", "0b", 1)
	data, err := os.ReadFile(m.path())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(strings.Replace(m.path(), interactiveID, other, 1), data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args        []string
		wants, nots []string
	}{
		{[]string{"show", ""}, []string{interactiveID + "\tprompt 0", other + "\tprompt 0", "last\t"}, nil},
		{[]string{"cat", "0b"}, []string{other}, []string{interactiveID, "last"}},
		{[]string{"forget", "0a"}, []string{interactiveID}, []string{other}},
		{[]string{"restore", ""}, []string{interactiveID}, []string{other}},
		{[]string{"verify", ""}, []string{interactiveID}, []string{other}},
		{[]string{"archive", interactiveID, ""}, []string{interactiveID, other}, nil},
		{[]string{"show", interactiveID, ""}, nil, []string{interactiveID, other, "last"}},
	} {
		code, out, errs := m.run("", append([]string{"__complete"}, c.args...)...)
		if code != 0 {
			t.Errorf("%q: exit code %d: %s", c.args, code, errs)
		}
		for _, want := range c.wants {
			if !strings.Contains(out, want) {
				t.Errorf("%q offers no %q:\n%s", c.args, want, out)
			}
		}
		for _, not := range c.nots {
			if strings.Contains(out, not) {
				t.Errorf("%q offers %q:\n%s", c.args, not, out)
			}
		}
	}
}

// A full id says all that archive needs: nothing is read to find the session,
// since a large transcript takes longer to read than to archive.
func TestArchiveByFullIDReadsNothing(t *testing.T) {
	m := newMachine(t)
	m.session(1, false)
	var out bytes.Buffer
	a := m.app(&out)
	d, err := a.openDesk()
	if err != nil {
		t.Fatal(err)
	}
	looked := errors.New("looked into the session")
	d.catalog.KeptOut = func(string, []string, time.Time) (bool, error) { return false, looked }
	d.catalog.Forgotten = func(string) (bool, error) {
		t.Error(looked)
		return false, nil
	}
	found, err := a.bundles(context.Background(), d, interactiveID)
	if err != nil || len(found) != 1 || found[0].Transcript != m.path() {
		t.Errorf("found %+v, %v", found, err)
	}
}
