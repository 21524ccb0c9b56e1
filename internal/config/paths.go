package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// appName names our folder in each of the platform's places.
const appName = "session-keeper"

// PathsFor returns the places as far as the environment decides them, without
// reading the settings file: Store is where the archive is unless the file
// says otherwise. A place that cannot be told is empty; only if State is one
// of those is there an error, which wraps ErrNoHome.
func PathsFor(env Env) (Paths, error) {
	s := Settings{Origin: map[string]Origin{}}
	if err := s.place(env); err != nil {
		return Paths{}, err
	}
	if err := s.chooseStore(env); err != nil {
		s.Paths.Store = ""
	}
	return s.Paths, nil
}

// place sets all paths but the store's.
func (s *Settings) place(env Env) error {
	var err error
	if s.Paths.Config, s.Origin["paths.config"], err = configFile(env); err != nil {
		return err
	}
	if s.Paths.State, s.Origin["paths.state"], err = stateDir(env); err != nil {
		return err
	}
	s.Paths.Cache, s.Origin["paths.cache"], err = cacheDir(env)
	return err
}

func configFile(env Env) (string, Origin, error) {
	if env.GOOS == "windows" {
		dir, origin, err := platformDir(env, "APPDATA", "AppData", "Roaming")
		return filepath.Join(dir, appName, "config.toml"), origin, err
	}
	dir, origin, err := platformDir(env, "XDG_CONFIG_HOME", ".config")
	return filepath.Join(dir, appName, "config.toml"), origin, err
}

func stateDir(env Env) (string, Origin, error) {
	if env.GOOS == "windows" {
		dir, origin, err := platformDir(env, "LOCALAPPDATA", "AppData", "Local")
		return filepath.Join(dir, appName+"-state"), origin, err
	}
	dir, origin, err := platformDir(env, "XDG_STATE_HOME", ".local", "state")
	return filepath.Join(dir, appName), origin, err
}

func cacheDir(env Env) (string, Origin, error) {
	switch env.GOOS {
	case "windows":
		dir, origin, err := platformDir(env, "LOCALAPPDATA", "AppData", "Local")
		return filepath.Join(dir, appName+"-cache"), origin, err
	case "darwin":
		dir, origin, err := platformDir(env, "XDG_CACHE_HOME", "Library", "Caches")
		return filepath.Join(dir, appName), origin, err
	}
	dir, origin, err := platformDir(env, "XDG_CACHE_HOME", ".cache")
	return filepath.Join(dir, appName), origin, err
}

// dataDir returns the default root of the store.
func dataDir(env Env) (string, error) {
	var dir string
	var err error
	switch env.GOOS {
	case "windows":
		dir, _, err = platformDir(env, "LOCALAPPDATA", "AppData", "Local")
	case "darwin":
		dir, _, err = platformDir(env, "", "Library", "Application Support")
	default:
		dir, _, err = platformDir(env, "XDG_DATA_HOME", ".local", "share")
	}
	return filepath.Join(dir, appName), err
}

// platformDir returns the value of a variable that names a base folder, or
// the default below the home directory. A relative value is ignored, as the
// XDG base directory specification demands.
func platformDir(env Env, variable string, fallback ...string) (string, Origin, error) {
	if variable != "" {
		if dir := env.Getenv(variable); filepath.IsAbs(dir) {
			return filepath.Clean(dir), Origin(variable), nil
		}
	}
	if !filepath.IsAbs(env.Home) {
		return "", "", ErrNoHome
	}
	return filepath.Join(append([]string{env.Home}, fallback...)...), defaultOrigin, nil
}

// chooseClientDirs sets ClientDirs. What the client makes of an odd
// CLAUDE_CONFIG_DIR is not documented, so each reading of it is a place to
// look: it is one path whatever it holds, taken relative to where the session
// began, and a ~ that no shell expanded is a folder of that name or the home.
func (s *Settings) chooseClientDirs(env Env) {
	add := func(dir string) {
		if dir != "" && filepath.IsAbs(dir) {
			if dir = filepath.Clean(dir); !slices.Contains(s.ClientDirs, dir) {
				s.ClientDirs = append(s.ClientDirs, dir)
			}
		}
	}
	s.ClientDirs = nil
	if dir := env.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		if strings.HasPrefix(dir, "~") {
			if expanded, err := ExpandHome(env, dir); err == nil {
				add(expanded)
			}
		}
		if filepath.IsAbs(dir) {
			add(dir)
		} else {
			for _, base := range []string{env.Getenv("CLAUDE_PROJECT_DIR"), env.Dir} {
				if filepath.IsAbs(base) {
					add(filepath.Join(base, dir))
				}
			}
		}
	}
	if env.Home != "" {
		add(filepath.Join(env.Home, ".claude"))
	}
	for _, dir := range s.Client.ConfigDirs {
		add(dir)
	}
	seen, err := SeenClientDirs(s.Paths.State)
	if err != nil {
		s.Warnings = append(s.Warnings, Warning{File: s.Paths.State, Text: "remembered client folders: " + err.Error()})
	}
	for _, dir := range seen {
		add(dir)
	}
}
