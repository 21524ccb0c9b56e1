package transcript

import (
	"context"
	"errors"
	"io/fs"
	"time"
)

// Families of files in a bundle.
const (
	FamilyTranscript  = "transcript"
	FamilyBeside      = "beside"
	FamilySession     = "session"
	FamilyAgents      = "agents"
	FamilyFileHistory = "file-history"
	FamilySessionEnv  = "session-env"
	FamilyTasks       = "tasks"
	FamilyTodos       = "todos"
	FamilyImageCache  = "image-cache"
	FamilyUploads     = "uploads"
	FamilyPlans       = "plans"
)

// A File is one file of a bundle.
type File struct {
	Family  string
	Rel     string // slash-separated, relative to the family's place
	Path    string // where it lies
	Size    int64
	Mode    fs.FileMode
	ModTime time.Time
}

// Skipped is something that was left out, and why.
type Skipped struct {
	Path   string
	Reason string
}

// FilesOptions narrow what Files does.
type FilesOptions struct {
	NoReads bool     // open no file: no agents family, no plans but those of Slugs
	Slugs   []string // plans that are known to belong to the session
}

// Files lists all files of the bundle, in a stable order.
func (b Bundle) Files() ([]File, []Skipped, error) {
	return b.ListFiles(context.Background(), FilesOptions{})
}

// ListFiles lists the files of the bundle.
func (b Bundle) ListFiles(ctx context.Context, o FilesOptions) ([]File, []Skipped, error) {
	return nil, nil, errors.ErrUnsupported
}

// Place returns where a file of a bundle belongs.
func Place(configDir, folder, sessionID, family, rel string) (string, error) {
	return "", errors.ErrUnsupported
}
