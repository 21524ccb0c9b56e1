package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// ErrDiffers says that a write-once file is there already with other bytes.
// It was left as it is.
var ErrDiffers = errors.New("exists with other content")

// tempPrefix starts the name of every temporary. The dot hides it from people
// and from globs; the rest makes it ours to sweep.
const tempPrefix = ".tmp-sk-"

// IsTemp tells whether name (a base name) is that of a temporary of ours.
func IsTemp(name string) bool { return strings.HasPrefix(name, tempPrefix) }

// A Temp is a new file without its final name yet, beside which it lies. Its
// owner writes to it and then calls Place, Replace or Discard. A Discard after
// a successful Place or Replace does nothing, so it can be deferred.
type Temp struct {
	*os.File
	done bool
}

// CreateTemp makes a temporary in dir, open for reading and writing, 0600
// whatever the umask, closed on exec.
//
//	openat(dir/.tmp-sk-…, O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0600)
func CreateTemp(dir string) (*Temp, error) {
	const tries = 100 // 64 random bits: the second try is already a wonder
	var t *Temp
	path := ""
	var err error
	for range tries {
		path = filepath.Join(dir, fmt.Sprintf("%s%016x", tempPrefix, rand.Uint64()))
		err = step("create", path, func() error {
			f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
			if err != nil {
				return err
			}
			t = &Temp{File: f}
			return ensureFileMode(f)
		})
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		if t != nil {
			return nil, errors.Join(err, t.Discard())
		}
		return nil, err
	}
	return t, nil
}

func ensureFileMode(f *os.File) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if fi.Mode().Perm() == fileMode {
		return nil
	}
	return ignoreNoModes(f.Chmod(fileMode))
}

// Write appends p at the file's position.
func (t *Temp) Write(p []byte) (n int, err error) {
	err = step("write", t.Name(), func() error {
		n, err = t.File.Write(p)
		return err
	})
	return n, err
}

// WriteString is Write for a string.
func (t *Temp) WriteString(s string) (int, error) { return t.Write([]byte(s)) }

// WriteAt writes p at an offset.
func (t *Temp) WriteAt(p []byte, off int64) (n int, err error) {
	err = step("write", t.Name(), func() error {
		n, err = t.File.WriteAt(p, off)
		return err
	})
	return n, err
}

// ReadFrom copies r to the file's position until its end.
func (t *Temp) ReadFrom(r io.Reader) (n int64, err error) {
	err = step("write", t.Name(), func() error {
		n, err = t.File.ReadFrom(r)
		return err
	})
	return n, err
}

// Sync makes the bytes written so far durable. Place and Replace do it too.
func (t *Temp) Sync() error {
	return step("sync", t.Name(), t.File.Sync)
}

// Place gives the file its name, which must not exist yet (fs.ErrExist), and
// closes it. The caller syncs the folder, once for all files that it places
// there. After an error the temporary is still there for Discard.
//
//	fsync(fd); close(fd); rename without replacing(temp, path)
func (t *Temp) Place(path string) error {
	return t.finish(path, renameNew)
}

// Replace is Place over an existing file, which readers see either whole and
// old or whole and new.
//
//	fsync(fd); close(fd); rename(temp, path)
func (t *Temp) Replace(path string) error {
	return t.finish(path, renameReplace)
}

func (t *Temp) finish(path string, rename func(oldname, newname string) error) error {
	if t.done {
		return &fs.PathError{Op: "place", Path: path, Err: fs.ErrClosed}
	}
	if err := t.Sync(); err != nil {
		return err
	}
	// Some file systems (NFS) report a failed write only when closing.
	if err := t.File.Close(); err != nil {
		return err
	}
	err := step("rename", path, func() error {
		if err := rename(t.Name(), path); err != nil {
			return err
		}
		t.done = true
		return nil
	})
	return err
}

// Discard closes and removes the temporary, unless it was placed.
func (t *Temp) Discard() error {
	if t.done {
		return nil
	}
	err := t.File.Close()
	if errors.Is(err, fs.ErrClosed) {
		err = nil
	}
	rmErr := Remove(t.Name())
	if rmErr == nil || errors.Is(rmErr, fs.ErrNotExist) {
		t.done = true
		return err
	}
	return errors.Join(err, rmErr)
}

// WriteFile makes the write-once file path: it is there whole and durable, or
// not at all. If it is there with the same bytes, that is success; with other
// bytes, ErrDiffers, and it stays as it was.
//
//	open(temp, O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0600) beside path; write; fsync; close
//	rename without replacing(temp, path); sync of the folder
func WriteFile(path string, data []byte) error {
	t, err := CreateTemp(filepath.Dir(path))
	if err != nil {
		return err
	}
	if err := write(t, data, path, (*Temp).Place); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = sameContent(path, data)
		}
		if err := errors.Join(err, t.Discard()); err != nil {
			return err
		}
	}
	// Also when another process placed it: it may not have come to its sync.
	return SyncDir(filepath.Dir(path))
}

// ReplaceFile makes or replaces the file path: readers and crashes see the old
// file or the new one.
//
//	open(temp, O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0600) beside path; write; fsync; close
//	rename(temp, path); sync of the folder
func ReplaceFile(path string, data []byte) error {
	t, err := CreateTemp(filepath.Dir(path))
	if err != nil {
		return err
	}
	if err := write(t, data, path, (*Temp).Replace); err != nil {
		return errors.Join(err, t.Discard())
	}
	return SyncDir(filepath.Dir(path))
}

func write(t *Temp, data []byte, path string, finish func(*Temp, string) error) error {
	if _, err := t.Write(data); err != nil {
		return err
	}
	return finish(t, path)
}

// sameContent is nil if path holds exactly data. It reads one byte more than
// data has, never a whole strange file.
func sameContent(path string, data []byte) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	have, err := io.ReadAll(io.LimitReader(f, int64(len(data))+1))
	if err != nil {
		return err
	}
	if !bytes.Equal(have, data) {
		return &fs.PathError{Op: "write", Path: path, Err: ErrDiffers}
	}
	return nil
}
