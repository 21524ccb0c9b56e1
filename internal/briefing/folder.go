package briefing

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/durable"
)

// Bounds of reading, so that no folder can hold a session's start.
const (
	// MaxFileBytes bounds a file. What one session gets is at most 10,000
	// UTF-16 units, or 30 KB; a file of many times that is no briefing.
	MaxFileBytes = 256 << 10
	// MaxFiles is how many files of a home are looked at, the first by name.
	MaxFiles = 256
	// MaxFolderBytes bounds what is read of a home, in the order of names.
	MaxFolderBytes = 2 << 20
	// MaxNames is how many names a home may hold. A folder with more is not
	// used at all: which of them come first could not be told.
	MaxNames = 20_000
)

// extension is what the name of a briefing ends in.
const extension = ".md"

// InRepository is where a repository's briefings lie.
const InRepository = ".claude/briefings"

// Folder is a home of briefings.
type Folder struct {
	Kind Kind
	// Dir is the folder; for [Repository] the root of the repository, in which
	// the briefings lie at [InRepository]. It need not exist.
	Dir string
	// Names are the files to look at, all if nil: a caller that knows the name
	// is not slowed down by the others.
	Names []string
}

// Load reads the home: an entry for each file that looks like a briefing (a
// name in .md, not hidden), by name. A file that is not regular, leads out of
// its folder by a link, cannot be read, is too large or is written wrongly is
// an entry with an error.
//
// The folder itself may be a link, but a repository's must stay in it. A home
// that does not exist has no entries; trouble with the folder as a whole is an
// entry without a name.
func (f Folder) Load() []Entry {
	dir := f.Dir
	if f.Kind == Repository {
		dir = filepath.Join(dir, filepath.FromSlash(InRepository))
	}
	whole := func(err error) []Entry {
		if missing(err) {
			return nil
		}
		return []Entry{{Kind: f.Kind, Path: dir, Err: &config.Error{File: dir, Err: plain(err)}}}
	}
	root, err := f.open()
	if err != nil {
		return whole(err)
	}
	defer root.Close()

	names, over := slices.Clone(f.Names), 0
	if f.Names == nil {
		if names, over, err = list(root); err != nil {
			return whole(err)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)

	var entries []Entry
	left := int64(MaxFolderBytes)
	for _, name := range names {
		e := Entry{Kind: f.Kind, Name: name, Path: filepath.Join(dir, name)}
		if f.Kind == Repository {
			e.Root = f.Dir
		}
		data, err := read(root, name, &left)
		if f.Names != nil && missing(err) {
			continue
		}
		if err != nil {
			e.Err = &config.Error{File: e.Path, Err: plain(err)}
			entries = append(entries, e)
			continue
		}
		e.Briefing, e.Warnings, e.Err = Parse(name, data)
		e.place()
		entries = append(entries, e)
	}
	if over > 0 {
		entries = append(entries, Entry{Kind: f.Kind, Path: dir, Err: &config.Error{
			File: dir,
			Err:  fmt.Errorf("%d more files were not looked at: the first %d by name are", over, MaxFiles),
		}})
	}
	return entries
}

// place puts the path into messages, and checks what depends on the home.
func (e *Entry) place() {
	var bad *config.Error
	if errors.As(e.Err, &bad) {
		bad.File = e.Path
	}
	for i := range e.Warnings {
		e.Warnings[i].File = e.Path
	}
	if e.Briefing == nil {
		return
	}
	warn := func(format string, args ...any) {
		e.Warnings = append(e.Warnings, config.Warning{File: e.Path, Text: fmt.Sprintf(format, args...)})
	}
	if e.Briefing.SessionTitle != "" && e.Kind != Personal {
		warn("session_title is for personal briefings; ignored")
		e.Briefing.SessionTitle = ""
	}
	for _, pattern := range e.Briefing.Projects {
		if e.Kind != Repository && !isRooted(pattern) {
			warn("projects: %q is neither absolute nor from ~ on; it matches nothing", shorten(pattern, 64))
		}
	}
}

// open opens the folder, out of which no name then leads.
func (f Folder) open() (*os.Root, error) {
	// A pipe in the folder's place would make OpenRoot wait.
	if info, err := os.Stat(f.Dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, errNoFolder
	}
	root, err := os.OpenRoot(f.Dir)
	if err != nil || f.Kind != Repository {
		return root, err
	}
	defer root.Close()
	if info, err := root.Stat(InRepository); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, errNoFolder
	}
	return root.OpenRoot(InRepository)
}

var errNoFolder = errors.New("not a folder")

// list gives the first MaxFiles names of briefings, and how many more there are.
func list(root *os.Root) (names []string, over int, err error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, 0, err
	}
	defer dir.Close()
	seen, found := 0, 0
	for {
		batch, err := dir.Readdirnames(1024)
		if seen += len(batch); seen > MaxNames {
			return nil, 0, fmt.Errorf("holds more than %d names", MaxNames)
		}
		for _, name := range batch {
			if !strings.HasSuffix(name, extension) || strings.HasPrefix(name, ".") {
				continue
			}
			found++
			names = append(names, name)
		}
		// Only the first are kept, so that many names cost neither memory nor
		// the time of sorting them all.
		if len(names) > 4*MaxFiles || errors.Is(err, io.EOF) {
			slices.Sort(names)
			names = names[:min(len(names), MaxFiles)]
		}
		if errors.Is(err, io.EOF) {
			return names, found - len(names), nil
		}
		if err != nil {
			return nil, 0, err
		}
	}
}

// read reads one file, and takes its size from what is left for the home.
func read(root *os.Root, name string, left *int64) ([]byte, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, durable.ErrNotRegular
	case info.Size() > MaxFileBytes:
		return nil, errTooLarge
	case info.Size() > *left:
		return nil, fmt.Errorf("not looked at: the files before it hold %d MiB already", MaxFolderBytes>>20)
	}
	// The file may grow meanwhile; one byte more than allowed tells.
	data := make([]byte, 0, info.Size()+1)
	for {
		n, err := file.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if len(data) > MaxFileBytes {
			return nil, errTooLarge
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		data = slices.Grow(data, 1)
	}
	*left -= int64(len(data))
	return data, nil
}

var errTooLarge = fmt.Errorf("larger than %d KiB", MaxFileBytes>>10)

// missing reports that there is nothing there.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// plain takes the path from an error of the file system, which is named already.
func plain(err error) error {
	var path *fs.PathError
	if !errors.As(err, &path) {
		return err
	}
	// Package os has no name for a path that leads out of a root; all else is
	// an error of the system.
	var errno syscall.Errno
	if !errors.As(path.Err, &errno) && !errors.Is(path.Err, fs.ErrClosed) && !missing(path.Err) {
		return errOutside
	}
	return path.Err
}

var errOutside = errors.New("leads out of its folder by a link (a link in the place of the whole folder is followed)")
