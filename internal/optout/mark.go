package optout

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// The folders of marks under the state folder, and the key of their names.
const (
	outFolder       = "out"       // sessions that were kept out
	forgottenFolder = "forgotten" // sessions that a person had forgotten
	keyFile         = "key"
	keyBytes        = 32
)

// Mark is a remembered decision to keep a session out.
type Mark struct {
	Reason Reason    `json:"reason"`
	Time   time.Time `json:"time"`
}

// MarkOut remembers that session stays out. An older mark stays.
func MarkOut(state, session string, r Reason, now time.Time) error {
	if _, marked, err := Marked(state, session); marked || err != nil {
		return err
	}
	return writeMark(state, outFolder, session, Mark{r, now.UTC()})
}

// Lift removes the mark of MarkOut; a session without one is no error.
func Lift(state, session string) error {
	path, err := markPath(state, outFolder, session)
	if path == "" || err != nil {
		return err
	}
	if err := durable.Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

// Marked returns the mark of a session.
func Marked(state, session string) (Mark, bool, error) { return readMark(state, outFolder, session) }

// Forget leaves a local tombstone for session and removes its mark.
func Forget(state, session string, now time.Time) error {
	if err := writeMark(state, forgottenFolder, session, Mark{Forgotten, now.UTC()}); err != nil {
		return err
	}
	return Lift(state, session)
}

// IsForgotten tells whether session has a local tombstone.
func IsForgotten(state, session string) (bool, error) {
	_, forgotten, err := readMark(state, forgottenFolder, session)
	return forgotten, err
}

func writeMark(state, folder, session string, m Mark) error {
	if err := makeKey(state); err != nil {
		return err
	}
	path, err := markPath(state, folder, session)
	if err != nil {
		return err
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	return durable.ReplaceFile(path, data)
}

// readMark returns a mark. That it is there is what counts: a damaged one
// keeps a session out as well.
func readMark(state, folder, session string) (Mark, bool, error) {
	path, err := markPath(state, folder, session)
	if path == "" || err != nil {
		return Mark{}, false, err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Mark{}, false, nil
	}
	if err != nil {
		return Mark{}, false, err
	}
	var m Mark
	if err := json.Unmarshal(data, &m); err != nil {
		m = Mark{Reason: "unreadable mark"}
	}
	return m, true, nil
}

// markPath returns the path of a session's mark, or "" if there is no key yet
// and so no marks.
func markPath(state, folder, session string) (string, error) {
	key, err := os.ReadFile(filepath.Join(state, keyFile))
	if errors.Is(err, fs.ErrNotExist) {
		// Without its key a mark cannot be told from that of another session.
		entries, err := os.ReadDir(filepath.Join(state, folder))
		if err == nil && len(entries) > 0 {
			return "", fmt.Errorf("the key %s is gone, so it cannot be told which sessions are to stay out; removing %s gives them up", filepath.Join(state, keyFile), filepath.Join(state, folder))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		return "", nil
	}
	if err != nil {
		if isNoFolder(err) {
			return "", nil
		}
		return "", err
	}
	if len(key) != keyBytes {
		return "", fmt.Errorf("the key %s is damaged, so it cannot be told which sessions are to stay out", filepath.Join(state, keyFile))
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(session))
	return filepath.Join(state, folder, hex.EncodeToString(mac.Sum(nil))), nil
}

// makeKey makes the key unless there is one.
func makeKey(state string) error {
	path := filepath.Join(state, keyFile)
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if err := durable.MkdirAll(state); err != nil {
		return err
	}
	key := make([]byte, keyBytes)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	// Two processes may come to this at once; the first one's key holds.
	if err := durable.WriteFile(path, key); err != nil && !errors.Is(err, durable.ErrDiffers) {
		return err
	}
	return nil
}
