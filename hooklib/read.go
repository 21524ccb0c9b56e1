package hooklib

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"
)

const (
	// maxEventBytes bounds an event. The largest field known is the model's
	// last message, some hundred KB.
	maxEventBytes = 16 << 20
	// maxEventDepth bounds the nesting of an event. Events of the clients known nest
	// less than ten deep.
	maxEventDepth = 1000
	// firstReadBytes is what is read at once; nearly every event is smaller.
	firstReadBytes = 4 << 10
)

// The ways in which there is no event to read.
var (
	ErrNoEvent   = errors.New("nothing on standard input")
	ErrTruncated = errors.New("standard input ended in the middle of the event")
	ErrTimeout   = errors.New("the event was not complete in time")
	ErrTooLarge  = fmt.Errorf("the event is larger than %d MiB", maxEventBytes>>20)
	ErrTooDeep   = fmt.Errorf("the event is nested more than %d deep", maxEventDepth)
	ErrUTF16     = errors.New("the event is UTF-16; it has to be UTF-8")
	ErrNotObject = errors.New("the event is not a JSON object")
)

// ReadEvent reads one JSON object from r and returns as soon as that is
// complete: it does not wait for r to end, and what follows the object is not
// looked at. At the deadline it gives up with [ErrNoEvent] or [ErrTimeout],
// if r is an *os.File; any other reader must end by itself. A zero deadline
// is none.
func ReadEvent(r io.Reader, deadline time.Time) (Event, error) {
	raw, err := readObject(r, deadline)
	if err != nil {
		return nil, err
	}
	return ParseEvent(raw)
}

// readObject returns the bytes of the first JSON object of r, without a byte
// order mark and without white space around it. Only brackets and strings are
// followed, so the bytes need not be valid.
func readObject(r io.Reader, deadline time.Time) ([]byte, error) {
	if r == nil {
		return nil, ErrNoEvent
	}
	if f, ok := r.(*os.File); ok {
		if f == nil {
			return nil, ErrNoEvent
		}
		r = newDeadlineReader(f, deadline)
	}
	var (
		scan objectScanner
		buf  = make([]byte, 0, firstReadBytes)
	)
	for empty := 0; ; {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		if n < 0 || n > cap(buf)-len(buf) {
			return nil, errors.New("broken reader")
		}
		buf = buf[:len(buf)+n]
		done, scanErr := scan.feed(buf)
		switch {
		case scanErr != nil:
			return nil, scanErr
		case done:
			return buf[scan.start:scan.pos], nil
		case len(buf) > maxEventBytes:
			return nil, ErrTooLarge
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, unfinished(buf, fmt.Errorf("%w in time", ErrNoEvent), ErrTimeout)
		case errors.Is(err, io.EOF):
			return nil, unfinished(buf, ErrNoEvent, ErrTruncated)
		case err != nil:
			return nil, err
		}
		// A reader that neither reads nor fails would keep us for ever.
		if n > 0 {
			empty = 0
		} else if empty++; empty > 100 {
			return nil, io.ErrNoProgress
		}
	}
}

// unfinished returns the error for input that ended, or was given up, before
// an object was complete: nothing, or one that had begun.
func unfinished(buf []byte, nothing, begun error) error {
	rest := bytes.TrimLeft(bytes.TrimPrefix(buf, []byte(bom)), " \t\r\n")
	switch {
	case len(rest) == 0, len(buf) < len(bom) && bytes.HasPrefix([]byte(bom), buf):
		return nothing
	case rest[0] == '{':
		return begun
	}
	return ErrNotObject
}

// bom is the byte order mark of UTF-8, which some programs write.
const bom = "\xEF\xBB\xBF"

// objectScanner finds the end of a JSON object in bytes that grow.
type objectScanner struct {
	pos      int // how far it has looked
	start    int // where the object starts, once depth > 0
	depth    int
	inString bool
	escaped  bool
}

// feed looks at what is new in buf, which begins with all that it got before,
// and tells whether the object is complete. It then ends at pos.
func (s *objectScanner) feed(buf []byte) (done bool, err error) {
	if s.depth == 0 {
		if waiting, err := s.begin(buf); waiting || err != nil {
			return false, err
		}
	}
	for ; s.pos < len(buf); s.pos++ {
		c := buf[s.pos]
		switch {
		case s.escaped:
			s.escaped = false
		case s.inString:
			switch c {
			case '\\':
				s.escaped = true
			case '"':
				s.inString = false
			}
		case c == '"':
			s.inString = true
		case c == '{', c == '[':
			s.depth++
			if s.depth > maxEventDepth {
				return false, ErrTooDeep
			}
		case c == '}', c == ']':
			s.depth--
			if s.depth == 0 {
				s.pos++
				return true, nil
			}
		}
	}
	return false, nil
}

// begin looks for the start of the object.
func (s *objectScanner) begin(buf []byte) (waiting bool, err error) {
	switch {
	case bytes.HasPrefix(buf, []byte("\xFF\xFE")), bytes.HasPrefix(buf, []byte("\xFE\xFF")),
		bytes.HasPrefix(buf, []byte("{\x00")), bytes.HasPrefix(buf, []byte("\x00{")):
		return false, ErrUTF16
	case len(buf) == 1 && strings.IndexByte("{\x00\xFF\xFE", buf[0]) >= 0:
		return true, nil // the second byte tells whether it is UTF-16
	case len(buf) < len(bom) && bytes.HasPrefix([]byte(bom), buf):
		return true, nil
	}
	if s.pos == 0 && bytes.HasPrefix(buf, []byte(bom)) {
		s.pos = len(bom)
	}
	for ; s.pos < len(buf); s.pos++ {
		switch buf[s.pos] {
		case ' ', '\t', '\r', '\n':
		case '{':
			s.start, s.depth = s.pos, 1
			s.pos++
			return false, nil
		default:
			return false, ErrNotObject
		}
	}
	return true, nil
}

// ParseEvent decodes an event, which keeps raw. Field names are matched exactly, of equal names
// the last one counts, and what is not valid UTF-8 or half a surrogate pair
// becomes U+FFFD. A null counts as absent. The error is only ever about bytes
// that are no JSON object.
func ParseEvent(raw []byte) (Event, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("the event is not valid JSON at byte %d", syntax.Offset)
		}
		return nil, ErrNotObject
	}
	if fields == nil { // null
		return nil, ErrNotObject
	}

	var name string
	if json.Unmarshal(fields["hook_event_name"], &name) != nil {
		name = ""
	}
	event := newEvent(name)
	fill(reflect.ValueOf(event).Elem(), fields)
	common := event.Base()
	common.Effort = takeEffort(fields)
	common.Raw = raw
	if len(fields) > 0 {
		common.Extra = fields
	}
	return event, nil
}

// fill gives the fields of a struct the values that bear their names, and takes
// these out of fields. What does not have the field's type stays in. A null
// leaves the field as it is.
func fill(dst reflect.Value, fields map[string]json.RawMessage) {
	t := dst.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			fill(dst.Field(i), fields)
			continue
		}
		name := f.Tag.Get("json")
		raw, ok := fields[name]
		if !ok || name == "-" {
			continue
		}
		value := reflect.New(f.Type)
		if json.Unmarshal(raw, value.Interface()) != nil {
			continue
		}
		dst.Field(i).Set(value.Elem())
		// An object may hold more than its type has a place for.
		if f.Type != reflect.TypeFor[*MCPServer]() || decodeWhole(raw, value.Interface()) == nil {
			delete(fields, name)
		}
	}
}

// decodeWhole decodes raw into a value that has a place for all that is in it.
func decodeWhole(raw json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// takeEffort takes effort's {"level":"…"}. Anything more in the object would
// be lost, so such an object stays.
func takeEffort(fields map[string]json.RawMessage) string {
	object := map[string]json.RawMessage{}
	if raw, ok := fields["effort"]; !ok || json.Unmarshal(raw, &object) != nil {
		return ""
	}
	var level string
	if raw, ok := object["level"]; !ok || json.Unmarshal(raw, &level) != nil {
		return ""
	}
	if len(object) == 1 {
		delete(fields, "effort")
	}
	return level
}
