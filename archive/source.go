package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/session-keeper/session-keeper/internal/durable"
)

const (
	// smallPiece is the length below which a file's last piece is stored again
	// together with what was appended, so that many small growths do not
	// become many small pieces.
	smallPiece = 16 << 10
	// sharedMax is how many new bytes of one file go into a segment with those
	// of other files. More get segments of their own.
	sharedMax = 1 << 20
	// readChunk is read at a time while a prefix is hashed.
	readChunk = 1 << 20
	// maxReads is how often a source that changes in place is read from its
	// start before its archiving is put off.
	maxReads = 4
)

var (
	// errMoved says that what was read is not one state of the source.
	errMoved = errors.New("changed while it was read")
	// errVanished says that the source is not there.
	errVanished = errors.New("source is gone")
	// errOtherBytes says that the archived bytes no longer begin the source.
	errOtherBytes = errors.New("archived bytes do not begin the source")
)

// A take is what came of reading one source.
type take struct {
	file     File
	kept     []piece   // of what is in the store
	new      *assembly // what follows them
	same     bool      // nothing to store: file is as it was
	diverged bool      // the last archived bytes do not begin it
	lineage  uuid.UUID // of an older generation that it goes on from, if diverged
	newBytes int64
	entry    *indexEntry
}

// A reading is one session's archiving in progress.
type reading struct {
	s       *Store
	ctx     context.Context
	o       Options
	now     func() time.Time
	session string
	check   Check
	prev    map[fileKey]*File // of the newest generation
	idx     *index
	seg     *segmenter
	scratch []byte
	found   []Problem // damage met in the store

	history *History // loaded when first needed
	raw     []byte   // buffers of pieceBytes
	zst     []byte
}

// An olderFile is the last state of a file in another lineage.
type olderFile struct {
	lineage uuid.UUID
	file    *File
}

// source reads one source and stores what is new in it. The error is
// errVanished, ErrChanging, or what the system said.
func (r *reading) source(src Source) (*take, error) {
	for try := range maxReads {
		if try > 0 {
			// Give a writer that is at work a moment to finish.
			if err := sleep(r.ctx, time.Duration(try)*20*time.Millisecond); err != nil {
				return nil, err
			}
		}
		t, err := r.open(src, try)
		if !errors.Is(err, errMoved) {
			return t, err
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrChanging, src.File)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// An attempt is one reading of one source, from its opening to the check that
// it held still.
type attempt struct {
	*reading
	src    Source
	f      *os.File
	size   int64 // at opening: all of it is read, and no more
	prev   *File
	pieces []piece // of prev
	h      hash.Hash
	at     int64     // h has seen the bytes up to here
	from   int64     // h came from a saved state that stands for the bytes up to here
	base   hash.Hash // that state
	told   int64     // progress was reported up to here
	quiet  bool      // report no progress: reported in an earlier try
}

func (r *reading) open(src Source, try int) (*take, error) {
	key := fileKey{src.Family, src.Path}
	opened := r.now()
	f, fi, err := durable.OpenRegular(src.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errVanished
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a := &attempt{reading: r, src: src, f: f, size: fi.Size(), prev: r.prev[key], h: sha256.New(), quiet: try > 0}
	a.base = sha256.New()
	if src.Family == Transcript && a.size == 0 && (a.prev == nil || a.prev.Size > 0) {
		// An emptied transcript says as little as a missing one, and must not
		// become what the session is restored to (AR-07).
		return nil, errVanished
	}
	e := r.idx.byKey[key]
	if a.prev != nil && e != nil && e.vouches(a.prev, fi, src.File, opened) {
		a.progress(a.size)
		return &take{file: a.describe(fi, a.prev.SHA256), same: true}, nil
	}
	t, err := a.read(e, fi)
	if err != nil {
		return nil, err
	}
	sum := hex.EncodeToString(a.h.Sum(nil))
	t.file = a.describe(fi, sum)
	t.entry = a.remember(e, fi, opened, sum)
	return t, nil
}

func (a *attempt) describe(fi fs.FileInfo, sum string) File {
	return File{Family: a.src.Family, Path: a.src.Path, Size: a.size, SHA256: sum,
		Mode: fi.Mode().Perm(), ModTime: fi.ModTime().UTC()}
}

// read stores the source's new bytes. Afterwards h is that of the whole file.
// If the file did not hold still, the error is errMoved and nothing that was
// read is kept.
func (a *attempt) read(e *indexEntry, fi fs.FileInfo) (t *take, err error) {
	m := a.seg.mark()
	defer func() {
		if err != nil {
			err = errors.Join(err, a.seg.unread(m))
		}
	}()
	if a.prev == nil {
		t, err = a.store(nil, 0, &m)
	} else {
		a.pieces = a.prev.pieces.all()
		t, err = a.grow(e, fi, &m)
		if errors.Is(err, errOtherBytes) {
			if err := a.seg.unread(m); err != nil {
				return nil, err
			}
			t, err = a.diverge(&m)
		}
	}
	if err != nil {
		return nil, err
	}
	return t, a.heldStill(fi)
}

// grow handles the common case: the archived bytes begin the source.
func (a *attempt) grow(e *indexEntry, fi fs.FileInfo, m *mark) (*take, error) {
	if a.size < a.prev.Size {
		return nil, errOtherBytes
	}
	grown := a.size > a.prev.Size
	keep, start := len(a.pieces), a.prev.Size
	if grown && keep > 0 && a.pieces[keep-1].length < smallPiece {
		keep--
		start -= a.pieces[keep].length
	}
	if a.check == Quick {
		t, err := a.growQuick(e, fi, m, keep, start)
		if t != nil || err != nil {
			return t, err
		}
	}
	if n := a.firstMissing(); n < keep {
		// Here the store lost something that the source still has.
		keep, start = n, a.prev.pieces.size(n)
	}
	if err := a.hashTo(start); err != nil {
		return nil, err
	}
	if start == a.size {
		if hex.EncodeToString(a.h.Sum(nil)) != a.prev.SHA256 {
			return nil, errOtherBytes
		}
		return &take{same: true}, nil
	}
	return a.store(a.pieces[:keep], a.prev.Size, m)
}

// growQuick goes on from a saved hash if inode and last piece are as they
// were. A nil take without an error says that the whole prefix must be hashed.
func (a *attempt) growQuick(e *indexEntry, fi fs.FileInfo, m *mark, keep int, start int64) (*take, error) {
	if e == nil || !e.fits(a.prev, fi) || len(a.pieces) == 0 {
		return nil, nil
	}
	state := sha256.New()
	if u, ok := state.(encoding.BinaryUnmarshaler); !ok || u.UnmarshalBinary(e.State) != nil {
		return nil, nil
	}
	last := a.pieces[len(a.pieces)-1]
	raw, err := a.pieceBytes(last)
	if err != nil {
		a.problem(last, err)
		return nil, nil
	}
	have := make([]byte, last.length)
	if err := a.readAt(have, a.prev.Size-last.length); err != nil {
		return nil, err
	}
	if !bytes.Equal(raw, have) {
		return nil, nil
	}
	base, err := cloneHash(state)
	if err != nil {
		return nil, err
	}
	a.h, a.base, a.at, a.from = state, base, a.prev.Size, a.prev.Size
	if a.size == a.prev.Size {
		a.progress(a.size)
		return &take{same: true}, nil
	}
	t := &take{kept: a.pieces[:keep], new: new(assembly)}
	if err := a.prepare(a.size-start, m); err != nil {
		return nil, err
	}
	if err := a.seg.add(t.new, have[last.length-(a.prev.Size-start):]); err != nil {
		return nil, err
	}
	t.newBytes = a.size - a.prev.Size
	return t, a.readInto(t.new, a.size)
}

// store reads from where h stands to the source's end into segments. What lies
// before known is archived already, and must still be what it was.
func (a *attempt) store(kept []piece, known int64, m *mark) (*take, error) {
	if err := a.prepare(a.size-a.at, m); err != nil {
		return nil, err
	}
	t := &take{kept: kept, new: new(assembly), newBytes: a.size - known}
	if known > 0 {
		if err := a.readInto(t.new, known); err != nil {
			return nil, err
		}
		if hex.EncodeToString(a.h.Sum(nil)) != a.prev.SHA256 {
			return nil, errOtherBytes
		}
	}
	return t, a.readInto(t.new, a.size)
}

// diverge handles a source that was rewritten or cut: all pieces up to the
// first difference are used again. The state before it stays in the store,
// under its own generation.
func (a *attempt) diverge(m *mark) (*take, error) {
	best, lineage := a.pieces, uuid.Nil
	bestLen, err := a.commonLength(a.pieces)
	if err != nil {
		return nil, err
	}
	if a.src.Family == Transcript {
		for _, o := range a.olderStates() {
			if o.file.SHA256 == a.prev.SHA256 {
				continue
			}
			ps := o.file.pieces.all()
			n, err := a.commonLength(ps)
			if err != nil {
				return nil, err
			}
			whole := n == o.file.Size
			if n > bestLen || n > 0 && n == bestLen && whole && lineage == uuid.Nil {
				best, bestLen, lineage = ps, n, uuid.Nil
				if whole {
					lineage = o.lineage
				}
			}
		}
	}
	kept, start := cutPieces(best, bestLen)
	// What the store has and what the source has must be the same bytes at the
	// moment that counts: when the file's hash runs over them.
	want, err := a.hashPieces(kept)
	if err != nil {
		return nil, err
	}
	a.h, a.base, a.at, a.from = sha256.New(), sha256.New(), 0, 0
	if err := a.hashTo(start); err != nil {
		return nil, err
	}
	if !bytes.Equal(a.h.Sum(nil), want) {
		return nil, errMoved
	}
	t, err := a.store(kept, 0, m)
	if err != nil {
		return nil, err
	}
	t.newBytes = a.size - bestLen
	t.diverged, t.lineage = true, lineage
	return t, nil
}

// cutPieces shortens pieces to n bytes, and further while the last would be
// small: that is then stored with what follows.
func cutPieces(ps []piece, n int64) ([]piece, int64) {
	var kept []piece
	var sum int64
	for _, p := range ps {
		if sum == n {
			break
		}
		p.length = min(p.length, n-sum)
		kept = append(kept, p)
		sum += p.length
	}
	if last := len(kept) - 1; last >= 0 && kept[last].length < smallPiece {
		sum -= kept[last].length
		kept = kept[:last]
	}
	return kept, sum
}

// commonLength tells how many bytes of the source are those of the pieces,
// from the start. A piece that the store cannot read ends it.
func (a *attempt) commonLength(ps []piece) (int64, error) {
	var sum int64
	for _, p := range ps {
		n := min(p.length, a.size-sum)
		if n == 0 {
			break
		}
		raw, err := a.pieceBytes(p)
		if err != nil {
			a.problem(p, err)
			break
		}
		have := a.buffer()
		for done := int64(0); done < n; {
			chunk := have[:min(int64(len(have)), n-done)]
			if err := a.readAt(chunk, sum+done); err != nil {
				return 0, err
			}
			want := raw[done : done+int64(len(chunk))]
			if !bytes.Equal(chunk, want) {
				same := 0
				for chunk[same] == want[same] {
					same++
				}
				return sum + done + int64(same), nil
			}
			done += int64(len(chunk))
		}
		sum += n
	}
	return sum, nil
}

func (a *attempt) hashPieces(ps []piece) ([]byte, error) {
	h := sha256.New()
	for _, p := range ps {
		raw, err := a.pieceBytes(p)
		if err != nil {
			return nil, err
		}
		h.Write(raw)
	}
	return h.Sum(nil), nil
}

// pieceBytes returns a piece's bytes, valid until the next call.
func (a *attempt) pieceBytes(p piece) ([]byte, error) {
	raw, zst, err := a.s.readSegment(p.segment, a.raw, a.zst)
	a.zst = zst
	if err != nil {
		return nil, err
	}
	a.raw = raw
	return p.of(raw)
}

// of returns the piece's range of its segment's raw bytes.
func (p piece) of(raw []byte) ([]byte, error) {
	if p.offset+p.length > int64(len(raw)) {
		return nil, damaged("segment %s has %d bytes, a piece ends at %d", p.segment, len(raw), p.offset+p.length)
	}
	return raw[p.offset : p.offset+p.length], nil
}

func (a *attempt) problem(p piece, err error) {
	a.found = append(a.found, Problem{Session: a.session, Segment: p.segment, Family: a.src.Family, Path: a.src.Path, Err: err})
}

// olderStates returns this file's last state in each lineage. What cannot be
// read of the history is no candidate.
func (a *attempt) olderStates() []olderFile {
	if a.history == nil {
		var err error
		if a.history, err = a.s.History(a.ctx, a.session); err != nil {
			a.history = new(History)
		}
	}
	var out []olderFile
	for _, l := range a.history.Lineages() {
		g := l.Latest()
		for i := range g.Files {
			if f := &g.Files[i]; f.Family == a.src.Family && f.Path == a.src.Path {
				out = append(out, olderFile{l.ID, f})
			}
		}
	}
	return out
}

// firstMissing returns the index of the first piece whose segment's file is
// missing or empty.
func (a *attempt) firstMissing() int {
	last := ""
	for i, p := range a.pieces {
		if p.segment == last {
			continue
		}
		last = p.segment
		fi, err := os.Lstat(a.s.path(segmentPath(p.segment)))
		if errors.Is(err, fs.ErrNotExist) || err == nil && fi.Size() == 0 {
			a.problem(p, damaged("segment %s is missing", p.segment))
			return i
		}
	}
	return len(a.pieces)
}

// prepare makes room for n bytes, so that unread can take them back.
func (a *attempt) prepare(n int64, m *mark) error {
	var err error
	if n <= sharedMax {
		err = a.seg.reserve(int(n))
	} else {
		err = a.seg.flush()
	}
	*m = a.seg.mark()
	return err
}

// readInto reads from where h stands up to end into segments.
func (a *attempt) readInto(asm *assembly, end int64) error {
	for a.at < end {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		to, err := a.seg.space()
		if err != nil {
			return err
		}
		to = to[:min(int64(len(to)), end-a.at, readChunk)]
		if err := a.readAt(to, a.at); err != nil {
			return err
		}
		a.h.Write(to)
		a.seg.commit(asm, len(to))
		a.at += int64(len(to))
		a.progress(a.at)
	}
	return nil
}

// hashTo feeds h up to end.
func (a *attempt) hashTo(end int64) error {
	n, err := a.feed(a.h, a.at, end, true)
	a.at += n
	return err
}

func (a *attempt) feed(h hash.Hash, from, end int64, progress bool) (int64, error) {
	var n int64
	for from+n < end {
		if err := a.ctx.Err(); err != nil {
			return n, err
		}
		b := a.buffer()
		b = b[:min(int64(len(b)), end-from-n)]
		if err := a.readAt(b, from+n); err != nil {
			return n, err
		}
		h.Write(b)
		n += int64(len(b))
		if progress {
			a.progress(from + n)
		}
	}
	return n, nil
}

func (r *reading) buffer() []byte {
	if r.scratch == nil {
		r.scratch = make([]byte, readChunk)
	}
	return r.scratch
}

// testReadHook, if set by a test, is called before each read of a source.
var testReadHook func()

// readAt fills b. A source that ends too early was cut off since its opening.
func (a *attempt) readAt(b []byte, off int64) error {
	if testReadHook != nil {
		testReadHook()
	}
	_, err := a.f.ReadAt(b, off)
	if err == io.EOF {
		return errMoved
	}
	return err
}

// heldStill makes sure that the bytes that were read are one state of the
// file. If its times moved, a program may have appended (which is fine) or
// written in place: then all that was read is hashed again.
func (a *attempt) heldStill(before fs.FileInfo) error {
	after, err := a.f.Stat()
	if err != nil {
		return err
	}
	if after.Size() < a.size {
		return errMoved
	}
	c1, ok1 := durable.ChangeTime(before)
	c2, ok2 := durable.ChangeTime(after)
	if ok1 && ok2 && c1.Equal(c2) && before.ModTime().Equal(after.ModTime()) && after.Size() == a.size {
		return nil
	}
	h, err := cloneHash(a.base)
	if err != nil {
		return err
	}
	if _, err := a.feed(h, a.from, a.size, false); err != nil {
		return err
	}
	if !bytes.Equal(h.Sum(nil), a.h.Sum(nil)) {
		return errMoved
	}
	return nil
}

func cloneHash(h hash.Hash) (hash.Hash, error) {
	c, ok := h.(hash.Cloner)
	if !ok {
		return nil, errors.New("SHA-256 cannot be cloned")
	}
	return c.Clone()
}

func (a *attempt) progress(to int64) {
	if a.o.Progress != nil && !a.quiet && to > a.told {
		a.o.Progress(to - a.told)
		a.told = to
	}
}

// remember makes the index entry of what was read.
func (a *attempt) remember(old *indexEntry, fi fs.FileInfo, opened time.Time, sum string) *indexEntry {
	id, ok := durable.FileID(fi)
	ctime, ok2 := durable.ChangeTime(fi)
	m, ok3 := a.h.(encoding.BinaryMarshaler)
	if !ok || !ok2 || !ok3 {
		return nil
	}
	state, err := m.MarshalBinary()
	if err != nil {
		return nil
	}
	e := &indexEntry{
		Family: a.src.Family, Path: a.src.Path, Device: id.Device, Inode: id.Inode,
		Size: a.size, MTime: fi.ModTime().UnixNano(), CTime: ctime.UnixNano(),
		Opened: opened.UnixNano(), Hashed: opened.UnixNano(), SHA256: sum, State: state,
	}
	if a.from > 0 && old != nil {
		e.Hashed = old.Hashed // of the prefix, which nobody read now
	}
	return e
}
