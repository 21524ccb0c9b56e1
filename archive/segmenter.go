package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// maxUnplaced bounds the temporaries (open files) that wait for their name.
const maxUnplaced = 64

// A segmenter cuts the new bytes of one generation into segments, compresses
// them and brings them to the disk. Bytes are read straight into its buffer,
// so a first archive copies nothing in memory.
//
// Everything but the work on a filled buffer happens on the caller's
// goroutine; with one worker that does, too, and no goroutine is started.
type segmenter struct {
	s   *Store
	ctx context.Context

	buf   []byte // being filled, capacity maxSegment
	spans []span // whose bytes are in buf, in order

	segments []*segment // cut so far, in order
	dirs     map[string]bool
	placed   int // of segments, from the front, need no more care

	free    chan []byte // buffers to fill
	work    chan *segment
	running sync.WaitGroup
	inline  *worker // with one worker

	checkMu  sync.Mutex // guards the buffers below
	checkRaw []byte
	checkZst []byte
}

// A span is a run of a file's bytes in the buffer.
type span struct {
	a *assembly
	n int
}

// An assembly is one file's new pieces in the making.
type assembly struct {
	parts []part
}

// A part is a piece of a segment whose hash may not be known yet.
type part struct {
	seg    *segment
	offset int64
	length int64
}

// A segment on its way to the disk.
type segment struct {
	raw     []byte // its buffer, until it is compressed
	done    chan struct{}
	hash    string
	temp    *durable.Temp // nil if the store has it already
	replace bool          // what the store has under this name is damaged
	stored  int64         // bytes written
	err     error
}

func newSegmenter(ctx context.Context, s *Store, workers int) (*segmenter, error) {
	g := &segmenter{s: s, ctx: ctx, dirs: make(map[string]bool)}
	if workers == 0 {
		workers = min(2, runtime.GOMAXPROCS(0))
	}
	if workers == 1 {
		g.inline = &worker{g: g}
		g.free = make(chan []byte, 1)
		g.free <- nil
		return g, nil
	}
	// One buffer for each worker: a further one, filled while all are at work,
	// would gain little and cost 8 MiB.
	g.free = make(chan []byte, workers)
	for range cap(g.free) {
		g.free <- nil // made when first used: most generations need one
	}
	g.work = make(chan *segment)
	for range workers {
		w := &worker{g: g}
		g.running.Go(func() {
			for seg := range g.work {
				w.do(seg)
			}
		})
	}
	return g, nil
}

// buffer takes a free buffer, and waits for one if all are at work.
func (g *segmenter) buffer() []byte {
	b := <-g.free
	if b == nil {
		b = make([]byte, 0, maxSegment)
	}
	return b[:0]
}

// reserve makes sure that n bytes (at most maxSegment) go into one buffer, so
// that unread can take them back.
func (g *segmenter) reserve(n int) error {
	if len(g.buf)+n <= maxSegment {
		return nil
	}
	return g.flush()
}

// space returns where to read the next bytes to; commit says how many came.
func (g *segmenter) space() ([]byte, error) {
	if g.buf == nil {
		g.buf = g.buffer()
	}
	if len(g.buf) == cap(g.buf) {
		if err := g.cut(); err != nil {
			return nil, err
		}
	}
	return g.buf[len(g.buf):cap(g.buf)], nil
}

func (g *segmenter) commit(a *assembly, n int) {
	if n == 0 {
		return
	}
	g.buf = g.buf[:len(g.buf)+n]
	if last := len(g.spans) - 1; last >= 0 && g.spans[last].a == a {
		g.spans[last].n += n
		return
	}
	g.spans = append(g.spans, span{a, n})
}

// add copies bytes in.
func (g *segmenter) add(a *assembly, b []byte) error {
	for len(b) > 0 {
		to, err := g.space()
		if err != nil {
			return err
		}
		n := copy(to, b)
		g.commit(a, n)
		b = b[n:]
	}
	return nil
}

// A mark is a state to go back to.
type mark struct {
	segments, spans, lastSpan, buf int
}

func (g *segmenter) mark() mark {
	m := mark{segments: len(g.segments), spans: len(g.spans), buf: len(g.buf)}
	if m.spans > 0 {
		m.lastSpan = g.spans[m.spans-1].n
	}
	return m
}

// unread forgets all that was committed since the mark. Either all of it fit
// into the buffer (see reserve) or the buffer was empty then (see flush).
// Segments that were placed since stay: the next try finds them.
func (g *segmenter) unread(m mark) error {
	var errs []error
	for _, seg := range g.segments[m.segments:] {
		<-seg.done
		if seg.temp != nil {
			if err := seg.temp.Discard(); err != nil {
				errs = append(errs, &storeError{err})
			}
		}
	}
	if len(g.segments) > m.segments {
		m.buf, m.spans = 0, 0
	}
	g.segments = g.segments[:m.segments]
	g.placed = min(g.placed, m.segments)
	g.buf = g.buf[:m.buf]
	g.spans = g.spans[:m.spans]
	if m.spans > 0 {
		g.spans[m.spans-1].n = m.lastSpan
	}
	return errors.Join(errs...)
}

// cut makes a segment of a full buffer. It prefers to end at a record's end,
// which keeps what is alike together, but not at the price of a segment less
// than three quarters full.
func (g *segmenter) cut() error {
	end := len(g.buf)
	const quarter = maxSegment / 4
	if i := bytes.LastIndexByte(g.buf[end-quarter:], '\n'); i >= 0 {
		end += i + 1 - quarter
	}
	rest := g.buf[end:]
	spans := g.emit(end)
	// Nobody writes to the emitted buffer but through g.buffer, so the rest is
	// still there, even if that very buffer comes back.
	g.buf, g.spans = append(g.buffer(), rest...), spans
	return g.roll()
}

// flush makes a segment of what is in the buffer, however little.
func (g *segmenter) flush() error {
	if len(g.buf) > 0 {
		g.emit(len(g.buf))
		g.buf, g.spans = nil, nil
	} else if g.buf != nil {
		g.free <- g.buf
		g.buf = nil
	}
	return g.roll()
}

// emit sends the first n bytes of the buffer off as a segment and returns the
// spans of the rest.
func (g *segmenter) emit(n int) (rest []span) {
	seg := &segment{raw: g.buf[:n], done: make(chan struct{})}
	var offset int64
	for _, sp := range g.spans {
		mine := min(int64(sp.n), int64(n)-offset)
		if mine > 0 {
			sp.a.parts = append(sp.a.parts, part{seg, offset, mine})
			offset += mine
		}
		if left := sp.n - int(max(mine, 0)); left > 0 {
			rest = append(rest, span{sp.a, left})
		}
	}
	g.segments = append(g.segments, seg)
	if g.inline != nil {
		g.inline.do(seg)
	} else {
		g.work <- seg
	}
	return rest
}

// roll places finished segments when too many wait, and stops at the first
// failure.
func (g *segmenter) roll() error {
	if err := g.ctx.Err(); err != nil {
		return err
	}
	waiting := g.segments[g.placed:]
	for _, seg := range waiting {
		select {
		case <-seg.done:
			if seg.err != nil {
				return &storeError{seg.err}
			}
		default:
		}
	}
	if len(waiting) < maxUnplaced {
		return nil
	}
	return g.place()
}

// place gives all segments cut so far their names.
func (g *segmenter) place() error {
	for _, seg := range g.segments[g.placed:] {
		<-seg.done
		if seg.err != nil {
			return &storeError{seg.err}
		}
		if err := g.placeOne(seg); err != nil {
			return &storeError{err}
		}
		g.placed++
	}
	return nil
}

func (g *segmenter) placeOne(seg *segment) error {
	dir := g.s.path(segmentsName, seg.hash[:2])
	// Also for a segment that was there: who placed it may not have lived to
	// sync its folder.
	g.dirs[dir] = true
	if seg.temp == nil {
		return nil
	}
	if err := ensureDir(dir); err != nil {
		return err
	}
	name := g.s.path(segmentPath(seg.hash))
	if seg.replace {
		return seg.temp.Replace(name)
	}
	err := seg.temp.Place(name)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	// Somebody else placed it meanwhile, or this generation holds the same
	// bytes twice.
	if ok, err := g.has(seg.hash); err != nil {
		return err
	} else if ok {
		return seg.temp.Discard()
	}
	content, err := os.ReadFile(seg.temp.Name())
	if err != nil {
		return err
	}
	if err := seg.temp.Discard(); err != nil {
		return err
	}
	if seg.temp, err = durable.CreateTemp(g.s.path(tmpName)); err != nil {
		return err
	}
	if _, err := seg.temp.Write(content); err != nil {
		return err
	}
	return seg.temp.Replace(name)
}

// has reports whether the store holds a segment whole: what is there already
// is checked before it is relied on. A damaged one is to be replaced, which is
// the one case where a file of the store is.
func (g *segmenter) has(hash string) (bool, error) {
	if _, err := os.Lstat(g.s.path(segmentPath(hash))); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	g.checkMu.Lock()
	defer g.checkMu.Unlock()
	raw, zst, err := g.s.readSegment(hash, g.checkRaw, g.checkZst)
	g.checkZst = zst
	if err == nil {
		g.checkRaw = raw
		return true, nil
	}
	if errors.Is(err, ErrDamaged) {
		return false, nil
	}
	return false, err
}

// finish brings everything to the disk: the segments, then their folders, one
// pass for the whole generation. Only then may a manifest name them.
func (g *segmenter) finish() error {
	if err := g.flush(); err != nil {
		return err
	}
	if err := g.place(); err != nil {
		return err
	}
	if len(g.dirs) == 0 {
		return nil
	}
	for _, dir := range slices.Sorted(maps.Keys(g.dirs)) {
		if err := durable.SyncDir(dir); err != nil {
			return fmt.Errorf("sync segments: %w", err)
		}
	}
	if err := durable.SyncDir(g.s.path(segmentsName)); err != nil {
		return fmt.Errorf("sync segments: %w", err)
	}
	return nil
}

// close stops the workers and removes the temporaries that got no name. It
// may be called after any failure.
func (g *segmenter) close() error {
	if g.work != nil {
		close(g.work)
		g.running.Wait()
	}
	var errs []error
	for _, seg := range g.segments {
		if seg.temp != nil {
			errs = append(errs, seg.temp.Discard())
		}
	}
	return errors.Join(errs...)
}

// pieces returns the finished pieces; call it after finish.
func (a *assembly) pieces() []piece {
	out := make([]piece, 0, len(a.parts))
	for _, p := range a.parts {
		out = append(out, piece{p.seg.hash, p.offset, p.length})
	}
	return out
}

// stored returns the bytes written for new segments.
func (g *segmenter) stored() int64 {
	var n int64
	for _, seg := range g.segments {
		n += seg.stored
	}
	return n
}

// A worker hashes, compresses and writes segments, with an encoder to itself.
type worker struct {
	g   *segmenter
	enc *encoder
}

func (w *worker) do(seg *segment) {
	seg.err = w.store(seg)
	w.g.free <- seg.raw
	seg.raw = nil
	close(seg.done)
}

func (w *worker) store(seg *segment) error {
	if err := w.g.ctx.Err(); err != nil {
		return err
	}
	seg.hash = hashOf(seg.raw)
	there := true
	name := w.g.s.path(segmentPath(seg.hash))
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		there = false
	}
	if there {
		ok, err := w.g.has(seg.hash)
		if err != nil || ok {
			return err
		}
		seg.replace = true
	}
	if w.enc == nil {
		var err error
		if w.enc, err = newEncoder(); err != nil {
			return err
		}
	}
	content := w.enc.encode(seg.raw)
	t, err := durable.CreateTemp(w.g.s.path(tmpName))
	if err != nil {
		return err
	}
	seg.temp = t
	seg.stored = int64(len(content))
	_, err = t.Write(content)
	return err
}

// A storeError is a failure to write to the store, as opposed to one to read a
// source: going on with the next source makes no sense.
type storeError struct{ err error }

func (e *storeError) Error() string { return "store segment: " + e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }
