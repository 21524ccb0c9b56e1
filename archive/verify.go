package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// VerifyOptions steer Verify.
type VerifyOptions struct {
	Session  string                  // one session; empty: all
	Progress func(done, total int64) // bytes; total is known from the start
}

// A Report is the outcome of Verify.
type Report struct {
	Sessions     int
	Generations  int
	Files        int   // distinct states of files
	Segments     int   // that manifests name
	Bytes        int64 // raw bytes of these
	StoredBytes  int64 // what they take on disk
	Unreferenced int   // segments that no manifest names: harmless leftovers
	Problems     []Problem
}

// OK reports whether no damage was found.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// A Problem is one piece of damage. Which fields are set depends on where it
// was found.
type Problem struct {
	Session  string
	Manifest string // file name
	Segment  string // hash
	Family   string
	Path     string
	Err      error // wraps ErrDamaged, or what the system said
}

// Verify reads everything, or all of one session, and checks it: each
// manifest against its name, its parent and its base; each segment against
// its checksum, length and name; each state of each file against its length
// and hash. Damage is in the report; the error is for what kept Verify from
// looking. Nothing is written or locked.
func (s *Store) Verify(ctx context.Context, o VerifyOptions) (*Report, error) {
	ids := []string{o.Session}
	if o.Session == "" {
		var err error
		if ids, err = s.Sessions(ctx); err != nil {
			return nil, err
		}
	}
	v := &verifier{s: s, ctx: ctx, o: o, segments: make(map[string]error)}
	for _, id := range ids {
		h, err := s.History(ctx, id)
		if o.Session == "" && (errors.Is(err, ErrForgotten) || errors.Is(err, ErrNoSession)) {
			continue // forgotten since
		}
		if err != nil {
			return nil, err
		}
		v.total += v.plan(h, nil)
	}
	for _, id := range ids {
		h, err := s.History(ctx, id)
		if errors.Is(err, ErrForgotten) || errors.Is(err, ErrNoSession) {
			continue
		}
		if err != nil {
			return nil, err
		}
		v.r.Sessions++
		v.r.Generations += len(h.Generations)
		v.r.Problems = append(v.r.Problems, h.Problems...)
		v.plan(h, v.file)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	if o.Session == "" {
		if err := v.unreferenced(); err != nil {
			return nil, err
		}
	}
	// What was forgotten meanwhile is not damaged.
	v.r.Problems = slices.DeleteFunc(v.r.Problems, func(p Problem) bool { return s.Forgotten(p.Session) })
	return &v.r, nil
}

type verifier struct {
	s           *Store
	ctx         context.Context
	o           VerifyOptions
	r           Report
	segments    map[string]error // outcome of each segment read
	cache       []cached         // segments read last, newest first
	zst         []byte
	done, total int64
}

type cached struct {
	hash string
	raw  []byte
}

// verifyCache is how many decoded segments are kept: small files of one
// generation share theirs.
const verifyCache = 2

// A fileState is one state of a file, as some generation has it.
type fileState struct {
	g *Generation
	f *File
}

// plan groups the states of each file, in the order of generations, and
// returns the bytes that checking them will read. A file that only grew is
// read once, not once for each generation.
func (v *verifier) plan(h *History, check func(states []fileState)) int64 {
	states := make(map[fileKey][]fileState)
	var keys []fileKey
	for _, g := range h.Generations {
		for i := range g.Files {
			f := &g.Files[i]
			ss, seen := states[f.key()]
			if !seen {
				keys = append(keys, f.key())
			}
			if n := len(ss); n > 0 && ss[n-1].f.SHA256 == f.SHA256 && ss[n-1].f.pieces == f.pieces {
				continue // carried on unchanged
			}
			states[f.key()] = append(ss, fileState{g, f})
		}
	}
	var bytes int64
	for _, k := range keys {
		var before []piece
		for _, st := range states[k] {
			now := st.f.pieces.all()
			for _, p := range now[commonPieces(before, now):] {
				bytes += p.length
			}
			before = now
		}
		if check != nil {
			check(states[k])
		}
	}
	return bytes
}

// file checks all states of one file. The hash of what one state shares with
// the next is kept, so only new pieces are read.
func (v *verifier) file(states []fileState) {
	var before []piece
	hashes := []hash.Hash{sha256.New()} // after so many good pieces
	bad := -1                           // index of the first bad piece of before
	for _, st := range states {
		if v.ctx.Err() != nil {
			return
		}
		v.r.Files++
		problem := func(segment string, err error) {
			v.r.Problems = append(v.r.Problems, Problem{
				Session: st.g.SessionID, Manifest: manifestName(st.g.Number, st.g.Hash),
				Segment: segment, Family: st.f.Family, Path: st.f.Path, Err: err})
		}
		now := st.f.pieces.all()
		n := commonPieces(before, now)
		before, hashes = now, hashes[:min(n+1, len(hashes))]
		if bad >= n {
			bad = -1
		}
		if bad >= 0 {
			problem(now[bad].segment, damaged("file %s shares a damaged piece with its state before", quote(st.f.Path)))
		}
		for i, p := range now[n:] {
			b, err := v.pieceBytes(p)
			if err == nil && bad < 0 {
				var h hash.Hash
				if h, err = cloneHash(hashes[n+i]); err == nil {
					h.Write(b)
					hashes = append(hashes, h)
				}
			}
			if err != nil {
				problem(p.segment, err)
				if bad < 0 {
					bad = n + i
				}
			}
			v.progress(p.length)
		}
		if bad < 0 && hex.EncodeToString(hashes[len(now)].Sum(nil)) != st.f.SHA256 {
			problem("", damaged("file %s: its pieces make other bytes than were archived", quote(st.f.Path)))
		}
	}
}

func (v *verifier) progress(n int64) {
	v.done += n
	if v.o.Progress != nil {
		v.o.Progress(v.done, v.total)
	}
}

// pieceBytes returns a piece's bytes, valid until the next call but one.
func (v *verifier) pieceBytes(p piece) ([]byte, error) {
	for _, c := range v.cache {
		if c.hash == p.segment {
			return p.of(c.raw)
		}
	}
	err, seen := v.segments[p.segment]
	if err != nil {
		return nil, err
	}
	var buf []byte
	if len(v.cache) == verifyCache {
		buf = v.cache[verifyCache-1].raw
		v.cache = v.cache[:verifyCache-1]
	}
	raw, zst, err := v.s.readSegment(p.segment, buf, v.zst)
	v.zst = zst
	if !seen {
		v.segments[p.segment] = err
		v.r.Segments++
		v.r.Bytes += int64(len(raw))
		if err == nil {
			v.r.StoredBytes += int64(len(zst))
		}
	}
	if err != nil {
		return nil, err
	}
	v.cache = append([]cached{{p.segment, raw}}, v.cache...)
	return p.of(raw)
}

// unreferenced counts the segments that no manifest names. A manifest that
// was written since may name them, so they are no more than a number.
func (v *verifier) unreferenced() error {
	return v.s.eachSegment(v.ctx, func(hash string, _ fs.DirEntry) error {
		if _, ok := v.segments[hash]; !ok {
			v.r.Unreferenced++
		}
		return nil
	})
}

// eachSegment calls f for each segment file of the store.
func (s *Store) eachSegment(ctx context.Context, f func(hash string, e fs.DirEntry) error) error {
	dirs, err := os.ReadDir(s.path(segmentsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list segments: %w", err)
	}
	for _, d := range dirs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !d.IsDir() || len(d.Name()) != 2 {
			continue
		}
		files, err := os.ReadDir(s.path(segmentsName, d.Name()))
		if err != nil {
			return fmt.Errorf("list segments: %w", err)
		}
		for _, e := range files {
			hash, ok := strings.CutSuffix(e.Name(), segmentExt)
			if !ok || !validHash(hash) || hash[:2] != d.Name() {
				continue
			}
			if err := f(hash, e); err != nil {
				return err
			}
		}
	}
	return nil
}
