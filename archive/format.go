package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

const (
	storeFormat    = "session-keeper archive"
	storeVersion   = 1
	storeHash      = "sha256"
	maxFormatBytes = 64 << 10
)

// Features that this package knows. A feature is named in the format file of
// a store that cannot be read (or written) safely without it.
var (
	knownReadFeatures  = map[string]bool{}
	knownWriteFeatures = map[string]bool{}
)

// storeFile is the file that makes a folder a store. It is written last when
// a store is made, and never changed.
type storeFile struct {
	Format        string   `json:"format"`
	Version       int      `json:"version"`
	StoreID       string   `json:"store_id"`
	Hash          string   `json:"hash"`
	ReadFeatures  []string `json:"read_features"`
	WriteFeatures []string `json:"write_features"`
	Created       string   `json:"created"`

	id uuid.UUID
}

func newStoreFile(id uuid.UUID, created time.Time) *storeFile {
	return &storeFile{
		Format: storeFormat, Version: storeVersion, StoreID: id.String(), Hash: storeHash,
		ReadFeatures: []string{}, WriteFeatures: []string{}, Created: formatTime(created), id: id,
	}
}

func (f *storeFile) encode() ([]byte, error) {
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return nil, err
	}
	b = append(b, '\n')
	if _, err := parseStoreFile(b, ""); err != nil {
		return nil, fmt.Errorf("refusing to write a format file that would not be read: %w", err)
	}
	return b, nil
}

// parseStoreFile parses the format file of the store at root. What it does
// not know is an *UnsupportedError; what makes no sense wraps ErrDamaged.
func parseStoreFile(b []byte, root string) (*storeFile, error) {
	if len(b) > maxFormatBytes {
		return nil, damaged("format file of %d bytes", len(b))
	}
	// First what every version will have, so that the rest may change.
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, damaged("format file: %w", err)
	}
	if head.Format != storeFormat {
		return nil, fmt.Errorf("%w: its format file says %s", ErrNotStore, quote(head.Format))
	}
	if head.Version < 1 {
		return nil, damaged("format file: version %d", head.Version)
	}
	if head.Version != storeVersion {
		return nil, &UnsupportedError{Root: root, Version: head.Version}
	}
	f := new(storeFile)
	if err := json.Unmarshal(b, f); err != nil {
		return nil, damaged("format file: %w", err)
	}
	if f.Hash != storeHash {
		return nil, &UnsupportedError{Root: root, Feature: "hash " + f.Hash}
	}
	for _, name := range f.ReadFeatures {
		if !knownReadFeatures[name] {
			return nil, &UnsupportedError{Root: root, Feature: name}
		}
	}
	var err error
	if f.id, err = parseUUID(f.StoreID); err != nil {
		return nil, damaged("format file: store_id: %w", err)
	}
	if f.id == uuid.Nil {
		return nil, damaged("format file: %w", errors.New("store_id is nil"))
	}
	return f, nil
}

// writable reports whether all features needed for writing are known.
func (f *storeFile) writable(root string) error {
	for _, name := range f.WriteFeatures {
		if !knownWriteFeatures[name] {
			return &UnsupportedError{Root: root, Feature: name, Write: true}
		}
	}
	return nil
}
