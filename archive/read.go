package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
)

// OpenFile returns the bytes of one file of a generation, from the start. Each
// segment is decoded whole, and its length and hash are checked, before a byte
// of it is given out; the file's length and hash are checked at its end. What
// is not as archived comes as an error that wraps ErrDamaged in the place of
// io.EOF, so a file is whole only if it was read to io.EOF.
//
// No lock is held. The reader needs up to two segments of memory (16 MiB) and
// may not be used concurrently.
func (s *Store) OpenFile(g *Generation, f File) (io.ReadCloser, error) {
	if f.pieces == nil && f.Size > 0 {
		return nil, damaged("file %s of generation %d names no pieces", quote(f.Path), g.Number)
	}
	return &fileReader{s: s, f: f, pieces: f.pieces.all(), h: sha256.New()}, nil
}

type fileReader struct {
	s      *Store
	f      File
	pieces []piece // still to come
	n      int64   // bytes given out
	h      hash.Hash
	left   []byte // of the current piece
	held   string // hash of the segment in raw
	raw    []byte
	zst    []byte
	err    error
}

func (r *fileReader) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, r.err
	}
	if err := r.fill(); err != nil {
		return 0, err
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}

// WriteTo spares io.Copy its buffer.
func (r *fileReader) WriteTo(w io.Writer) (int64, error) {
	var sum int64
	for {
		if err := r.fill(); err == io.EOF {
			return sum, nil
		} else if err != nil {
			return sum, err
		}
		n, err := w.Write(r.left)
		sum += int64(n)
		r.left = r.left[n:]
		if err != nil {
			return sum, err
		}
	}
}

// fill makes left hold something.
func (r *fileReader) fill() error {
	for r.err == nil && len(r.left) == 0 {
		r.err = r.next()
	}
	if len(r.left) > 0 {
		return nil
	}
	return r.err
}

func (r *fileReader) next() error {
	if len(r.pieces) == 0 {
		if r.n != r.f.Size {
			return damaged("file %s has %d bytes, not %d", quote(r.f.Path), r.n, r.f.Size)
		}
		if hex.EncodeToString(r.h.Sum(nil)) != r.f.SHA256 {
			return damaged("file %s holds other bytes than were archived", quote(r.f.Path))
		}
		return io.EOF
	}
	p := r.pieces[0]
	if p.segment != r.held {
		r.held = ""
		raw, zst, err := r.s.readSegment(p.segment, r.raw, r.zst)
		r.zst = zst
		if err != nil {
			return err
		}
		r.raw, r.held = raw, p.segment
	}
	b, err := p.of(r.raw)
	if err != nil {
		return err
	}
	r.pieces = r.pieces[1:]
	r.n += p.length
	if r.n > r.f.Size {
		return damaged("file %s has more than %d bytes", quote(r.f.Path), r.f.Size)
	}
	r.h.Write(b)
	r.left = b
	return nil
}

// Close lets go of the buffers.
func (r *fileReader) Close() error {
	*r = fileReader{err: io.ErrClosedPipe}
	return nil
}
