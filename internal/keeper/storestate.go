package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/archive/spool"
	"github.com/session-keeper/session-keeper/internal/durable"
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

// freshState is how old the record of a good opening may get before it is
// written again, which costs a sync.
const freshState = 24 * time.Hour

// StoreState returns what is known of the settings' store; ok is false if
// nothing is.
func (k *Keeper) StoreState() (state StoreState, ok bool, err error) {
	return readStoreState(k.statePath(k.Settings.Paths.Store))
}

func (k *Keeper) statePath(root string) string {
	return filepath.Join(k.Settings.Paths.State, "stores", spool.StoreKey(root)+".json")
}

func readStoreState(path string) (state StoreState, ok bool, err error) {
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

// OpenStore opens the settings' store, or makes it, and notes how that went.
func (k *Keeper) OpenStore() (*archive.Store, error) {
	store, _, err := k.openStore(k.Settings.Paths.Store)
	return store, err
}

func (k *Keeper) openStore(root string) (*archive.Store, StoreState, error) {
	path := k.statePath(root)
	was, known, err := readStoreState(path)
	if err != nil {
		k.Log.Log(warn, "state of the store", "error", err) // it is only a note
	}
	now := k.Now()
	is := StoreState{Root: root, Opened: was.Opened, Swept: was.Swept}
	store, openErr := archive.Create(root)
	if openErr != nil {
		is.Error, is.Failed = openErr.Error(), now.UTC()
		if !was.Failed.IsZero() {
			is.Failed = was.Failed
		}
	} else {
		if is.Kind, is.Local, err = durable.Filesystem(root); err != nil {
			k.Log.Log(warn, "file system of the store", "store", root, "error", err)
		}
		if age := now.Sub(was.Opened); age > freshState || age < 0 {
			is.Opened = now.UTC()
		}
	}
	if !known || is != was {
		k.writeStoreState(path, is)
	}
	return store, is, openErr
}

func (k *Keeper) writeStoreState(path string, state StoreState) {
	data, err := json.Marshal(state)
	if err == nil {
		err = durable.MkdirAll(filepath.Dir(path))
	}
	if err == nil {
		err = durable.ReplaceFile(path, append(data, '\n'))
	}
	if err != nil {
		k.Log.Log(warn, "state of the store", "error", err)
	}
}
