package transcript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Families of files in a bundle: what each is, and where Rel is relative to.
const (
	FamilyTranscript  = "transcript"   // projects/<folder>/: <id>.jsonl
	FamilyBeside      = "beside"       // projects/<folder>/: other files <id>.*
	FamilySession     = "session"      // projects/<folder>/<id>/: subagents, tool results, title, whatever comes
	FamilyAgents      = "agents"       // projects/<folder>/: agent-*.jsonl of clients before 2.1.2
	FamilyFileHistory = "file-history" // file-history/<id>/
	FamilySessionEnv  = "session-env"  // session-env/<id>/
	FamilyTasks       = "tasks"        // tasks/<id>/
	FamilyTodos       = "todos"        // todos/: <id>*.json of older clients
	FamilyImageCache  = "image-cache"  // image-cache/<id>/
	FamilyUploads     = "uploads"      // uploads/<id>/
	FamilyPlans       = "plans"        // plans/: <slug>.md, shared by sessions
)

// Families lists all families, in the order in which files are listed.
func Families() []string {
	return []string{
		FamilyTranscript, FamilyBeside, FamilySession, FamilyAgents, FamilyFileHistory, FamilySessionEnv,
		FamilyTasks, FamilyTodos, FamilyImageCache, FamilyUploads, FamilyPlans,
	}
}

// A File is one file of a bundle.
type File struct {
	Family  string
	Rel     string // slash-separated; together with the family it names the file within the bundle
	Path    string // where it lies
	Size    int64
	Mode    fs.FileMode // permission bits
	ModTime time.Time
}

// FilesOptions say how thorough ListFiles is.
type FilesOptions struct {
	NoReads  bool     // read no file: no agents family, and no plans but those of Slugs
	Slugs    []string // plans that are known to be the session's
	SlugsEnd int64    // up to this offset the transcript was searched for slugs before
}

// Files lists every file of the bundle: by family, then by name. What is no regular
// file of the user's is skipped with a note; symbolic links inside the bundle are
// not followed.
func (b Bundle) Files() ([]File, []Skipped, error) {
	return b.ListFiles(context.Background(), FilesOptions{})
}

// ListFiles is Files with options. To know the session's plans it searches the
// transcript for their names, from SlugsEnd on; to know its older agents it opens
// each agent file of the folder once. When ctx is done, its error comes with the
// files found so far.
func (b Bundle) ListFiles(ctx context.Context, o FilesOptions) ([]File, []Skipped, error) {
	if !ValidSessionID(b.SessionID) {
		return nil, nil, fmt.Errorf("%w: %.64q", ErrInvalidID, b.SessionID)
	}
	c := collector{ctx: ctx, b: b, l: b.l}
	if c.l == nil {
		c.l = new(Locator)
	}
	slugs := slices.Clone(o.Slugs)
	if !b.Husk() {
		f, fi, err := b.Open()
		if err != nil {
			return nil, nil, fmt.Errorf("open transcript: %w", err)
		}
		c.files = append(c.files, fileOf(FamilyTranscript, b.SessionID+transcriptExt, b.Transcript, fi))
		if !o.NoReads {
			slugs, _, err = findSlugs(ctx, f, o.SlugsEnd, slugs)
		}
		f.Close()
		if err != nil {
			return nil, nil, fmt.Errorf("search transcript for plans: %w", err)
		}
	}
	c.named(FamilyBeside, b.ProjectDir, func(name string) bool {
		return strings.HasPrefix(name, b.SessionID+".") && name != b.SessionID+transcriptExt
	})
	c.tree(FamilySession, filepath.Join(b.ProjectDir, b.SessionID))
	if !o.NoReads {
		c.named(FamilyAgents, b.ProjectDir, func(name string) bool {
			return isAgentFile(name) && c.l.agentSession(filepath.Join(b.ProjectDir, name)) == b.SessionID
		})
	}
	for _, family := range []string{FamilyFileHistory, FamilySessionEnv, FamilyTasks} {
		c.tree(family, filepath.Join(b.ConfigDir, family, b.SessionID))
	}
	c.named(FamilyTodos, filepath.Join(b.ConfigDir, FamilyTodos), func(name string) bool {
		return isTodosFile(name, b.SessionID)
	})
	for _, family := range []string{FamilyImageCache, FamilyUploads} {
		c.tree(family, filepath.Join(b.ConfigDir, family, b.SessionID))
	}
	plans := filepath.Join(b.ConfigDir, FamilyPlans)
	slices.Sort(slugs)
	for _, slug := range slices.Compact(slugs) {
		if !validSlug(slug) {
			c.skip(plans, fmt.Sprintf("plan name %.64q is none the client makes", slug))
			continue
		}
		c.file(FamilyPlans, slug+planExt, filepath.Join(plans, slug+planExt))
	}
	return c.files, c.skipped, ctx.Err()
}

// A collector gathers the files of one bundle.
type collector struct {
	ctx     context.Context
	b       Bundle
	l       *Locator
	files   []File
	skipped []Skipped
}

func (c *collector) skip(path, why string) { c.skipped = append(c.skipped, Skipped{path, why}) }

func fileOf(family, rel, path string, fi fs.FileInfo) File {
	return File{
		Family: family, Rel: rel, Path: path,
		Size: fi.Size(), Mode: fi.Mode().Perm(), ModTime: fi.ModTime(),
	}
}

// file adds a file if it is there and is a regular one of the user's.
func (c *collector) file(family, rel, path string) {
	fi, err := os.Lstat(path)
	if err != nil {
		c.skipped = noteUnlessAbsent(c.skipped, path, err)
		return
	}
	c.add(family, rel, path, fi)
}

func (c *collector) add(family, rel, path string, fi fs.FileInfo) {
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		c.skip(path, "is a symbolic link")
	case fi.IsDir():
		c.skip(path, "is a folder")
	case !fi.Mode().IsRegular():
		c.skip(path, "is no regular file")
	case !ownedByUser(fi):
		c.skip(path, "belongs to someone else")
	default:
		c.files = append(c.files, fileOf(family, rel, path, fi))
	}
}

// named adds the files in dir that belong.
func (c *collector) named(family, dir string, belongs func(name string) bool) {
	list, err := c.l.list(dir)
	if err != nil {
		c.skipped = noteUnlessAbsent(c.skipped, dir, err)
		return
	}
	for _, e := range list.entries {
		if c.ctx.Err() != nil {
			return
		}
		if name := e.Name(); belongs(name) {
			c.file(family, name, filepath.Join(dir, name))
		}
	}
}

// tree adds all files below root, which is no symbolic link itself.
func (c *collector) tree(family, root string) {
	fi, err := os.Lstat(root)
	if err != nil {
		c.skipped = noteUnlessAbsent(c.skipped, root, err)
		return
	}
	if !fi.IsDir() {
		c.skip(root, "is no folder")
		return
	}
	from := len(c.files)
	c.below(family, root, "", 0)
	slices.SortFunc(c.files[from:], func(a, b File) int { return strings.Compare(a.Rel, b.Rel) })
}

// maxTree is how deep folders are entered.
const maxTree = 64

func (c *collector) below(family, dir, rel string, depth int) {
	if c.ctx.Err() != nil {
		return
	}
	if depth > maxTree {
		c.skip(dir, "lies too deep")
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		c.skipped = noteUnlessAbsent(c.skipped, dir, err)
	}
	for _, e := range entries {
		if isTemporary(e.Name()) {
			continue
		}
		at, name := filepath.Join(dir, e.Name()), path.Join(rel, e.Name())
		if e.IsDir() {
			c.below(family, at, name, depth+1)
			continue
		}
		fi, err := e.Info()
		if err != nil {
			c.skipped = noteUnlessAbsent(c.skipped, at, err)
			continue
		}
		c.add(family, name, at, fi)
	}
}

// isTemporary reports whether a file is one that a restore is just filling, or left
// when it was killed: ".tmp-sk-" and 16 hex digits. It is no part of the session yet.
func isTemporary(name string) bool {
	digits, ok := strings.CutPrefix(name, ".tmp-sk-")
	return ok && len(digits) == 16 && strings.Trim(digits, "0123456789abcdef") == ""
}

const (
	agentPrefix = "agent-"
	todosExt    = ".json"
	planExt     = ".md"
)

// isAgentFile reports whether a file beside transcripts is a subagent's, as clients
// before 2.1.2 wrote them.
func isAgentFile(name string) bool {
	return strings.HasPrefix(name, agentPrefix) && strings.HasSuffix(name, transcriptExt)
}

func isTodosFile(name, id string) bool {
	return strings.HasPrefix(name, id) && strings.HasSuffix(name, todosExt)
}

// validSlug reports whether s can be the name of a plan: words with dashes are what
// the client makes, and nothing that leads elsewhere is taken.
func validSlug(s string) bool {
	if s == "" || len(s) > 200 {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// findSlugs adds the slugs in a transcript's records from an offset on to those that
// are known, and returns the offset from which a later search has to go on. It parses
// only lines that may have an unknown one.
func findSlugs(ctx context.Context, f io.ReadSeeker, from int64, known []string) ([]string, int64, error) {
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return known, from, err
	}
	key := []byte(`"slug"`)
	s := NewScannerAt(f, from, 1)
	s.SetLimit(maxLine)
	for n := 1; s.Scan(); n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return known, s.Resume(), ctx.Err()
		}
		raw := s.Line().Raw
		i := bytes.Index(raw, key)
		if i < 0 {
			continue
		}
		// Damaged lines count too: a plan more is better than one less.
		fields, _ := ParseFields(raw)
		known = addName(known, fields.Slug)
	}
	return known, s.Resume(), s.Err()
}

// agentSession returns the session that an agent file's records name, "" if none.
func (l *Locator) agentSession(path string) string {
	l.mu.Lock()
	id, ok := l.agents[path]
	l.mu.Unlock()
	if ok {
		return id
	}
	if fi, err := os.Lstat(path); err != nil || !fi.Mode().IsRegular() {
		return ""
	}
	f, _, err := OpenRegular(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	s := NewScanner(&headReader{r: f, limit: headBytes, more: func() bool { return id == "" }})
	for id == "" && s.Scan() {
		fields, _ := ParseFields(s.Line().Raw)
		id = fields.SessionID.String()
	}
	if id != "" {
		l.mu.Lock()
		if l.agents == nil {
			l.agents = make(map[string]string)
		}
		l.agents[path] = id
		l.mu.Unlock()
	}
	return id
}

// A listing is what a folder held, sorted by name.
type listing struct {
	entries []fs.DirEntry
	mod     time.Time // the folder's mtime before it was read
}

// settled is how old a folder's mtime must be for its listing to be remembered: a
// change in the same tick of the file system's clock would not show.
const settled = 3 * time.Second

// list lists a folder, from memory if it did not change.
func (l *Locator) list(dir string) (listing, error) {
	fi, err := os.Stat(dir)
	if err != nil {
		return listing{}, err
	}
	l.mu.Lock()
	known, ok := l.listings[dir]
	l.mu.Unlock()
	if ok && known.mod.Equal(fi.ModTime()) {
		return known, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return listing{}, err
	}
	now := listing{entries, fi.ModTime()}
	if time.Since(fi.ModTime()) > settled {
		l.mu.Lock()
		if l.listings == nil {
			l.listings = make(map[string]listing)
		}
		l.listings[dir] = now
		l.mu.Unlock()
	}
	return now, nil
}

// ErrPlace is the error of a file that has no place in a bundle.
var ErrPlace = errors.New("no place in a session's files")

// Place returns where a file of a bundle belongs: the inverse of what Files lists.
// Family and rel may come from anywhere; nothing but the places that a client of
// this config folder uses for this session comes out. It does not look at the disk:
// a symbolic link on the way is the caller's to refuse.
func Place(configDir, folder, sessionID, family, rel string) (string, error) {
	if !filepath.IsAbs(configDir) {
		return "", fmt.Errorf("%w: config folder %.256q is no absolute path", ErrPlace, configDir)
	}
	if !ValidSessionID(sessionID) {
		return "", fmt.Errorf("%w: %.64q", ErrInvalidID, sessionID)
	}
	if !validFolder(folder) {
		return "", fmt.Errorf("%w: project folder %.256q", ErrPlace, folder)
	}
	bad := fmt.Errorf("%w: %.64q of family %.32q", ErrPlace, rel, family)
	local, err := filepath.Localize(rel)
	if err != nil || rel == "." {
		return "", bad
	}
	project := filepath.Join(configDir, projectsDir, folder)
	single := !strings.Contains(rel, "/")
	own := sessionID + transcriptExt
	switch family {
	case FamilyTranscript:
		if rel == own {
			return filepath.Join(project, local), nil
		}
	case FamilyBeside:
		// A name that differs by case alone would be the transcript on some disks.
		if single && strings.HasPrefix(rel, sessionID+".") && !strings.EqualFold(rel, own) {
			return filepath.Join(project, local), nil
		}
	case FamilySession:
		return filepath.Join(project, sessionID, local), nil
	case FamilyAgents:
		if single && isAgentFile(rel) {
			return filepath.Join(project, local), nil
		}
	case FamilyFileHistory, FamilySessionEnv, FamilyTasks, FamilyImageCache, FamilyUploads:
		return filepath.Join(configDir, family, sessionID, local), nil
	case FamilyTodos:
		if single && isTodosFile(rel, sessionID) {
			return filepath.Join(configDir, FamilyTodos, local), nil
		}
	case FamilyPlans:
		if slug, ok := strings.CutSuffix(rel, planExt); ok && validSlug(slug) {
			return filepath.Join(configDir, FamilyPlans, local), nil
		}
	}
	return "", bad
}

// validFolder reports whether s can be the name of one folder. The client's own are
// letters, digits and dashes; it takes others that it finds.
func validFolder(s string) bool {
	if s == "" || s == "." || s == ".." || len(s) > 255 || strings.ContainsAny(s, `/\:`) {
		return false
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			return false
		}
	}
	_, err := filepath.Localize(s)
	return err == nil
}
