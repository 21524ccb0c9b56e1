package archive

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

const (
	indexVersion  = 1
	maxIndexBytes = 16 << 20
	// racyWindow is the margin within which a file may have changed without
	// its times showing it: FAT stamps in steps of two seconds.
	racyWindow = 2 * time.Second
	// rehashAfter is how long the index may vouch for a file that nobody read.
	rehashAfter = 30 * 24 * time.Hour
)

// An index remembers what the sources of one session looked like when they
// were last read. It is a cache: without it more is hashed, and nothing in it
// is believed unless it fits the newest generation.
type index struct {
	Version int          `json:"version"`
	StoreID string       `json:"store_id"`
	Entries []indexEntry `json:"entries"`

	file  string
	byKey map[fileKey]*indexEntry
	dirty bool
}

type indexEntry struct {
	Family string `json:"family"`
	Path   string `json:"path"`
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
	Size   int64  `json:"size"`
	MTime  int64  `json:"mtime"`  // ns since 1970
	CTime  int64  `json:"ctime"`  // ns since 1970
	Opened int64  `json:"opened"` // when it was opened to be read; ns since 1970
	Hashed int64  `json:"hashed"` // when all of it was last hashed; ns since 1970
	SHA256 string `json:"sha256"`
	State  []byte `json:"state,omitempty"` // of the SHA-256, to go on from Size
}

// indexFile is where the index of a session lies below Options.IndexDir.
func (s *Store) indexFile(dir, sessionID string) string {
	return filepath.Join(dir, hashOf([]byte(s.root))[:16], sessionID+".json")
}

// loadIndex never fails: what cannot be read or parsed is an empty index.
func (s *Store) loadIndex(dir, sessionID string) *index {
	x := &index{Version: indexVersion, StoreID: s.format.StoreID, byKey: make(map[fileKey]*indexEntry)}
	if dir == "" {
		return x
	}
	x.file = s.indexFile(dir, sessionID)
	b, err := readBounded(x.file, maxIndexBytes)
	if err != nil {
		return x
	}
	var on index
	if json.Unmarshal(b, &on) != nil || on.Version != indexVersion || on.StoreID != s.format.StoreID {
		return x
	}
	for i := range on.Entries {
		e := &on.Entries[i]
		x.byKey[fileKey{e.Family, e.Path}] = e
	}
	return x
}

// vouches reports whether the entry proves, without reading it, that an open
// file still holds what was archived.
func (e *indexEntry) vouches(f *File, fi fs.FileInfo, name string, now time.Time) bool {
	if !e.fits(f, fi) || fi.Size() != e.Size {
		return false
	}
	ctime, ok := durable.ChangeTime(fi)
	if !ok || ctime.UnixNano() != e.CTime || fi.ModTime().UnixNano() != e.MTime {
		return false
	}
	// A file that changed as it was being read may have kept its times: only
	// times that were past by then prove anything.
	opened := time.Unix(0, e.Opened).Add(-racyWindow)
	if !ctime.Before(opened) || !fi.ModTime().Before(opened) {
		return false
	}
	age := now.Sub(time.Unix(0, e.Hashed))
	if age < 0 || age > rehashAfter {
		return false
	}
	// Other machines change files on network disks behind our clock's back.
	_, local, err := filesystem(name)
	return err == nil && local
}

// filesystem is replaced by tests, which have no network disk.
var filesystem = durable.Filesystem

// fits reports whether the entry is about this file, archived in this state,
// and the source is still the same inode.
func (e *indexEntry) fits(f *File, fi fs.FileInfo) bool {
	id, ok := durable.FileID(fi)
	return ok && id == durable.ID{Device: e.Device, Inode: e.Inode} &&
		e.Size == f.Size && e.SHA256 == f.SHA256
}

func (x *index) put(e indexEntry) {
	x.byKey[fileKey{e.Family, e.Path}] = &e
	x.dirty = true
}

// save writes the index if it changed. It is not synced: after a power cut an
// older or a broken one only costs time.
func (x *index) save() error {
	if x.file == "" || !x.dirty {
		return nil
	}
	x.Entries = nil
	for _, e := range x.byKey {
		x.Entries = append(x.Entries, *e)
	}
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	if err := ensureDir(filepath.Dir(x.file)); err != nil {
		return err
	}
	// One fixed name, overwritten next time: a killed process leaves no more
	// than one. The session's lock keeps others away.
	next := x.file + indexNewExt
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = f.Chmod(0o600) // whatever the umask took
	if runtime.GOOS == "windows" {
		err = nil // no modes there
	}
	if err == nil {
		_, err = f.Write(b)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, removeIfThere(next))
	}
	return os.Rename(next, x.file)
}

const indexNewExt = ".new"

func removeIfThere(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
