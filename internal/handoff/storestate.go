package handoff

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/session-keeper/session-keeper/archive/spool"
)

// StoreState is what is known of a store without touching it, which may hang
// where it lies on a disk that is not there. It is written by whoever opens
// the store, and never by a hook that has not.
type StoreState struct {
	Root   string    `json:"root"`
	Local  bool      `json:"local"`            // on a disk of this machine
	Kind   string    `json:"kind,omitempty"`   // of file system
	Opened time.Time `json:"opened,omitzero"`  // when it last opened well, to the day
	Swept  time.Time `json:"swept,omitzero"`   // when leftovers were last removed
	Error  string    `json:"error,omitempty"`  // why it does not open
	Failed time.Time `json:"failing,omitzero"` // since when
}

// StoreState returns what is known of the settings' store; ok is false if
// nothing is.
func (h *Handoff) StoreState() (state StoreState, ok bool, err error) {
	return ReadStoreState(h.StatePath(h.Settings.Paths.Store))
}

// StatePath returns where that is kept for the store at root.
func (h *Handoff) StatePath(root string) string {
	return filepath.Join(h.Settings.Paths.State, "stores", spool.StoreKey(root)+".json")
}

// ReadStoreState reads what is known of a store from a file that StatePath
// names; ok is false if there is none.
func ReadStoreState(path string) (state StoreState, ok bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return StoreState{}, false, nil
	}
	if err != nil {
		return StoreState{}, false, err
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return StoreState{}, false, fmt.Errorf("%s: %w", path, err)
	}
	return state, true, nil
}
