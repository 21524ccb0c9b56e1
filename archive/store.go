package archive

import (
	"context"
	"errors"
	"io"

	"github.com/google/uuid"
)

// A Store is an open store. Its methods may be called concurrently.
type Store struct {
	root string
	id   uuid.UUID
}

// Open opens the store at root for reading and writing. It returns an error
// that wraps ErrNotStore if there is none, and an *UnsupportedError if the
// store needs a newer reader.
func Open(root string) (*Store, error) { return nil, errNotBuilt }

// Create opens the store at root, or makes a new one there.
func Create(root string) (*Store, error) { return nil, errNotBuilt }

// Root returns the store's folder.
func (s *Store) Root() string { return s.root }

// ID returns the store's id, made when the store was.
func (s *Store) ID() uuid.UUID { return s.id }

// Archive stores what is new in a session's files and writes one generation.
func (s *Store) Archive(ctx context.Context, snap Snapshot, o Options) (Result, error) {
	return Result{}, errNotBuilt
}

// Sessions returns the ids of all sessions in the store, sorted.
func (s *Store) Sessions(ctx context.Context) ([]string, error) { return nil, errNotBuilt }

// History reads every generation of a session. ErrNoSession if there is none.
func (s *Store) History(ctx context.Context, sessionID string) (*History, error) {
	return nil, errNotBuilt
}

// Latest reads a session's latest generation alone. ErrNoSession if there is none.
func (s *Store) Latest(ctx context.Context, sessionID string) (*Generation, error) {
	return nil, errNotBuilt
}

// OpenFile returns the bytes of one file of a generation.
func (s *Store) OpenFile(g *Generation, f File) (io.ReadCloser, error) { return nil, errNotBuilt }

// Verify checks everything, or one session.
func (s *Store) Verify(ctx context.Context, o VerifyOptions) (*Report, error) {
	return nil, errNotBuilt
}

// Forget removes every trace of a session, and remembers that it did.
func (s *Store) Forget(ctx context.Context, sessionID string, o ForgetOptions) (ForgetReport, error) {
	return ForgetReport{}, errNotBuilt
}

// Forgotten reports whether the store holds a tombstone for the session.
func (s *Store) Forgotten(sessionID string) bool { return false }

// Sweep removes what killed processes left behind.
func (s *Store) Sweep(ctx context.Context) error { return errNotBuilt }

var errNotBuilt = errors.New("not built yet")
