// Package restore puts an archived session back where the client resumes it.
//
// Work is done in two steps. Make looks at the client's folders and says, file
// by file, what would happen; it writes nothing. Apply does it: the side files
// first, the transcript last, each from a synced temporary beside its place
// and without ever replacing a file. Whatever interrupts Apply, what can be
// seen afterwards are whole side files at most, and a second run finishes.
//
// The package knows nothing of the store: the caller hands in the files and a
// way to read each one.
package restore

import (
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

// An Item is one file of the generation to restore.
type Item struct {
	Family  string
	Path    string // relative, with slashes, within its family
	Size    int64
	SHA256  string // lower-case hex
	Mode    fs.FileMode
	ModTime time.Time
	Gone    bool // carried forward: the source had lost it already

	// Open gives the file's bytes. A read that ends with io.EOF means that
	// all of them were given and that they are the ones archived.
	Open func() (io.ReadCloser, error)
}

func (i Item) name() string { return i.Family + "/" + i.Path }

// A Request says what to restore and where the client keeps its sessions.
type Request struct {
	SessionID string
	Items     []Item

	ConfigDir      string // the client's config folder
	ProjectDirName string // the client's CLAUDE_CODE_PROJECT_DIR_NAME, if set

	Folder string   // the project folder's name in the archive; may be ""
	Cwds   []string // working directories that are known, the likeliest first

	// Project is the directory in which the session shall be resumed. ""
	// means where it was.
	Project string

	AsWas bool // leave out what was gone when the generation was taken

	Retention time.Duration // how long the client keeps a transcript; 0 is its default
	Now       time.Time
	Home      string // the user's home, to notice paths of another one
	GOOS      string
}

// DefaultRetention is the client's clean-up period where no settings file
// says otherwise (documented).
const DefaultRetention = 30 * 24 * time.Hour

// An Action is what happens to one file.
type Action string

const (
	Write   Action = "write"   // the place is free
	Keep    Action = "keep"    // the same bytes lie there already
	Refresh Action = "refresh" // the same bytes, so old that the next clean-up would take them
	Skip    Action = "skip"    // not restored, see the reason
)

// A Step is one file of a plan.
type Step struct {
	Item    Item
	Path    string // "" when there is no place for it
	Action  Action
	ModTime time.Time // the one that the file gets
	Mode    fs.FileMode
	Reason  string // why it is skipped
}

// A Note is something that the user should know; Code is stable, Text is not.
type Note struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// A Plan says what Apply will do.
type Plan struct {
	SessionID  string
	ConfigDir  string
	Folder     string // name under projects/
	ProjectDir string // the folder itself
	ResumeDir  string // the directory to resume in; "" when none is known

	// ResumeDirExists is false when the directory is gone or of another
	// system: the session then resumes from any directory, unless OwnDirOnly.
	ResumeDirExists bool

	Transcript *Step // nil for a session of which only side files were left
	Side       []Step
	Notes      []Note

	// Found are the transcripts of this session in other project folders
	// that the client would take for the session too.
	Found []string
}

// Steps gives all steps in the order in which they are done.
func (p *Plan) Steps() []Step {
	steps := append([]Step(nil), p.Side...)
	if p.Transcript != nil {
		steps = append(steps, *p.Transcript)
	}
	return steps
}

// Writes counts the files that Apply will make, and their bytes.
func (p *Plan) Writes() (files int, bytes int64) {
	for _, s := range p.Steps() {
		if s.Action == Write {
			files++
			bytes += s.Item.Size
		}
	}
	return files, bytes
}

func (p *Plan) note(code, format string, args ...any) {
	p.Notes = append(p.Notes, Note{code, fmt.Sprintf(format, args...)})
}

// A Conflict is a file in the way.
type Conflict struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// A ConflictError says that something else lies where the session's files
// belong. Nothing was written.
type ConflictError struct {
	Conflicts []Conflict
}

func (e *ConflictError) Error() string {
	const most = 5
	var b strings.Builder
	b.WriteString("refusing to overwrite:")
	for i, c := range e.Conflicts {
		if i == most {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Conflicts)-most)
			break
		}
		fmt.Fprintf(&b, "\n  %s: %s", c.Path, c.Text)
	}
	return b.String()
}

// A DamageError says that a file cannot be read whole from the archive.
// Nothing was written.
type DamageError struct {
	Item string // family and path
	Err  error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("damaged in the archive: %s: %v", e.Item, e.Err)
}
func (e *DamageError) Unwrap() error { return e.Err }
