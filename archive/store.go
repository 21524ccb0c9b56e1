package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// A Store is an open store. Its methods may be called concurrently.
type Store struct {
	root   string // absolute
	format *storeFile
}

// Open opens the store at root. It returns an error that wraps ErrNotStore if
// there is none, an *UnsupportedError if reading it needs a newer program,
// and one that wraps ErrDamaged if its format file makes no sense. A store
// that can be read but not written is opened; writing then returns the
// *UnsupportedError.
func Open(root string) (*Store, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	b, err := readBounded(filepath.Join(root, formatName), maxFormatBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNotStore, root)
	}
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	f, err := parseStoreFile(b, root)
	if err != nil {
		var unsupported *UnsupportedError
		if errors.As(err, &unsupported) {
			return nil, err
		}
		return nil, fmt.Errorf("store %s: %w", root, err)
	}
	return &Store{root: root, format: f}, nil
}

// Create opens the store at root, or makes a new one there. It does not touch
// a folder that holds something else, and no existing folder's mode. If it is
// cut off, the next call goes on.
func Create(root string) (*Store, error) {
	s, err := Open(root)
	if !errors.Is(err, ErrNotStore) {
		return s, err
	}
	if root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	if err := checkVacant(root); err != nil {
		return nil, err
	}
	for _, dir := range []string{segmentsName, sessionsName, removedName, locksName, tmpName} {
		if err := durable.MkdirAll(filepath.Join(root, dir)); err != nil {
			return nil, fmt.Errorf("create store: %w", err)
		}
	}
	// Who keeps dotfiles in a repository must not publish transcripts (SM-01).
	if err := durable.WriteFile(filepath.Join(root, ignoreName), []byte("*\n")); err != nil && !errors.Is(err, durable.ErrDiffers) {
		return nil, fmt.Errorf("create store: %w", err)
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, err
	}
	b, err := newStoreFile(id, time.Now()).encode()
	if err != nil {
		return nil, err
	}
	// Another process may be making the same store: the first one's file wins.
	if err := durable.WriteFile(filepath.Join(root, formatName), b); err != nil && !errors.Is(err, durable.ErrDiffers) {
		return nil, fmt.Errorf("create store: %w", err)
	}
	return Open(root)
}

// checkVacant refuses a folder that holds anything but what an unfinished
// Create leaves.
func checkVacant(root string) error {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create store: %w", err)
	}
	ours := []string{segmentsName, sessionsName, removedName, locksName, tmpName, ignoreName, packsName, briefings}
	for _, e := range entries {
		if !slices.Contains(ours, e.Name()) && !durable.IsTemp(e.Name()) {
			return fmt.Errorf("%w: %s holds other files, %s among them; choose an empty folder", ErrNotStore, root, quote(e.Name()))
		}
	}
	return nil
}

// Root returns the store's folder, as an absolute path.
func (s *Store) Root() string { return s.root }

// ID returns the store's id, made when the store was.
func (s *Store) ID() uuid.UUID { return s.format.id }

func (s *Store) path(elem ...string) string {
	return filepath.Join(append([]string{s.root}, elem...)...)
}

// Sessions returns the ids of all sessions in the store, sorted. Those whose
// removal is not finished yet are not among them.
func (s *Store) Sessions(ctx context.Context) ([]string, error) {
	entries, err := os.ReadDir(s.path(sessionsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !e.IsDir() || !validUUID(e.Name()) || s.Forgotten(e.Name()) {
			continue
		}
		names, err := s.manifestNames(e.Name())
		if err != nil {
			return nil, err
		}
		if len(names) > 0 {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil // ReadDir sorts
}

// Forgotten reports whether the store holds a tombstone for the session.
func (s *Store) Forgotten(sessionID string) bool {
	gone, err := s.forgotten(sessionID)
	return gone && err == nil
}

// forgotten is Forgotten for those who must not go on in doubt.
func (s *Store) forgotten(sessionID string) (bool, error) {
	_, err := os.Lstat(s.tombstone(sessionID))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (s *Store) tombstone(sessionID string) string {
	return s.path(removedName, keyedHash(s.format.id, sessionID))
}

// lock takes the store's lock in the given mode and, if a session is named,
// its session's exclusive one, in this order. The returned function gives
// both back.
//
// Session locks are 256 files, chosen by the keyed hash of the session's id:
// a lock file can never be removed safely, and one for each session would
// remember forgotten ones.
func (s *Store) lock(ctx context.Context, mode durable.LockMode, sessionID string) (unlock func() error, err error) {
	if err := ensureDir(s.path(locksName)); err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	unlockStore, err := durable.Lock(ctx, s.path(locksName, "store"), mode)
	if err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	if sessionID == "" {
		return unlockStore, nil
	}
	name := "session-" + keyedHash(s.format.id, sessionID)[:2]
	unlockSession, err := durable.Lock(ctx, s.path(locksName, name), durable.Exclusive)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock session: %w", err), unlockStore())
	}
	return func() error { return errors.Join(unlockSession(), unlockStore()) }, nil
}

// ensureDir makes a folder if it is missing, at the price of one look if not.
func ensureDir(dir string) error {
	_, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return durable.MkdirAll(dir)
	}
	return err
}

// readBounded reads a regular file of at most limit bytes.
func readBounded(name string, limit int64) ([]byte, error) {
	f, err := durable.OpenNow(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, damaged("%s is no regular file", name)
	}
	if fi.Size() > limit {
		return nil, damaged("%s has %d bytes, more than %d", name, fi.Size(), limit)
	}
	b := make([]byte, 0, fi.Size()+1)
	for {
		n, err := f.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
		if int64(len(b)) > limit {
			return nil, damaged("%s has more than %d bytes", name, limit)
		}
		if len(b) == cap(b) {
			b = slices.Grow(b, 4096)
		}
	}
}
