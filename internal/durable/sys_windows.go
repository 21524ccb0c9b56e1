package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/windows"
)

const openNonblock = 0

// OwnedByUser is always true: what a user can open in their own profile is
// theirs by the access lists that Windows gives it.
func OwnedByUser(fs.FileInfo) bool { return true }

// FileID is false: a FileInfo does not carry it on Windows. See [OpenID].
func FileID(fs.FileInfo) (ID, bool) { return ID{}, false }

// OpenID gives the volume and file index of an open file.
func OpenID(f *os.File) (ID, bool) {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info); err != nil {
		return ID{}, false
	}
	return ID{
		Device: uint64(info.VolumeSerialNumber),
		Inode:  uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow),
	}, true
}

// ChangeTime is false: a FileInfo does not carry it on Windows.
func ChangeTime(fs.FileInfo) (time.Time, bool) { return time.Time{}, false }

// Links is false: a FileInfo does not carry it on Windows.
func Links(fs.FileInfo) (uint64, bool) { return 0, false }

// LinkRefused tells whether err, from [Link], means that this file cannot be
// hard-linked there at all: another volume, one without hard links, or no more
// names for the file. Trying again is of no use; copying is.
func LinkRefused(err error) bool {
	for _, e := range []error{windows.ERROR_NOT_SAME_DEVICE, windows.ERROR_INVALID_FUNCTION,
		windows.ERROR_NOT_SUPPORTED, windows.ERROR_TOO_MANY_LINKS, windows.ERROR_ACCESS_DENIED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func ignoreNoModes(err error) error { return err }

// syncDir flushes the folder where the file system lets it. NTFS keeps names
// in a journal of its own and may refuse.
func syncDir(dir string) error {
	p, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return err
	}
	h, err := windows.CreateFile(p, windows.GENERIC_WRITE, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
		nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
			return nil
		}
		return &fs.PathError{Op: "sync", Path: dir, Err: err}
	}
	err = windows.FlushFileBuffers(h)
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.ERROR_INVALID_FUNCTION) || errors.Is(err, windows.ERROR_NOT_SUPPORTED) {
		err = nil
	}
	return errors.Join(err, windows.CloseHandle(h))
}

func renameReplace(oldname, newname string) error {
	return move(oldname, newname, windows.MOVEFILE_REPLACE_EXISTING|windows.MOVEFILE_WRITE_THROUGH)
}

func renameNew(oldname, newname string) error {
	return move(oldname, newname, windows.MOVEFILE_WRITE_THROUGH)
}

// move renames, and asks again for a moment while a virus scanner or an
// indexer holds one of the two files open.
func move(oldname, newname string, flags uint32) error {
	from, err := windows.UTF16PtrFromString(oldname)
	if err != nil {
		return err
	}
	to, err := windows.UTF16PtrFromString(newname)
	if err != nil {
		return err
	}
	const tries, pause = 10, 10 * time.Millisecond
	for range tries {
		err = windows.MoveFileEx(from, to, flags)
		if !errors.Is(err, windows.ERROR_SHARING_VIOLATION) && !errors.Is(err, windows.ERROR_ACCESS_DENIED) {
			break
		}
		time.Sleep(pause)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
	}
	return nil
}

// Clone is ErrNoClone: snapshots are made on Linux and macOS alone.
func Clone(src *os.File, path string) error { return ErrNoClone }

// Filesystem tells the kind of the file system that path, or its nearest
// existing parent, lies on, and whether it is one of this machine.
func Filesystem(path string) (kind string, local bool, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return "", false, err
	}
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return "", false, err
	}
	var root [windows.MAX_PATH + 1]uint16
	if err := windows.GetVolumePathName(p, &root[0], uint32(len(root))); err != nil {
		return "", false, &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	var name [windows.MAX_PATH + 1]uint16
	if err := windows.GetVolumeInformation(&root[0], nil, 0, nil, nil, nil, &name[0], uint32(len(name))); err != nil {
		return "", false, &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	drive := windows.GetDriveType(&root[0])
	return windows.UTF16ToString(name[:]), drive == windows.DRIVE_FIXED || drive == windows.DRIVE_REMOVABLE || drive == windows.DRIVE_RAMDISK, nil
}

const locksInherit = false // they belong to the process

func closeOnExec(uintptr) {} // no handle is inherited unless it is named

func osLock(f *os.File, m LockMode) error {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if m == Exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	switch {
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return ErrLocked
	case errors.Is(err, windows.ERROR_NOT_SUPPORTED), errors.Is(err, windows.ERROR_INVALID_FUNCTION), errors.Is(err, windows.ERROR_CALL_NOT_IMPLEMENTED):
		return errNoLocks
	}
	return err
}

func osUnlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, new(windows.Overlapped))
}

func alive(pid int) bool { return processStart(pid) != "" }

// processStart names the moment when a running process was started, so that a
// later one with the same number is not mistaken for it. Empty if unknown.
func processStart(pid int) string {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return ""
	}
	defer windows.CloseHandle(h)
	var code uint32
	const stillActive = 259
	if err := windows.GetExitCodeProcess(h, &code); err != nil || code != stillActive {
		return ""
	}
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(h, &created, &exited, &kernel, &user); err != nil {
		return ""
	}
	return fmt.Sprint(created.Nanoseconds())
}
