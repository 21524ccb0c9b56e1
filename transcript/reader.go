package transcript

import (
	"bytes"
	"io"
)

const (
	// maxLine is the longest line that a Reader reads whole, in bytes. The client
	// copes with lines of 50 MB; the limit is for files that are no transcripts.
	maxLine = 1 << 30
	// maxJoined bounds the bytes of a record that is spread over several lines.
	maxJoined = 1 << 20
	// salvageWork bounds the bytes looked at to find records on a damaged line, as a
	// multiple of its length: nesting can make every one of them a candidate.
	salvageWork = 16
)

// A Record is one JSON object of a transcript.
type Record struct {
	Fields
	Raw       []byte // the object's JSON text; valid until the next call of Next
	Offset    int64  // of Raw[0], from the start of the file
	Line      int64  // physical line on which it begins, from 1
	Recovered bool   // stands on a damaged line, where the client does not see it
}

// A Reader hands out the records of a transcript in the order of the file and tells
// what is damaged. No damage ends the reading: a line that is not sound is searched
// for whole records, and what is left of it is reported with its place.
//
// It takes what the client takes: CRLF, a byte order mark at the start, blank lines,
// white space around a record, bad UTF-8, a record spread over several lines.
type Reader struct {
	// OnDamage, if set, is called for every damaged part, in the order of the file.
	OnDamage func(Damage)

	s      *Scanner
	rec    Record
	line   Line // the current one
	pos    int  // up to where it has been handed out
	behind bool // something stood on it before pos
	record bool // that was a whole record

	begun  bool // a line with something on it was seen
	format Format
	blank  int64
	counts [kinds]int64

	// A record over several lines is tried by joining them. If that fails they are
	// taken one by one from replay, then the line that stopped it, which is held.
	joined []byte
	replay []Line
	held   bool
}

// NewReader returns a Reader that reads from r.
func NewReader(r io.Reader) *Reader {
	s := NewScanner(r)
	s.SetLimit(maxLine)
	return &Reader{s: s, format: FormatEmpty}
}

// Record returns the record that Next found. It is valid until the next call of it.
func (r *Reader) Record() *Record { return &r.rec }

// Err returns the first read error. Damage is none.
func (r *Reader) Err() error { return r.s.Err() }

// Format says what kind of file it is. It is known once Next has returned.
func (r *Reader) Format() Format { return r.format }

// Damaged returns how many damaged parts of this kind were met so far.
func (r *Reader) Damaged(k Kind) int64 {
	if k >= kinds {
		return 0
	}
	return r.counts[k]
}

// Lines returns how many physical lines were read so far, and how many of them were
// blank.
func (r *Reader) Lines() (all, blank int64) { return r.s.number, r.blank }

// Next advances to the next record and reports whether there is one.
func (r *Reader) Next() bool {
	for {
		if r.pos < len(r.line.Raw) {
			if r.salvage() {
				return true
			}
			continue
		}
		joinable, ok := r.advance()
		if !ok {
			return false
		}
		if r.sound(joinable) {
			return true
		}
	}
}

// advance takes the next line and reports whether it may begin a record that is
// spread over several.
func (r *Reader) advance() (joinable, ok bool) {
	r.pos, r.behind, r.record = 0, false, false
	if len(r.replay) > 0 {
		r.line, r.replay = r.replay[0], r.replay[1:]
		return false, true
	}
	if r.held {
		r.held = false
		r.line = r.s.Line()
		return true, true
	}
	if !r.s.Scan() {
		r.line = Line{}
		return false, false
	}
	r.line = r.s.Line()
	return true, true
}

// sound reads a line that holds one whole record and nothing else, which is nearly
// every line, and steps over blank ones. It leaves the others to salvage.
func (r *Reader) sound(joinable bool) bool {
	raw := r.line.Raw
	if r.line.Length > int64(len(raw)) {
		if !r.begun {
			r.begun, r.format = true, FormatLines
		}
		r.damage(TooLong, 0, r.line.Length, false)
		r.pos = len(raw)
		return false
	}
	l := lexer{b: raw, check: true}
	at := 0
	if r.line.Number == 1 {
		if isUTF16(raw) {
			r.begun, r.format = true, FormatUTF16
		}
		at = len(raw) - len(bytes.TrimPrefix(raw, []byte("\ufeff")))
	}
	at = l.space(at)
	if at == len(raw) {
		r.blank++
		r.pos = at
		return false
	}
	first := !r.begun
	if first {
		r.begun, r.format = true, FormatLines
		if isArray(raw[at:]) {
			r.format = FormatArray
		}
	}
	if raw[at] != '{' {
		r.pos = at
		return false
	}
	r.rec = Record{Offset: r.line.Offset + int64(at), Line: r.line.Number}
	end, f := l.object(at, 0, r.rec.set)
	if f == faultEnd && joinable && r.line.Terminated && r.join(at) {
		if first {
			r.format = FormatPretty
		}
		return true
	}
	if f != faultNone || l.space(end) < len(raw) {
		r.pos = at
		return false
	}
	r.rec.Raw = raw[at:end:end]
	r.pos = len(raw)
	r.checkUTF8(&l)
	return true
}

// join tries to read a record that begins on the current line and ends on a later
// one. If it does not, every line is kept to be read by itself.
func (r *Reader) join(at int) bool {
	first := r.line
	r.joined = append(r.joined[:0], first.Raw...)
	var lines []Line // Raw is set from their lengths at the end
	lines = append(lines, first)
	depth := brackets(first.Raw[at:])
	for depth > 0 && len(r.joined) < maxJoined {
		if !r.s.Scan() {
			break
		}
		line := r.s.Line()
		// A line that begins like the client's own records is one: the record before
		// it was cut off.
		if bytes.HasPrefix(line.Raw, []byte(`{"`)) || len(r.joined)+len(line.Raw) > maxJoined {
			r.held = true
			break
		}
		r.joined = append(append(r.joined, '\n'), line.Raw...)
		lines = append(lines, line)
		depth += brackets(line.Raw)
	}
	if depth <= 0 {
		l := lexer{b: r.joined, check: true}
		r.rec = Record{Offset: first.Offset + int64(at), Line: first.Number}
		end, f := l.object(at, 0, r.rec.set)
		if f == faultNone && end >= len(r.joined)-len(lines[len(lines)-1].Raw) {
			r.rec.Raw = r.joined[at:end:end]
			r.line = first
			r.damage(MultiLine, at, int64(end-at), false)
			r.checkUTF8(&l)
			// What stands behind it belongs to its last line.
			last := lines[len(lines)-1]
			from := len(r.joined) - len(last.Raw)
			last.Raw = r.joined[from:]
			r.line, r.pos, r.behind, r.record = last, end-from, true, true
			return true
		}
	}
	from := 0
	for i := range lines {
		n := len(lines[i].Raw)
		lines[i].Raw = r.joined[from : from+n : from+n]
		from += n + 1
	}
	r.line, r.replay = lines[0], lines[1:]
	return false
}

// brackets returns how many more brackets a line opens than it closes, strings left
// out.
func brackets(b []byte) int {
	n := 0
	l := lexer{b: b}
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			n++
		case '}', ']':
			n--
		case '"':
			end, f := l.str(i + 1)
			if f != faultNone {
				return n
			}
			i = end - 1
		}
	}
	return n
}

// salvage goes on within a line that is not sound: it reports what is damaged up to
// the next whole record and hands that out.
func (r *Reader) salvage() bool {
	raw := r.line.Raw
	l := lexer{b: raw, check: true}
	at := l.space(r.pos)
	if at == len(raw) {
		r.pos = at
		return false
	}
	if n := zeros(raw[at:]); n > 0 {
		kind, lost := NULGlued, !r.behind
		if !r.behind && at+n == len(raw) {
			kind, lost = NULRun, false
		}
		r.damage(kind, at, int64(n), lost)
		r.pos, r.behind = at+n, true
		return false
	}
	if raw[at] != '{' {
		if r.behind {
			to := r.find(at)
			kind := Garbage
			if r.record {
				kind = Trailing
			}
			r.damage(kind, at, int64(to-at), false)
			r.pos = to
			return false
		}
		kind, to := l.notObject(at), len(raw)
		if kind != NotObject {
			kind, to = Garbage, r.find(at)
		}
		r.damage(kind, at, int64(to-at), kind == Garbage)
		r.pos, r.behind = to, true
		return false
	}
	r.rec = Record{Offset: r.line.Offset + int64(at), Line: r.line.Number, Recovered: r.behind}
	end, f := l.object(at, 0, r.rec.set)
	if f == faultNone {
		if r.record {
			r.damage(Glued, at, int64(end-at), true)
		}
		r.rec.Raw = raw[at:end:end]
		r.pos, r.behind, r.record = end, true, true
		r.checkUTF8(&l)
		return true
	}
	to := r.find(at + 1)
	kind := f.kind()
	switch {
	case to < len(raw):
		kind = Spliced
	case kind == Torn && !r.line.Terminated:
		kind = TornTail
	}
	r.damage(kind, at, int64(to-at), true)
	r.pos, r.behind, r.record = to, true, false
	return false
}

// find returns where the next whole record begins, at from or behind it on the
// current line, or else the line's length.
//
// An object inside a cut-off record is none: what is taken must look like a record
// and have another one, NUL bytes or the line's end behind it.
func (r *Reader) find(from int) int {
	raw := r.line.Raw
	work := salvageWork*len(raw) + 4096
	l := lexer{b: raw}
	for at := from; work > 0; at++ {
		n := bytes.IndexByte(raw[at:], '{')
		if n < 0 {
			break
		}
		at += n
		if k := l.space(at + 1); k == len(raw) || raw[k] != '"' {
			continue
		}
		var f Fields
		end, why := l.object(at, 0, f.set)
		work -= end - at
		if why != faultNone {
			continue
		}
		if k := l.space(end); f.likely() && (k == len(raw) || raw[k] == '{' || raw[k] == 0) {
			return at
		}
		at = end - 1 // what is inside a whole object belongs to it
	}
	return len(raw)
}

// likely reports whether an object found inside a damaged line is a record and not
// a part of one, such as a message or a content block.
func (f *Fields) likely() bool {
	if f.Type.String() == "" {
		return false
	}
	if f.SessionID.IsText() || f.UUID.IsText() || f.LeafUUID.IsText() {
		return true
	}
	switch f.Type.String() {
	case "user", "assistant", "summary", "file-history-snapshot", "file-history-delta":
		return true
	}
	return false
}

func (r *Reader) damage(k Kind, at int, length int64, lost bool) {
	r.counts[k]++
	if r.OnDamage != nil {
		r.OnDamage(Damage{
			Kind: k, Line: r.line.Number, Offset: r.line.Offset + int64(at), Length: length, Lost: lost,
		})
	}
}

// checkUTF8 reports the record just read by l if bytes in it are no UTF-8.
func (r *Reader) checkUTF8(l *lexer) {
	if l.bad {
		r.counts[InvalidUTF8]++
		if r.OnDamage != nil {
			r.OnDamage(Damage{
				Kind: InvalidUTF8, Line: r.rec.Line, Offset: r.rec.Offset, Length: int64(len(r.rec.Raw)),
			})
		}
	}
}

// isUTF16 reports whether a file's first line is UTF-16 text: it begins with a byte
// order mark of it, or every second byte of its start is NUL.
func isUTF16(b []byte) bool {
	if bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return true
	}
	if len(b) < 4 {
		return false
	}
	little := b[0] != 0 && b[1] == 0 && b[2] != 0 && b[3] == 0
	big := b[0] == 0 && b[1] != 0 && b[2] == 0 && b[3] != 0
	return little || big
}

// isArray reports whether the first line of a file that is not blank begins an array
// of records rather than being a stray value.
func isArray(b []byte) bool {
	if b[0] != '[' {
		return false
	}
	l := lexer{b: b}
	at := l.space(1)
	return at == len(b) || b[at] == '{'
}
