package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func changeTime(st *syscall.Stat_t) time.Time { return time.Unix(st.Ctim.Unix()) }

func renameNoReplace(oldname, newname string) error {
	return unix.Renameat2(unix.AT_FDCWD, oldname, unix.AT_FDCWD, newname, unix.RENAME_NOREPLACE)
}

// clone makes dst share the blocks of src (the FICLONE ioctl).
func cloneInto(src *os.File, dst *Temp) error {
	err := retry(func() error { return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) })
	for _, e := range []error{unix.EXDEV, unix.EOPNOTSUPP, unix.ENOTSUP, unix.ENOTTY, unix.EINVAL, unix.ENOSYS, unix.EPERM} {
		if errors.Is(err, e) {
			return ErrNoClone
		}
	}
	return err
}

// Clone makes path a file of its own with the content that src has now,
// sharing its blocks: a snapshot in constant time. It must not exist yet
// (fs.ErrExist). ErrNoClone means that the file system has no such thing, or
// the two lie on different ones. The snapshot is durable, its name is not;
// see [SyncDir].
//
//	open(temp, O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0600) beside path; ioctl(FICLONE)
//	fsync; close; rename without replacing(temp, path)
func Clone(src *os.File, path string) error {
	t, err := CreateTemp(filepath.Dir(path))
	if err != nil {
		return err
	}
	err = step("clone", path, func() error { return cloneInto(src, t) })
	if err == nil {
		err = t.Place(path)
	}
	if err != nil {
		return errors.Join(err, t.Discard())
	}
	return nil
}

// localFilesystems are those whose bytes lie in this machine, with locks and
// syncs that mean something. What is not listed counts as far away, FUSE too,
// behind which anything may be.
var localFilesystems = map[int64]string{
	unix.EXT4_SUPER_MAGIC:      "ext4",
	unix.XFS_SUPER_MAGIC:       "xfs",
	unix.BTRFS_SUPER_MAGIC:     "btrfs",
	unix.F2FS_SUPER_MAGIC:      "f2fs",
	unix.TMPFS_MAGIC:           "tmpfs",
	unix.RAMFS_MAGIC:           "ramfs",
	unix.OVERLAYFS_SUPER_MAGIC: "overlay",
	unix.MSDOS_SUPER_MAGIC:     "vfat",
	unix.EXFAT_SUPER_MAGIC:     "exfat",
	unix.REISERFS_SUPER_MAGIC:  "reiserfs",
	unix.ECRYPTFS_SUPER_MAGIC:  "ecryptfs",
	unix.NILFS_SUPER_MAGIC:     "nilfs2",
	0x2fc12fc1:                 "zfs",
	0xca451a4e:                 "bcachefs",
	0x3153464a:                 "jfs",
	0x7366746e:                 "ntfs3",
	0x5346544e:                 "ntfs",
	0x61756673:                 "aufs",
}

var remoteFilesystems = map[int64]string{
	unix.NFS_SUPER_MAGIC:  "nfs",
	unix.SMB_SUPER_MAGIC:  "smb",
	unix.SMB2_SUPER_MAGIC: "smb2",
	unix.CIFS_SUPER_MAGIC: "cifs",
	unix.AFS_SUPER_MAGIC:  "afs",
	unix.CEPH_SUPER_MAGIC: "ceph",
	unix.CODA_SUPER_MAGIC: "coda",
	unix.V9FS_MAGIC:       "9p",
	unix.FUSE_SUPER_MAGIC: "fuse",
	0x0bd00bd0:            "lustre",
	0x47504653:            "gpfs",
	0x01161970:            "gfs2",
	0x7461636f:            "ocfs2",
	0x786f4256:            "vboxsf",
}

// Filesystem tells the kind of the file system that path, or its nearest
// existing parent, lies on, and whether it is one of this machine. A kind that
// is not known is given as a number and counts as not local. On a network
// disk that does not answer the call waits like any other.
func Filesystem(path string) (kind string, local bool, err error) {
	var st unix.Statfs_t
	if err := statParent(path, func(p string) error { return unix.Statfs(p, &st) }); err != nil {
		return "", false, err
	}
	magic := int64(uint32(st.Type)) //nolint:unconvert // its type differs between architectures
	if kind, ok := localFilesystems[magic]; ok {
		return kind, true, nil
	}
	if kind, ok := remoteFilesystems[magic]; ok {
		return kind, false, nil
	}
	return fmt.Sprintf("0x%x", magic), false, nil
}

func statParent(path string, stat func(string) error) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	for {
		err := retry(func() error { return stat(path) })
		parent := filepath.Dir(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || parent == path {
			if err != nil {
				err = &fs.PathError{Op: "statfs", Path: path, Err: err}
			}
			return err
		}
		path = parent
	}
}

// processStart names the moment when a running process was started, so that a
// later one with the same number is not mistaken for it. Empty if unknown.
func processStart(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The second field, the program's name, may hold spaces and brackets.
	_, rest, ok := strings.Cut(string(stat[max(0, strings.LastIndex(string(stat), ")")):]), ")")
	fields := strings.Fields(rest)
	const startTime = 22 - 3 // field 22 of proc(5), counted from the third
	if !ok || len(fields) <= startTime || fields[0] == "Z" {
		return "" // a zombie is dead, though its number is still taken
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + "/" + fields[startTime]
}
