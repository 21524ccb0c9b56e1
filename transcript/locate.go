package transcript

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Errors of Locate.
var (
	ErrNotFound  = errors.New("no such session")
	ErrInvalidID = errors.New("not a session id")
)

// How says how a bundle was found.
type How uint8

// Ways to find a bundle.
const (
	ByPath How = iota + 1 // at the path that the event named
	ByID                  // by its id, in one of the project folders
)

// String names the way in a word.
func (h How) String() string {
	switch h {
	case ByPath:
		return "path"
	case ByID:
		return "id"
	}
	return fmt.Sprintf("how %d", uint8(h))
}

// A Locator finds sessions below the client's config folders. It remembers listings
// of folders that did not change, so one Locator should serve a whole run. It may be
// used by several goroutines at once.
type Locator struct {
	ConfigDirs     []string // absolute; the first one found wins among equals
	ProjectDirName string   // CLAUDE_CODE_PROJECT_DIR_NAME, "" if that is not in force

	mu       sync.Mutex
	listings map[string]listing
	agents   map[string]string // path of a flat agent file to the session its records name
}

// A Bundle is one session on disk: its transcript and everything beside it.
type Bundle struct {
	SessionID  string
	ConfigDir  string    // as configured, or as the event's path says
	Folder     string    // name of the project folder below projects/
	ProjectDir string    // that folder, symbolic links resolved
	Transcript string    // symbolic links resolved; "" for a husk: side files without a transcript
	Size       int64     // of the transcript in bytes
	ModTime    time.Time // of the transcript; of the side folder for a husk
	Found      How
	Others     []string  // further copies of this id, which the client may stumble over
	Passed     []Skipped // what looked like the session and was not taken

	l *Locator
}

// Husk reports whether only side files are left of the session, or there never was
// more: forks and subagents leave such folders. It cannot be resumed.
func (b Bundle) Husk() bool { return b.Transcript == "" }

// Skipped is something that was passed over, and why.
type Skipped struct {
	Path   string
	Reason string
}

// Locate finds a session: at the path that an event names if that passes the rules,
// else by its id over all project folders of all config folders. The path may be
// absent, stale, or wrong; it is never trusted.
//
// The path counts if it has the form <config>/projects/<folder>/<id>.jsonl, also if
// that config folder is not one of ConfigDirs: the client may run with another one.
// Either way the transcript is a regular file of the user's, named after the id.
//
// Of several copies of an id the one at the path wins, else the one with the newest
// message; the rest are named in Others (only a search by id sees them all). Without
// a transcript anywhere a side folder of the id is returned as a husk. The errors
// are ErrInvalidID and ErrNotFound.
func (l *Locator) Locate(sessionID, hint string) (Bundle, error) {
	if !ValidSessionID(sessionID) {
		return Bundle{}, fmt.Errorf("%w: %.64q", ErrInvalidID, sessionID)
	}
	var passed []Skipped
	if hint != "" {
		b, err := l.byPath(sessionID, hint)
		if err == nil {
			return b, nil
		}
		passed = append(passed, Skipped{hint, reason(err)})
	}
	all, skipped, err := l.LocateAll(sessionID)
	passed = append(passed, skipped...)
	if err != nil {
		return Bundle{Passed: passed}, err
	}
	b := all[0]
	for _, other := range all[1:] {
		b.Others = append(b.Others, other.place())
	}
	b.Passed = passed
	return b, nil
}

// place is where the bundle's main part lies.
func (b Bundle) place() string {
	if b.Husk() {
		return filepath.Join(b.ProjectDir, b.SessionID)
	}
	return b.Transcript
}

// byPath takes a transcript at the path that an event names.
func (l *Locator) byPath(id, hint string) (Bundle, error) {
	if strings.ContainsRune(hint, 0) || !filepath.IsAbs(hint) {
		return Bundle{}, refuse(hint, "is no absolute path")
	}
	hint = filepath.Clean(hint)
	folder := filepath.Dir(hint)
	projects := filepath.Dir(folder)
	if filepath.Base(projects) != projectsDir {
		return Bundle{}, refuse(hint, "does not lie in a config folder of the client")
	}
	f, t, err := openTranscript(hint, id)
	if err != nil {
		return Bundle{}, err
	}
	f.Close()
	b := Bundle{
		SessionID: id, ConfigDir: filepath.Dir(projects), Folder: filepath.Base(folder),
		Transcript: t.path, Size: t.Size(), ModTime: t.ModTime(), Found: ByPath, l: l,
	}
	if b.ProjectDir, err = filepath.EvalSymlinks(folder); err != nil {
		return Bundle{}, err
	}
	// The config folder gets the name under which it is configured.
	if at, err := os.Stat(projects); err == nil {
		for _, dir := range l.ConfigDirs {
			if fi, err := os.Stat(filepath.Join(dir, projectsDir)); err == nil && os.SameFile(at, fi) {
				b.ConfigDir = dir
				break
			}
		}
	}
	return b, nil
}

// LocateAll returns every copy of a session, the one first that Locate would choose:
// transcripts with something in them, newest message first, then empty ones; or, if
// there is no transcript, side folders. It costs one look at each project folder.
func (l *Locator) LocateAll(sessionID string) ([]Bundle, []Skipped, error) {
	if !ValidSessionID(sessionID) {
		return nil, nil, fmt.Errorf("%w: %.64q", ErrInvalidID, sessionID)
	}
	folders, skipped := l.folders()
	var all []Bundle
	for _, p := range folders {
		path := filepath.Join(p.path, sessionID+transcriptExt)
		if _, err := os.Lstat(path); err != nil {
			skipped = noteUnlessAbsent(skipped, path, err)
			continue
		}
		b, err := p.transcript(l, sessionID)
		if err != nil {
			skipped = append(skipped, Skipped{path, reason(err)})
			continue
		}
		all = append(all, b)
	}
	if len(all) == 0 {
		for _, p := range folders {
			path := filepath.Join(p.path, sessionID)
			if fi, err := os.Lstat(path); err == nil && fi.IsDir() {
				if b, err := p.husk(l, sessionID, fi); err == nil {
					all = append(all, b)
				}
			}
		}
	}
	if all = order(all); len(all) == 0 {
		if len(skipped) > 0 {
			return nil, skipped, fmt.Errorf("%w: %s (passed over: %s: %s)",
				ErrNotFound, sessionID, skipped[0].Path, skipped[0].Reason)
		}
		return nil, nil, fmt.Errorf("%w: %s", ErrNotFound, sessionID)
	}
	return all, skipped, nil
}

// Sessions returns every session below the config folders, each id once, husks
// included, the most recently written first. No transcript is opened but those that
// are symbolic links or have the id of another. Files that are no sessions, such as
// a subagent's, are not mentioned; what looks like a session and is none is.
func (l *Locator) Sessions(ctx context.Context) ([]Bundle, []Skipped, error) {
	folders, skipped := l.folders()
	found := make(map[string][]Bundle)
	husks := make(map[string][]Bundle)
	for _, p := range folders {
		if err := ctx.Err(); err != nil {
			return nil, skipped, err
		}
		list, err := l.list(p.path)
		if err != nil {
			skipped = append(skipped, Skipped{p.path, reason(err)})
			continue
		}
		for _, e := range list.entries {
			name := e.Name()
			if id := sessionOf(name); id != "" {
				b, err := p.entry(l, id, e)
				if err == nil {
					found[id] = append(found[id], b)
				} else if !errors.Is(err, fs.ErrNotExist) || e.Type()&fs.ModeSymlink != 0 {
					skipped = append(skipped, Skipped{filepath.Join(p.path, name), reason(err)})
				}
			} else if e.IsDir() && ValidSessionID(name) {
				if fi, err := e.Info(); err == nil {
					if b, err := p.husk(l, name, fi); err == nil {
						husks[name] = append(husks[name], b)
					}
				}
			}
		}
	}
	all := make([]Bundle, 0, len(found))
	one := func(copies []Bundle) {
		copies = order(copies)
		if len(copies) == 0 {
			return
		}
		b := copies[0]
		for _, other := range copies[1:] {
			b.Others = append(b.Others, other.place())
		}
		all = append(all, b)
	}
	for _, copies := range found {
		one(copies)
	}
	for id, copies := range husks {
		if len(found[id]) == 0 {
			one(copies)
		}
	}
	slices.SortFunc(all, func(a, b Bundle) int {
		return cmp.Or(b.ModTime.Compare(a.ModTime), cmp.Compare(a.SessionID, b.SessionID))
	})
	return all, skipped, nil
}

// A projectFolder is one folder below a config folder's projects/.
type projectFolder struct {
	config, name string
	path         string // symbolic links resolved
}

// folders lists the project folders of all config folders, each real one once.
func (l *Locator) folders() ([]projectFolder, []Skipped) {
	var all []projectFolder
	var skipped []Skipped
	seen := make(map[string]bool)
	for _, config := range l.ConfigDirs {
		root := filepath.Join(config, projectsDir)
		if !filepath.IsAbs(root) {
			skipped = append(skipped, Skipped{config, "is no absolute path"})
			continue
		}
		root, err := filepath.EvalSymlinks(root)
		if err != nil {
			skipped = noteUnlessAbsent(skipped, filepath.Join(config, projectsDir), err)
			continue
		}
		if seen[root] {
			continue
		}
		seen[root] = true
		list, err := l.list(root)
		if err != nil {
			skipped = append(skipped, Skipped{root, reason(err)})
			continue
		}
		// Real folders first: a link to one of them is the same folder again.
		for _, links := range []bool{false, true} {
			for _, e := range list.entries {
				p := projectFolder{config, e.Name(), filepath.Join(root, e.Name())}
				switch {
				case links && e.Type()&fs.ModeSymlink != 0:
					at := p.path
					if p.path, err = filepath.EvalSymlinks(at); err != nil {
						skipped = append(skipped, Skipped{at, reason(err)})
						continue
					}
					if fi, err := os.Stat(p.path); err != nil || !fi.IsDir() {
						continue
					}
				case links || !e.IsDir():
					continue
				}
				if !seen[p.path] {
					seen[p.path] = true
					all = append(all, p)
				}
			}
		}
	}
	return all, skipped
}

// transcript makes the bundle of a transcript in the folder, after opening it.
func (p projectFolder) transcript(l *Locator, id string) (Bundle, error) {
	f, t, err := openTranscript(filepath.Join(p.path, id+transcriptExt), id)
	if err != nil {
		return Bundle{}, err
	}
	f.Close()
	return p.bundle(l, id, t.path, t), nil
}

// entry makes the bundle of a listed transcript, opening it only if it is a link.
func (p projectFolder) entry(l *Locator, id string, e fs.DirEntry) (Bundle, error) {
	if e.Type()&fs.ModeSymlink != 0 {
		return p.transcript(l, id)
	}
	fi, err := e.Info()
	if err != nil {
		return Bundle{}, err
	}
	path := filepath.Join(p.path, e.Name())
	if err := checkRegular(path, fi); err != nil {
		return Bundle{}, err
	}
	return p.bundle(l, id, path, fi), nil
}

// husk makes the bundle of a side folder, whose mtime may be older than its files'.
func (p projectFolder) husk(l *Locator, id string, fi fs.FileInfo) (Bundle, error) {
	if !ownedByUser(fi) {
		return Bundle{}, refuse(filepath.Join(p.path, id), "belongs to someone else")
	}
	b := p.bundle(l, id, "", fi)
	b.Size = 0
	return b, nil
}

func (p projectFolder) bundle(l *Locator, id, transcript string, fi fs.FileInfo) Bundle {
	return Bundle{
		SessionID: id, ConfigDir: p.config, Folder: p.name, ProjectDir: p.path,
		Transcript: transcript, Size: fi.Size(), ModTime: fi.ModTime(), Found: ByID, l: l,
	}
}

// order drops bundles of one and the same file and puts the others into the order in
// which they are to be preferred.
func order(all []Bundle) []Bundle {
	if len(all) < 2 {
		return all
	}
	// A mtime tells little: the client appends bookkeeping to idle sessions.
	last := make(map[string]time.Time)
	seen := make(map[string]bool)
	all = slices.DeleteFunc(all, func(b Bundle) bool {
		place := b.place()
		if seen[place] {
			return true
		}
		seen[place] = true
		if f, fi, err := b.Open(); err == nil {
			// A copy whose end cannot be read counts as old, no more: it is named.
			if t, err := ReadTail(f, fi.Size()); err == nil {
				last[place] = t.Last
			}
			f.Close()
		}
		return false
	})
	slices.SortStableFunc(all, func(a, b Bundle) int {
		if (a.Size == 0) != (b.Size == 0) {
			return cmp.Compare(min(b.Size, 1), min(a.Size, 1))
		}
		return cmp.Or(last[b.place()].Compare(last[a.place()]), cmp.Compare(b.Size, a.Size),
			b.ModTime.Compare(a.ModTime))
	})
	return all
}

// Open opens the transcript for reading and checks it again: the path may have
// changed hands since the bundle was found. A husk gives fs.ErrNotExist.
func (b Bundle) Open() (*os.File, os.FileInfo, error) {
	if b.Husk() {
		return nil, nil, fmt.Errorf("session %s has no transcript: %w", b.SessionID, fs.ErrNotExist)
	}
	f, t, err := openTranscript(b.Transcript, b.SessionID)
	if err != nil {
		return nil, nil, err
	}
	return f, t.FileInfo, nil
}

// SidecarTitle returns the title in the side folder's custom-title.json, "" if there
// is none that can be read.
func (b Bundle) SidecarTitle() string {
	text, err := readSmall(filepath.Join(b.ProjectDir, b.SessionID, "custom-title.json"), maxSmall)
	if err != nil {
		return ""
	}
	return ParseSidecarTitle(text)
}

// maxSmall bounds the client's small JSON files, in bytes.
const maxSmall = 64 << 10

// ParseSidecarTitle returns the title that a custom-title.json holds, "" if none.
func ParseSidecarTitle(text []byte) string { return Value{text}.Member("customTitle").String() }

// noteUnlessAbsent adds a note about an error that is more than absence. A file
// where a folder is looked for is absence.
func noteUnlessAbsent(notes []Skipped, path string, err error) []Skipped {
	if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
		return notes
	}
	return append(notes, Skipped{path, reason(err)})
}

// reason is an error without the path that stands beside it anyway.
func reason(err error) string {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
