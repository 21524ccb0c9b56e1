package hooklib

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
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

// ParseEvent decodes an event. Field names are matched exactly, of equal names
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

	d := fieldDecoder{fields}
	common := Common{
		SessionID:      d.text("session_id"),
		TranscriptPath: d.text("transcript_path"),
		Cwd:            d.text("cwd"),
		Name:           d.text("hook_event_name"),
		PromptID:       d.text("prompt_id"),
		PermissionMode: d.text("permission_mode"),
		AgentID:        d.text("agent_id"),
		AgentType:      d.text("agent_type"),
		Effort:         d.effort("effort"),
	}
	var event Event
	switch common.Name {
	case NameSessionEnd:
		event = &SessionEnd{Common: common, Reason: d.text("reason")}
	case NameStop:
		event = &Stop{
			Common:               common,
			StopHookActive:       d.truth("stop_hook_active"),
			LastAssistantMessage: d.text("last_assistant_message"),
			BackgroundTasks:      d.raw("background_tasks"),
			SessionCrons:         d.raw("session_crons"),
		}
	case NameStopFailure:
		event = &StopFailure{
			Common:               common,
			Failure:              d.text("error"),
			Details:              d.text("error_details"),
			LastAssistantMessage: d.text("last_assistant_message"),
		}
	case NameSubagentStop:
		event = &SubagentStop{
			Common:               common,
			AgentTranscriptPath:  d.text("agent_transcript_path"),
			StopHookActive:       d.truth("stop_hook_active"),
			LastAssistantMessage: d.text("last_assistant_message"),
			BackgroundTasks:      d.raw("background_tasks"),
			SessionCrons:         d.raw("session_crons"),
		}
	default:
		event = &Unknown{Common: common}
	}
	if len(fields) > 0 {
		event.Base().Extra = fields
	}
	return event, nil
}

// fieldDecoder takes fields out of an object, each at most once. What does
// not have the type asked for stays in.
type fieldDecoder struct {
	fields map[string]json.RawMessage
}

func take[T any](d fieldDecoder, name string) (value T) {
	raw, ok := d.fields[name]
	if !ok || json.Unmarshal(raw, &value) != nil {
		var zero T
		return zero
	}
	delete(d.fields, name)
	return value
}

func (d fieldDecoder) text(name string) string { return take[string](d, name) }
func (d fieldDecoder) truth(name string) bool  { return take[bool](d, name) }

func (d fieldDecoder) raw(name string) json.RawMessage {
	return take[json.RawMessage](d, name)
}

// effort takes {"level":"…"}. Anything more in the object would be lost, so
// such an object stays.
func (d fieldDecoder) effort(name string) string {
	object := map[string]json.RawMessage{}
	if raw, ok := d.fields[name]; !ok || json.Unmarshal(raw, &object) != nil {
		return ""
	}
	var level string
	if raw, ok := object["level"]; !ok || json.Unmarshal(raw, &level) != nil {
		return ""
	}
	if len(object) == 1 {
		delete(d.fields, name)
	}
	return level
}
