//go:build unix

package durable

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

const openNonblock = syscall.O_NONBLOCK

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// OwnedByUser tells whether a file belongs to the user who runs this program.
func OwnedByUser(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// FileID gives the device and inode of a file, as os.Stat, os.Lstat or
// File.Stat told. It is false where the system does not say.
func FileID(fi fs.FileInfo) (ID, bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return ID{}, false
	}
	// Dev is signed and narrower on some systems; only equality matters.
	return ID{Device: uint64(st.Dev), Inode: uint64(st.Ino)}, true
}

// OpenID is FileID for an open file.
func OpenID(f *os.File) (ID, bool) {
	fi, err := f.Stat()
	if err != nil {
		return ID{}, false
	}
	return FileID(fi)
}

func closeOnExec(fd uintptr) { syscall.CloseOnExec(int(fd)) }

// ChangeTime gives the time of the last change to a file's inode, which no
// program can set. It is false where the system does not say.
func ChangeTime(fi fs.FileInfo) (time.Time, bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}, false
	}
	return changeTime(st), true
}

// Links gives the number of names that a file has. It is false where the
// system does not say.
func Links(fi fs.FileInfo) (uint64, bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return uint64(st.Nlink), true
}

// LinkRefused tells whether err, from [Link], means that this file cannot be
// hard-linked there at all: another file system (EXDEV), one without hard
// links or a file that the system protects (EPERM, ENOTSUP, ENOSYS), or no
// more names for the file (EMLINK). Trying again is of no use; copying is.
func LinkRefused(err error) bool {
	for _, e := range []error{syscall.EXDEV, syscall.EPERM, syscall.EMLINK,
		syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// ignoreNoModes drops the error of file systems that have no modes to change.
func ignoreNoModes(err error) error {
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOTSUP) ||
		errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
		return nil
	}
	return err
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EOPNOTSUPP) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

func renameReplace(oldname, newname string) error { return os.Rename(oldname, newname) }

// renameNew renames without replacing, in the best way that the file system
// has: one atomic call; else a second name and the removal of the first, which
// after a crash may leave both; else, without hard links, a look before the
// rename, which two processes at the same moment can both pass. Write-once
// files hold the same bytes then, so nothing is lost by it.
func renameNew(oldname, newname string) error {
	err := retry(func() error { return renameNoReplace(oldname, newname) })
	if err == nil || !noRenameFlags(err) {
		if err != nil {
			err = &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
		}
		return err
	}
	return renameNewByLink(oldname, newname)
}

func renameNewByLink(oldname, newname string) error {
	err := os.Link(oldname, newname)
	if err == nil {
		return os.Remove(oldname)
	}
	if !LinkRefused(err) {
		return err
	}
	if _, err := os.Lstat(newname); err == nil {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(oldname, newname)
}

func noRenameFlags(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSYS) ||
		errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EOPNOTSUPP)
}
