package keeper

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/session-keeper/session-keeper/internal/durable"
	"github.com/session-keeper/session-keeper/transcript"
)

const (
	plansVersion = 1
	// plansTail is how much of what was searched is compared before the search
	// goes on behind it. The client rewrites a transcript in place by taking
	// out a line or cutting the end (observed on 2.1.332), which moves it.
	plansTail = 4 << 10
	// maxPlansBytes bounds the file: 64 names of up to 200 bytes.
	maxPlansBytes = 64 << 10
	// minPlansEnd is from where on it is worth the while to remember.
	minPlansEnd = 1 << 20
)

// plansSeen remembers how far a transcript was searched for the names of its
// plans, so that one that has grown is not searched again from its start. It
// is a cache beside the freshness index: without it everything is searched.
type plansSeen struct {
	Version int      `json:"version"`
	End     int64    `json:"end"`  // bytes that were searched
	Tail    string   `json:"tail"` // SHA-256 of the last of them
	Slugs   []string `json:"slugs,omitempty"`
}

// plansDir returns where the names of plans are remembered. They are the same
// for every store.
func (k *Keeper) plansDir() string { return filepath.Join(k.IndexDir(), "plans") }

func (k *Keeper) plansPath(session string) string {
	return filepath.Join(k.plansDir(), session+".json")
}

// plans returns the names of a session's plans, and up to where its transcript
// has been searched for them. Whatever is wrong with the memory of it costs
// time only, and so does a failure to search: the caller then searches itself.
func (k *Keeper) plans(ctx context.Context, b transcript.Bundle) (slugs []string, end int64) {
	if b.Husk() {
		return nil, 0
	}
	path := k.plansPath(b.SessionID)
	seen, fits := readPlans(path), false
	if seen.End > 0 {
		tail, err := tailHash(b, seen.End)
		fits = err == nil && tail == seen.Tail
	}
	if !fits {
		seen = plansSeen{}
	}
	slugs, end, err := b.Slugs(ctx, seen.End, seen.Slugs)
	if err != nil {
		return seen.Slugs, seen.End
	}
	if end >= minPlansEnd && end > seen.End {
		now := plansSeen{Version: plansVersion, End: end, Slugs: slugs}
		if now.Tail, err = tailHash(b, end); err == nil {
			err = writePlans(path, now)
		}
		if err != nil {
			k.Log.Log(warn, "remember plans", "session", b.SessionID, "error", err)
		}
	}
	return slugs, end
}

// readPlans never fails: what cannot be read is nothing.
func readPlans(path string) plansSeen {
	f, fi, err := durable.OpenRegular(path)
	if err != nil {
		return plansSeen{}
	}
	defer f.Close()
	if fi.Size() > maxPlansBytes {
		return plansSeen{}
	}
	var seen plansSeen
	if json.NewDecoder(f).Decode(&seen) != nil || seen.Version != plansVersion || seen.End < 0 {
		return plansSeen{}
	}
	return seen
}

// writePlans puts a new memory in the place of the old one, without a sync:
// after a power cut there may be none, or a broken one, which is as good.
func writePlans(path string, seen plansSeen) error {
	data, err := json.Marshal(seen)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	// Two workers of different spools may be here, so no fixed name.
	t, err := durable.CreateTemp(filepath.Dir(path))
	if err != nil {
		return err
	}
	if _, err := t.Write(append(data, '\n')); err != nil {
		return errors.Join(err, t.Discard())
	}
	if err := t.File.Close(); err != nil {
		return errors.Join(err, t.Discard())
	}
	if err := os.Rename(t.Name(), path); err != nil {
		return errors.Join(err, t.Discard())
	}
	return nil
}

func (k *Keeper) forgetPlans(session string) error {
	err := os.Remove(k.plansPath(session))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// tailHash returns the hash of the last bytes of a transcript before end.
func tailHash(b transcript.Bundle, end int64) (string, error) {
	f, _, err := b.Open()
	if err != nil {
		return "", err
	}
	defer f.Close()
	tail := make([]byte, min(end, plansTail))
	if _, err := f.ReadAt(tail, end-int64(len(tail))); err != nil {
		return "", err // io.EOF: the transcript is shorter than it was
	}
	sum := sha256.Sum256(tail)
	return hex.EncodeToString(sum[:]), nil
}
