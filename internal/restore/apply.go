package restore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

const (
	// copyBuffer is how much is read between two looks at the context, in
	// bytes.
	copyBuffer = 256 << 10
	// patience is how long another restore is waited for. One that was killed
	// holds its lock until the system has ended it.
	patience = 3 * time.Second
)

// ErrBusy means that another restore is at work.
var ErrBusy = errors.New("another restore is running")

// Options of Apply.
type Options struct {
	// Lock is the path of a lock file, held while files are placed, so that
	// the sweep of one restore does not take the temporaries of another.
	Lock string
	// Progress gets the number of bytes done since the last call; all calls
	// add up to twice the bytes that Writes gives.
	Progress func(n int64)
	Now      time.Time
}

// A Result says what Apply did.
type Result struct {
	Written int
	Bytes   int64

	// Conversation and Anywhere come from reading the restored transcript
	// again: it can be resumed at all, and from any directory.
	Conversation bool
	Anywhere     bool
}

// Apply carries out a plan. First every file is read once from the archive
// and checked; a *DamageError then means that nothing was written. An error
// later, a full disk or the end of the process leaves whole side files at
// most, never the transcript; another run finishes.
func Apply(ctx context.Context, p *Plan, o Options) (result *Result, err error) {
	if o.Progress == nil {
		o.Progress = func(int64) {}
	}
	if o.Lock != "" {
		wait, cancel := context.WithTimeout(ctx, patience)
		unlock, err := durable.Lock(wait, o.Lock, durable.Exclusive)
		cancel()
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, ErrBusy
		}
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	for _, s := range p.Steps() {
		if s.Action != Write {
			continue
		}
		if err := copyItem(ctx, io.Discard, s.Item, o.Progress); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, &DamageError{s.Item.name(), err}
		}
	}

	result = &Result{}
	var made []string
	defer func() {
		if err != nil {
			removeEmpty(made)
		}
	}()
	dirs := map[string]bool{}
	for _, s := range p.Side {
		switch s.Action {
		case Write:
			placed, err := place(ctx, s, o, &made, dirs)
			if err != nil {
				return result, err
			}
			result.count(s, placed)
		case Refresh:
			if err := os.Chtimes(s.Path, time.Time{}, s.ModTime); err != nil {
				return result, fmt.Errorf("refresh %s: %w", s.Path, err)
			}
		}
	}
	// The side files have to be there for good before the transcript is: a
	// transcript means that the restore is complete.
	for dir := range dirs {
		if err := durable.SyncDir(dir); err != nil {
			return result, fmt.Errorf("sync %s: %w", dir, err)
		}
	}
	if p.Transcript == nil {
		return result, nil
	}
	if s := *p.Transcript; s.Action == Write {
		placed, err := place(ctx, s, o, &made, dirs)
		if err != nil {
			return result, err
		}
		if err := durable.SyncDir(filepath.Dir(s.Path)); err != nil {
			return result, fmt.Errorf("sync %s: %w", filepath.Dir(s.Path), err)
		}
		result.count(s, placed)
	}
	result.Conversation, result.Anywhere, err = Resumable(p.Transcript.Path)
	if err != nil {
		return result, fmt.Errorf("check the restored transcript: %w", err)
	}
	found, err := Locations(filepath.Join(p.ConfigDir, "projects"), p.SessionID)
	if err != nil {
		return result, fmt.Errorf("check where the session lies: %w", err)
	}
	for _, f := range found {
		if !sameFile(f, p.Transcript.Path) {
			if conversation, _, err := Resumable(f); err != nil || conversation {
				return result, fmt.Errorf("the session appeared in another folder meanwhile, %s: the client will not find it until one is moved away", f)
			}
		}
	}
	return result, nil
}

func (r *Result) count(s Step, placed bool) {
	if placed {
		r.Written++
		r.Bytes += s.Item.Size
	}
}

// place writes one file beside its place and moves it there, unless the very
// same was put there meanwhile, by another restore of the session.
func place(ctx context.Context, s Step, o Options, made *[]string, dirs map[string]bool) (placed bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	dir := filepath.Dir(s.Path)
	if !dirs[dir] {
		*made = append(*made, missing(dir)...)
		if err := durable.MkdirAll(dir); err != nil {
			return false, fmt.Errorf("make %s: %w", dir, err)
		}
		if o.Lock != "" {
			// What an earlier restore left behind when it was killed.
			if _, err := durable.Sweep(dir, 0, o.Now); err != nil {
				return false, fmt.Errorf("sweep %s: %w", dir, err)
			}
		}
		dirs[dir] = true
	}
	tmp, err := durable.CreateTemp(dir)
	if err != nil {
		return false, fmt.Errorf("restore %s: %w", s.Item.name(), err)
	}
	if err := fill(ctx, tmp, s, o.Progress); err != nil {
		return false, errors.Join(fmt.Errorf("restore %s: %w", s.Item.name(), err), tmp.Discard())
	}
	if err := tmp.Place(s.Path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			if fi, err := os.Lstat(s.Path); err == nil && fi.Mode().IsRegular() {
				if same, err := sameBytes(s.Path, fi.Size(), s.Item); err == nil && same {
					return false, tmp.Discard()
				}
			}
			err = &ConflictError{[]Conflict{{s.Path, "appeared while the session was being restored"}}}
		}
		return false, errors.Join(fmt.Errorf("restore %s: %w", s.Item.name(), err), tmp.Discard())
	}
	return true, nil
}

func fill(ctx context.Context, tmp *durable.Temp, s Step, progress func(int64)) error {
	if err := copyItem(ctx, tmp, s.Item, progress); err != nil {
		return err
	}
	if err := tmp.Chmod(s.Mode); err != nil {
		return err
	}
	return os.Chtimes(tmp.Name(), s.ModTime, s.ModTime)
}

// copyItem copies one file out of the archive and checks it once more.
func copyItem(ctx context.Context, w io.Writer, item Item, progress func(int64)) error {
	r, err := item.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	h := sha256.New()
	buf := make([]byte, copyBuffer)
	var size int64
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(buf)
		if n > 0 {
			h.Write(buf[:n])
			size += int64(n)
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
			progress(int64(n))
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if size != item.Size || hex.EncodeToString(h.Sum(nil)) != item.SHA256 {
		return fmt.Errorf("read %d bytes that are not the %d archived", size, item.Size)
	}
	return nil
}

// missing lists the folders that making dir would make, the outermost first.
func missing(dir string) []string {
	var list []string
	for {
		if _, err := os.Lstat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		list = append([]string{dir}, list...)
		dir = filepath.Dir(dir)
	}
	return list
}

// removeEmpty takes back folders that a failed restore made. One that holds a
// placed file stays; that removing it fails is how that shows.
func removeEmpty(dirs []string) {
	for i := len(dirs) - 1; i >= 0; i-- {
		_ = os.Remove(dirs[i])
	}
}
