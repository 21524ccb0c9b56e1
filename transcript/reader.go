package transcript

import "io"

// A Record is one JSON object of a transcript.
type Record struct {
	Fields
	Raw       []byte // the object's JSON text; valid until the next Next
	Offset    int64  // of Raw[0], from the start of the file
	Line      int64  // physical line on which it begins, from 1
	Recovered bool   // stands on a damaged line where the client does not see it
}

// A Reader hands out the records of a transcript, healthy and recovered ones, and
// reports what is damaged.
type Reader struct {
	// OnDamage, if set, is called for each damaged part, in the order of the file.
	OnDamage func(Damage)

	s *Scanner
}

// NewReader returns a Reader that reads from r.
func NewReader(r io.Reader) *Reader { return &Reader{s: NewScanner(r)} }

// Next advances to the next record and reports whether there is one.
func (r *Reader) Next() bool { return r.s.Scan() }

// Record returns the record that Next found; it is valid until the next call.
func (r *Reader) Record() *Record { return nil }

// Err returns the first read error.
func (r *Reader) Err() error { return r.s.Err() }

// Damaged returns how many damaged parts of this kind there were so far.
func (r *Reader) Damaged(k Kind) int64 { return 0 }

// Format says what kind of file it is; known after the first Next.
func (r *Reader) Format() Format { return FormatLines }
