package keeper

import (
	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/transcript"
)

// Skips tells whether ArchiveAll leaves a session out because the user wants it
// so. store may be nil. Where there are excludes, the transcript's first records
// are read for the session's directory.
func (k *Keeper) Skips(b transcript.Bundle, store *archive.Store) (bool, error) {
	if store != nil {
		d, err := k.decidePast(b, store)
		return d.Skip, err
	}
	d, err := k.checkPast(b)
	return d.Skip, err
}
