package archive

import (
	"errors"
	"io/fs"
	"time"

	"github.com/google/uuid"
)

var (
	// ErrNotStore says that a folder holds no store.
	ErrNotStore = errors.New("not a session-keeper store")
	// ErrNoSession says that a store holds nothing of a session.
	ErrNoSession = errors.New("session is not in the store")
	// ErrForgotten says that a session was forgotten and must stay so.
	ErrForgotten = errors.New("session was forgotten")
	// ErrDamaged says that bytes in the store are not what they were.
	ErrDamaged = errors.New("damaged")
	// ErrChanging says that a source kept changing in place while it was read.
	ErrChanging = errors.New("source keeps changing while it is read")
)

// An UnsupportedError says that a store needs something this program lacks.
type UnsupportedError struct {
	Root    string
	Version int    // the store's version, if that is what is unknown; else 0
	Feature string // the unknown feature or hash, if that is it
	Write   bool   // reading is possible, writing is not
}

func (e *UnsupportedError) Error() string { return "store " + e.Root + " needs a newer session-keeper" }

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
}

// A History is all that is known of one session.
type History struct {
	SessionID   string
	Generations []*Generation // parents before children
	Problems    []Problem
}

// Latest returns the newest generation: the one at the end of the longest chain.
func (h *History) Latest() *Generation { return nil }

// Lineages returns the lineages, oldest first.
func (h *History) Lineages() []Lineage { return nil }

// Find returns the generation that a number, an id or a prefix of at least
// four characters of a hash or id names. ErrNoGeneration, ErrAmbiguous.
func (h *History) Find(name string) (*Generation, error) { return nil, errNotBuilt }

var (
	// ErrNoGeneration says that no generation has the name asked for.
	ErrNoGeneration = errors.New("no such generation")
	// ErrAmbiguous says that more than one generation has it.
	ErrAmbiguous = errors.New("more than one generation matches")
)

// A Lineage is a line of generations, each of which extends the one before.
type Lineage struct {
	ID          uuid.UUID
	Generations []*Generation
}

// A Problem is one piece of damage.
type Problem struct {
	Session  string // session id, if known
	Manifest string // file name of a manifest
	Segment  string // hash of a segment
	Family   string
	Path     string
	Err      error
}

// VerifyOptions steer Verify.
type VerifyOptions struct {
	Session  string // one session; empty: all
	Progress func(done, total int64)
}

// A Report is the outcome of Verify.
type Report struct {
	Sessions     int
	Generations  int
	Files        int // distinct versions of files
	Segments     int
	Bytes        int64 // raw bytes of the segments
	StoredBytes  int64
	Unreferenced int // segments that no manifest names: harmless leftovers
	Problems     []Problem
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
