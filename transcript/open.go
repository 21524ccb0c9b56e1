package transcript

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ErrRefused is the error of a file that is there but is none that this package
// reads: no regular file, not the user's, or not named after the session.
var ErrRefused = errors.New("not a regular session file of the user's")

func refuse(path, why string) error {
	return fmt.Errorf("%w: %.256q %s", ErrRefused, path, why)
}

// OpenRegular opens a regular file that belongs to the user, for reading, following
// symbolic links. It never waits: a FIFO, a device or a socket is refused before it
// is opened, and again by what was opened in case the path was swapped in between.
func OpenRegular(path string) (*os.File, os.FileInfo, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if err := checkRegular(path, fi); err != nil {
		return nil, nil, err
	}
	f, err := openNonBlocking(path)
	if err != nil {
		return nil, nil, err
	}
	if fi, err = f.Stat(); err == nil {
		err = checkRegular(path, fi)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, fi, nil
}

func checkRegular(path string, fi os.FileInfo) error {
	if !fi.Mode().IsRegular() {
		return refuse(path, "is no regular file")
	}
	if !ownedByUser(fi) {
		return refuse(path, "belongs to someone else")
	}
	return nil
}

// openTranscript opens the transcript of a session. Through a symbolic link it goes
// only to a file of the very same name: a link is no way to have another file read.
// What is checked is the file that was opened.
func openTranscript(path, id string) (*os.File, transcriptInfo, error) {
	var t transcriptInfo
	if filepath.Base(path) != id+transcriptExt {
		return nil, t, refuse(path, "is not named after the session")
	}
	f, fi, err := OpenRegular(path)
	if err != nil {
		return nil, t, err
	}
	t = transcriptInfo{FileInfo: fi}
	if t.path, err = filepath.EvalSymlinks(path); err == nil {
		switch at, e := os.Lstat(t.path); {
		case e != nil:
			err = e
		case !os.SameFile(fi, at):
			err = refuse(path, "changed while it was opened")
		case filepath.Base(t.path) != id+transcriptExt:
			err = refuse(path, "leads to a file of another name")
		}
	}
	if err != nil {
		f.Close()
		return nil, t, err
	}
	return f, t, nil
}

// transcriptInfo is about an opened transcript.
type transcriptInfo struct {
	os.FileInfo
	path string // symbolic links resolved
}

// readSmall reads a regular file of at most limit bytes that is no symbolic link.
func readSmall(path string, limit int64) ([]byte, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if err := checkRegular(path, fi); err != nil {
		return nil, err
	}
	f, fi, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi.Size() > limit {
		return nil, refuse(path, fmt.Sprintf("is larger than %d bytes", limit))
	}
	return io.ReadAll(io.LimitReader(f, limit))
}
