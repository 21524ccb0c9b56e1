package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// The folders under the state folder that remember paths: one file each,
// named by the hash of the path that it holds.
const (
	seenSpools  = "spools"
	seenClients = "configs"
)

// maxSeenBytes bounds a remembered path.
const maxSeenBytes = 8 << 10

// DefaultSpool returns the spool in the state folder.
func DefaultSpool(state string) string { return filepath.Join(state, "spool") }

// RememberSpool notes that there is a spool at dir, so that every worker
// sweeps it.
func RememberSpool(state, dir string) error { return remember(state, seenSpools, dir) }

// RememberClientDir notes that a client keeps its sessions under dir.
func RememberClientDir(state, dir string) error { return remember(state, seenClients, dir) }

// SeenSpools returns the spool in the state folder and then the remembered
// ones. They need not exist any more.
func SeenSpools(state string) ([]string, error) {
	first := DefaultSpool(state)
	seen, err := recall(state, seenSpools)
	seen = slices.DeleteFunc(seen, func(dir string) bool { return dir == first })
	return append([]string{first}, seen...), err
}

// SeenClientDirs returns the remembered config folders of clients. They need
// not exist any more.
func SeenClientDirs(state string) ([]string, error) { return recall(state, seenClients) }

func remember(state, kind, dir string) error {
	dir = filepath.Clean(dir)
	if !filepath.IsAbs(dir) {
		return &fs.PathError{Op: "remember", Path: dir, Err: errors.New("not an absolute path")}
	}
	sum := sha256.Sum256([]byte(dir))
	folder := filepath.Join(state, "seen", kind)
	path := filepath.Join(folder, hex.EncodeToString(sum[:8]))
	if _, err := os.Lstat(path); err == nil {
		return nil // the usual case costs one call
	}
	if err := durable.MkdirAll(folder); err != nil {
		return err
	}
	return durable.ReplaceFile(path, []byte(dir))
}

func recall(state, kind string) ([]string, error) {
	folder := filepath.Join(state, "seen", kind)
	entries, err := os.ReadDir(folder) // sorted by name
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var dirs []string
	var errs []error
	for _, e := range entries {
		if len(e.Name()) != 16 || !e.Type().IsRegular() {
			continue // a temporary, or not ours
		}
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		dir := string(data)
		switch {
		case err != nil:
			errs = append(errs, err)
		case len(data) > maxSeenBytes || !filepath.IsAbs(dir):
			errs = append(errs, &fs.PathError{Op: "read", Path: filepath.Join(folder, e.Name()), Err: errors.New("holds no absolute path")})
		default:
			dirs = append(dirs, filepath.Clean(dir))
		}
	}
	return dirs, errors.Join(errs...)
}
