package hooklib

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"unicode/utf8"
)

// MaxText is how many UTF-16 code units of a text for the model or the user
// the client takes from one hook: additional context, a message, plain text
// (observed on 2.1.332 for contexts, documented for all). Of a longer text the
// model gets the first 2,000 and the path of a file with the rest, so this
// package refuses it. [Cut] shortens one.
const MaxText = 10_000

// MaxClassifierContext is the same for [PostToolUseOutput].ClassifierContext
// (documented; all hooks of one call share it).
const MaxClassifierContext = 2_000

// Output is what a hook answers to an event. Each event that takes an answer
// has its own type, and an event that takes none has none: SessionEnd,
// PostCompact, StopFailure, InstructionsLoaded, DirectoryAdded, WorktreeRemove.
// The zero value says nothing and prints nothing.
//
// Three fields occur in many outputs. SystemMessage is shown to the user, not
// to the model. TerminalSequence is written to the user's terminal by an
// interactive client; see [CheckTerminalSequence]. Halt, if it is not empty,
// ends the model's turn, and is the reason that the user is given; a Block sends
// the model back with that reason, or keeps from it what it was to get.
type Output interface {
	// outputFor returns the name of the event that the output answers.
	outputFor() string
	// answer returns what is to be printed for e, which has that name.
	answer(e Event) (answer, error)
}

// answer is what goes to standard output: an object, or plain text.
type answer struct {
	plain    string
	specific specific

	Continue         *bool     `json:"continue,omitempty"`
	StopReason       string    `json:"stopReason,omitempty"`
	Decision         string    `json:"decision,omitempty"`
	Reason           string    `json:"reason,omitempty"`
	SystemMessage    string    `json:"systemMessage,omitempty"`
	TerminalSequence string    `json:"terminalSequence,omitempty"`
	Specific         *specific `json:"hookSpecificOutput,omitempty"`
}

// specific is the part of an answer that bears the event's name. Each output
// fills in its own fields.
type specific struct {
	HookEventName            string          `json:"hookEventName"`
	PermissionDecision       string          `json:"permissionDecision,omitempty"`
	PermissionDecisionReason string          `json:"permissionDecisionReason,omitempty"`
	UpdatedInput             json.RawMessage `json:"updatedInput,omitempty"`
	Decision                 *requestAnswer  `json:"decision,omitempty"`
	Retry                    bool            `json:"retry,omitempty"`
	AdditionalContext        string          `json:"additionalContext,omitempty"`
	ClassifierContext        string          `json:"classifierContext,omitempty"`
	UpdatedToolOutput        json.RawMessage `json:"updatedToolOutput,omitempty"`
	InitialUserMessage       string          `json:"initialUserMessage,omitempty"`
	SessionTitle             string          `json:"sessionTitle,omitempty"`
	SuppressOriginalPrompt   bool            `json:"suppressOriginalPrompt,omitempty"`
	WatchPaths               *[]string       `json:"watchPaths,omitempty"`
	ReloadSkills             bool            `json:"reloadSkills,omitempty"`
	Action                   string          `json:"action,omitempty"`
	Content                  json.RawMessage `json:"content,omitempty"`
	DisplayContent           *string         `json:"displayContent,omitempty"`
}

type requestAnswer struct {
	Behavior           string             `json:"behavior"`
	UpdatedInput       json.RawMessage    `json:"updatedInput,omitempty"`
	UpdatedPermissions []PermissionUpdate `json:"updatedPermissions,omitempty"`
	Message            string             `json:"message,omitempty"`
	Interrupt          bool               `json:"interrupt,omitempty"`
}

// Encode returns what a hook prints to answer e with out: one JSON object and
// a newline, or the plain text that two events ask for. It is nil if there is
// nothing to say. The same output gives the same bytes each time, which are
// valid UTF-8: what is not becomes U+FFFD.
//
// It fails if the client would reject or ignore a part of the output: a text
// that is too long (a [*LengthError]), a path that is not absolute, an input
// that is no object, an output for another event.
func Encode(e Event, out Output) ([]byte, error) {
	if e == nil || out == nil {
		return nil, errors.New("no event or no output")
	}
	if name := e.Base().Name; out.outputFor() != name {
		return nil, fmt.Errorf("an output for %s cannot answer %s", out.outputFor(), quote(name))
	}
	a, err := out.answer(e)
	if err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	if a.plain != "" {
		return []byte(valid(a.plain) + "\n"), nil
	}
	if reflect.ValueOf(a.specific).IsZero() {
		a.Specific = nil
	} else {
		a.specific.HookEventName = out.outputFor()
		a.Specific = &a.specific
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(a); err != nil {
		return nil, err
	}
	if b.String() == "{}\n" {
		return nil, nil
	}
	// Raw JSON of the caller's is passed on as it is.
	return bytes.ToValidUTF8(b.Bytes(), []byte("\uFFFD")), nil
}

// A LengthError says that a text is longer than the client takes.
type LengthError struct {
	Field string // the client's name for it
	Units int    // its length in UTF-16 code units
	Limit int
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("%s has %d UTF-16 units, %d more than the client takes from one hook", e.Field, e.Units, e.Units-e.Limit)
}

// check makes all texts valid UTF-8, in which form they are measured, and says
// whether the client would take them.
func (a *answer) check() error {
	s := &a.specific
	for _, text := range []struct {
		name  string
		value *string
		limit int
	}{
		{"additionalContext", &s.AdditionalContext, MaxText},
		{"classifierContext", &s.ClassifierContext, MaxClassifierContext},
		{"systemMessage", &a.SystemMessage, MaxText},
		{"standard output", &a.plain, MaxText},
	} {
		*text.value = valid(*text.value)
		if n := Units(*text.value); n > text.limit {
			return &LengthError{Field: text.name, Units: n, Limit: text.limit}
		}
	}
	for _, text := range []*string{
		&a.StopReason, &a.Reason, &s.PermissionDecisionReason, &s.InitialUserMessage, &s.SessionTitle,
	} {
		*text = valid(*text)
	}
	if s.WatchPaths != nil {
		for _, path := range *s.WatchPaths {
			if !filepath.IsAbs(path) {
				return fmt.Errorf("watch path %s is not absolute", quote(path))
			}
		}
	}
	return CheckTerminalSequence(a.TerminalSequence)
}

// valid replaces each byte that is not UTF-8, as encoding/json does.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// Units returns the length of s in UTF-16 code units, the measure of the
// client's limits. A byte that is not UTF-8 counts as the U+FFFD that it
// becomes.
func Units(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r >= 0x1_0000 {
			n++
		}
	}
	return n
}

// Cut returns the longest beginning of s that has at most units UTF-16 code
// units and ends between two characters: never within the bytes of one, and
// never between the halves of a surrogate pair. What is cut off may still
// belong to what is seen as one character, such as an accent. It is s itself
// if that is short enough, and empty if units is not positive.
func Cut(s string, units int) string {
	n := 0
	for i, r := range s {
		n++
		if r >= 0x1_0000 {
			n++
		}
		if n > units {
			return s[:i]
		}
	}
	return s
}

// CheckTerminalSequence says whether the client would pass s on to the
// terminal: it takes the bell, and operating system commands 0, 1, 2, 9, 99
// and 777, which set titles and notify, and drops everything else
// (documented).
func CheckTerminalSequence(s string) error {
	const esc, bell = "\x1b", "\x07"
	for rest := s; rest != ""; {
		if after, ok := strings.CutPrefix(rest, bell); ok {
			rest = after
			continue
		}
		body, ok := strings.CutPrefix(rest, esc+"]")
		end := strings.IndexAny(body, esc+bell)
		if !ok || end < 0 {
			return fmt.Errorf("terminal sequence %s: not a bell and no complete operating system command", quote(rest))
		}
		switch number, _, _ := strings.Cut(body[:end], ";"); number {
		case "0", "1", "2", "9", "99", "777":
		default:
			return fmt.Errorf("terminal sequence %s: the client passes on the commands 0, 1, 2, 9, 99 and 777 only", quote(rest))
		}
		if rest, ok = strings.CutPrefix(body[end:], bell); ok {
			continue
		}
		if rest, ok = strings.CutPrefix(body[end:], esc+"\\"); !ok {
			return fmt.Errorf("terminal sequence %s: not ended", quote(body))
		}
	}
	return nil
}

// object encodes a value of the caller's that has to be a JSON object; nil is
// none.
func object(name string, value any) (json.RawMessage, error) {
	raw, err := encoded(name, value)
	if err == nil && raw != nil && raw[0] != '{' {
		return nil, fmt.Errorf("%s is no JSON object", name)
	}
	return raw, err
}

// encoded encodes a value of the caller's; nil is none.
func encoded(name string, value any) (json.RawMessage, error) {
	if value == nil {
		return nil, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

func (a *answer) block(reason string) {
	if reason != "" {
		a.Decision, a.Reason = "block", reason
	}
}

func (a *answer) halt(reason string) {
	if reason != "" {
		no := false
		a.Continue, a.StopReason = &no, reason
	}
}
