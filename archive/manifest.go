package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
)

const (
	manifestFormat   = "session-keeper manifest"
	manifestVersion  = 1
	maxManifestBytes = 64 << 20
	maxBaseDepth     = 16 // bases below a manifest; one more would be a full one
)

// manifestJSON is a manifest as it lies on disk. FORMAT.md explains each
// field. Unknown fields are ignored: within a version, fields are only added,
// and only such as an older reader may ignore.
type manifestJSON struct {
	Format    string        `json:"format"`
	Version   int           `json:"version"`
	ID        string        `json:"id"`
	Number    int           `json:"number"`
	Parent    *string       `json:"parent"`
	SessionID string        `json:"session_id"`
	Lineage   string        `json:"lineage"`
	StoreID   string        `json:"store_id"`
	Reason    string        `json:"reason"`
	Taken     string        `json:"taken"`
	Events    []eventJSON   `json:"events"`
	Project   projectJSON   `json:"project"`
	Base      *baseJSON     `json:"base"`
	Files     []fileJSON    `json:"files"`
	LeftOut   []leftOutJSON `json:"left_out,omitempty"`
}

type eventJSON struct {
	Event    string `json:"event"`
	Reason   string `json:"reason,omitempty"`
	PromptID string `json:"prompt_id,omitempty"`
	Time     string `json:"time,omitempty"`

	Size         int64  `json:"size,omitempty"`
	Instructions string `json:"instructions,omitempty"`
}

type projectJSON struct {
	Cwd    string `json:"cwd,omitempty"`
	Folder string `json:"folder,omitempty"`
}

type baseJSON struct {
	Manifest string `json:"manifest"`
	Depth    int    `json:"depth"`
}

type fileJSON struct {
	Family string      `json:"family"`
	Path   string      `json:"path"`
	Size   int64       `json:"size"`
	SHA256 string      `json:"sha256"`
	Mode   string      `json:"mode"`
	MTime  string      `json:"mtime"`
	Gone   bool        `json:"gone,omitempty"`
	Keep   int         `json:"keep,omitempty"`
	Pieces []pieceJSON `json:"pieces"`
}

type pieceJSON struct {
	Segment string `json:"segment"`
	Offset  int64  `json:"offset"`
	Length  int64  `json:"length"`
}

type leftOutJSON struct {
	Family string `json:"family"`
	Path   string `json:"path"` // quoted if the path itself is the reason
	Size   int64  `json:"size"`
	Why    string `json:"why"`
}

// A manifest is one parsed manifest, not yet joined with its base.
type manifest struct {
	id        uuid.UUID
	number    int
	parent    string
	sessionID string
	lineage   uuid.UUID
	storeID   uuid.UUID
	reason    Reason
	taken     time.Time
	events    []Event
	project   Project
	base      string // hash, empty for none
	depth     int    // bases below this manifest
	files     []fileEntry
	leftOut   []LeftOut
}

// A fileEntry is a file as a manifest lists it: the first keep pieces are
// those of the base's entry, the rest follow.
type fileEntry struct {
	File
	keep   int
	pieces []piece
}

// A piece is a range of a segment's raw bytes.
type piece struct {
	segment string
	offset  int64
	length  int64
}

type fileKey struct{ family, path string }

func (f *File) key() fileKey { return fileKey{f.Family, f.Path} }

// encode returns the manifest's bytes. They are parsed back before anyone
// relies on them, so what would not be readable is never written.
func (m *manifest) encode() ([]byte, error) {
	j := manifestJSON{
		Format: manifestFormat, Version: manifestVersion,
		ID: m.id.String(), Number: m.number, SessionID: m.sessionID,
		Lineage: m.lineage.String(), StoreID: m.storeID.String(),
		Reason: string(m.reason), Taken: formatTime(m.taken),
		Project: projectJSON(m.project),
		Events:  []eventJSON{}, Files: []fileJSON{},
	}
	if m.parent != "" {
		j.Parent = &m.parent
	}
	if m.base != "" {
		j.Base = &baseJSON{m.base, m.depth}
	}
	for _, e := range m.events {
		je := eventJSON{Event: e.Name, Reason: e.Reason, PromptID: e.PromptID, Size: e.Size, Instructions: e.Instructions}
		if !e.Time.IsZero() {
			je.Time = formatTime(e.Time)
		}
		j.Events = append(j.Events, je)
	}
	for _, f := range m.files {
		jf := fileJSON{
			Family: f.Family, Path: f.Path, Size: f.Size, SHA256: f.SHA256,
			Mode: fmt.Sprintf("%04o", f.Mode.Perm()), MTime: formatTime(f.ModTime),
			Gone: f.Gone, Keep: f.keep, Pieces: []pieceJSON{},
		}
		for _, p := range f.pieces {
			jf.Pieces = append(jf.Pieces, pieceJSON{p.segment, p.offset, p.length})
		}
		j.Files = append(j.Files, jf)
	}
	for _, l := range m.leftOut {
		j.LeftOut = append(j.LeftOut, leftOutJSON(l))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(j); err != nil {
		return nil, err
	}
	if b.Len() > maxManifestBytes {
		return nil, fmt.Errorf("manifest of %d bytes is too large", b.Len())
	}
	if _, err := parseManifest(b.Bytes()); err != nil {
		return nil, fmt.Errorf("refusing to write a manifest that would not be read: %w", err)
	}
	return b.Bytes(), nil
}

// errVersion says that a manifest is of a version unknown here. The caller
// turns it into an *UnsupportedError.
type versionError int

func (e versionError) Error() string {
	return "manifest has the unknown version " + strconv.Itoa(int(e))
}

// parseManifest parses and checks everything that can be checked without
// another file. It never trusts a size or a path.
func parseManifest(b []byte) (*manifest, error) {
	if len(b) > maxManifestBytes {
		return nil, fmt.Errorf("manifest of %d bytes is too large", len(b))
	}
	var j manifestJSON
	if err := json.Unmarshal(b, &j); err != nil {
		// The version may explain why the rest does not parse.
		var v struct {
			Format  string `json:"format"`
			Version int    `json:"version"`
		}
		if json.Unmarshal(b, &v) == nil && v.Format == manifestFormat && v.Version > manifestVersion {
			return nil, versionError(v.Version)
		}
		return nil, err
	}
	if j.Format != manifestFormat {
		return nil, fmt.Errorf("format is %s, not %q", quote(j.Format), manifestFormat)
	}
	if j.Version != manifestVersion {
		return nil, versionError(j.Version)
	}
	m := &manifest{number: j.Number, sessionID: j.SessionID, reason: Reason(j.Reason), project: Project(j.Project)}
	var err error
	check := func(what string, e error) {
		if err == nil && e != nil {
			err = fmt.Errorf("%s: %w", what, e)
		}
	}
	m.id, err = parseUUID(j.ID)
	check("id", err)
	var e error
	m.lineage, e = parseUUID(j.Lineage)
	check("lineage", e)
	m.storeID, e = parseUUID(j.StoreID)
	check("store_id", e)
	_, e = parseUUID(j.SessionID)
	check("session_id", e)
	check("reason", checkFamily(j.Reason))
	m.taken, e = parseTime(j.Taken)
	check("taken", e)
	if j.Number < 1 {
		check("number", fmt.Errorf("%d is not positive", j.Number))
	}
	if j.Parent != nil {
		m.parent = *j.Parent
		if !validHash(m.parent) {
			check("parent", errBadHash)
		}
	} else if j.Number > 1 {
		check("parent", errors.New("missing"))
	}
	if j.Base != nil {
		m.base, m.depth = j.Base.Manifest, j.Base.Depth
		if !validHash(m.base) {
			check("base", errBadHash)
		}
		if m.depth < 1 || m.depth > maxBaseDepth {
			check("base", fmt.Errorf("depth %d is not within 1 and %d", m.depth, maxBaseDepth))
		}
	}
	for _, je := range j.Events {
		ev := Event{Name: je.Event, Reason: je.Reason, PromptID: je.PromptID, Size: je.Size, Instructions: je.Instructions}
		if je.Time != "" {
			ev.Time, e = parseTime(je.Time)
			check("event", e)
		}
		m.events = append(m.events, ev)
	}
	seen := make(map[fileKey]bool, len(j.Files))
	for i := range j.Files {
		f, e := parseFile(&j.Files[i], m.base != "")
		if e == nil && seen[f.key()] {
			e = errors.New("listed twice")
		}
		if e != nil {
			check(fmt.Sprintf("file %s of family %s", quote(j.Files[i].Path), quote(j.Files[i].Family)), e)
			break
		}
		seen[f.key()] = true
		m.files = append(m.files, f)
	}
	for _, l := range j.LeftOut {
		m.leftOut = append(m.leftOut, LeftOut(l))
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

var errBadHash = errors.New("not a SHA-256 in lower-case hex")

func parseFile(j *fileJSON, hasBase bool) (fileEntry, error) {
	f := fileEntry{
		File: File{Family: j.Family, Path: j.Path, Size: j.Size, SHA256: j.SHA256, Gone: j.Gone},
		keep: j.Keep,
	}
	if err := checkFamily(j.Family); err != nil {
		return f, err
	}
	if err := checkPath(j.Path); err != nil {
		return f, err
	}
	if !validHash(j.SHA256) {
		return f, fmt.Errorf("sha256: %w", errBadHash)
	}
	mode, err := strconv.ParseUint(j.Mode, 8, 32)
	if err != nil || mode > 0o777 {
		return f, fmt.Errorf("bad mode %s", quote(j.Mode))
	}
	f.Mode = fs.FileMode(mode)
	if f.ModTime, err = parseTime(j.MTime); err != nil {
		return f, fmt.Errorf("mtime: %w", err)
	}
	if j.Keep < 0 || j.Keep > 0 && !hasBase {
		return f, fmt.Errorf("keep of %d without a base for it", j.Keep)
	}
	f.pieces = make([]piece, 0, len(j.Pieces))
	var sum int64
	for _, p := range j.Pieces {
		if !validHash(p.Segment) {
			return f, fmt.Errorf("segment: %w", errBadHash)
		}
		// Both bounds first: the sum below then cannot overflow.
		if p.Offset < 0 || p.Length < 1 || p.Offset > maxSegment || p.Length > maxSegment-p.Offset {
			return f, fmt.Errorf("piece of %d bytes at %d lies outside of a segment", p.Length, p.Offset)
		}
		sum += p.Length
		if sum > j.Size {
			break
		}
		f.pieces = append(f.pieces, piece{p.Segment, p.Offset, p.Length})
	}
	if j.Size < 0 || sum > j.Size || sum < j.Size && j.Keep == 0 {
		return f, fmt.Errorf("pieces do not make %d bytes", j.Size)
	}
	return f, nil
}

// hashOf is the name of bytes.
func hashOf(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func parseUUID(s string) (uuid.UUID, error) {
	if !validUUID(s) {
		return uuid.UUID{}, fmt.Errorf("%s is not a UUID in canonical form", quote(s))
	}
	return uuid.Parse(s)
}

// formatTime writes RFC 3339 with nanoseconds, in UTC. A year that it cannot
// hold (file systems store such) becomes the nearest that it can.
func formatTime(t time.Time) string {
	t = t.UTC()
	switch {
	case t.Year() > 9999:
		t = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	case t.Year() < 1:
		t = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return t.Format("2006-01-02T15:04:05.000000000Z07:00")
}

func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("bad time %s", quote(s))
	}
	return t.UTC(), nil
}

// A pieceList is a file's pieces, sharing what it keeps of its base's list.
// Thousands of generations of a growing file thus take memory for their new
// pieces alone.
type pieceList struct {
	base *pieceList
	keep int
	own  []piece
}

func (l *pieceList) len() int {
	if l == nil {
		return 0
	}
	return l.keep + len(l.own)
}

// all returns the pieces in order.
func (l *pieceList) all() []piece {
	out := make([]piece, l.len())
	n := len(out)
	for n > 0 {
		if l.keep < n {
			copy(out[l.keep:n], l.own)
			n = l.keep
		}
		l = l.base
	}
	return out
}

// size returns the bytes of the first n pieces.
func (l *pieceList) size(n int) int64 {
	var sum int64
	for n > 0 {
		for i := l.keep; i < n; i++ {
			sum += l.own[i-l.keep].length
		}
		n = min(n, l.keep)
		l = l.base
	}
	return sum
}

// commonPieces reports how many leading pieces a and b share.
func commonPieces(a, b []piece) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func sortFiles(fs []File) {
	slices.SortFunc(fs, func(a, b File) int {
		if c := compareString(a.Family, b.Family); c != 0 {
			return c
		}
		return compareString(a.Path, b.Path)
	})
}

func compareString(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
