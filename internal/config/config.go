// Package config reads the settings: file, environment, defaults, and their origin.
//
// Every value is known together with where it came from, so that a person can
// be told. A file that cannot be understood is an error with file and line,
// never a silent default: a setting may say what must not be archived. An
// unknown key is a warning, because a newer version may have written it.
package config

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
)

// Env is the outside world that settings depend on. Tests pass their own.
type Env struct {
	Getenv func(string) string // os.Getenv
	Home   string              // the home directory; "" if there is none
	Dir    string              // the working directory; "" if there is none
	GOOS   string              // runtime.GOOS
}

// SystemEnv returns this process's world. Without HOME the home directory is
// the one of the user database, where the client looks as well.
func SystemEnv() Env {
	env := Env{Getenv: os.Getenv, GOOS: runtime.GOOS}
	if home, err := os.UserHomeDir(); err == nil {
		env.Home = home
	} else if u, err := user.Current(); err == nil {
		env.Home = u.HomeDir
	}
	if dir, err := os.Getwd(); err == nil {
		env.Dir = dir
	}
	return env
}

// Paths are the places on this machine. All are absolute and clean.
type Paths struct {
	Config string // the settings file; need not exist
	Store  string // the archive's root
	State  string // spool, marks, pauses, logs, index
	Cache  string // what can be made again
}

// Inline says whether the hook at a session's end waits until the worker has
// archived the session.
type Inline string

// The values of Inline.
const (
	InlineAuto   Inline = "auto"   // a tenth of a second, for a small one
	InlineAlways Inline = "always" // as long as it takes: for containers, where nothing outlives the client
	InlineNever  Inline = "never"
)

// Archive is the table [archive].
type Archive struct {
	Root    string   `toml:"root"`    // the store's root; absolute, or from ~ on
	Exclude []string `toml:"exclude"` // globs on a session's real directory
	Inline  Inline   `toml:"inline"`
}

// Client is the table [client].
type Client struct {
	ConfigDirs []string `toml:"config_dirs"` // further config folders of the client
}

// Compact is the table [compact].
type Compact struct {
	Instructions string `toml:"instructions"` // what a summary is to hold to; "" for nothing
}

// Log is the table [log].
type Log struct {
	Days int `toml:"days"` // how long log files are kept
}

// defaultLogDays is long enough to look back over a holiday.
const defaultLogDays = 30

// Settings are the effective settings.
type Settings struct {
	Archive Archive
	Client  Client
	Compact Compact
	Log     Log

	Paths  Paths
	Origin map[string]Origin // by key: archive.root, archive.exclude, …, paths.config, paths.state, paths.cache

	// ClientDirs are the client's config folders in the order to look: the
	// one in use, the default one, those of the settings, those seen before.
	// They need not exist.
	ClientDirs []string
	// ProjectDirName is CLAUDE_CODE_PROJECT_DIR_NAME, which replaces the name
	// of the project's folder; "" without CLAUDE_CONFIG_DIR, since the client
	// then ignores it (documented from 2.1.234 on).
	ProjectDirName string

	Warnings []Warning
	Env      Env
}

// Origin says where a value came from, in words for people: "default",
// "SESSION_KEEPER_HOME", "/path/config.toml:3".
type Origin string

const defaultOrigin Origin = "default"

// Warning is a remark on the settings that stops nothing.
type Warning struct {
	File string
	Line int // from 1; 0 if unknown
	Text string
}

func (w Warning) String() string { return place(w.File, w.Line) + ": " + w.Text }

// Error is a setting that could not be understood.
type Error struct {
	File string // the settings file, or the name of an environment variable
	Line int    // from 1; 0 if unknown or if there are no lines
	Err  error
}

func (e *Error) Error() string { return place(e.File, e.Line) + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// ErrNoHome says that there is no home directory to keep anything in.
var ErrNoHome = errors.New("no home directory: HOME is not set")

func place(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// Load reads the settings. The error is an *Error if a setting is at fault,
// and wraps ErrNoHome if there is no place for anything. A settings file that
// does not exist is no error.
func Load(env Env) (*Settings, error) {
	s := &Settings{
		Archive: Archive{Inline: InlineAuto},
		Log:     Log{Days: defaultLogDays},
		Origin:  map[string]Origin{},
		Env:     env,
	}
	for _, key := range []string{"archive.root", "archive.exclude", "archive.inline", "client.config_dirs", "compact.instructions", "log.days"} {
		s.Origin[key] = defaultOrigin
	}
	if err := s.place(env); err != nil {
		return nil, err
	}
	if err := s.readFile(s.Paths.Config); err != nil {
		return nil, err
	}
	if err := s.chooseStore(env); err != nil {
		return nil, err
	}
	if env.Getenv("CLAUDE_CONFIG_DIR") != "" {
		s.ProjectDirName = env.Getenv("CLAUDE_CODE_PROJECT_DIR_NAME")
	}
	s.chooseClientDirs(env)
	return s, nil
}

// chooseStore sets the store's root: environment, file, default.
func (s *Settings) chooseStore(env Env) error {
	switch fromEnv := env.Getenv("SESSION_KEEPER_HOME"); {
	case fromEnv != "":
		root, err := absolute(env, fromEnv)
		if err != nil {
			return &Error{File: "SESSION_KEEPER_HOME", Err: err}
		}
		s.Paths.Store = root
		s.Origin["archive.root"] = "SESSION_KEEPER_HOME"
	case s.Archive.Root != "":
		root, err := absolute(env, s.Archive.Root)
		if err != nil {
			return &Error{File: s.Paths.Config, Line: lineOf(s.Origin["archive.root"]), Err: fmt.Errorf("archive.root: %w", err)}
		}
		s.Paths.Store = root
	default:
		root, err := dataDir(env)
		if err != nil {
			return err
		}
		s.Paths.Store = root
	}
	s.Archive.Root = s.Paths.Store
	return nil
}

// absolute expands ~ and insists on an absolute path: a hook runs wherever the
// session happens to be.
func absolute(env Env, path string) (string, error) {
	expanded, err := ExpandHome(env, path)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(expanded) {
		return "", fmt.Errorf("%q is not an absolute path", shorten(path))
	}
	return filepath.Clean(expanded), nil
}

// ExpandHome replaces a ~ that stands alone at the start of path. Another
// user's home (~name) is left as it is.
func ExpandHome(env Env, path string) (string, error) {
	if path != "~" && !strings.HasPrefix(path, "~/") && !strings.HasPrefix(path, "~"+string(filepath.Separator)) {
		return path, nil
	}
	if env.Home == "" {
		return "", ErrNoHome
	}
	return filepath.Join(env.Home, path[1:]), nil
}

// shorten bounds what of bad input is shown.
func shorten(s string) string {
	const most = 64 // bytes
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
