// Package durable writes files that survive crashes, and locks that do not.
//
// When one of its functions returns nil, what it says was done is on the disk:
// file contents were synced before they got their name, and the folder was
// synced after it, unless the function says that this is left to the caller.
// When a function returns an error, or the process dies in it, the name it was
// to make is either absent or whole, never half written. A leftover temporary
// (see [Sweep]) is the worst that remains.
//
// Everything is created 0600 (files) and 0700 (folders) whatever the umask.
// What already exists keeps its mode: somebody may have widened it on purpose.
//
// A failed sync is not tried again. After it the kernel may have dropped the
// dirty pages and would report success for bytes that never arrived, so the
// only safe answer is a new file.
//
// Every call that changes the disk passes one hook point (see [SetFault]), so
// that a test can fail or stop the program before and after each of them. A
// build with the tag killpoints can kill its own process there.
//
// What it does not do: it never changes a file in place, never follows up on
// what other programs do to the same folder, and cannot promise more than the
// disk under it, which may lie about its cache.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	fileMode fs.FileMode = 0o600
	dirMode  fs.FileMode = 0o700
)

// SyncDir makes the names in dir durable: those created, renamed and removed
// there before the call.
//
//	open(dir, O_RDONLY|O_CLOEXEC); fsync(fd); close(fd)
//
// File systems that cannot sync a folder say so with EINVAL or ENOTSUP; that
// is no error here, since there is nothing else to be done.
func SyncDir(dir string) error {
	return step("syncdir", dir, func() error { return syncDir(dir) })
}

// MkdirAll makes dir and what is missing above it, mode 0700 whatever the
// umask, and syncs the parent of each folder that it made. A folder that is
// there already keeps its mode; it may be a link to one.
//
//	stat(dir); for each missing one, from the top:
//	mkdir(dir, 0700); chmod(dir, 0700) if the umask took bits; sync of the parent
func MkdirAll(dir string) error {
	dir = filepath.Clean(dir)
	var missing []string
	for at := dir; ; {
		fi, err := os.Stat(at)
		if err == nil {
			if !fi.IsDir() {
				return &fs.PathError{Op: "mkdir", Path: at, Err: errNotDir}
			}
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing = append(missing, at)
		parent := filepath.Dir(at)
		if parent == at {
			return err
		}
		at = parent
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if err := Mkdir(missing[i]); err != nil {
			return err
		}
		// Also if another process was quicker: it may not have synced yet.
		if err := SyncDir(filepath.Dir(missing[i])); err != nil {
			return err
		}
	}
	return nil
}

// Mkdir makes one folder, mode 0700 whatever the umask, if it is not there
// yet. Nothing is synced.
func Mkdir(dir string) error {
	return step("mkdir", dir, func() error {
		err := os.Mkdir(dir, dirMode)
		if err == nil {
			return ensureMode(dir, dirMode)
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		fi, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if !fi.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: errNotDir}
		}
		return nil
	})
}

// ensureMode gives path the mode that it was asked to be created with where
// the umask took bits away or a default ACL added some.
func ensureMode(path string, mode fs.FileMode) error {
	fi, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if fi.Mode().Perm() == mode {
		return nil
	}
	return ignoreNoModes(os.Chmod(path, mode))
}

// Link gives the file oldname the second name newname. It does not replace:
// an existing newname is fs.ErrExist. Neither name is synced; see [SyncDir].
// [LinkRefused] tells whether an error means that hard links cannot be had
// here at all.
func Link(oldname, newname string) error {
	return step("link", newname, func() error { return os.Link(oldname, newname) })
}

// Rename moves oldname to newname, replacing what is there. Where both are
// names of the same file, POSIX makes rename do nothing and leaves both; then
// Rename removes oldname, so that it always means the same. Nothing is
// synced; see [SyncDir].
func Rename(oldname, newname string) error {
	return step("rename", newname, func() error {
		if err := renameReplace(oldname, newname); err != nil {
			return err
		}
		a, err := os.Lstat(oldname)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		b, err := os.Lstat(newname)
		if err != nil {
			return err
		}
		if !os.SameFile(a, b) || filepath.Clean(oldname) == filepath.Clean(newname) {
			// A new file has taken the old name since: not ours to touch.
			return nil
		}
		return os.Remove(oldname)
	})
}

// RenameNew moves oldname to newname and fails with fs.ErrExist if newname is
// there, whatever it is. Nothing is synced; see [SyncDir].
func RenameNew(oldname, newname string) error {
	return step("rename", newname, func() error { return renameNew(oldname, newname) })
}

// Remove removes a file or an empty folder. Nothing is synced; see [SyncDir].
func Remove(path string) error {
	return step("remove", path, func() error { return os.Remove(path) })
}

// Sweep removes from dir (not from folders in it) the temporaries that a
// process of ours left behind when it died, if they were last written to more
// than olderThan before now, and says how many. A file that vanishes meanwhile
// is no error; a dir that does not exist has none.
func Sweep(dir string, olderThan time.Duration, now time.Time) (int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	swept := 0
	var errs []error
	for _, e := range entries {
		if !IsTemp(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		fi, err := e.Info()
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
			continue
		}
		if now.Sub(fi.ModTime()) <= olderThan {
			continue
		}
		switch err := Remove(filepath.Join(dir, e.Name())); {
		case err == nil:
			swept++
		case !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, err)
		}
	}
	return swept, errors.Join(errs...)
}
