package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

const minPrefix = 4 // characters of a hash or id that Find accepts

// A manifestFile is a manifest by its name alone.
type manifestFile struct {
	name   string
	number int
	hash   string
}

// manifestNames lists a session's manifests, the last numbers first. Files
// with other names are none.
func (s *Store) manifestNames(sessionID string) ([]manifestFile, error) {
	entries, err := os.ReadDir(s.path(sessionsName, sessionID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []manifestFile
	for _, e := range entries {
		if n, h, err := parseManifestName(e.Name()); err == nil {
			out = append(out, manifestFile{e.Name(), n, h})
		}
	}
	slices.SortFunc(out, func(a, b manifestFile) int {
		if a.number != b.number {
			return b.number - a.number
		}
		return -compareString(a.hash, b.hash)
	})
	return out, nil
}

// readManifest reads one manifest and checks its bytes against its name.
func (s *Store) readManifest(sessionID string, mf manifestFile) (*manifest, error) {
	b, err := readBounded(s.path(sessionsName, sessionID, mf.name), maxManifestBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, damaged("manifest %s is missing: %w", mf.name, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", mf.name, err)
	}
	if hashOf(b) != mf.hash {
		return nil, damaged("manifest %s: its bytes (%d) are not those that it is named after", mf.name, len(b))
	}
	m, err := parseManifest(b)
	var version versionError
	if errors.As(err, &version) {
		return nil, fmt.Errorf("manifest %s: %w", mf.name, &UnsupportedError{Root: s.root, Version: int(version)})
	}
	if err != nil {
		return nil, damaged("manifest %s: %w", mf.name, err)
	}
	if m.sessionID != sessionID {
		return nil, damaged("manifest %s belongs to session %s", mf.name, m.sessionID)
	}
	if m.number != mf.number {
		return nil, damaged("manifest %s says that its number is %d", mf.name, m.number)
	}
	return m, nil
}

// A resolver joins a session's manifests with their bases.
type resolver struct {
	s         *Store
	sessionID string
	names     []manifestFile
	byHash    map[string]manifestFile
	done      map[string]resolved
}

type resolved struct {
	g   *Generation
	err error
}

func (s *Store) newResolver(sessionID string) (*resolver, error) {
	names, err := s.manifestNames(sessionID)
	if err != nil {
		return nil, err
	}
	r := &resolver{s: s, sessionID: sessionID, names: names,
		byHash: make(map[string]manifestFile, len(names)), done: make(map[string]resolved)}
	for _, mf := range names {
		r.byHash[mf.hash] = mf
	}
	return r, nil
}

// generation returns the generation with the given hash. Depths strictly fall
// from a manifest to its base, so it ends after at most maxBaseDepth steps.
func (r *resolver) generation(hash string) (*Generation, error) {
	if d, ok := r.done[hash]; ok {
		return d.g, d.err
	}
	g, err := r.resolve(hash)
	r.done[hash] = resolved{g, err}
	return g, err
}

func (r *resolver) resolve(hash string) (*Generation, error) {
	mf, ok := r.byHash[hash]
	if !ok {
		return nil, damaged("manifest %s is missing: %w", hash, fs.ErrNotExist)
	}
	m, err := r.s.readManifest(r.sessionID, mf)
	if err != nil {
		return nil, err
	}
	var base *Generation
	if m.base != "" {
		if base, err = r.generation(m.base); err != nil {
			return nil, fmt.Errorf("manifest %s: base: %w", mf.name, err)
		}
		if base.depth != m.depth-1 {
			return nil, damaged("manifest %s: base has depth %d, not %d", mf.name, base.depth, m.depth-1)
		}
	}
	return m.join(base, mf)
}

// join makes a generation of a manifest and the generation of its base.
func (m *manifest) join(base *Generation, mf manifestFile) (*Generation, error) {
	g := &Generation{
		ID: m.id, Number: m.number, Hash: mf.hash, Parent: m.parent, SessionID: m.sessionID,
		Lineage: m.lineage, Reason: m.reason, Taken: m.taken, Events: m.events,
		Project: m.project, LeftOut: m.leftOut, depth: m.depth,
	}
	old := make(map[fileKey]*File)
	if base != nil {
		for i := range base.Files {
			old[base.Files[i].key()] = &base.Files[i]
		}
	}
	for i := range m.files {
		e := &m.files[i]
		f := e.File
		f.pieces = &pieceList{own: e.pieces}
		if e.keep > 0 {
			b := old[e.key()]
			if b == nil {
				return nil, damaged("manifest %s: %s keeps pieces of a file that its base lacks", mf.name, quote(e.Path))
			}
			if e.keep > b.pieces.len() {
				return nil, damaged("manifest %s: %s keeps %d pieces of %d", mf.name, quote(e.Path), e.keep, b.pieces.len())
			}
			f.pieces.base, f.pieces.keep = b.pieces, e.keep
			size := b.pieces.size(e.keep)
			for _, p := range e.pieces {
				size += p.length
			}
			if size != e.Size {
				return nil, damaged("manifest %s: pieces of %s make %d bytes, not %d", mf.name, quote(e.Path), size, e.Size)
			}
		}
		delete(old, e.key())
		g.Files = append(g.Files, f)
	}
	for _, f := range old {
		g.Files = append(g.Files, *f)
	}
	sortFiles(g.Files)
	return g, nil
}

// latest returns the newest generation that can be read: parents have smaller
// numbers than their children, so it is the one with the greatest number, and
// no clock is asked. Those that cannot be read are reported and passed over.
func (s *Store) latest(sessionID string) (*Generation, []Problem, error) {
	r, err := s.newResolver(sessionID)
	if err != nil {
		return nil, nil, err
	}
	var problems []Problem
	for _, mf := range r.names {
		g, err := r.generation(mf.hash)
		if err == nil {
			return g, problems, nil
		}
		var unsupported *UnsupportedError
		if errors.As(err, &unsupported) {
			// A newer program's work: going on from an older generation would
			// undo it.
			return nil, problems, err
		}
		problems = append(problems, Problem{Session: sessionID, Manifest: mf.name, Err: err})
	}
	return nil, problems, nil
}

// Latest reads a session's newest generation alone. It returns ErrNoSession
// if there is none, and an error that wraps ErrDamaged if there are some and
// none can be read.
func (s *Store) Latest(ctx context.Context, sessionID string) (*Generation, error) {
	if err := s.checkSession(ctx, sessionID); err != nil {
		return nil, err
	}
	g, problems, err := s.latest(sessionID)
	if err != nil {
		return nil, err
	}
	if g == nil && len(problems) > 0 {
		return nil, problems[0].Err
	}
	if g == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoSession, sessionID)
	}
	return g, nil
}

// checkSession refuses what cannot be a session in the store.
func (s *Store) checkSession(ctx context.Context, sessionID string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !validUUID(sessionID) {
		return fmt.Errorf("%w: %s is no session id", ErrNoSession, quote(sessionID))
	}
	if s.Forgotten(sessionID) {
		return fmt.Errorf("%w: %s", ErrForgotten, sessionID)
	}
	return nil
}

// A History is all that can be read of one session.
type History struct {
	SessionID   string
	Generations []*Generation // parents before children
	Problems    []Problem     // manifests that cannot be read, and gaps in the chain
}

// History reads every generation of a session. It returns ErrNoSession if
// there is none; damage is reported in Problems, and the rest is returned.
func (s *Store) History(ctx context.Context, sessionID string) (*History, error) {
	if err := s.checkSession(ctx, sessionID); err != nil {
		return nil, err
	}
	r, err := s.newResolver(sessionID)
	if err != nil {
		return nil, err
	}
	if len(r.names) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoSession, sessionID)
	}
	h := &History{SessionID: sessionID}
	for _, mf := range slices.Backward(r.names) { // smallest numbers first
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g, err := r.generation(mf.hash)
		if err == nil {
			h.Generations = append(h.Generations, g)
			// A number is the parent's plus one, so the parent came before.
			parent, ok := r.byHash[g.Parent]
			switch {
			case g.Parent == "":
			case !ok:
				err = damaged("manifest %s: its parent %s is missing", mf.name, g.Parent)
			case parent.number != g.Number-1:
				err = damaged("manifest %s: its parent has the number %d", mf.name, parent.number)
			}
		}
		if err != nil {
			h.Problems = append(h.Problems, Problem{Session: sessionID, Manifest: mf.name, Err: err})
		}
	}
	return h, nil
}

// Latest returns the generation at the end of the longest chain, nil if there
// is none.
func (h *History) Latest() *Generation {
	if len(h.Generations) == 0 {
		return nil
	}
	return h.Generations[len(h.Generations)-1]
}

// A Lineage is a line of generations in each of which the transcript extends
// that of the one before.
type Lineage struct {
	ID          uuid.UUID
	Generations []*Generation
}

// Latest returns the lineage's newest generation.
func (l Lineage) Latest() *Generation { return l.Generations[len(l.Generations)-1] }

// Lineages returns the lineages in the order in which they began.
func (h *History) Lineages() []Lineage {
	var out []Lineage
	at := make(map[uuid.UUID]int)
	for _, g := range h.Generations {
		i, ok := at[g.Lineage]
		if !ok {
			i = len(out)
			at[g.Lineage] = i
			out = append(out, Lineage{ID: g.Lineage})
		}
		out[i].Generations = append(out[i].Generations, g)
	}
	return out
}

// Find returns the generation that a number, an id, a hash, or a prefix of at
// least four characters of one of these two names. The error wraps
// ErrNoGeneration or ErrAmbiguous.
func (h *History) Find(name string) (*Generation, error) {
	var found []*Generation
	number, numErr := strconv.Atoi(name)
	for _, g := range h.Generations {
		if numErr == nil && len(name) <= 6 && g.Number == number {
			found = append(found, g)
		}
	}
	if len(found) == 0 && len(name) >= minPrefix {
		for _, g := range h.Generations {
			if strings.HasPrefix(g.Hash, name) || strings.HasPrefix(g.ID.String(), name) {
				found = append(found, g)
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%w: %s", ErrNoGeneration, quote(name))
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%w: %s", ErrAmbiguous, quote(name))
}
