package transcript

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Value is the JSON text of one value inside a record. The zero Value means that
// the key was absent. It points into the record's bytes and is valid as long as
// they are.
type Value struct{ raw []byte }

// Present reports whether the key was there, whatever its value.
func (v Value) Present() bool { return v.raw != nil }

// Raw returns the JSON text as it stands, nil if the key was absent.
func (v Value) Raw() []byte { return v.raw }

// IsText reports whether the value is a string.
func (v Value) IsText() bool { return len(v.raw) > 1 && v.raw[0] == '"' }

// Text returns the decoded string, and false if the value is absent or no string.
// Lone surrogates and bytes that are no UTF-8 come out as U+FFFD; Raw has them.
func (v Value) Text() (string, bool) {
	if !v.IsText() {
		return "", false
	}
	in := v.raw[1 : len(v.raw)-1]
	if bytes.IndexByte(in, '\\') < 0 && utf8.Valid(in) {
		return string(in), true
	}
	return string(unescape(make([]byte, 0, len(in)), in, 3*len(in))), true
}

// String returns the decoded string, or "" if the value is absent or no string.
func (v Value) String() string {
	s, _ := v.Text()
	return s
}

// prefix decodes at most max bytes of the string and reports whether that is all.
func (v Value) prefix(max int) (string, bool) {
	if !v.IsText() {
		return "", true
	}
	in := v.raw[1 : len(v.raw)-1]
	out := unescape(make([]byte, 0, min(max, len(in))), in, max+utf8.UTFMax)
	if len(out) <= max {
		return string(out), true
	}
	for max > 0 && !utf8.RuneStart(out[max]) {
		max--
	}
	return string(out[:max]), false
}

// Is reports whether the value is the JSON string s, however it is escaped.
func (v Value) Is(s string) bool {
	if !v.IsText() {
		return false
	}
	in := v.raw[1 : len(v.raw)-1]
	if bytes.IndexByte(in, '\\') >= 0 || strings.Contains(s, "\ufffd") {
		return v.String() == s // escapes, or bad UTF-8
	}
	return string(in) == s
}

// True reports whether the value is the literal true. The client takes nothing
// else for a set flag (a string "true" is not one).
func (v Value) True() bool { return string(v.raw) == "true" }

// Int returns the value as a whole number, and false if it is none or does not fit.
func (v Value) Int() (int64, bool) {
	if len(v.raw) == 0 || len(v.raw) > 20 {
		return 0, false
	}
	digits, negative := bytes.CutPrefix(v.raw, []byte{'-'})
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' || n > (1<<63-1-9)/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, len(digits) > 0
}

// Member returns the named member of an object, the last one if there are several.
func (v Value) Member(name string) Value {
	var found Value
	members(v.raw, func(n, value []byte) {
		if string(n) == name {
			found.raw = value
		}
	})
	return found
}

// Fields are the top-level values of one record that this package knows by name.
// Names match exactly, case included; of a name that occurs twice the last value
// counts, as in JavaScript; a name written with escapes is the same name. A value
// of an unexpected type is there for Raw and absent for Text.
type Fields struct {
	Type, Subtype                       Value
	UUID, ParentUUID, LogicalParentUUID Value
	SessionID, Timestamp                Value
	Cwd, GitBranch, Version, Entrypoint Value
	UserType, RequestID, PromptID       Value
	IsSidechain, IsMeta                 Value
	IsCompactSummary                    Value
	IsVisibleInTranscriptOnly           Value
	IsAPIErrorMessage                   Value
	AgentID, AgentName, TeamName, Slug  Value
	LeafUUID                            Value // of last-prompt and summary
	Message, ToolUseResult              Value // of user and assistant
	Content, Operation                  Value // of queue-operation; content also of system
	Attachment                          Value
	CustomTitle, AITitle                Value // of the records of these names
	Summary, LastPrompt                 Value // of the records of these names
	CompactMetadata, ForkedFrom         Value
	RelocatedCwd                        Value // of relocated
}

func (f *Fields) set(name, value []byte) {
	v := Value{value}
	switch string(name) {
	case "type":
		f.Type = v
	case "subtype":
		f.Subtype = v
	case "uuid":
		f.UUID = v
	case "parentUuid":
		f.ParentUUID = v
	case "logicalParentUuid":
		f.LogicalParentUUID = v
	case "sessionId":
		f.SessionID = v
	case "timestamp":
		f.Timestamp = v
	case "cwd":
		f.Cwd = v
	case "gitBranch":
		f.GitBranch = v
	case "version":
		f.Version = v
	case "entrypoint":
		f.Entrypoint = v
	case "userType":
		f.UserType = v
	case "requestId":
		f.RequestID = v
	case "promptId":
		f.PromptID = v
	case "isSidechain":
		f.IsSidechain = v
	case "isMeta":
		f.IsMeta = v
	case "isCompactSummary":
		f.IsCompactSummary = v
	case "isVisibleInTranscriptOnly":
		f.IsVisibleInTranscriptOnly = v
	case "isApiErrorMessage":
		f.IsAPIErrorMessage = v
	case "agentId":
		f.AgentID = v
	case "agentName":
		f.AgentName = v
	case "teamName":
		f.TeamName = v
	case "slug":
		f.Slug = v
	case "leafUuid":
		f.LeafUUID = v
	case "message":
		f.Message = v
	case "toolUseResult":
		f.ToolUseResult = v
	case "content":
		f.Content = v
	case "operation":
		f.Operation = v
	case "attachment":
		f.Attachment = v
	case "customTitle":
		f.CustomTitle = v
	case "aiTitle":
		f.AITitle = v
	case "summary":
		f.Summary = v
	case "lastPrompt":
		f.LastPrompt = v
	case "compactMetadata":
		f.CompactMetadata = v
	case "forkedFrom":
		f.ForkedFrom = v
	case "relocatedCwd":
		f.RelocatedCwd = v
	}
}

// A SyntaxError tells where and how a line is no whole record.
type SyntaxError struct {
	Kind   Kind
	Offset int // of the byte at which reading stopped, from the start of the text
}

// Error describes the damage without quoting the text.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("read record: %s at byte %d", e.Kind, e.Offset)
}

// ParseFields reads the top-level fields of one record, checking all of its JSON
// but decoding none. The text must be one object, white space around it allowed.
//
// The only error is a *SyntaxError. With one, the fields met before it are
// returned; of kind Glued or Trailing they are those of a whole record that has
// something behind it. Bad UTF-8 is no error: the client reads such records too.
func ParseFields(raw []byte) (Fields, error) {
	var f Fields
	l := lexer{b: raw}
	i := l.space(0)
	if i == len(raw) {
		return f, &SyntaxError{Garbage, i}
	}
	if raw[i] != '{' {
		return f, &SyntaxError{l.notObject(i), i}
	}
	end, why := l.object(i, 0, f.set)
	if why != faultNone {
		return f, &SyntaxError{why.kind(), end}
	}
	if i = l.space(end); i < len(raw) {
		kind := Trailing
		if raw[i] == '{' {
			kind = Glued
		}
		return f, &SyntaxError{kind, i}
	}
	return f, nil
}

// notObject tells what a text is that does not begin with a brace at i.
func (l *lexer) notObject(i int) Kind {
	if end, f := l.value(i, 0); f == faultNone && l.space(end) == len(l.b) {
		return NotObject
	}
	if zeros(l.b[i:]) == len(l.b)-i {
		return NULRun
	}
	return Garbage
}

// zeros returns the length of the run of NUL bytes and white space at the start of b
// if it holds a NUL byte, else 0.
func zeros(b []byte) int {
	n := 0
	for i, c := range b {
		switch c {
		case 0:
			n = i + 1
		case ' ', '\t', '\r', '\n':
			if n == 0 {
				continue
			}
			n = i + 1
		default:
			return n
		}
	}
	return n
}

func (f fault) kind() Kind {
	switch f {
	case faultEnd, faultEndString:
		return Torn
	case faultControl:
		return ControlChar
	case faultDeep:
		return TooDeep
	}
	return Garbage
}
