package durable

import (
	"errors"
	"io/fs"
	"os"
)

var (
	// ErrNotRegular says that a path names no regular file: a folder, a pipe,
	// a device, a socket.
	ErrNotRegular = errors.New("not a regular file")
	// ErrNotOwned says that a file belongs to another user.
	ErrNotOwned = errors.New("belongs to another user")

	errNotDir = errors.New("not a directory")
)

// An ID names a file, apart from its paths, on this machine: device and inode,
// or what the system has in their place. Device numbers may change when the
// machine restarts.
type ID struct{ Device, Inode uint64 }

// OpenRegular opens a file for reading without ever waiting for it (a pipe has
// no writer, a device no medium) and refuses what is not a regular file
// (ErrNotRegular) of the user who runs this program (ErrNotOwned), wrapped in
// an *fs.PathError. Links are followed. The FileInfo is that of the open file.
func OpenRegular(path string) (*os.File, fs.FileInfo, error) {
	f, err := OpenNow(path)
	if err != nil {
		return nil, nil, err
	}
	fi, err := f.Stat()
	if err == nil {
		if !fi.Mode().IsRegular() {
			err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
		} else if !OwnedByUser(fi) {
			err = &fs.PathError{Op: "open", Path: path, Err: ErrNotOwned}
		}
	}
	if err != nil {
		f.Close() // read only: nothing can be lost
		return nil, nil, err
	}
	return f, fi, nil
}

// OpenNow opens a file for reading like os.Open, but never waits for it: a pipe
// or a device in its place is opened at once, for the caller to refuse.
func OpenNow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
}
