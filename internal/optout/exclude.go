package optout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/session-keeper/session-keeper/internal/config"
)

// HasExcludes tells whether any directory can be excluded, so that a caller
// need not find out directories for nothing.
func HasExcludes(s *config.Settings) bool { return len(s.Archive.Exclude) > 0 }

// Validate checks the globs. The error is a *config.Error.
func Validate(s *config.Settings) error {
	_, err := newExcluder(s)
	return err
}

// excludedBy returns the first glob that excludes one of dirs.
//
// A glob names directories; one that matches a directory excludes all below
// it. A glob without a slash matches a directory of that name anywhere. Each
// directory is compared as it is given and with its links resolved, and a glob
// too, because the client names a project by its real directory and a person
// by the one he knows.
func excludedBy(s *config.Settings, dirs []string) (glob string, excluded bool, err error) {
	if !HasExcludes(s) {
		return "", false, nil
	}
	globs, err := newExcluder(s)
	if err != nil {
		return "", false, err
	}
	var paths []string
	for _, dir := range dirs {
		if dir == "" || !filepath.IsAbs(dir) {
			continue
		}
		dir = filepath.Clean(dir)
		paths = append(paths, dir)
		if real := resolve(dir); real != dir {
			paths = append(paths, real)
		}
	}
	for _, g := range globs {
		for _, path := range paths {
			if g.excludes(path) {
				return g.source, true, nil
			}
		}
	}
	return "", false, nil
}

// exclusion is one glob, ready to compare.
type exclusion struct {
	source   string
	patterns []string    // with slashes: as given, and with links resolved
	folder   os.FileInfo // what a glob without wildcards names, if it is there
}

// errBadGlob says that a glob cannot be read.
var errBadGlob = errors.New("not a valid glob")

func newExcluder(s *config.Settings) ([]exclusion, error) {
	exclusions := make([]exclusion, 0, len(s.Archive.Exclude))
	for _, source := range s.Archive.Exclude {
		expanded, err := config.ExpandHome(s.Env, source)
		if err == nil && !doublestar.ValidatePattern(filepath.ToSlash(expanded)) {
			err = errBadGlob
		}
		if err != nil {
			return nil, &config.Error{File: string(s.Origin["archive.exclude"]), Err: fmt.Errorf("archive.exclude: %q: %w", shorten(source), err)}
		}
		exclusions = append(exclusions, newExclusion(source, filepath.ToSlash(expanded)))
	}
	return exclusions, nil
}

func newExclusion(source, pattern string) exclusion {
	e := exclusion{source: source}
	pattern = strings.TrimSuffix(pattern, "/**") // a folder excludes all below it anyway
	if len(pattern) > 1 {
		pattern = strings.TrimSuffix(pattern, "/")
	}
	if pattern == "" {
		pattern = "/"
	}
	if !filepath.IsAbs(filepath.FromSlash(pattern)) && !strings.HasPrefix(pattern, "/") {
		pattern = strings.TrimPrefix(pattern, "./")
		if !strings.HasPrefix(pattern, "**/") {
			pattern = "**/" + pattern
		}
		e.patterns = []string{fold(pattern)}
		return e
	}
	e.patterns = []string{fold(pattern)}

	base, rest := doublestar.SplitPattern(pattern)
	if !strings.ContainsAny(pattern, `*?[{\`) {
		base, rest = pattern, ""
		// Same folder whatever the spelling: case, Unicode form, bind mount.
		if info, err := os.Stat(filepath.FromSlash(pattern)); err == nil {
			e.folder = info
		}
	}
	if real := filepath.ToSlash(resolve(filepath.FromSlash(base))); real != base {
		if rest != "" {
			real = strings.TrimSuffix(real, "/") + "/" + rest
		}
		e.patterns = append(e.patterns, fold(real))
	}
	return e
}

// excludes tells whether the glob matches path or a folder above it.
func (e exclusion) excludes(path string) bool {
	for at := path; ; at = filepath.Dir(at) {
		name := fold(filepath.ToSlash(at))
		for _, pattern := range e.patterns {
			if doublestar.MatchUnvalidated(pattern, name) {
				return true
			}
		}
		if e.folder != nil {
			if info, err := os.Stat(at); err == nil && os.SameFile(info, e.folder) {
				return true
			}
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// resolve resolves the links of a path, as far down as it exists.
func resolve(path string) string {
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return path
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// fold lowers case where file systems usually do not tell it apart. There an
// exclude that differs in case alone must still exclude.
func fold(path string) string {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return strings.ToLower(path)
	}
	return path
}
