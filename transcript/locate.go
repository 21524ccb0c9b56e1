package transcript

import (
	"context"
	"errors"
	"os"
	"time"
)

// Errors of Locate and Open.
var (
	ErrNotFound  = errors.New("no such session")
	ErrInvalidID = errors.New("not a session id")
	ErrRefused   = errors.New("not a transcript of the user's")
)

// How says how a bundle was found.
type How uint8

// Ways to find a bundle.
const (
	ByPath   How = iota + 1 // the event's path was right
	ByID                    // by a search over all project folders
	ByFolder                // while going through all folders
)

// A Locator finds sessions under the client's config folders.
type Locator struct {
	ConfigDirs     []string // absolute
	ProjectDirName string   // CLAUDE_CODE_PROJECT_DIR_NAME, "" if not in force
}

// A Bundle is one session on disk.
type Bundle struct {
	SessionID  string
	ConfigDir  string
	Folder     string    // name of the project folder
	ProjectDir string    // the project folder, symbolic links resolved
	Transcript string    // resolved path, "" for a husk
	Size       int64     // of the transcript
	ModTime    time.Time // of the transcript; of the side folder for a husk
	Found      How
	Others     []string // other copies of the same id
}

// Locate finds a session by the path that an event names, else by its id.
func (l *Locator) Locate(sessionID, hint string) (Bundle, error) {
	return Bundle{}, errors.ErrUnsupported
}

// LocateAll returns every copy of a session.
func (l *Locator) LocateAll(sessionID string) ([]Bundle, []Skipped, error) {
	return nil, nil, errors.ErrUnsupported
}

// Sessions returns all sessions, husks included, each id once.
func (l *Locator) Sessions(ctx context.Context) ([]Bundle, []Skipped, error) {
	return nil, nil, errors.ErrUnsupported
}

// Folder returns the name of the project folder for a working directory.
func (l *Locator) Folder(configDir, dir string) (string, error) { return "", errors.ErrUnsupported }

// Open opens the transcript.
func (b Bundle) Open() (*os.File, os.FileInfo, error) { return nil, nil, errors.ErrUnsupported }

// SidecarTitle reads the title in the side folder's custom-title.json, "" if none.
func (b Bundle) SidecarTitle() string { return "" }

// OpenRegular opens a regular file of the user's for reading without blocking.
func OpenRegular(path string) (*os.File, os.FileInfo, error) { return nil, nil, errors.ErrUnsupported }

// ValidSessionID reports whether s is a session id as the client writes it.
func ValidSessionID(s string) bool { return false }

// FolderName returns the project folder's name that the client makes for dir.
func FolderName(dir string) string { return "" }

// FindFolder returns the project folder for dir below projectsRoot.
func FindFolder(projectsRoot, dir string) (string, error) { return "", errors.ErrUnsupported }
