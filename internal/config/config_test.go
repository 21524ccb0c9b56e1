//go:build unix

package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testEnv returns a world with its own home and the given variables.
func testEnv(t *testing.T, vars map[string]string) Env {
	t.Helper()
	return Env{
		Getenv: func(name string) string { return vars[name] },
		Home:   filepath.Join(t.TempDir(), "home"),
		Dir:    "/work dir",
		GOOS:   "linux",
	}
}

// writeConfig writes the settings file where env expects it.
func writeConfig(t *testing.T, env Env, text string) string {
	t.Helper()
	path := filepath.Join(env.Home, ".config", "session-keeper", "config.toml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustLoad(t *testing.T, env Env) *Settings {
	t.Helper()
	s, err := Load(env)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPaths(t *testing.T) {
	const home = "/home/u"
	tests := []struct {
		name, goos string
		vars       map[string]string
		want       Paths
	}{
		{"linux", "linux", nil, Paths{
			Config: home + "/.config/session-keeper/config.toml",
			Store:  home + "/.local/share/session-keeper",
			State:  home + "/.local/state/session-keeper",
			Cache:  home + "/.cache/session-keeper",
		}},
		{"linux with XDG", "linux", map[string]string{
			"XDG_CONFIG_HOME": "/c/", "XDG_DATA_HOME": "/d", "XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "/k",
		}, Paths{Config: "/c/session-keeper/config.toml", Store: "/d/session-keeper", State: "/s/session-keeper", Cache: "/k/session-keeper"}},
		{"relative XDG is ignored", "linux", map[string]string{"XDG_STATE_HOME": "s", "XDG_DATA_HOME": "./d"}, Paths{
			Config: home + "/.config/session-keeper/config.toml",
			Store:  home + "/.local/share/session-keeper",
			State:  home + "/.local/state/session-keeper",
			Cache:  home + "/.cache/session-keeper",
		}},
		{"macOS", "darwin", nil, Paths{
			Config: home + "/.config/session-keeper/config.toml",
			Store:  home + "/Library/Application Support/session-keeper",
			State:  home + "/.local/state/session-keeper",
			Cache:  home + "/Library/Caches/session-keeper",
		}},
		{"store from the environment", "linux", map[string]string{"SESSION_KEEPER_HOME": "~/a/../b/"}, Paths{
			Config: home + "/.config/session-keeper/config.toml",
			Store:  home + "/b",
			State:  home + "/.local/state/session-keeper",
			Cache:  home + "/.cache/session-keeper",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := Env{Getenv: func(n string) string { return tt.vars[n] }, Home: home, GOOS: tt.goos}
			got, err := PathsFor(env)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("PathsFor (-want +got):\n%s", diff)
			}
		})
	}
}

// FS-04: there is no home, or none that exists.
func TestNoHome(t *testing.T) {
	env := testEnv(t, nil)
	env.Home = ""
	if _, err := Load(env); !errors.Is(err, ErrNoHome) {
		t.Errorf("Load without a home: %v, want %v", err, ErrNoHome)
	}
	if _, err := PathsFor(env); !errors.Is(err, ErrNoHome) {
		t.Errorf("PathsFor without a home: %v, want %v", err, ErrNoHome)
	}

	dir := t.TempDir()
	env = testEnv(t, map[string]string{
		"XDG_CONFIG_HOME": dir, "XDG_STATE_HOME": dir, "XDG_CACHE_HOME": dir, "SESSION_KEEPER_HOME": dir, "CLAUDE_CONFIG_DIR": dir,
	})
	env.Home = ""
	if s := mustLoad(t, env); s.Paths.Store != dir || !slices.Equal(s.ClientDirs, []string{dir}) {
		t.Errorf("with all places named: store %s, clients %q", s.Paths.Store, s.ClientDirs)
	}

	for _, home := range []string{"/nonexistent", "/dev/null"} {
		env := testEnv(t, nil)
		env.Home = home
		if s := mustLoad(t, env); s.Paths.Store != home+"/.local/share/session-keeper" {
			t.Errorf("home %s: store %s", home, s.Paths.Store)
		}
	}
}

func TestDefaults(t *testing.T) {
	s := mustLoad(t, testEnv(t, nil))
	if s.Archive.Inline != InlineAuto || s.Log.Days != defaultLogDays || len(s.Archive.Exclude) > 0 || len(s.Warnings) > 0 {
		t.Errorf("defaults: %+v", s)
	}
	for key, origin := range s.Origin {
		if origin != defaultOrigin {
			t.Errorf("%s comes from %s", key, origin)
		}
	}
	if s.Archive.Root != s.Paths.Store {
		t.Errorf("root %s, store %s", s.Archive.Root, s.Paths.Store)
	}
}

// The client takes the folder's name from the environment only together with a
// config folder.
func TestProjectDirName(t *testing.T) {
	for _, c := range []struct{ config, want string }{{"", ""}, {"/c", "p"}} {
		env := testEnv(t, map[string]string{"CLAUDE_CODE_PROJECT_DIR_NAME": "p", "CLAUDE_CONFIG_DIR": c.config})
		if got := mustLoad(t, env).ProjectDirName; got != c.want {
			t.Errorf("with config folder %q: %q, want %q", c.config, got, c.want)
		}
	}
}

func TestFile(t *testing.T) {
	env := testEnv(t, nil)
	// IO-02: a byte order mark, and the line ends that come with it.
	path := writeConfig(t, env, "\uFEFF# mine\r\n[archive]\r\nroot = \"~/arch\"\r\nexclude = [\"~/private\", \"*.secret\"]\r\ninline = \"never\"\r\n\r\n[client]\r\nconfig_dirs = [\"~/other/\"]\r\n[log]\r\ndays = 3\r\n")
	s := mustLoad(t, env)
	if s.Paths.Store != filepath.Join(env.Home, "arch") || s.Archive.Inline != InlineNever || s.Log.Days != 3 {
		t.Errorf("settings %+v", s)
	}
	if diff := cmp.Diff([]string{"~/private", "*.secret"}, s.Archive.Exclude); diff != "" {
		t.Error(diff)
	}
	if want := []string{filepath.Join(env.Home, ".claude"), filepath.Join(env.Home, "other")}; !slices.Equal(s.ClientDirs, want) {
		t.Errorf("client folders %q, want %q", s.ClientDirs, want)
	}
	for key, want := range map[string]Origin{
		"archive.root": Origin(path + ":3"), "archive.exclude": Origin(path + ":4"), "archive.inline": Origin(path + ":5"),
		"client.config_dirs": Origin(path + ":8"), "log.days": Origin(path + ":10"), "paths.state": "default",
	} {
		if s.Origin[key] != want {
			t.Errorf("%s comes from %s, want %s", key, s.Origin[key], want)
		}
	}

	env.Getenv = func(name string) string { return map[string]string{"SESSION_KEEPER_HOME": "/env"}[name] }
	if s := mustLoad(t, env); s.Paths.Store != "/env" || s.Origin["archive.root"] != "SESSION_KEEPER_HOME" {
		t.Errorf("environment: store %s from %s", s.Paths.Store, s.Origin["archive.root"])
	}
}

func TestUnknownKeys(t *testing.T) {
	env := testEnv(t, nil)
	path := writeConfig(t, env, "later = 1\n[archive]\n# remark\ncolour = \"red\"\n\n[briefing]\nbudget = 6000\n")
	var got []string
	for _, w := range mustLoad(t, env).Warnings {
		got = append(got, w.String())
	}
	want := []string{
		path + `:1: unknown key "later"`,
		path + `:4: unknown key "archive.colour"`,
		path + `:6: unknown key "briefing"`,
		path + `:7: unknown key "briefing.budget"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestBrokenFile(t *testing.T) {
	tests := []struct {
		name, text string
		line       int
		want       string
	}{
		{"syntax", "[archive]\nexclude = [\"a\"\ninline = 1\n", 3, ""},
		{"type", "[archive]\n\nexclude = \"~/private\"\n", 3, "archive.exclude: must be a list of strings"},
		{"type of an element", "[archive]\nexclude = [1]\n", 0, "string"},
		{"no table", "archive = 3\n", 1, "archive: must be a table"},
		{"inline", "[archive]\ninline = \"maybe\"\n", 2, `archive.inline: "maybe" is not one of auto, always, never`},
		{"relative root", "[archive]\nroot = \"arch\"\n", 2, `archive.root: "arch" is not an absolute path`},
		{"relative client", "[client]\nconfig_dirs = [\"/a\", \"b\"]\n", 2, `"b" is not an absolute path`},
		{"days", "[log]\ndays = 0\n", 2, "less than one day"},
		{"empty glob", "[archive]\nexclude = [\" \"]\n", 2, "empty glob"},
		{"UTF-16", "\xFF\xFE[\x00a\x00]\x00", 0, ""}, // IO-02
		{"long value", "[archive]\ninline = \"" + strings.Repeat("x", 10_000) + "\"\n", 2, "x…"},
		{"large", strings.Repeat("# remark\n", 200_000), 0, "larger than 1 MiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := testEnv(t, nil)
			path := writeConfig(t, env, tt.text)
			_, err := Load(env)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v, want an *Error", err)
			}
			if e.File != path || tt.line != 0 && e.Line != tt.line || !strings.Contains(e.Error(), tt.want) {
				t.Errorf("error %v, want line %d and %q", e, tt.line, tt.want)
			}
			if len(e.Error()) > 1000 {
				t.Errorf("error of %d bytes", len(e.Error()))
			}
		})
	}
}

func TestRelativeStoreInEnvironment(t *testing.T) {
	_, err := Load(testEnv(t, map[string]string{"SESSION_KEEPER_HOME": "arch"}))
	if want := `SESSION_KEEPER_HOME: "arch" is not an absolute path`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// A settings file that is none must neither hang nor be taken for no settings.
func TestStrangeFiles(t *testing.T) {
	env := testEnv(t, nil)
	path := writeConfig(t, env, "")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("this file system has no named pipes")
	}
	if _, err := Load(env); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("named pipe: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(env); err == nil {
		t.Error("folder: no error")
	}

	// A link, as dotfile managers make it, is followed.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	real := filepath.Join(t.TempDir(), "real.toml")
	if err := os.WriteFile(real, []byte("[log]\ndays = 7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, path); err != nil {
		t.Fatal(err)
	}
	if s := mustLoad(t, env); s.Log.Days != 7 {
		t.Errorf("through a link: %d days", s.Log.Days)
	}
}

// PA-08: odd values of CLAUDE_CONFIG_DIR, each one path.
func TestClientDirs(t *testing.T) {
	tests := []struct {
		value string
		want  []string // HOME stands for the home directory
	}{
		{"", []string{"HOME/.claude"}},
		{"/x", []string{"/x", "HOME/.claude"}},
		{"/x/", []string{"/x", "HOME/.claude"}},
		{"/x//y/../z", []string{"/x/z", "HOME/.claude"}},
		{"/x,/y", []string{"/x,/y", "HOME/.claude"}},
		{"/x:/y", []string{"/x:/y", "HOME/.claude"}},
		{"~/cfg", []string{"HOME/cfg", "/proj/~/cfg", "/work dir/~/cfg", "HOME/.claude"}},
		{"~", []string{"HOME", "/proj/~", "/work dir/~", "HOME/.claude"}},
		{"~other/cfg", []string{"/proj/~other/cfg", "/work dir/~other/cfg", "HOME/.claude"}},
		{"cfg", []string{"/proj/cfg", "/work dir/cfg", "HOME/.claude"}},
		{"./cfg/", []string{"/proj/cfg", "/work dir/cfg", "HOME/.claude"}},
		{" ", []string{"/proj/ ", "/work dir/ ", "HOME/.claude"}},
	}
	for _, tt := range tests {
		env := testEnv(t, map[string]string{"CLAUDE_CONFIG_DIR": tt.value, "CLAUDE_PROJECT_DIR": "/proj"})
		var want []string
		for _, dir := range tt.want {
			want = append(want, strings.Replace(dir, "HOME", env.Home, 1))
		}
		if s := mustLoad(t, env); !slices.Equal(s.ClientDirs, want) {
			t.Errorf("CLAUDE_CONFIG_DIR=%q: %q, want %q", tt.value, s.ClientDirs, want)
		}
	}
}

func TestSeen(t *testing.T) {
	env := testEnv(t, nil)
	state := filepath.Join(env.Home, ".local", "state", "session-keeper")
	for range 2 { // again is nothing new
		for _, dir := range []string{"/a/.claude", "/b with space/.claude/", "/ü\n"} {
			if err := RememberClientDir(state, dir); err != nil {
				t.Fatal(err)
			}
		}
		for _, dir := range []string{"/mnt/spool", DefaultSpool(state)} {
			if err := RememberSpool(state, dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := RememberSpool(state, "relative"); err == nil {
		t.Error("a relative spool was remembered")
	}
	s := mustLoad(t, env)
	got := slices.Sorted(slices.Values(s.ClientDirs[1:]))
	if want := []string{"/a/.claude", "/b with space/.claude", "/ü\n"}; s.ClientDirs[0] != filepath.Join(env.Home, ".claude") || !slices.Equal(got, want) {
		t.Errorf("client folders %q, want the default one and %q", s.ClientDirs, want)
	}
	spools, err := SeenSpools(state)
	if want := []string{DefaultSpool(state), "/mnt/spool"}; err != nil || !slices.Equal(spools, want) {
		t.Errorf("spools %q, %v, want %q", spools, err, want)
	}

	// Damage is told and does not hide the rest.
	if err := os.WriteFile(filepath.Join(state, "seen", "configs", "0123456789abcdef"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = mustLoad(t, env)
	if len(s.ClientDirs) != 4 || len(s.Warnings) != 1 {
		t.Errorf("with a damaged file: %q, warnings %v", s.ClientDirs, s.Warnings)
	}

	info, err := os.Stat(filepath.Join(state, "seen", "configs", "0123456789abcdef"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// SM-06: whatever the umask, what is made is the user's alone.
func TestSeenModes(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	state := filepath.Join(t.TempDir(), "state")
	if err := RememberSpool(state, "/mnt/spool"); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(state, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
