package transcript

import (
	"bytes"
	"io"
)

const (
	baseBuffer = 64 << 10 // bytes; most records of a real transcript fit
	maxIdle    = 100      // reads in a row that give nothing before io.ErrNoProgress
)

// A Line is one physical line of a transcript.
type Line struct {
	Offset     int64  // of the first byte, from the start of the file
	Number     int64  // from 1, as sed -n Np counts
	Raw        []byte // the bytes before the 0x0A; valid until the next Scan
	Length     int64  // of the line without its 0x0A; more than len(Raw) only under a limit
	Terminated bool   // a 0x0A followed
}

// A Scanner splits a stream into lines at 0x0A and nowhere else: not at a carriage
// return, not at U+2028. Lines may have any length. Joined with 0x0A, the lines are
// the stream.
//
// One buffer serves all lines. It grows to hold the longest and shrinks again after
// a stretch of short ones.
type Scanner struct {
	r     io.Reader
	buf   []byte
	start int // of the bytes not handed out yet
	end   int // of the bytes read
	quiet int // bytes handed out since a line needed much of the buffer
	limit int // longest Raw, 0 for none

	line   Line
	next   int64 // offset of buf[start] in the file
	number int64 // of the last line
	resume int64
	stop   error // why no more can be read
}

// NewScanner returns a Scanner that reads from r, whose first byte is taken for the
// file's first.
func NewScanner(r io.Reader) *Scanner { return NewScannerAt(r, 0, 1) }

// NewScannerAt returns a Scanner for a file whose bytes from offset on r gives, the
// first of them on the line with this number. With Resume it goes on where an
// earlier scan stopped.
func NewScannerAt(r io.Reader, offset, number int64) *Scanner {
	return &Scanner{r: r, next: offset, number: number - 1, resume: offset}
}

// SetLimit makes the scanner keep only the first n bytes of longer lines; Length
// still tells the whole length. 0 takes the limit away.
func (s *Scanner) SetLimit(n int) { s.limit = n }

// Scan advances to the next line and reports whether there is one. A stream that
// ends without a 0x0A has a last line that is not Terminated; one that ends with it
// has no empty line behind.
func (s *Scanner) Scan() bool {
	searched := s.start
	for {
		if n := bytes.IndexByte(s.buf[searched:s.end], '\n'); n >= 0 {
			s.give(searched+n, int64(searched+n-s.start), true)
			return true
		}
		if s.limit > 0 && s.end-s.start > s.limit {
			return s.skip()
		}
		switch {
		case s.stop == io.EOF && s.start < s.end:
			s.give(s.end, int64(s.end-s.start), false)
			return true
		case s.stop != nil:
			// After a failed read the rest is not handed out: that it ends here is the
			// reader's doing, not the file's.
			return false
		}
		unread := s.end - s.start
		s.makeRoom()
		s.end += s.read(s.buf[s.end:])
		searched = s.start + unread
	}
}

// give hands out buf[start:to] as the next line.
func (s *Scanner) give(to int, length int64, terminated bool) {
	raw := s.buf[s.start:to:to]
	if s.limit > 0 && len(raw) > s.limit {
		raw = raw[:s.limit]
	}
	s.number++
	s.line = Line{Offset: s.next, Number: s.number, Raw: raw, Length: length, Terminated: terminated}
	s.start = to
	s.next += length
	if terminated {
		s.start++
		s.next++
		s.resume = s.next
	}
	if len(raw) > len(s.buf)/4 {
		s.quiet = 0
	} else {
		s.quiet += len(raw) + 1
	}
}

// makeRoom makes the buffer fit to read more behind what is still to be handed out.
func (s *Scanner) makeRoom() {
	unread := s.end - s.start
	switch {
	case len(s.buf) > baseBuffer && unread < baseBuffer/2 && s.quiet > len(s.buf):
		s.resize(baseBuffer)
	case unread == len(s.buf):
		size := max(baseBuffer, 2*len(s.buf))
		if s.limit > 0 {
			size = max(baseBuffer, min(size, s.limit+baseBuffer))
		}
		s.resize(size)
	case s.start > 0:
		copy(s.buf, s.buf[s.start:s.end])
		s.start, s.end = 0, unread
	}
}

func (s *Scanner) resize(size int) {
	buf := make([]byte, size)
	n := copy(buf, s.buf[s.start:s.end])
	s.buf, s.start, s.end, s.quiet = buf, 0, n, 0
}

// read reads at least one byte unless it sets stop.
func (s *Scanner) read(p []byte) int {
	for range maxIdle {
		n, err := s.r.Read(p)
		if err != nil {
			s.stop = err
		}
		if n > 0 || err != nil {
			return n
		}
	}
	s.stop = io.ErrNoProgress
	return 0
}

// skip reads on to the end of a line longer than the limit and keeps its start.
func (s *Scanner) skip() bool {
	length := int64(s.end - s.start)
	if len(s.buf)-s.start-s.limit < baseBuffer/2 {
		s.resize(max(len(s.buf), s.limit+baseBuffer))
	}
	kept := s.start + s.limit
	s.end = kept
	for s.stop == nil {
		n := s.read(s.buf[kept:])
		if i := bytes.IndexByte(s.buf[kept:kept+n], '\n'); i >= 0 {
			s.end = kept + n
			s.give(kept+i, length+int64(i), true)
			return true
		}
		length += int64(n)
	}
	if s.stop != io.EOF {
		return false
	}
	s.give(kept, length, false)
	return true
}

// Line returns the line that Scan found.
func (s *Scanner) Line() Line { return s.line }

// Err returns the first read error other than io.EOF. The line in which it happened
// is not handed out.
func (s *Scanner) Err() error {
	if s.stop == io.EOF {
		return nil
	}
	return s.stop
}

// Resume returns the offset at which a later scan has to begin to miss nothing: the
// first byte behind the last line that was handed out Terminated. It never lies
// behind the start of an unfinished line.
func (s *Scanner) Resume() int64 { return s.resume }
