// Package config reads the settings: file, environment, defaults, and their origin.
//
// Every value is known together with where it came from, so that a person can
// be told. A file that cannot be understood is an error with file and line,
// never a silent default: a setting may say what must not be archived. An
// unknown key is a warning, because a newer version may have written it.
package config

// Env is the outside world that settings depend on. Tests pass their own.
type Env struct {
	Getenv func(string) string // os.Getenv
	Home   string              // the home directory; "" if there is none
	Dir    string              // the working directory, for relative paths
	GOOS   string              // runtime.GOOS
}

// Paths are the places on this machine. All are absolute and clean.
type Paths struct {
	Config string // the settings file; need not exist
	Store  string // the archive's root
	State  string // spool, marks, pauses, logs, index
	Cache  string // what can be made again
}

// Inline says whether a hook may do the worker's work itself.
type Inline string

// The values of Inline.
const (
	InlineAuto   Inline = "auto"   // when it is small and the store is known to be near
	InlineAlways Inline = "always" // for containers, where nothing outlives the client
	InlineNever  Inline = "never"
)

// Archive is the table [archive].
type Archive struct {
	Root    string   `toml:"root"`    // the store's root
	Exclude []string `toml:"exclude"` // globs on a session's real directory
	Inline  Inline   `toml:"inline"`
}

// Client is the table [client].
type Client struct {
	ConfigDirs []string `toml:"config_dirs"` // further config folders of the client
}

// Log is the table [log].
type Log struct {
	Days int `toml:"days"` // how long log files are kept
}

// Settings are the effective settings.
type Settings struct {
	Archive Archive
	Client  Client
	Log     Log

	Paths  Paths
	Origin map[string]Origin // by key, as in "archive.root"

	// ClientDirs are the client's config folders in the order to look: the
	// one in use, the default one, those of the settings, those seen before.
	ClientDirs []string
	// ProjectDirName is CLAUDE_CODE_PROJECT_DIR_NAME.
	ProjectDirName string

	Warnings []Warning
	Env      Env
}

// Origin says where a value came from, in words for people: "default",
// "SESSION_KEEPER_HOME", "/path/config.toml:3".
type Origin string

// Warning is a remark on the settings file that stops nothing.
type Warning struct {
	File string
	Line int // from 1; 0 if unknown
	Text string
}

// Error is a settings file that could not be understood.
type Error struct {
	File string
	Line int // from 1; 0 if unknown
	Err  error
}
