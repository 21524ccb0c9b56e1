package sessions

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/session-keeper/session-keeper/internal/durable"
	"github.com/session-keeper/session-keeper/transcript"
)

// cacheVersion changes whenever facts are read differently, so that those of
// an older program are read anew.
const cacheVersion = 2

// A stamp tells whether a file is still the one that was read.
type stamp struct {
	Device, Inode uint64
	Size          int64
	ModTime       int64 // nanoseconds
}

func stampOf(fi os.FileInfo) stamp {
	id, _ := durable.FileID(fi) // zero where the system has none: size and time must do
	return stamp{id.Device, id.Inode, fi.Size(), fi.ModTime().UnixNano()}
}

// liveFacts is what was read from a live transcript.
type liveFacts struct {
	ID     string
	Stamp  stamp
	Side   string // the side folder's title that was given to the facts
	SHA256 string
	Facts  transcript.Facts
}

type keptEntry struct {
	ID    string
	Facts transcript.Facts
}

type cacheFile struct {
	Version int
	Live    map[string]liveFacts // by path
	Kept    map[string]keptEntry // by hash of the manifest
}

// cache is the cache in memory; it is safe for several goroutines.
type cache struct {
	mu      sync.Mutex
	file    cacheFile
	changed bool
	used    map[string]bool
}

func newCache() *cache {
	return &cache{
		file: cacheFile{Version: cacheVersion, Live: map[string]liveFacts{}, Kept: map[string]keptEntry{}},
		used: map[string]bool{},
	}
}

// readCache reads the cache file. What cannot be used, whatever is wrong with
// it, is as good as absent; only an error of reading is told.
func readCache(path string) (*cache, error) {
	c := newCache()
	if path == "" {
		return c, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("read the cache: %w", err)
	}
	var file cacheFile
	if json.Unmarshal(data, &file) != nil || file.Version != cacheVersion || file.Live == nil || file.Kept == nil {
		c.changed = true // write a sound one in its place
		return c, nil
	}
	c.file = file
	return c, nil
}

func (c *cache) live(path string, s stamp, side string) (liveFacts, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	have, ok := c.file.Live[path]
	return have, ok && have.Stamp == s && have.Side == side
}

func (c *cache) putLive(path string, f liveFacts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.file.Live[path], c.changed = f, true
}

func (c *cache) kept(hash string) (transcript.Facts, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	have, ok := c.file.Kept[hash]
	c.used[hash] = true
	return have.Facts, ok
}

func (c *cache) putKept(hash string, e keptEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.file.Kept[hash], c.changed = e, true
}

// keep drops what belongs to sessions that are no more, and generations that
// were not asked for.
func (c *cache) keep(ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := make(map[string]bool, len(ids))
	for _, id := range ids {
		known[id] = true
	}
	for path, f := range c.file.Live {
		if !known[f.ID] {
			delete(c.file.Live, path)
			c.changed = true
		}
	}
	for hash, e := range c.file.Kept {
		if !known[e.ID] || !c.used[hash] {
			delete(c.file.Kept, hash)
			c.changed = true
		}
	}
}

func (c *cache) write(path string) error {
	if path == "" || !c.changed {
		return nil
	}
	data, err := json.Marshal(c.file)
	if err != nil {
		return fmt.Errorf("write the cache: %w", err)
	}
	dir := filepath.Dir(path)
	if err := durable.MkdirAll(dir); err != nil {
		return fmt.Errorf("write the cache: %w", err)
	}
	if err := durable.ReplaceFile(path, data); err != nil {
		return fmt.Errorf("write the cache: %w", err)
	}
	return nil
}

// ForgetCached removes a session from every cache file in dir. A file that
// names it and cannot be read as a cache is removed as a whole: it can be made
// again.
func ForgetCached(dir, id string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !e.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !bytes.Contains(data, []byte(id)) {
			continue
		}
		errs = append(errs, os.Remove(path))
	}
	return errors.Join(errs...)
}

// CacheFile names the cache for the store at root.
func CacheFile(dir, root string) string {
	sum := sha256.Sum256([]byte(filepath.Clean(root)))
	return filepath.Join(dir, "sessions-"+hex.EncodeToString(sum[:8])+".json")
}
