package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

const (
	// editTries is how often an edit is worked out anew because another
	// program wrote the file meanwhile.
	editTries = 5
	// keptBackups bounds the backups in the state folder.
	keptBackups = 20
	// staleTemp is the age from which a leftover temporary is swept.
	staleTemp = time.Hour
	// maxLinks bounds a chain of symbolic links.
	maxLinks = 40
)

// edit is a change of one file, from reading it to the bytes on disk.
type edit struct {
	path    string // as named
	backups string // folder for copies of what is replaced
	now     time.Time

	// work gives the new content; data is nil if there is no file. The same
	// bytes mean that there is nothing to do.
	work func(data []byte) (result []byte, remove bool, err error)
	// commit, if set, runs when the result is final and before it is written.
	commit func() error
}

// change is what an edit did, or would do.
type change struct {
	target  string // the file itself, behind symbolic links
	before  []byte // nil if it was missing
	after   []byte // nil if it is removed
	folder  bool   // its folder was made
	backup  string
	inPlace bool
}

func (c change) changed() bool {
	return (c.before == nil) != (c.after == nil) || !bytes.Equal(c.before, c.after)
}

// errOvertaken says that another program wrote the file during the edit.
var errOvertaken = errors.New("keeps changing while it is being edited, so nothing was written")

// plan works the change out without writing anything.
func (e edit) plan() (change, fs.FileInfo, error) {
	target, err := resolveLinks(e.path)
	if err != nil {
		return change{}, nil, err
	}
	data, fi, err := readSettings(target)
	if err != nil {
		return change{}, nil, err
	}
	result, remove, err := e.work(data)
	if err != nil {
		return change{}, nil, err
	}
	if remove {
		result = nil
	}
	return change{target: target, before: data, after: result}, fi, nil
}

// apply makes the change. The file is either as before or as worked out,
// whatever fails on the way, and what another program wrote meanwhile is never
// overwritten: the edit is then worked out anew on that.
func (e edit) apply() (change, error) {
	for range editTries {
		c, fi, err := e.plan()
		if err != nil || !c.changed() {
			return c, err
		}
		if e.commit != nil {
			if err := e.commit(); err != nil {
				return c, err
			}
		}
		err = e.write(&c, fi)
		if errors.Is(err, errOvertaken) {
			continue
		}
		return c, err
	}
	return change{}, errOvertaken
}

func (e edit) write(c *change, fi fs.FileInfo) error {
	dir := filepath.Dir(c.target)
	if c.before != nil {
		backup, err := e.backUp(c.before)
		if err != nil {
			return fmt.Errorf("cannot be backed up, so it was not changed: %w", err)
		}
		c.backup = backup
	}
	if c.after == nil {
		if err := unchanged(*c); err != nil {
			return err
		}
		if err := durable.Remove(c.target); err != nil {
			return fmt.Errorf("cannot be removed: %w", err)
		}
		return durable.SyncDir(dir)
	}
	if c.before == nil {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			if err := durable.MkdirAll(dir); err != nil {
				return fmt.Errorf("cannot be created: %w", err)
			}
			c.folder = true
		}
	} else if _, err := durable.Sweep(dir, staleTemp, e.now); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	// A file with several names would lose all but one by a rename.
	if links, ok := linksOf(fi); ok && links > 1 {
		return e.writeInPlace(c)
	}
	err := writeBeside(*c, fi)
	if err != nil && c.before != nil && needsInPlace(err) {
		return e.writeInPlace(c)
	}
	return err
}

// writeBeside replaces the file by a rename, keeping mode and owner.
func writeBeside(c change, fi fs.FileInfo) (err error) {
	dir := filepath.Dir(c.target)
	t, err := durable.CreateTemp(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Discard()) }()
	if _, err := t.Write(c.after); err != nil {
		return fmt.Errorf("cannot be written, and stays as it was: %w", err)
	}
	if fi != nil {
		if err := keepOwner(t.File, fi); err != nil {
			return fmt.Errorf("belongs to somebody else, and stays as it was: %w", err)
		}
		if err := t.Chmod(fi.Mode().Perm()); err != nil {
			return fmt.Errorf("cannot be written, and stays as it was: %w", err)
		}
	}
	if err := t.Sync(); err != nil {
		return fmt.Errorf("cannot be written, and stays as it was: %w", err)
	}
	if err := unchanged(c); err != nil {
		return err
	}
	if c.before == nil {
		err = t.Place(c.target)
		if errors.Is(err, fs.ErrExist) {
			return errOvertaken
		}
	} else {
		err = t.Replace(c.target)
	}
	if err != nil {
		return fmt.Errorf("cannot be written, and stays as it was: %w", err)
	}
	return durable.SyncDir(dir)
}

// needsInPlace reports whether an error means that the file's folder does not
// take a new file or a rename: a single file mounted into a read-only folder,
// as containers do it.
func needsInPlace(err error) bool {
	return errors.Is(err, fs.ErrPermission) || isMountError(err)
}

// writeInPlace overwrites the file where it is. What makes it longer is
// written first, so that a full disk is noticed before an old byte is touched;
// if it fails later, the old bytes are put back.
func (e edit) writeInPlace(c *change) (err error) {
	c.inPlace = true
	f, err := os.OpenFile(c.target, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("can neither be replaced nor written in place (is it mounted read-only?): %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := unchanged(*c); err != nil {
		return err
	}
	old, n := c.before, min(len(c.before), len(c.after))
	_, err = f.WriteAt(c.after[n:], int64(n))
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return fmt.Errorf("cannot be written, and stays as it was: %w", errors.Join(err, f.Truncate(int64(len(old)))))
	}
	_, err = f.WriteAt(c.after[:n], 0)
	if err == nil {
		err = f.Truncate(int64(len(c.after)))
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		return nil
	}
	_, backErr := f.WriteAt(old, 0)
	if backErr == nil {
		backErr = errors.Join(f.Truncate(int64(len(old))), f.Sync())
	}
	if backErr != nil {
		return fmt.Errorf("was damaged while it was written; its copy is %s: %w", c.backup, errors.Join(err, backErr))
	}
	return fmt.Errorf("cannot be written, and stays as it was: %w", err)
}

// unchanged checks that the file still holds what the edit was worked out on.
func unchanged(c change) error {
	data, _, err := readSettings(c.target)
	if err != nil {
		return err
	}
	if (data == nil) != (c.before == nil) || !bytes.Equal(data, c.before) {
		return errOvertaken
	}
	return nil
}

// backUp stores a copy in the backup folder, unless the same bytes are there
// already, and removes the oldest beyond the bound.
func (e edit) backUp(data []byte) (string, error) {
	if err := durable.MkdirAll(e.backups); err != nil {
		return "", err
	}
	if _, err := durable.Sweep(e.backups, staleTemp, e.now); err != nil {
		return "", err
	}
	sum := sha256.Sum256(append([]byte(e.path+"\x00"), data...))
	suffix := "-" + hex.EncodeToString(sum[:8]) + ".json"
	names, err := backupNames(e.backups)
	if err != nil {
		return "", err
	}
	for _, name := range slices.Backward(names) {
		path := filepath.Join(e.backups, name)
		if have, err := os.ReadFile(path); strings.HasSuffix(name, suffix) && err == nil && bytes.Equal(have, data) {
			return path, nil
		}
	}
	name := "settings-" + e.now.UTC().Format("20060102T150405.000000000Z") + suffix
	path := filepath.Join(e.backups, name)
	if err := durable.WriteFile(path, data); err != nil {
		return "", err
	}
	for len(names) >= keptBackups {
		if err := durable.Remove(filepath.Join(e.backups, names[0])); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		names = names[1:]
	}
	return path, nil
}

// backupNames lists the backups, oldest first.
func backupNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "settings-") {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// resolveLinks follows symbolic links by hand, because the last one may point
// to a file that does not exist yet: it is then created where it points to.
func resolveLinks(path string) (string, error) {
	for range maxLinks {
		fi, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && fi.Mode()&fs.ModeSymlink == 0 {
			return path, nil
		}
		if err != nil {
			return "", err
		}
		link, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(link) {
			// The folder may be a link itself, and ".." counts from behind it.
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}
			link = filepath.Join(dir, link)
		}
		path = link
	}
	return "", errors.New("is a loop of symbolic links")
}

// readSettings reads a whole settings file; nil data is a missing one.
func readSettings(path string) ([]byte, fs.FileInfo, error) {
	fi, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot be read: %w", err)
	}
	if !fi.Mode().IsRegular() {
		return nil, nil, errors.New("is not a regular file")
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot be read: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSettingsBytes+1))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot be read: %w", err)
	}
	if data == nil {
		data = []byte{}
	}
	return data, fi, nil
}

func linksOf(fi fs.FileInfo) (uint64, bool) {
	if fi == nil {
		return 0, false
	}
	return durable.Links(fi)
}
