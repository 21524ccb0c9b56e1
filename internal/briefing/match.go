package briefing

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/session-keeper/session-keeper/internal/config"
)

// Session is what a briefing is matched against.
type Session struct {
	ID         string // for briefings that are said once; "" if unknown
	Source     string // of the event; one that is not known is taken as startup
	Dir        string // the project's directory; its links are resolved
	Branch     string // "" if there is none
	Unattended bool   // print mode, the SDK: only briefings that ask for it
	Now        time.Time
	Env        config.Env // for ~ in patterns
}

// matcher matches briefings against one session.
type matcher struct {
	Session
	dir  string      // real, with slashes
	info os.FileInfo // of dir; nil if it is not there
	disk *disk
}

func newMatcher(s Session) matcher {
	m := matcher{Session: s, disk: newDisk(lookTime)}
	if s.Dir == "" {
		return m
	}
	dir := RealDir(s.Dir)
	m.dir = filepath.ToSlash(dir)
	if info, err := os.Stat(dir); err == nil {
		m.info = info
	}
	return m
}

// RealDir gives the name of a directory without links, as the client names
// projects; where that cannot be told, the name as given.
func RealDir(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return filepath.Clean(dir)
}

// refuse gives the first reason why a briefing is not for this session; ""
// if it is.
func (m matcher) refuse(e Entry) (Status, string) {
	b := e.Briefing
	if b.Body == "" {
		return Empty, "it holds no text"
	}
	if b.Expires.Over(m.Now) {
		return Expired, "it expired: " + b.Expires.String()
	}
	if m.Unattended && !b.Print {
		return Unattended, "nobody attends this session, and it does not say print = true"
	}
	if len(b.Sources) > 0 && !slices.Contains(b.Sources, m.Source) &&
		(slices.Contains(Sources, m.Source) || !slices.Contains(b.Sources, Startup)) {
		return OtherSource, fmt.Sprintf("it is for %s, this is %q", quoted(b.Sources), shorten(m.Source, 80))
	}
	if len(b.Branches) > 0 && !slices.ContainsFunc(b.Branches, func(glob string) bool {
		return m.Branch != "" && match(glob, distinct(m.Branch))
	}) {
		if m.Branch == "" {
			return OtherBranch, fmt.Sprintf("it is for the branches %s, there is none here", quoted(b.Branches))
		}
		return OtherBranch, fmt.Sprintf("it is for the branches %s, this is %q", quoted(b.Branches), shorten(m.Branch, 200))
	}
	if len(b.Projects) > 0 && !slices.ContainsFunc(b.Projects, func(glob string) bool { return m.inProject(e, glob) }) {
		why := fmt.Sprintf("it is for %s, this is %q", quoted(b.Projects), m.dir)
		if m.disk.tired != nil {
			why += "; where its paths lead could not be told, a disk did not answer"
		}
		return OtherProject, why
	}
	return "", ""
}

// inProject tells whether the session's directory is one that pattern names.
//
// A pattern is an absolute path, or begins with ~, or in a repository's
// briefing may be relative to the repository's root ("." is the root itself).
// It names that very folder, however it is spelled or linked, and none below
// it; "/**" at the end stands for the folder and all below. Wildcards are *, ?
// and [a-z] within a name, and ** for any number of folders; the part before
// the first of them may hold links. The client's own name for a project's
// folder is never compared: different directories share it (PA-01, PA-02).
func (m matcher) inProject(e Entry, pattern string) bool {
	if m.dir == "" {
		return false
	}
	if !isRooted(pattern) {
		if e.Root == "" {
			return false
		}
		pattern = escapeGlob(filepath.ToSlash(RealDir(e.Root))) + "/" + strings.TrimPrefix(pattern, "./")
		pattern = strings.TrimSuffix(pattern, "/.")
	} else if rest, ok := strings.CutPrefix(pattern, "~"); ok {
		if m.Env.Home == "" {
			return false
		}
		home := strings.TrimSuffix(filepath.ToSlash(filepath.Clean(m.Env.Home)), "/")
		pattern = cmp.Or(escapeGlob(home)+rest, "/")
	}
	if len(pattern) > 1 {
		pattern = strings.TrimSuffix(pattern, "/")
	}
	if matchDir(pattern, m.dir) {
		return true
	}
	base, rest := pattern, ""
	if hasWildcard(pattern) {
		base, rest = doublestar.SplitPattern(pattern)
	}
	base = unescapeGlob(base)
	at := m.disk.look(base)
	if rest == "" {
		return at.info != nil && m.info != nil && os.SameFile(at.info, m.info)
	}
	if at.real == "" {
		return false
	}
	return matchDir(strings.TrimSuffix(escapeGlob(filepath.ToSlash(at.real)), "/")+"/"+rest, m.dir)
}

func matchDir(pattern, dir string) bool { return match(fold(distinct(pattern)), fold(distinct(dir))) }

// match matches a glob against a name with slashes in it.
func match(pattern, name string) bool {
	// The library lets [^a] stand for a slash too.
	if !strings.Contains(pattern, "**") && strings.Count(pattern, "/") != strings.Count(name, "/") {
		return false
	}
	return doublestar.MatchUnvalidated(pattern, name)
}

// distinct gives bytes that are no UTF-8 a character each, the last ones that
// there are. The library takes all such bytes, and U+FFFD, for the same.
func distinct(path string) string {
	const first = unicode.MaxRune - 0x7f // for the byte 0x80
	isTaken := func(r rune) bool { return r >= first }
	if utf8.ValidString(path) && !strings.ContainsFunc(path, isTaken) {
		return path
	}
	var out strings.Builder
	for i := 0; i < len(path); {
		r, size := utf8.DecodeRuneInString(path[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			r = first + rune(path[i]) - 0x80
		case isTaken(r):
			out.WriteByte(0) // which no path holds
		}
		out.WriteRune(r)
		i += size
	}
	return out.String()
}

// isRooted tells whether a pattern stands for itself: absolute, or from ~ on.
func isRooted(pattern string) bool {
	return strings.HasPrefix(pattern, "/") || pattern == "~" || strings.HasPrefix(pattern, "~/") ||
		filepath.IsAbs(filepath.FromSlash(pattern))
}

const wildcards = `*?[{\`

func hasWildcard(pattern string) bool {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '*', '?', '[', '{':
			return true
		}
	}
	return false
}

func escapeGlob(path string) string {
	if !strings.ContainsAny(path, wildcards) {
		return path
	}
	var out strings.Builder
	for i := 0; i < len(path); i++ { // bytes: a path need not be UTF-8
		if strings.IndexByte(wildcards, path[i]) >= 0 {
			out.WriteByte('\\')
		}
		out.WriteByte(path[i])
	}
	return out.String()
}

func unescapeGlob(pattern string) string {
	if !strings.Contains(pattern, `\`) {
		return pattern
	}
	var out strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '\\' && i+1 < len(pattern) {
			i++
		}
		out.WriteByte(pattern[i])
	}
	return out.String()
}

// fold lowers case where file systems usually do not tell it apart.
func fold(path string) string {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return strings.ToLower(path)
	}
	return path
}

func quoted(list []string) string {
	var out []string
	for i, s := range list {
		if i == 5 {
			out = append(out, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		out = append(out, fmt.Sprintf("%q", shorten(s, 80)))
	}
	return strings.Join(out, ", ")
}
