package briefing

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// Memory knows what was said in a session.
type Memory interface {
	// Said tells whether key was claimed in session.
	Said(session, key string) (bool, error)
	// Claim notes that key is said in session, and tells whether this call was
	// the first to do so, of all processes.
	Claim(session, key string) (bool, error)
	// Release takes back a claim of this process: it was not said after all.
	Release(session, key string) error
}

// SaidFolder is a [Memory] in a folder of the state: a folder for each session, an
// empty file for each briefing, both named by a hash. The files are not synced:
// after a power cut something may be said once more.
type SaidFolder string

// keepSaid is how long a session is remembered after the last claim in it:
// longer than the client keeps a session by default, which is 30 days.
const keepSaid = 90 * 24 * time.Hour

func (d SaidFolder) session(session string) string { return filepath.Join(string(d), hashed(session)) }

// hashed makes a name of anything. Session ids come from outside.
func hashed(s string) string {
	sum := sha256.Sum256([]byte("said\x00" + s))
	return hex.EncodeToString(sum[:16])
}

// Said tells whether key was claimed.
func (d SaidFolder) Said(session, key string) (bool, error) {
	_, err := os.Lstat(filepath.Join(d.session(session), hashed(key)))
	if missing(err) {
		return false, nil
	}
	return err == nil, err
}

// Claim creates the file for key, which one process alone can.
func (d SaidFolder) Claim(session, key string) (bool, error) {
	dir := d.session(session)
	path := filepath.Join(dir, hashed(key))
	for try := 0; ; try++ {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		switch {
		case err == nil:
			return true, errors.Join(ownMode(f), f.Close())
		case errors.Is(err, fs.ErrExist):
			return false, nil
		case !errors.Is(err, fs.ErrNotExist) || try == 3:
			return false, err
		}
		// The folder is not there yet, or was swept a moment ago.
		err = durable.Mkdir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			err = durable.MkdirAll(dir)
		}
		if err != nil {
			return false, err
		}
	}
}

// ownMode gives a new file its mode, which the umask may have narrowed.
func ownMode(f *os.File) error {
	info, err := f.Stat()
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm() == 0o600 {
		return err
	}
	return f.Chmod(0o600)
}

// Release removes the file for key.
func (d SaidFolder) Release(session, key string) error {
	err := os.Remove(filepath.Join(d.session(session), hashed(key)))
	if missing(err) {
		return nil
	}
	return err
}

// Forget leaves no trace of a session.
func (d SaidFolder) Forget(session string) error { return os.RemoveAll(d.session(session)) }

// Sweep removes sessions in which nothing was claimed for 90 days, and says how
// many. A hook need not do it.
func (d SaidFolder) Sweep(now time.Time) (int, error) {
	sessions, err := os.ReadDir(string(d))
	if missing(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	removed := 0
	var failed []error // one that stays does not keep the others
	for _, s := range sessions {
		if !isHashed(s.Name()) || !s.IsDir() {
			continue
		}
		info, err := s.Info()
		if err == nil {
			if now.Sub(info.ModTime()) <= keepSaid {
				continue
			}
			if err = os.RemoveAll(filepath.Join(string(d), s.Name())); err == nil {
				removed++
			}
		}
		if err != nil && !missing(err) {
			failed = append(failed, fmt.Errorf("sweep: %w", err))
		}
	}
	return removed, errors.Join(failed...)
}

// isHashed tells whether a name is one that hashed makes.
func isHashed(name string) bool {
	raw, err := hex.DecodeString(name)
	return err == nil && len(raw) == 16
}

// ReadOnly makes a memory that answers as m does and remembers nothing, to show
// what a session would get.
func ReadOnly(m Memory) Memory { return readOnly{m} }

type readOnly struct{ Memory }

func (r readOnly) Claim(session, key string) (bool, error) {
	said, err := r.Said(session, key)
	return !said, err
}

func (r readOnly) Release(session, key string) error { return nil }
