package archive

import (
	"io/fs"
	"time"

	"github.com/google/uuid"
)

// Transcript is the family of a session's main file. It is the one family
// that the store treats specially: when its archived bytes no longer begin
// the file, the generation starts a new lineage.
const Transcript = "transcript"

// A Reason says why a generation was taken.
type Reason string

const (
	SessionEnd Reason = "session-end"
	Stop       Reason = "stop"
	PreCompact Reason = "pre-compact"
	CatchUp    Reason = "catch-up"
	Import     Reason = "import"
	Manual     Reason = "manual" // a person asked for it
)

// An Event is one event of the client that led to a generation.
type Event struct {
	Name     string    // for example SessionEnd
	Reason   string    // the event's reason, trigger or source
	PromptID string    // may be empty
	Time     time.Time // when the hook saw it

	// Of a compaction that was about to begin: how many bytes the transcript
	// had then, and what the user told the summary to hold to.
	Size         int64
	Instructions string
}

// A Project says where a session ran.
type Project struct {
	Cwd    string // the real directory, if known
	Folder string // the name of the client's project folder
}

// A Source is one file to archive.
type Source struct {
	Family string // [a-z-]+
	Path   string // relative to the family's place, with slashes
	File   string // the file to read: the live one or a pin of it
}

// Check says how much of what is archived already is compared with the source.
type Check int

const (
	Full  Check = iota // the whole archived prefix is hashed, unless the index vouches for it
	Quick              // inode, size and the last piece; Full where the index knows too little
)

// A Snapshot is a request to archive one session.
type Snapshot struct {
	SessionID string
	Reason    Reason
	Events    []Event
	Project   Project
	Sources   []Source
	Check     Check
	Partial   bool // a file that is not among Sources is not gone, only not named
}

// Options steer Archive. The zero value works.
type Options struct {
	IndexDir string           // where the freshness index lives; empty: none
	Now      func() time.Time // nil: time.Now
	Progress func(n int64)    // called with the number of source bytes just read
	Workers  int              // 0: up to two goroutines; 1: none are started
	MaxFile  int64            // side files above this many bytes are left out; 0: no limit
	MaxSide  int64            // side files are left out once they sum to more; 0: no limit
}

// A Result says what Archive did.
type Result struct {
	Generation  *Generation // the new one, or the latest if nothing changed; nil if there is none
	Created     bool        // Generation is new
	Diverged    bool        // Generation starts another lineage than the one before
	NewBytes    int64       // source bytes that were not in the store
	StoredBytes int64       // what they take on disk
	LeftOut     []LeftOut   // files that a limit or their name kept out
	Skipped     []Skipped   // files that could not be read now; their last content is kept
	Warnings    []error     // what went wrong without harm to the archive, damage found included
}

// LeftOut names a file that a generation does not hold, and why.
type LeftOut struct {
	Family string
	Path   string
	Size   int64
	Why    string
}

// Skipped names a source that could not be read.
type Skipped struct {
	Family string
	Path   string
	Err    error
}

// A Generation is one state of a session's files.
type Generation struct {
	ID        uuid.UUID
	Number    int    // parent's plus one
	Hash      string // SHA-256 of the manifest, hex: its name
	Parent    string // hash of the parent, empty for a first one
	SessionID string
	Lineage   uuid.UUID
	Reason    Reason
	Taken     time.Time
	Events    []Event
	Project   Project
	Files     []File // sorted by family and path
	LeftOut   []LeftOut

	depth int // bases below its manifest
}

// A File is one file of a generation.
type File struct {
	Family  string
	Path    string // validated: relative, with slashes
	Size    int64
	SHA256  string // hex
	Mode    fs.FileMode
	ModTime time.Time
	Gone    bool // no longer at the source when the generation was taken

	pieces *pieceList
}

// ForgetOptions steer Forget.
type ForgetOptions struct {
	IndexDir string // as in Options
}

// A ForgetReport says what Forget removed.
type ForgetReport struct {
	Generations int
	Segments    int
	Bytes       int64 // on disk
}
