package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// Archive stores what is new in a session's files and writes one generation,
// or none if no byte changed. All bytes that a source has when it is opened
// are stored, a torn last line included.
//
// A source that is not there any more is carried forward with its last
// content, so is one that cannot be read; the latter is named in
// Result.Skipped and, if it is the transcript or trying again may help, in the
// error. The rest is archived all the same: with an error, Result still says
// what was done.
//
// When Archive returns, what Result names is durable. If it fails or is cut
// off at any point, the store holds what it held before, and the next call
// does what this one left. The error wraps ErrForgotten if the session must
// stay out of the store, and is an *UnsupportedError if the store needs a
// newer writer.
func (s *Store) Archive(ctx context.Context, snap Snapshot, o Options) (res Result, err error) {
	if err := snap.check(); err != nil {
		return Result{}, err
	}
	if err := s.format.writable(s.root); err != nil {
		return Result{}, err
	}
	if err := s.refuseForgotten(snap.SessionID); err != nil {
		return Result{}, err
	}
	unlock, err := s.lock(ctx, durable.Shared, snap.SessionID)
	if err != nil {
		return Result{}, err
	}
	defer func() {
		if e := unlock(); e != nil {
			res.Warnings = append(res.Warnings, e)
		}
	}()
	// Again: it may have been forgotten while the lock was waited for.
	if err := s.refuseForgotten(snap.SessionID); err != nil {
		return Result{}, err
	}
	// Copies of a store often lack its empty folders.
	for _, dir := range []string{segmentsName, sessionsName, tmpName} {
		if err := ensureDir(s.path(dir)); err != nil {
			return Result{}, fmt.Errorf("archive: %w", err)
		}
	}
	last, problems, err := s.latest(snap.SessionID)
	if err != nil {
		return Result{}, err
	}
	seg, err := newSegmenter(ctx, s, o.Workers)
	if err != nil {
		return Result{}, err
	}
	defer func() {
		if e := seg.close(); e != nil {
			res.Warnings = append(res.Warnings, e)
		}
	}()
	r := &reading{
		s: s, ctx: ctx, o: o, now: o.Now, session: snap.SessionID, check: snap.Check,
		prev: make(map[fileKey]*File), idx: s.loadIndex(o.IndexDir, snap.SessionID),
		seg: seg, found: problems,
	}
	if r.now == nil {
		r.now = time.Now
	}
	if last != nil {
		for i := range last.Files {
			r.prev[last.Files[i].key()] = &last.Files[i]
		}
	}
	return r.archive(&snap, last)
}

func (s *Store) refuseForgotten(sessionID string) error {
	gone, err := s.forgotten(sessionID)
	if err != nil {
		return fmt.Errorf("look for tombstone: %w", err)
	}
	if gone {
		return fmt.Errorf("%w: %s", ErrForgotten, sessionID)
	}
	return nil
}

// check refuses what no generation can be made of.
func (snap *Snapshot) check() error {
	if !validUUID(snap.SessionID) {
		return fmt.Errorf("archive: %s is no session id (lower-case UUID)", quote(snap.SessionID))
	}
	if err := checkFamily(string(snap.Reason)); err != nil {
		return fmt.Errorf("archive: bad reason %s", quote(string(snap.Reason)))
	}
	for _, src := range snap.Sources {
		if err := checkFamily(src.Family); err != nil {
			return fmt.Errorf("archive: %w", err)
		}
	}
	return nil
}

// archive reads all sources and writes the generation that they make.
func (r *reading) archive(snap *Snapshot, last *Generation) (res Result, err error) {
	var failed []error // sources that could not be read
	takes := make(map[fileKey]*take)
	named := make(map[fileKey]bool) // not gone, whatever came of them
	side := int64(0)
	for _, src := range order(snap.Sources) {
		if err := r.ctx.Err(); err != nil {
			return res, err
		}
		key := fileKey{src.Family, src.Path}
		if named[key] {
			res.Warnings = append(res.Warnings, fmt.Errorf("%s of family %s was named twice; the first one counts", quote(src.Path), src.Family))
			continue
		}
		if why, size := r.leaveOut(src, &side); why != "" {
			l := LeftOut{Family: src.Family, Path: src.Path, Size: size, Why: why}
			if checkPath(src.Path) != nil {
				l.Path = strconv.Quote(src.Path)
			} else {
				named[key] = true
			}
			res.LeftOut = append(res.LeftOut, l)
			continue
		}
		t, err := r.source(src)
		switch {
		case errors.Is(err, errVanished):
			named[key] = snap.Partial
		case err != nil && r.fatal(err):
			return res, err
		case err != nil:
			named[key] = true
			err = fmt.Errorf("read %s: %w", src.File, err)
			res.Skipped = append(res.Skipped, Skipped{src.Family, src.Path, err})
			if src.Family == Transcript || !lasting(err) {
				failed = append(failed, err)
			}
		default:
			named[key] = true
			takes[key] = t
			res.NewBytes += t.newBytes
		}
	}
	if err := r.seg.finish(); err != nil {
		return res, err
	}
	res.StoredBytes = r.seg.stored()
	g, created, err := r.generation(snap, last, takes, named, &res)
	for _, p := range r.found {
		res.Warnings = append(res.Warnings, p.Err)
	}
	res.Generation, res.Created = g, created
	if err != nil {
		return res, err
	}
	for _, t := range takes {
		if t.entry != nil {
			r.idx.put(*t.entry)
		}
	}
	if err := r.idx.save(); err != nil {
		res.Warnings = append(res.Warnings, fmt.Errorf("freshness index: %w", err))
	}
	return res, errors.Join(failed...)
}

// fatal reports whether an error concerns the whole run: the store, or the
// caller's patience. What concerns one source keeps to that source.
func (r *reading) fatal(err error) bool {
	return r.ctx.Err() != nil || errors.As(err, new(*storeError))
}

// lasting reports whether trying again would not help: the file is somebody
// else's, or none.
func lasting(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, durable.ErrNotRegular) || errors.Is(err, durable.ErrNotOwned)
}

// order puts the transcript first, the rest as it was named.
func order(srcs []Source) []Source {
	out := slices.Clone(srcs)
	slices.SortStableFunc(out, func(a, b Source) int {
		switch {
		case a.Family == b.Family:
			return 0
		case a.Family == Transcript:
			return -1
		case b.Family == Transcript:
			return 1
		}
		return 0
	})
	return out
}

// leaveOut says why a source is not archived, if so.
func (r *reading) leaveOut(src Source, side *int64) (why string, size int64) {
	pathErr := checkPath(src.Path)
	if pathErr == nil && (src.Family == Transcript || r.o.MaxFile == 0 && r.o.MaxSide == 0) {
		return "", 0
	}
	if fi, err := os.Stat(src.File); err == nil {
		size = fi.Size()
	}
	switch {
	case pathErr != nil:
		return pathErr.Error(), size
	case r.o.MaxFile > 0 && size > r.o.MaxFile:
		return fmt.Sprintf("larger than the limit of %d bytes for one side file", r.o.MaxFile), size
	case r.o.MaxSide > 0 && *side+size > r.o.MaxSide:
		return fmt.Sprintf("side files together exceed the limit of %d bytes", r.o.MaxSide), size
	}
	*side += size
	return "", size
}

// generation makes the next generation of the takes and writes it, unless it
// would be the last one again.
func (r *reading) generation(snap *Snapshot, last *Generation, takes map[fileKey]*take, named map[fileKey]bool, res *Result) (*Generation, bool, error) {
	var files []File
	changed, bytes := false, int64(0)
	lineage := uuid.Nil
	if last != nil {
		lineage = last.Lineage
	}
	for key, t := range takes {
		f := t.file
		prev := r.prev[key]
		if t.same {
			f.pieces = prev.pieces
		} else {
			ps := append(slices.Clip(t.kept), t.new.pieces()...)
			f.pieces = &pieceList{own: ps}
			if prev == nil || prev.SHA256 != f.SHA256 || !slices.Equal(prev.pieces.all(), ps) {
				changed = true
			} else {
				f.pieces = prev.pieces
			}
		}
		if t.diverged && key.family == Transcript {
			res.Diverged = true
			lineage = t.lineage
		}
		files = append(files, f)
		bytes += f.Size
	}
	for key, prev := range r.prev {
		if takes[key] != nil {
			continue
		}
		f := *prev
		if !named[key] && !snap.Partial {
			f.Gone = true
		}
		files = append(files, f)
	}
	if !changed || last == nil && bytes == 0 {
		// A session without a byte is no session (NW-04, SS-17). And what is there may have been written by a run that did not live to
		// sync its folder.
		if last != nil {
			if err := durable.SyncDir(r.s.path(sessionsName, snap.SessionID)); err != nil {
				return last, false, fmt.Errorf("sync session: %w", err)
			}
		}
		return last, false, nil
	}
	sortFiles(files)
	if lineage == uuid.Nil {
		var err error
		if lineage, err = uuid.NewRandom(); err != nil {
			return last, false, err
		}
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return last, false, err
	}
	m := &manifest{
		id: id, number: 1, sessionID: snap.SessionID, lineage: lineage, storeID: r.s.format.id,
		reason: snap.Reason, taken: r.now(), events: snap.Events, project: snap.Project, leftOut: res.LeftOut,
	}
	if last != nil {
		m.number, m.parent = last.Number+1, last.Hash
	}
	m.list(files, last)
	g, err := r.write(m, last)
	if err != nil {
		return last, false, err
	}
	return g, true, nil
}

// list puts the files into the manifest: against the last generation as its
// base, unless that is too deep already.
func (m *manifest) list(files []File, last *Generation) {
	base := make(map[fileKey]*File)
	if last != nil && last.depth < maxBaseDepth {
		m.base, m.depth = last.Hash, last.depth+1
		for i := range last.Files {
			base[last.Files[i].key()] = &last.Files[i]
		}
	}
	for _, f := range files {
		b := base[f.key()]
		e := fileEntry{File: f, pieces: f.pieces.all()}
		if b != nil {
			old := b.pieces.all()
			e.keep = commonPieces(old, e.pieces)
			if e.keep == len(old) && e.keep == len(e.pieces) && sameListed(b, &f) {
				continue
			}
			e.pieces = e.pieces[e.keep:]
		}
		e.File.pieces = nil
		m.files = append(m.files, e)
	}
}

// sameListed reports whether two states differ in nothing that an entry says
// beside its pieces.
func sameListed(a, b *File) bool {
	return a.Size == b.Size && a.SHA256 == b.SHA256 && a.Mode == b.Mode && a.Gone == b.Gone &&
		formatTime(a.ModTime) == formatTime(b.ModTime)
}

// write writes a manifest, and returns the generation as readers will see it.
func (r *reading) write(m *manifest, last *Generation) (*Generation, error) {
	b, err := m.encode()
	if err != nil {
		return nil, err
	}
	parsed, err := parseManifest(b)
	if err != nil {
		return nil, err
	}
	var base *Generation
	if m.base != "" {
		base = last
	}
	hash := hashOf(b)
	mf := manifestFile{manifestName(m.number, hash), m.number, hash}
	g, err := parsed.join(base, mf)
	if err != nil {
		return nil, fmt.Errorf("refusing to write a manifest that would not be read: %w", err)
	}
	dir := r.s.path(sessionsName, m.sessionID)
	if err := ensureDir(dir); err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	if last == nil {
		// Who made the folder may not have lived to sync its name.
		if err := durable.SyncDir(r.s.path(sessionsName)); err != nil {
			return nil, fmt.Errorf("write manifest: %w", err)
		}
	}
	t, err := durable.CreateTemp(r.s.path(tmpName))
	if err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	if _, err = t.Write(b); err == nil {
		err = t.Place(r.s.path(sessionsName, m.sessionID, mf.name))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write manifest: %w", err), t.Discard())
	}
	if err := durable.SyncDir(dir); err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	return g, nil
}
