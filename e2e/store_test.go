//go:build unix

package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/archive/spool"
)

// archiveTimeout bounds the wait for a worker that the client did not wait for.
const archiveTimeout = 60 * time.Second

// install wires our hook into the settings of this home, as a user does.
func (l *lab) install() {
	l.t.Helper()
	l.keeper("install")
	if !bytes.Contains(l.read(l.settings()), []byte("session-end-archive")) {
		l.t.Fatalf("install did not wire the hook: %s", l.read(l.settings()))
	}
}

func (l *lab) store() string { return filepath.Join(l.home, ".local", "share", "session-keeper") }

// generation gives the newest generation of a session, and nil if the store has
// nothing of it.
func (l *lab) generation(session string) (*archive.Store, *archive.Generation) {
	l.t.Helper()
	store, err := archive.Open(l.store())
	if errors.Is(err, archive.ErrNotStore) || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	l.must(err)
	history, err := store.History(l.t.Context(), session)
	if errors.Is(err, archive.ErrNoSession) {
		return store, nil
	}
	l.must(err)
	return store, history.Latest()
}

// stored gives the archived transcript of a session, and nil if there is none.
func (l *lab) stored(session string) []byte {
	l.t.Helper()
	store, generation := l.generation(session)
	if generation == nil {
		return nil
	}
	for _, file := range generation.Files {
		if file.Family != archive.Transcript {
			continue
		}
		reader, err := store.OpenFile(generation, file)
		l.must(err)
		data, err := io.ReadAll(reader)
		l.must(errors.Join(err, reader.Close()))
		return data
	}
	return nil
}

// waitStored waits until the archive holds the transcript as it lies there.
func (l *lab) waitStored(session string) []byte {
	l.t.Helper()
	want := l.read(l.transcript(session))
	l.wait(archiveTimeout, "the archive to hold session "+session, func() bool {
		return bytes.Equal(l.stored(session), want)
	})
	return want
}

// waitIdle waits until no worker has anything left to do.
func (l *lab) waitIdle() {
	l.t.Helper()
	l.wait(archiveTimeout, "the worker to finish", func() bool {
		summary, err := spool.Status(l.spool())
		l.must(err)
		return len(summary.Waiting) == 0 && !summary.Busy
	})
}

func (l *lab) spool() string {
	return filepath.Join(l.home, ".local", "state", "session-keeper", "spool")
}
