package spool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// jobVersion is the version of job files and store records that this program
// writes. Files with a later one are left for a later program.
const jobVersion = 1

// A job is the content of a job file.
type job struct {
	Version    int       `json:"version"`
	Store      string    `json:"store"` // absolute root
	Session    string    `json:"session"`
	Transcript string    `json:"transcript,omitempty"`
	Pin        string    `json:"pin,omitempty"`  // its pin's name; with Copy, the name that it would have had
	Copy       bool      `json:"copy,omitempty"` // no hard link could be made
	Size       int64     `json:"size"`
	Reason     string    `json:"reason,omitempty"`
	Events     []Event   `json:"events,omitempty"`
	ConfigDir  string    `json:"config_dir,omitempty"`
	Folder     string    `json:"folder,omitempty"`
	Cwd        string    `json:"cwd,omitempty"`
	Attempts   int       `json:"attempts,omitempty"` // that failed
	LastError  string    `json:"last_error,omitempty"`
	LastTry    time.Time `json:"last_try,omitzero"`
}

// errNewer says that a file was written by a later program.
var errNewer = errors.New("written by a later version")

// parseJob reads a job file and checks all that is relied on later. What it
// accepts holds only names that parse and absolute paths.
func parseJob(data []byte) (job, error) {
	var j job
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&j); err != nil {
		// Only the position is told: a foreign file's content is nobody's business.
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return job{}, fmt.Errorf("job: not JSON at byte %d of %d", syntax.Offset, len(data))
		}
		return job{}, errors.New("job: not a JSON object of its kind")
	}
	if _, err := dec.Token(); err != io.EOF {
		return job{}, errors.New("job: bytes after its end")
	}
	switch {
	case j.Version > jobVersion:
		return job{}, fmt.Errorf("job: version %d: %w", j.Version, errNewer)
	case j.Version != jobVersion:
		return job{}, fmt.Errorf("job: version %d is unknown", j.Version)
	case !ValidSessionID(j.Session):
		return job{}, errors.New("job: session id is not valid")
	case !cleanAbs(j.Store):
		return job{}, errors.New("job: store is no absolute path")
	case j.Transcript != "" && !cleanAbs(j.Transcript):
		return job{}, errors.New("job: transcript is no absolute path")
	case j.Copy && j.Transcript == "":
		return job{}, errors.New("job: nothing to copy")
	case j.ConfigDir != "" && !cleanAbs(j.ConfigDir):
		return job{}, errors.New("job: config folder is no absolute path")
	case j.Size < 0 || j.Attempts < 0:
		return job{}, errors.New("job: negative number")
	}
	if j.Pin != "" {
		n, ok := parsePinName(j.Pin)
		if !ok || n.Snap != 0 || n.Session != j.Session || n.Store != StoreKey(j.Store) {
			return job{}, errors.New("job: its pin is not its own")
		}
	}
	return j, nil
}

func cleanAbs(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && !strings.ContainsRune(path, 0)
}

func (j job) encode() ([]byte, error) {
	data, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	data = append(data, '\n')
	// What is written must be readable again, whatever was put in.
	if _, err := parseJob(data); err != nil {
		return nil, err
	}
	if len(data) > maxJobBytes {
		return nil, fmt.Errorf("job: %d bytes are more than %d", len(data), maxJobBytes)
	}
	return data, nil
}

// readJob reads a job file that may be anything.
func readJob(path string) (job, error) {
	f, fi, err := durable.OpenRegular(path)
	if err != nil {
		return job{}, err
	}
	defer f.Close()
	if fi.Size() > maxJobBytes {
		return job{}, fmt.Errorf("job: %d bytes are more than %d", fi.Size(), maxJobBytes)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxJobBytes+1))
	if err != nil {
		return job{}, err
	}
	return parseJob(data)
}

// fold makes one job of several of the same session and file, in the order of
// their names: the facts of the last one, the events of all.
func fold(jobs []job) job {
	all := jobs[0]
	for _, j := range jobs[1:] {
		events := append(slices.Clone(all.Events), j.Events...)
		attempts, lastError, lastTry := max(all.Attempts, j.Attempts), all.LastError, all.LastTry
		if j.LastTry.After(lastTry) {
			lastError, lastTry = j.LastError, j.LastTry
		}
		all = j
		all.Events, all.Attempts, all.LastError, all.LastTry = events, attempts, lastError, lastTry
	}
	// The same event twice comes from a crash between the writing of a folded
	// job and the removal of its parts.
	slices.SortStableFunc(all.Events, func(a, b Event) int { return a.Time.Compare(b.Time) })
	all.Events = slices.CompactFunc(all.Events, func(a, b Event) bool {
		same := a.Time.Equal(b.Time)
		a.Time, b.Time = time.Time{}, time.Time{}
		return same && a == b
	})
	if n := len(all.Events); n > maxEvents {
		all.Events = append(all.Events[:1:1], all.Events[n-maxEvents+1:]...)
	}
	return all
}

// short bounds a text that comes from outside.
func short(s string) string {
	if len(s) <= maxText {
		return s
	}
	cut := maxText
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}

// A storeRecord is the content of stores/<key>.json.
type storeRecord struct {
	Version int    `json:"version"`
	Root    string `json:"root"`
}

func storePath(dir, key string) string { return filepath.Join(dir, storesDir, key+".json") }

func encodeStore(root string) ([]byte, error) {
	data, err := json.Marshal(storeRecord{jobVersion, root})
	return append(data, '\n'), err
}

// readStore returns the root that a store key stands for, or an error.
func readStore(dir, key string) (string, error) {
	data, err := os.ReadFile(storePath(dir, key))
	if err != nil {
		return "", err
	}
	var r storeRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return "", errors.New("store record: not JSON")
	}
	if !cleanAbs(r.Root) || StoreKey(r.Root) != key {
		return "", errors.New("store record: its root is not the key's")
	}
	return r.Root, nil
}
