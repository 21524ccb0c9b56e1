package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func changeTime(st *syscall.Stat_t) time.Time { return time.Unix(st.Ctimespec.Unix()) }

func renameNoReplace(oldname, newname string) error {
	return unix.RenamexNp(oldname, newname, unix.RENAME_EXCL)
}

// Clone makes path a file of its own with the content that src has now,
// sharing its blocks: a snapshot in constant time. It must not exist yet
// (fs.ErrExist). ErrNoClone means that the file system has no such thing, or
// the two lie on different ones. Neither content nor name is synced by the
// clone itself: the content is that of src and as durable as that; for the
// name see [SyncDir].
//
//	fclonefileat(src, path); chmod(path, 0600) if src had another mode
func Clone(src *os.File, path string) error {
	return step("clone", path, func() error {
		err := retry(func() error {
			return unix.Fclonefileat(int(src.Fd()), unix.AT_FDCWD, path, unix.CLONE_NOFOLLOW)
		})
		for _, e := range []error{unix.EXDEV, unix.ENOTSUP, unix.EINVAL, unix.ENOSYS} {
			if errors.Is(err, e) {
				return ErrNoClone
			}
		}
		if err != nil {
			return &fs.PathError{Op: "clone", Path: path, Err: err}
		}
		return ensureMode(path, fileMode) // a file of its own: the source keeps its mode
	})
}

// Filesystem tells the kind of the file system that path, or its nearest
// existing parent, lies on, and whether it is one of this machine. On a
// network disk that does not answer the call waits like any other.
func Filesystem(path string) (kind string, local bool, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return "", false, err
	}
	var st unix.Statfs_t
	for {
		err := retry(func() error { return unix.Statfs(path, &st) })
		if err == nil {
			return unix.ByteSliceToString(st.Fstypename[:]), st.Flags&unix.MNT_LOCAL != 0, nil
		}
		parent := filepath.Dir(path)
		if !errors.Is(err, fs.ErrNotExist) || parent == path {
			return "", false, &fs.PathError{Op: "statfs", Path: path, Err: err}
		}
		path = parent
	}
}

// processStart names the moment when a running process was started, so that a
// later one with the same number is not mistaken for it. Empty if unknown.
func processStart(pid int) string {
	kp, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return ""
	}
	t := kp.Proc.P_starttime
	return fmt.Sprintf("%d.%06d", t.Sec, t.Usec)
}
