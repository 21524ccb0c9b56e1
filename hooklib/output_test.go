package hooklib

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// absolute is a path that is absolute where the tests run.
func absolute(t testing.TB) string {
	path, err := filepath.Abs("watched")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func eventNamed(t testing.TB, name string, more ...string) Event {
	t.Helper()
	raw := `{"hook_event_name":"` + name + `"`
	for i := 0; i+1 < len(more); i += 2 {
		raw += `,"` + more[i] + `":"` + more[i+1] + `"`
	}
	e, err := ParseEvent([]byte(raw + "}"))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// zeroOutputs holds the type of each event's output.
var zeroOutputs = []Output{
	SessionStartOutput{}, SetupOutput{}, UserPromptSubmitOutput{}, UserPromptExpansionOutput{}, StopOutput{},
	SubagentStartOutput{}, SubagentStopOutput{}, PreCompactOutput{}, PreToolUseOutput{}, PostToolUseOutput{},
	PostToolUseFailureOutput{}, PostToolBatchOutput{}, PermissionRequestOutput{}, PermissionDeniedOutput{},
	PreSkillShellCommandOutput{}, NotificationOutput{}, MessageDisplayOutput{}, PreModelSwitchOutput{},
	PostModelSwitchOutput{}, TeammateIdleOutput{}, TaskCreatedOutput{}, TaskCompletedOutput{}, ElicitationOutput{},
	ElicitationResultOutput{}, ConfigChangeOutput{}, CwdChangedOutput{}, FileChangedOutput{}, WorktreeCreateOutput{},
}

// silent are the events whose output the client discards, or shows where it
// was not asked for.
var silent = []string{NameSessionEnd, NamePostCompact, NameStopFailure, NameInstructionsLoaded, NameDirectoryAdded, NameWorktreeRemove}

func TestEachEventHasItsOutput(t *testing.T) {
	answered := map[string]Output{}
	for _, out := range zeroOutputs {
		answered[out.outputFor()] = out
	}
	for _, name := range silent {
		if answered[name] != nil {
			t.Errorf("%s takes no answer and has a type for one", name)
		}
		answered[name] = StopOutput{}
	}
	handlers := reflect.TypeFor[Handlers]()
	for _, name := range Names() {
		if answered[name] == nil {
			t.Errorf("%s has no output", name)
		}
		if _, unknown := newEvent(name).(*Unknown); unknown {
			t.Errorf("%s has no type", name)
		}
		f, ok := handlers.FieldByName(name)
		if !ok || f.Type.In(2) != reflect.TypeOf(newEvent(name)) {
			t.Errorf("%s has no handler of its type", name)
		}
	}
	if len(answered) != len(Names()) || handlers.NumField() != len(Names()) {
		t.Errorf("%d outputs, %d handlers, %d events", len(answered), handlers.NumField(), len(Names()))
	}
	for _, out := range zeroOutputs {
		if out.outputFor() == NameWorktreeCreate {
			continue // must answer
		}
		if got, err := Encode(eventNamed(t, out.outputFor()), out); err != nil || got != nil {
			t.Errorf("nothing to say at %s: %q, %v", out.outputFor(), got, err)
		}
	}
}

func TestEncode(t *testing.T) {
	path := absolute(t)
	quoted, err := json.Marshal(path)
	if err != nil {
		t.Fatal(err)
	}
	shown := ""
	tests := []struct {
		name string
		e    Event // nil: one of the output's name
		out  Output
		want string // "" for nothing
	}{
		{"context", nil, SessionStartOutput{AdditionalContext: "a <b> & é 😀\n"},
			`{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"a <b> & é 😀\n"}}`},
		{"all of a start", eventNamed(t, NameSessionStart, "source", "resume"),
			SessionStartOutput{AdditionalContext: "c", SessionTitle: "t", InitialUserMessage: "m", WatchPaths: []string{path}, ReloadSkills: true, SystemMessage: "s", TerminalSequence: "\x07"},
			`{"systemMessage":"s","terminalSequence":"\u0007","hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"c","initialUserMessage":"m","sessionTitle":"t","watchPaths":[` + string(quoted) + `],"reloadSkills":true}}`},
		{"title after clear", eventNamed(t, NameSessionStart, "source", "clear"), SessionStartOutput{SessionTitle: "t"}, ""},
		{"title after compact", eventNamed(t, NameSessionStart, "source", "compact"), SessionStartOutput{SessionTitle: "t"}, ""},
		{"title of a fork", eventNamed(t, NameSessionStart, "source", "fork"), SessionStartOutput{SessionTitle: "t"},
			`{"hookSpecificOutput":{"hookEventName":"SessionStart","sessionTitle":"t"}}`},
		{"only a message", nil, SetupOutput{SystemMessage: "s"}, `{"systemMessage":"s"}`},
		{"invalid UTF-8", nil, NotificationOutput{AdditionalContext: "a\xFFb\xC3"},
			`{"hookSpecificOutput":{"hookEventName":"Notification","additionalContext":"a�b�"}}`},
		{"blocked prompt", nil, UserPromptSubmitOutput{Block: "no\xFF", HidePrompt: true},
			`{"decision":"block","reason":"no�","hookSpecificOutput":{"hookEventName":"UserPromptSubmit","suppressOriginalPrompt":true}}`},
		{"halt", nil, StopOutput{Halt: "enough"}, `{"continue":false,"stopReason":"enough"}`},
		{"go on", nil, StopOutput{Block: "test it", AdditionalContext: "c"},
			`{"decision":"block","reason":"test it","hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"c"}}`},
		{"subagent goes on", nil, SubagentStopOutput{Block: "b", AdditionalContext: "c"},
			`{"decision":"block","reason":"b","hookSpecificOutput":{"hookEventName":"SubagentStop","additionalContext":"c"}}`},
		{"instructions", nil, PreCompactOutput{Instructions: "keep names\xFF"}, "keep names�"},
		{"blank instructions", nil, PreCompactOutput{Instructions: " \n"}, ""},
		{"blocked compaction", nil, PreCompactOutput{Block: "not now"}, `{"decision":"block","reason":"not now"}`},
		{"allow", nil, PreToolUseOutput{Permission: Allow{Reason: "r", UpdatedInput: json.RawMessage(`{"n":1e0, "a":"<"}`)}},
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"r","updatedInput":{"n":1e0,"a":"<"}}}`},
		{"invalid UTF-8 in an input", nil, PreToolUseOutput{Permission: Ask{UpdatedInput: json.RawMessage("{\"a\":\"\xFF\"}")}},
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","updatedInput":{"a":"�"}}}`},
		{"deny", nil, PreToolUseOutput{Permission: Deny{Reason: "r"}, AdditionalContext: "c"},
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"r","additionalContext":"c"}}`},
		{"rewrite", nil, PreToolUseOutput{Permission: Rewrite{UpdatedInput: map[string]string{"command": "ls"}}},
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"ls"}}}`},
		{"defer", nil, PreToolUseOutput{Permission: Defer{}}, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"defer"}}`},
		{"skill command", nil, PreSkillShellCommandOutput{Deny: "r"},
			`{"hookSpecificOutput":{"hookEventName":"PreSkillShellCommand","permissionDecision":"deny","permissionDecisionReason":"r"}}`},
		{"tool output", nil, PostToolUseOutput{UpdatedToolOutput: "x", ClassifierContext: "k"},
			`{"hookSpecificOutput":{"hookEventName":"PostToolUse","classifierContext":"k","updatedToolOutput":"x"}}`},
		{"request allowed", nil, PermissionRequestOutput{Decision: AllowRequest{UpdatedInput: map[string]any{"a": 1}, UpdatedPermissions: []PermissionUpdate{{Type: "addRules", Behavior: "allow", Rules: []PermissionRule{{ToolName: "Bash", RuleContent: "ls"}}, Destination: "session"}}}},
			`{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow","updatedInput":{"a":1},"updatedPermissions":[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"ls"}],"behavior":"allow","destination":"session"}]}}}`},
		{"request denied", nil, PermissionRequestOutput{Decision: DenyRequest{Message: "m", Interrupt: true}},
			`{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"m","interrupt":true}}}`},
		{"retry", nil, PermissionDeniedOutput{Retry: true}, `{"hookSpecificOutput":{"hookEventName":"PermissionDenied","retry":true}}`},
		{"shown as nothing", nil, MessageDisplayOutput{DisplayContent: &shown}, `{"hookSpecificOutput":{"hookEventName":"MessageDisplay","displayContent":""}}`},
		{"model kept", nil, PreModelSwitchOutput{Decision: DenySwitch{Reason: "r"}},
			`{"hookSpecificOutput":{"hookEventName":"PreModelSwitch","permissionDecision":"deny","permissionDecisionReason":"r"}}`},
		{"answer a server", nil, ElicitationOutput{Action: Accept{Content: map[string]string{"a": "b"}}},
			`{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"accept","content":{"a":"b"}}}`},
		{"decline", nil, ElicitationResultOutput{Action: Decline{}}, `{"hookSpecificOutput":{"hookEventName":"ElicitationResult","action":"decline"}}`},
		{"settings", eventNamed(t, NameConfigChange, "source", "user_settings"), ConfigChangeOutput{Block: "r"}, `{"decision":"block","reason":"r"}`},
		{"policy", eventNamed(t, NameConfigChange, "source", "policy_settings"), ConfigChangeOutput{Block: "r"}, ""},
		{"watch nothing", nil, CwdChangedOutput{WatchPaths: []string{}}, `{"hookSpecificOutput":{"hookEventName":"CwdChanged","watchPaths":[]}}`},
		{"worktree", nil, WorktreeCreateOutput{Path: path}, path},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := tt.e
			if e == nil {
				e = eventNamed(t, tt.out.outputFor())
			}
			want := tt.want
			if want != "" {
				want += "\n"
			}
			for range 2 { // the same bytes each time
				got, err := Encode(e, tt.out)
				if err != nil {
					t.Fatal(err)
				}
				if string(got) != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			}
		})
	}
}

func updates(u PermissionUpdate) Output {
	return PermissionRequestOutput{Decision: AllowRequest{UpdatedPermissions: []PermissionUpdate{u}}}
}

func TestEncodeRefuses(t *testing.T) {
	tests := []struct {
		name string
		out  Output
		text string
	}{
		{"a relative path", SessionStartOutput{WatchPaths: []string{"a/b"}}, `"a/b" is not absolute`},
		{"an empty path", FileChangedOutput{WatchPaths: []string{""}}, "is not absolute"},
		{"an input that is no object", PreToolUseOutput{Permission: Allow{UpdatedInput: 7}}, "no JSON object"},
		{"null for an input", PreToolUseOutput{Permission: Allow{UpdatedInput: json.RawMessage("null")}}, "no JSON object"},
		{"an input that is no JSON", PreToolUseOutput{Permission: Allow{UpdatedInput: json.RawMessage("{]")}}, "updated input"},
		{"an input that JSON has not", PreToolUseOutput{Permission: Allow{UpdatedInput: math.NaN()}}, "updated input"},
		{"an unknown change of permissions", updates(PermissionUpdate{Type: "x", Destination: "session"}), "is not known"},
		{"a mode for nobody", updates(PermissionUpdate{Type: "setMode", Mode: "plan"}), "destination"},
		{"no mode", updates(PermissionUpdate{Type: "setMode", Destination: "session"}), "needs a mode"},
		{"a mode and rules", updates(PermissionUpdate{Type: "setMode", Mode: "plan", Behavior: "deny", Destination: "session"}), "needs a mode"},
		{"no rules", updates(PermissionUpdate{Type: "addRules", Behavior: "deny", Destination: "session"}), "needs rules"},
		{"rules for nothing", updates(PermissionUpdate{Type: "removeRules", Rules: []PermissionRule{{}}, Destination: "session"}), "needs rules"},
		{"no directories", updates(PermissionUpdate{Type: "addDirectories", Destination: "session"}), "needs directories"},
		{"a request's input", PermissionRequestOutput{Decision: AllowRequest{UpdatedInput: []int{1}}}, "no JSON object"},
		{"content", ElicitationOutput{Action: Accept{Content: "x"}}, "no JSON object"},
		{"a hidden prompt that is not blocked", UserPromptSubmitOutput{HidePrompt: true}, "blocked"},
		{"a hidden command that is not blocked", UserPromptExpansionOutput{HidePrompt: true}, "blocked"},
		{"instructions and a block", PreCompactOutput{Block: "b", Instructions: "i"}, "no instructions"},
		{"JSON for instructions", PreCompactOutput{Instructions: " \uFEFF\n{\"a\":1}"}, "curly bracket"},
		{"no worktree", WorktreeCreateOutput{}, "absolute"},
		{"a worktree in two lines", WorktreeCreateOutput{Path: absolute(t) + "\nx"}, "single line"},
		{"a worktree that is no text", WorktreeCreateOutput{Path: absolute(t) + "\xFF"}, "UTF-8"},
		{"a terminal sequence", StopOutput{TerminalSequence: "\x1b[2J"}, "terminal sequence"},
	}
	for _, tt := range tests {
		got, err := Encode(eventNamed(t, tt.out.outputFor()), tt.out)
		if err == nil || got != nil || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %q, %v; want an error with %q", tt.name, got, err, tt.text)
		}
	}
	for _, name := range []string{NameSessionEnd, NameSubagentStop, "Brewed", ""} {
		if got, err := Encode(eventNamed(t, name), StopOutput{Block: "b"}); err == nil || got != nil {
			t.Errorf("an answer of Stop to %q: %q, %v", name, got, err)
		}
	}
	if _, err := Encode(nil, StopOutput{}); err == nil {
		t.Error("no event: no error")
	}
	if _, err := Encode(eventNamed(t, NameStop), nil); err == nil {
		t.Error("no output: no error")
	}
}

// SS-01, SS-03: what the client would replace by a preview is refused, at the
// very unit at which it begins to (observed on 2.1.332).
func TestLimits(t *testing.T) {
	for _, c := range []string{"a", "é", "漢", "😀", "\xFF"} {
		width := Units(c)
		fits := strings.Repeat(c, MaxText/width)
		for _, tt := range []struct {
			field string
			out   func(string) Output
		}{
			{"additionalContext", func(s string) Output { return SessionStartOutput{AdditionalContext: s} }},
			{"systemMessage", func(s string) Output { return StopOutput{SystemMessage: s} }},
			{"standard output", func(s string) Output { return PreCompactOutput{Instructions: s} }},
		} {
			if got, err := Encode(eventNamed(t, tt.out("").outputFor()), tt.out(fits)); err != nil || !utf8.Valid(got) {
				t.Errorf("%q, %s: %v", c, tt.field, err)
			}
			_, err := Encode(eventNamed(t, tt.out("").outputFor()), tt.out(fits+"a"))
			var long *LengthError
			if !errors.As(err, &long) || *long != (LengthError{tt.field, MaxText + 1, MaxText}) {
				t.Errorf("%q, %s: %v", c, tt.field, err)
			}
		}
	}
	long := PostToolUseOutput{ClassifierContext: strings.Repeat("😀", MaxClassifierContext/2) + "a"}
	if _, err := Encode(eventNamed(t, NamePostToolUse), long); err == nil || err.Error() != "classifierContext has 2001 UTF-16 units, 1 more than the client takes from one hook" {
		t.Errorf("error %v", err)
	}
}

// SS-04: budgets within a character.
func TestCut(t *testing.T) {
	const s = "é漢😀a\xFFb"
	for units, want := range map[int]string{
		-1: "", 0: "", 1: "é", 2: "é漢", 3: "é漢", 4: "é漢😀", 5: "é漢😀a", 6: "é漢😀a\xFF", 7: s, 8: s, math.MaxInt: s,
	} {
		if got := Cut(s, units); got != want {
			t.Errorf("Cut(%d) = %q, want %q", units, got, want)
		}
	}
	if Units(s) != 7 || Units("") != 0 {
		t.Errorf("Units: %d, %d", Units(s), Units(""))
	}
}

func TestCheckTerminalSequence(t *testing.T) {
	for s, ok := range map[string]bool{
		"": true, "\x07": true, "\x1b]9;done\x07": true, "\x1b]0;title\x1b\\\x07": true, "\x1b]777;notify;a;b\x07\x1b]2;x\x07": true,
		"\x1b]99\x07": true, "x": false, "\x1b": false, "\x1b]": false, "\x1b]9;x": false, "\x1b]52;c;x\x07": false, "\x1b[2J": false,
		"\x1b]9;x\x1b": false, "\x1b]9;x\x1b[2J": false, "\x07x": false, "\x1b]09;x\x07": false,
	} {
		if err := CheckTerminalSequence(s); (err == nil) != ok {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// FuzzEncode states that whatever the texts of an output are, it is refused or
// gives one line of valid JSON in valid UTF-8, within the client's limits (IO-03).
func FuzzEncode(f *testing.F) {
	for i, seed := range []string{"", "a", "\xFF\xC3", "\u2028<&>", "😀", "\x00\x1b]9;x\x07", `{"a":1}`, strings.Repeat("é", MaxText+1)} {
		f.Add(uint8(i), seed, seed)
	}
	f.Fuzz(func(t *testing.T, kind uint8, a, b string) {
		outs := []Output{
			SessionStartOutput{AdditionalContext: a, SessionTitle: b, InitialUserMessage: a, SystemMessage: b},
			StopOutput{Block: a, Halt: b, AdditionalContext: a, TerminalSequence: b},
			UserPromptSubmitOutput{Block: a, SessionTitle: b, HidePrompt: true},
			PreToolUseOutput{Permission: Allow{Reason: a, UpdatedInput: json.RawMessage(b)}},
			PreToolUseOutput{Permission: Deny{Reason: a}, AdditionalContext: b},
			PostToolUseOutput{UpdatedToolOutput: a, ClassifierContext: b},
			PermissionRequestOutput{Decision: DenyRequest{Message: a}},
			MessageDisplayOutput{DisplayContent: &a},
			ElicitationOutput{Action: Accept{Content: map[string]string{a: b}}},
			FileChangedOutput{WatchPaths: []string{a, b}},
			PreCompactOutput{Instructions: a},
			WorktreeCreateOutput{Path: a},
		}
		out := outs[int(kind)%len(outs)]
		e := eventNamed(t, out.outputFor())
		got, err := Encode(e, out)
		if err != nil {
			if got != nil {
				t.Fatalf("both output and error %v", err)
			}
			return
		}
		again, err := Encode(e, out)
		if err != nil || !bytes.Equal(got, again) {
			t.Fatalf("%q, then %q, %v", got, again, err)
		}
		if len(got) == 0 {
			return
		}
		if !utf8.Valid(got) || got[len(got)-1] != '\n' {
			t.Fatalf("%q", got)
		}
		switch out.(type) {
		case PreCompactOutput, WorktreeCreateOutput:
			if n := len(utf16.Encode([]rune(string(got[:len(got)-1])))); n > MaxText {
				t.Fatalf("%d units", n)
			}
			return
		}
		if !json.Valid(got) || got[0] != '{' || bytes.IndexByte(got, '\n') != len(got)-1 {
			t.Fatalf("%q", got)
		}
		var o struct {
			SystemMessage string
			Specific      *struct{ HookEventName, AdditionalContext string } `json:"hookSpecificOutput"`
		}
		if err := json.Unmarshal(got, &o); err != nil {
			t.Fatal(err)
		}
		if o.Specific != nil && (o.Specific.HookEventName != e.Base().Name || len(utf16.Encode([]rune(o.Specific.AdditionalContext))) > MaxText) {
			t.Fatalf("%q", got)
		}
	})
}

// counter counts writes.
type counter struct {
	bytes.Buffer
	writes int
}

func (c *counter) Write(p []byte) (int, error) {
	c.writes++
	return c.Buffer.Write(p)
}

func TestHandlers(t *testing.T) {
	start := `{"hook_event_name":"SessionStart","source":"startup"}`
	said := errors.New("it went wrong")
	handle := func(out SessionStartOutput, err error) Handlers {
		return Handlers{SessionStart: func(context.Context, *Call, *SessionStart) (SessionStartOutput, error) { return out, err }}
	}
	tests := []struct {
		name, stdin    string
		hook           Hook
		code           int
		stdout, stderr string
	}{
		{"answer", start, Hook{On: handle(SessionStartOutput{AdditionalContext: "c"}, nil)}, 0, `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"c"}}` + "\n", ""},
		{"nothing to say", start, Hook{On: handle(SessionStartOutput{}, nil)}, 0, "", ""},
		{"failure", start, Hook{On: handle(SessionStartOutput{AdditionalContext: "c"}, said)}, 1, "", "h: error: it went wrong\n"},
		{"bad answer", start, Hook{On: handle(SessionStartOutput{AdditionalContext: strings.Repeat("c", MaxText+1)}, nil)}, 1, "", "h: error: answer: additionalContext has 10001"},
		{"other event", sampleStop, Hook{On: handle(SessionStartOutput{AdditionalContext: "c"}, nil)}, 0, "", ""},
		{"other event, handled", sampleStop, Hook{On: handle(SessionStartOutput{}, nil), Handle: func(_ context.Context, c *Call) error {
			return c.Answer(StopOutput{Block: "b"})
		}}, 0, `{"decision":"block","reason":"b"}` + "\n", ""},
		{"wrong answer", sampleEnd, Hook{Handle: func(_ context.Context, c *Call) error { return c.Answer(StopOutput{Block: "b"}) }}, 1, "", `an output for Stop cannot answer "SessionEnd"`},
		{"no answer wanted", sampleEnd, Hook{On: Handlers{SessionEnd: func(context.Context, *Call, *SessionEnd) error { return nil }}}, 0, "", ""},
		{"stdout is kept", start, Hook{On: Handlers{SessionStart: func(_ context.Context, c *Call, _ *SessionStart) (o SessionStartOutput, err error) {
			_, err = io.WriteString(c.Stdout, "hello")
			return o, err
		}}}, 1, "", "kept for the answer"},
		{"panic", start, Hook{On: Handlers{SessionStart: func(context.Context, *Call, *SessionStart) (SessionStartOutput, error) { panic("boom") }}}, 1, "", "internal error: boom"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stdout counter
			var stderr bytes.Buffer
			tt.hook.Name = "h"
			code := Run(tt.hook, nil, strings.NewReader(tt.stdin), &stdout, &stderr)
			if code != tt.code || stdout.String() != tt.stdout || (tt.stderr == "") != (stderr.Len() == 0) || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout.String(), stderr.String())
			}
			if stdout.writes > 1 {
				t.Errorf("%d writes", stdout.writes)
			}
		})
	}
}

// Every event reaches the handler of its name, and no other.
func TestHandlersOfAllEvents(t *testing.T) {
	for _, name := range Names() {
		called := ""
		var h Handlers
		v := reflect.ValueOf(&h).Elem()
		for i := range v.NumField() {
			field := v.Type().Field(i)
			v.Field(i).Set(reflect.MakeFunc(field.Type, func(args []reflect.Value) []reflect.Value {
				called += field.Name
				results := []reflect.Value{reflect.Zero(reflect.TypeFor[error]())}
				if field.Type.NumOut() == 2 {
					results = append([]reflect.Value{reflect.Zero(field.Type.Out(0))}, results...)
				}
				return results
			}))
		}
		c := &Call{Event: eventNamed(t, name)}
		out, found, err := h.run(context.Background(), c)
		if called != name || !found || err != nil || out != nil && out.outputFor() != name {
			t.Errorf("%s: called %q, %v, %v, %v", name, called, out, found, err)
		}
	}
}

// The reader of standard output has gone: a failure, not the end.
func TestAnswerToNobody(t *testing.T) {
	r, w := io.Pipe()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	hook := Hook{Name: "h", On: Handlers{Stop: func(context.Context, *Call, *Stop) (StopOutput, error) { return StopOutput{Block: "b"}, nil }}}
	if code := Run(hook, nil, strings.NewReader(sampleStop), w, &stderr); code != 1 || !strings.Contains(stderr.String(), "answer: io: read/write on closed pipe") {
		t.Errorf("exit code %d, stderr %q", code, stderr.String())
	}
}
