package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// A segment file is exactly one zstd frame:
//
//	magic        4 bytes, 28 b5 2f fd
//	header       checksum flag set, no dictionary, window at most 8 MiB; the
//	             content size is written, but a reader does without
//	blocks       decode to 1 to 8 MiB of raw bytes
//	checksum     4 bytes, low half of the XXH64 of the raw bytes
//
// Its name is the SHA-256 of the raw bytes.
const (
	maxSegment = 8 << 20
	// maxSegmentFile bounds what is read from disk: raw blocks cost 3 bytes
	// for each 128 KiB, the rest is header and checksum.
	maxSegmentFile = maxSegment + maxSegment/(128<<10)*3 + 64
)

// decoders decode one frame at a time, never more than a segment may hold.
var decoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1),        // no goroutine, see DecodeAll
		zstd.WithDecoderMaxMemory(maxSegment), // a bomb ends here
		zstd.WithDecoderMaxWindow(maxSegment),
		zstd.WithDecodeAllCapLimit(false))
	if err != nil {
		return err
	}
	return d
}}

// decodeSegment returns the raw bytes of a segment file's content, appended
// to dst[:0]. It checks everything: one frame and nothing else, checksum,
// length, hash. zstd alone is not trusted: cut at a block's border, frames
// have been decoded as if whole (AR-01).
func decodeSegment(hash string, file, dst []byte) ([]byte, error) {
	if len(file) == 0 {
		return nil, damaged("segment %s is empty", hash)
	}
	var h zstd.Header
	if err := h.Decode(file); err != nil {
		return nil, damaged("segment %s: no zstd frame: %w", hash, err)
	}
	switch {
	case h.Skippable:
		return nil, damaged("segment %s is a skippable frame", hash)
	case !h.HasCheckSum:
		return nil, damaged("segment %s: frame has no checksum", hash)
	case h.HasFCS && (h.FrameContentSize == 0 || h.FrameContentSize > maxSegment):
		return nil, damaged("segment %s: frame says %d bytes, not 1 to %d", hash, h.FrameContentSize, maxSegment)
	case !h.SingleSegment && h.WindowSize > maxSegment:
		return nil, damaged("segment %s: frame needs a window of %d bytes, %d are allowed", hash, h.WindowSize, maxSegment)
	case h.DictionaryID != 0:
		return nil, damaged("segment %s: frame needs a dictionary", hash)
	}
	if n, err := frameLength(file, &h); err != nil {
		return nil, damaged("segment %s: %w", hash, err)
	} else if n != len(file) {
		return nil, damaged("segment %s: %d bytes follow the frame", hash, len(file)-n)
	}
	got := decoders.Get()
	d, ok := got.(*zstd.Decoder)
	if !ok {
		return nil, fmt.Errorf("zstd decoder: %w", got.(error))
	}
	defer decoders.Put(d)
	if size := int(h.FrameContentSize); h.HasFCS && cap(dst) < size {
		dst = make([]byte, 0, size)
	}
	raw, err := d.DecodeAll(file, dst[:0])
	if err != nil {
		return nil, damaged("segment %s: %w", hash, err)
	}
	if len(raw) == 0 || h.HasFCS && uint64(len(raw)) != h.FrameContentSize {
		return nil, damaged("segment %s: %d bytes instead of %d", hash, len(raw), h.FrameContentSize)
	}
	if hashOf(raw) != hash {
		return nil, damaged("segment %s holds other bytes", hash)
	}
	return raw, nil
}

// frameLength walks over the blocks of the frame at the start of b and
// returns the frame's length. Each step moves on, so it ends.
func frameLength(b []byte, h *zstd.Header) (int, error) {
	n := h.HeaderSize
	for {
		if len(b)-n < 3 {
			return 0, io.ErrUnexpectedEOF
		}
		head := int(b[n]) | int(b[n+1])<<8 | int(b[n+2])<<16
		last, kind, size := head&1 != 0, head>>1&3, head>>3
		if kind == 1 { // RLE: one byte, repeated
			size = 1
		}
		n += 3 + size
		if n > len(b) {
			return 0, io.ErrUnexpectedEOF
		}
		if last {
			break
		}
	}
	n += 4 // checksum
	if n > len(b) {
		return 0, io.ErrUnexpectedEOF
	}
	return n, nil
}

// readSegment reads, decodes and checks a segment. dst and file are buffers to
// reuse, either may be nil. A missing segment wraps fs.ErrNotExist and
// ErrDamaged.
func (s *Store) readSegment(hash string, dst, file []byte) (raw, used []byte, err error) {
	file, err = s.readSegmentFile(hash, file)
	if err != nil {
		return nil, file, err
	}
	raw, err = decodeSegment(hash, file, dst)
	return raw, file, err
}

// testMissingHook, if set by a test, is called between the two looks for a
// segment that is not there.
var testMissingHook func(hash string)

// readSegmentFile reads a segment's file. If it is missing, it looks once
// more: another process may just be replacing it.
func (s *Store) readSegmentFile(hash string, buf []byte) ([]byte, error) {
	name := filepath.Join(s.root, filepath.FromSlash(segmentPath(hash)))
	f, err := durable.OpenNow(name)
	if errors.Is(err, fs.ErrNotExist) {
		if testMissingHook != nil {
			testMissingHook(hash)
		}
		f, err = durable.OpenNow(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return buf, damaged("segment %s is missing: %w", hash, fs.ErrNotExist)
	}
	if err != nil {
		return buf, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return buf, err
	}
	if !fi.Mode().IsRegular() {
		return buf, damaged("segment %s is no regular file", hash)
	}
	if fi.Size() > maxSegmentFile {
		return buf, damaged("segment %s: file of %d bytes", hash, fi.Size())
	}
	size := int(fi.Size())
	if cap(buf) < size {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	if n, err := io.ReadFull(f, buf); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return buf, damaged("segment %s: file ends after %d of %d bytes", hash, n, size)
		}
		return buf, fmt.Errorf("read segment %s: %w", hash, err)
	}
	return buf, nil
}

// An encoder compresses one segment at a time, on the caller's goroutine.
type encoder struct {
	z   *zstd.Encoder
	dst []byte // reused
}

func newEncoder() (*encoder, error) {
	z, err := zstd.NewWriter(nil,
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderLevel(zstd.SpeedDefault),
		zstd.WithWindowSize(maxSegment),
		// Halves the history that an encoder keeps. It makes streams slow, which
		// must move it for each block; whole segments never fill it.
		zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, err
	}
	return &encoder{z: z}, nil
}

// encode returns raw as a segment's file content, valid until the next call.
func (e *encoder) encode(raw []byte) []byte {
	// Transcripts compress to a fifth or so: a buffer of the right size is not
	// grown, which would leave several behind as garbage.
	if want := len(raw)/3 + 1024; cap(e.dst) < want {
		e.dst = make([]byte, 0, want)
	}
	e.dst = e.z.EncodeAll(raw, e.dst[:0])
	return e.dst
}
