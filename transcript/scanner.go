package transcript

import (
	"errors"
	"io"
)

// A Line is one physical line of a transcript.
type Line struct {
	Offset     int64  // of the first byte, from the start of the file
	Number     int64  // physical line number, from 1, as sed -n Np counts
	Raw        []byte // the bytes before the 0x0A; valid until the next Scan
	Length     int64  // of the line without its 0x0A; more than len(Raw) only if the scanner has a limit
	Terminated bool   // a 0x0A followed
}

// A Scanner splits a stream into lines at 0x0A and nowhere else.
type Scanner struct {
	r    io.Reader
	line Line
	err  error
}

// NewScanner returns a Scanner that reads from r.
func NewScanner(r io.Reader) *Scanner { return &Scanner{r: r} }

// Scan advances to the next line and reports whether there is one.
func (s *Scanner) Scan() bool { s.err = errors.ErrUnsupported; return false }

// Line returns the line that Scan found.
func (s *Scanner) Line() Line { return s.line }

// Err returns the first read error other than io.EOF.
func (s *Scanner) Err() error { return s.err }

// Resume returns the offset at which a later scan has to begin: behind the last
// line that was ended by a 0x0A.
func (s *Scanner) Resume() int64 { return 0 }
