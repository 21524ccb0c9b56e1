//go:build unix

package optout

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/internal/config"
)

const (
	sessionA = "b2055b9e-4f0b-4d39-9a55-1f2a3b4c5d6e"
	sessionB = "84784f3a-4f0b-4d39-9a55-1f2a3b4c5d6e"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func testSettings(t *testing.T, vars map[string]string, exclude ...string) *config.Settings {
	t.Helper()
	dir := t.TempDir()
	s, err := config.Load(config.Env{
		Getenv: func(name string) string { return vars[name] },
		Home:   filepath.Join(dir, "home"),
		GOOS:   "linux",
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Archive.Exclude = exclude
	s.Origin["archive.exclude"] = "config.toml:7"
	return s
}

func mustCheck(t *testing.T, s *config.Settings, session string, dirs []string, now time.Time) Decision {
	t.Helper()
	d, err := Check(s, session, dirs, now)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestVariable(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "on": false, "1": false, "true": false, "Yes": false, " on ": false,
		"off": true, "OFF": true, "0": true, "false": true, "no": true, " off\n": true,
		"disabled": true, "/some/path": true, // neither yes nor no: taken as no
	} {
		s := testSettings(t, map[string]string{"SESSION_KEEPER": value})
		d := mustCheck(t, s, sessionA, nil, noon)
		if d.Skip != want || want && d.Reason != Off {
			t.Errorf("SESSION_KEEPER=%q: %+v", value, d)
		}
	}
}

func TestExclude(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real := filepath.Join(base, "real", "private")
	for _, dir := range []string{real, filepath.Join(real, "deep", "er"), filepath.Join(base, "real", "private-not"), filepath.Join(base, "open")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(filepath.Join(base, "real"), link); err != nil {
		t.Fatal(err)
	}

	tests := []struct {
		glob, dir string
		want      bool
	}{
		{base + "/real/private", real, true},
		{base + "/real/private/", real, true},
		{base + "/real/private", real + "/deep/er", true},
		{base + "/real/private", real + "/gone/since", true},
		{base + "/real/private", base + "/real/private-not", false},
		{base + "/real/private", base + "/real", false},
		{base + "/real/private/**", real, true},
		{base + "/real/private/*", real + "/deep", true},
		{base + "/real/private/*", real + "/deep/er", true},
		{base + "/real/private/*", real, false},
		{base + "/real/priv*", base + "/real/private-not", true},
		{base + "/*/private", real + "/deep", true},
		{base + "/**/er", real + "/deep/er/est", true},
		{base + "/re[a-b]l/privat?", real, true},
		{base + "/{open,real}", base + "/open/x", true},
		// Links: in the glob, in the directory, in both.
		{link + "/private", real, true},
		{base + "/real/private", link + "/private/deep", true},
		{link + "/private", link + "/private", true},
		{link + "/priv*", real, true},
		{link + "/private", link + "/private/not/there", true},
		// A name alone is meant anywhere.
		{"private", real + "/deep", true},
		{"deep/er", real + "/deep/er", true},
		{"private", base + "/open", false},
		{"*.secret", base + "/open/a.secret/b", true},
		{"**/er", real + "/deep/er", true},
		{"./private", real, true},
		{"/", base + "/open", true},
		{"/**", base + "/open", true},
		// What the client names otherwise than the glob.
		{base + "/open", base + "/open/../open/", true},
		{base + "/open", "relative/open", false},
		{base + "/open", "", false},
	}
	for _, tt := range tests {
		s := testSettings(t, nil, "/elsewhere", tt.glob)
		d := mustCheck(t, s, sessionA, []string{"", tt.dir}, noon)
		if d.Skip != tt.want || tt.want && d.Reason != Excluded {
			t.Errorf("glob %s, directory %s: %+v", tt.glob, tt.dir, d)
		}
		past, err := CheckPast(s, sessionA, []string{tt.dir}, noon)
		if err != nil || past.Skip != tt.want {
			t.Errorf("past: glob %s, directory %s: %+v, %v", tt.glob, tt.dir, past, err)
		}
	}
}

func TestExcludeHome(t *testing.T) {
	s := testSettings(t, nil, "~/private")
	if d := mustCheck(t, s, sessionA, []string{filepath.Join(s.Env.Home, "private", "x")}, noon); !d.Skip {
		t.Error("~ was not expanded")
	}
	if d := mustCheck(t, s, sessionA, []string{"/private"}, noon); d.Skip {
		t.Errorf("another folder: %+v", d)
	}
}

// A glob that cannot be read must not mean that nothing is excluded.
func TestBadGlob(t *testing.T) {
	for _, glob := range []string{"/a/[", "/a/{b", `/a\`} {
		s := testSettings(t, nil, glob)
		_, err := Check(s, sessionA, []string{"/x"}, noon)
		var e *config.Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), "config.toml:7: archive.exclude: ") {
			t.Errorf("glob %q: error %v", glob, err)
		}
		if Validate(s) == nil {
			t.Errorf("glob %q is valid", glob)
		}
	}
}

func TestMarks(t *testing.T) {
	s := testSettings(t, nil)
	state := s.Paths.State
	if _, marked, err := Marked(state, sessionA); marked || err != nil {
		t.Fatalf("marked before anything: %v, %v", marked, err)
	}
	if err := Lift(state, sessionA); err != nil {
		t.Errorf("lift of nothing: %v", err)
	}
	if _, err := os.Stat(state); err == nil {
		t.Error("asking made the state folder")
	}

	if err := MarkOut(state, sessionA, Off, noon); err != nil {
		t.Fatal(err)
	}
	if err := MarkOut(state, sessionA, Paused, noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	mark, marked, err := Marked(state, sessionA)
	if err != nil || !marked || mark.Reason != Off || !mark.Time.Equal(noon) {
		t.Errorf("mark %+v, %v, %v", mark, marked, err)
	}
	if d := mustCheck(t, s, sessionA, nil, noon); !d.Skip || d.Reason != KeptOut || !strings.Contains(d.Detail, "off") {
		t.Errorf("decision %+v", d)
	}
	if d := mustCheck(t, s, sessionB, nil, noon); d.Skip {
		t.Errorf("another session: %+v", d)
	}
	if d, err := CheckPast(s, sessionA, nil, noon); err != nil || d.Reason != KeptOut {
		t.Errorf("past: %+v, %v", d, err)
	}

	if err := Lift(state, sessionA); err != nil {
		t.Fatal(err)
	}
	if d := mustCheck(t, s, sessionA, nil, noon); d.Skip {
		t.Errorf("after Lift: %+v", d)
	}

	if err := MarkOut(state, sessionA, Excluded, noon); err != nil {
		t.Fatal(err)
	}
	if err := Forget(state, sessionA, noon); err != nil {
		t.Fatal(err)
	}
	if d := mustCheck(t, s, sessionA, nil, noon); !d.Skip || d.Reason != Forgotten {
		t.Errorf("after Forget: %+v", d)
	}
	if _, marked, err := Marked(state, sessionA); marked || err != nil {
		t.Errorf("the mark outlived Forget: %v, %v", marked, err)
	}
	// The tombstone stays whatever is lifted.
	if err := Lift(state, sessionA); err != nil {
		t.Fatal(err)
	}
	if forgotten, err := IsForgotten(state, sessionA); err != nil || !forgotten {
		t.Errorf("forgotten: %v, %v", forgotten, err)
	}

	// No word of a session is in any mark, and all is the user's alone (SM-06).
	err = filepath.WalkDir(state, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if d.IsDir() {
			return nil
		}
		data, err := os.ReadFile(path)
		if strings.Contains(path+string(data), sessionA[:8]) {
			t.Errorf("%s names the session", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What cannot be read may say no, so the answer is an error.
func TestDamagedState(t *testing.T) {
	s := testSettings(t, nil)
	state := s.Paths.State
	if err := MarkOut(state, sessionA, Off, noon); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(state, keyFile)
	good, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(key, good[:31], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(s, sessionA, nil, noon); err == nil || !strings.Contains(err.Error(), key) {
		t.Errorf("damaged key: %v", err)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(s, sessionA, nil, noon); err == nil || !strings.Contains(err.Error(), key) {
		t.Errorf("lost key: %v", err)
	}

	if err := os.WriteFile(key, good, 0o600); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(state, outFolder))
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d marks, %v", len(entries), err)
	}
	if err := os.WriteFile(filepath.Join(state, outFolder, entries[0].Name()), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if d := mustCheck(t, s, sessionA, nil, noon); !d.Skip {
		t.Errorf("damaged mark: %+v", d)
	}

	if err := os.WriteFile(filepath.Join(state, pauseFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(s, sessionB, nil, noon); err == nil || !strings.Contains(err.Error(), pauseFile) {
		t.Errorf("damaged pauses: %v", err)
	}
	if _, err := CheckPast(s, sessionB, nil, noon); err == nil {
		t.Error("damaged pauses: no error for the past")
	}
	if err := Pause(state, time.Time{}, noon); err == nil {
		t.Error("damaged pauses were written over")
	}
}

// FS-04: where no state can be kept there are no marks, and that is no error.
func TestNoState(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := testSettings(t, nil)
	s.Paths.State = filepath.Join(file, "state")
	if d := mustCheck(t, s, sessionA, nil, noon); d.Skip {
		t.Errorf("%+v", d)
	}
	if err := MarkOut(s.Paths.State, sessionA, Off, noon); err == nil {
		t.Error("a mark that cannot be made is no error")
	}
}

func TestPause(t *testing.T) {
	s := testSettings(t, nil)
	state := s.Paths.State
	at := func(hours int) time.Time { return noon.Add(time.Duration(hours) * time.Hour) }
	paused := func(now time.Time) bool {
		t.Helper()
		d := mustCheck(t, s, sessionA, nil, now)
		return d.Skip && d.Reason == Paused
	}
	if was, err := Unpause(state, noon); was || err != nil {
		t.Errorf("unpause of nothing: %v, %v", was, err)
	}
	if paused(noon) {
		t.Error("paused before anything")
	}

	// Without an end.
	if err := Pause(state, time.Time{}, noon); err != nil {
		t.Fatal(err)
	}
	if !paused(noon) || !paused(at(10_000)) || !paused(at(-1)) {
		t.Error("an open pause does not hold, or not when the clock was set back")
	}
	// A pause in a pause changes its end.
	if err := Pause(state, at(4), at(1)); err != nil {
		t.Fatal(err)
	}
	if !paused(at(3)) || paused(at(4)) {
		t.Error("the new end does not hold")
	}
	if was, err := Unpause(state, at(2)); !was || err != nil {
		t.Errorf("unpause: %v, %v", was, err)
	}
	if paused(at(2)) || paused(at(3)) {
		t.Error("paused after unpause")
	}
	if was, err := Unpause(state, at(2)); was || err != nil {
		t.Errorf("unpause twice: %v, %v", was, err)
	}
	// With an end that comes.
	if err := Pause(state, at(11), at(10)); err != nil {
		t.Fatal(err)
	}
	if was, err := Unpause(state, at(12)); was || err != nil {
		t.Errorf("unpause after the end: %v, %v", was, err)
	}
	if err := Pause(state, at(20), at(21)); err == nil {
		t.Error("a pause that is over before it begins")
	}

	// What was active in a pause stays out of catch-up.
	for hours, want := range map[int]bool{-1: false, 0: true, 1: true, 2: false, 5: false, 10: true, 11: false, 30: false} {
		d, err := CheckPast(s, sessionA, nil, at(hours))
		if err != nil || d.Skip != want || want && d.Reason != Paused {
			t.Errorf("last active at hour %d: %+v, %v", hours, d, err)
		}
	}
	pauses, err := Pauses(state)
	if err != nil || len(pauses) != 2 {
		t.Errorf("pauses %v, %v", pauses, err)
	}
	info, err := os.Stat(filepath.Join(state, pauseFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// Two processes may make the first mark at once: both must hold.
func TestMarksInParallel(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	errs := make(chan error)
	sessions := []string{sessionA, sessionB}
	for i := range 20 {
		go func() { errs <- MarkOut(state, sessions[i%2], Off, noon) }()
	}
	for range 20 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for _, session := range sessions {
		if _, marked, err := Marked(state, session); !marked || err != nil {
			t.Errorf("%s: %v, %v", session, marked, err)
		}
	}
}
