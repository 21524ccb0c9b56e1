package keeper

import (
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/internal/durable"
	"github.com/session-keeper/session-keeper/internal/handoff"
)

// freshState is how old the record of a good opening may get before it is
// written again, which costs a sync.
const freshState = 24 * time.Hour

// OpenStore opens the settings' store, or makes it, and notes how that went.
func (k *Keeper) OpenStore() (*archive.Store, error) {
	store, _, err := k.openStore(k.Settings.Paths.Store)
	return store, err
}

func (k *Keeper) openStore(root string) (*archive.Store, handoff.StoreState, error) {
	path := k.StatePath(root)
	was, known, err := handoff.ReadStoreState(path)
	if err != nil {
		k.Log.Log(warn, "state of the store", "error", err) // it is only a note
	}
	now := k.Now()
	is := handoff.StoreState{Root: root, Opened: was.Opened, Swept: was.Swept}
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

func (k *Keeper) writeStoreState(path string, state handoff.StoreState) {
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
