package hooklib

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const sampleID = "b2055b9e-4f0b-4d39-9a55-1f2a3b4c5d6e"

// Payloads as client 2.1.332 sends them, with other paths.
const (
	sampleEnd  = `{"session_id":"` + sampleID + `","transcript_path":"/h/.claude/projects/-p/` + sampleID + `.jsonl","cwd":"/p","prompt_id":"bc07be00-1111-4222-8333-444455556666","hook_event_name":"SessionEnd","reason":"clear"}`
	sampleStop = `{"session_id":"` + sampleID + `","transcript_path":"/h/t.jsonl","cwd":"/p","prompt_id":"x","permission_mode":"default","effort":{"level":"medium"},"hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"mock reply 5","background_tasks":[],"session_crons":[]}`
)

func TestParseEvent(t *testing.T) {
	tests := []struct {
		name, in string
		want     Event
	}{
		{"session end", sampleEnd, &SessionEnd{
			Common: Common{
				SessionID: sampleID, TranscriptPath: "/h/.claude/projects/-p/" + sampleID + ".jsonl",
				Cwd: "/p", Name: "SessionEnd", PromptID: "bc07be00-1111-4222-8333-444455556666",
			},
			Reason: "clear",
		}},
		{"stop", sampleStop, &Stop{
			Common: Common{
				SessionID: sampleID, TranscriptPath: "/h/t.jsonl", Cwd: "/p", Name: "Stop",
				PromptID: "x", PermissionMode: "default", Effort: "medium",
			},
			LastAssistantMessage: "mock reply 5",
			BackgroundTasks:      json.RawMessage("[]"),
			SessionCrons:         json.RawMessage("[]"),
		}},
		{"stop failure", `{"hook_event_name":"StopFailure","error":"server_error","error_details":"d","last_assistant_message":"API Error"}`, &StopFailure{
			Common: Common{Name: "StopFailure"}, Failure: "server_error", Details: "d", LastAssistantMessage: "API Error",
		}},
		{"subagent stop", `{"hook_event_name":"SubagentStop","agent_id":"a1","agent_type":"","agent_transcript_path":"/x","stop_hook_active":true}`, &SubagentStop{
			Common: Common{Name: "SubagentStop", AgentID: "a1"}, AgentTranscriptPath: "/x", StopHookActive: true,
		}},
		{"an event of tomorrow", `{"hook_event_name":"PostEverything","session_id":"s","n":1}`, &Unknown{
			Common: Common{Name: "PostEverything", SessionID: "s", Extra: map[string]json.RawMessage{"n": json.RawMessage("1")}},
		}},
		{"of another program", `{"foo":"bar"}`, &Unknown{
			Common: Common{Extra: map[string]json.RawMessage{"foo": json.RawMessage(`"bar"`)}},
		}},
		{"empty", `{}`, &Unknown{}},
		// SE-02: the reason may be absent.
		{"no reason", `{"hook_event_name":"SessionEnd"}`, &SessionEnd{Common: Common{Name: "SessionEnd"}}},
		{"null is absent", `{"hook_event_name":"SessionEnd","reason":null,"transcript_path":null}`, &SessionEnd{Common: Common{Name: "SessionEnd"}}},
		{"other types stay as they came", `{"hook_event_name":"Stop","session_id":7,"cwd":["a"],"stop_hook_active":"yes","effort":"high"}`, &Stop{
			Common: Common{Name: "Stop", Extra: map[string]json.RawMessage{
				"session_id": json.RawMessage("7"), "cwd": json.RawMessage(`["a"]`),
				"stop_hook_active": json.RawMessage(`"yes"`), "effort": json.RawMessage(`"high"`),
			}},
		}},
		{"more in effort", `{"effort":{"level":"low","budget":3}}`, &Unknown{Common: Common{
			Effort: "low", Extra: map[string]json.RawMessage{"effort": json.RawMessage(`{"level":"low","budget":3}`)},
		}}},
		// JF-01: names match exactly, the last of equal ones counts.
		{"case", `{"session_id":"a","Session_Id":"b"}`, &Unknown{Common: Common{
			SessionID: "a", Extra: map[string]json.RawMessage{"Session_Id": json.RawMessage(`"b"`)},
		}}},
		{"duplicates", `{"session_id":"a","session_id":"b"}`, &Unknown{Common: Common{SessionID: "b"}}},
		// UN-08: half a surrogate pair in the payload.
		{"lone surrogate", `{"hook_event_name":"Stop","last_assistant_message":"x\udc88","cwd":"\ud83d"}`, &Stop{
			Common: Common{Name: "Stop", Cwd: "\uFFFD"}, LastAssistantMessage: "x\uFFFD",
		}},
		// IO-04: a byte that is not UTF-8.
		{"invalid UTF-8", "{\"cwd\":\"/a\xFFb\"}", &Unknown{Common: Common{Cwd: "/a\uFFFDb"}}},
		{"NUL", `{"session_id":"a\u0000b"}`, &Unknown{Common: Common{SessionID: "a\x00b"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseEvent([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Base().Raw = json.RawMessage(tt.in)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("ParseEvent (-want +got):\n%s", diff)
			}
			if got.Base() == nil {
				t.Error("Base is nil")
			}
		})
	}
}

func TestReadEvent(t *testing.T) {
	nested := func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	tests := []struct {
		name, in string
		want     error  // nil: an event
		text     string // in the error, if there is no sentinel
	}{
		{name: "plain", in: sampleEnd},
		{name: "white space around", in: " \t\r\n" + sampleEnd + "\n"},
		{name: "byte order mark", in: "\xEF\xBB\xBF" + sampleEnd}, // IO-02
		{name: "what follows is not looked at", in: sampleEnd + "garbage{{"},
		{name: "two objects", in: sampleEnd + sampleStop},
		{name: "brackets and quotes in strings", in: `{"a":"}\"]\\","b":"{"}`},
		{name: "as deep as may be", in: nested(maxEventDepth - 1)},
		{name: "one deeper", in: nested(maxEventDepth), want: ErrTooDeep},
		{name: "endlessly deep", in: strings.Repeat(`{"a":`, 100_000), want: ErrTooDeep},
		{name: "nothing", in: "", want: ErrNoEvent},
		{name: "only white space", in: " \n\n", want: ErrNoEvent},
		{name: "only a byte order mark", in: "\xEF\xBB\xBF", want: ErrNoEvent},
		{name: "half a byte order mark", in: "\xEF\xBB", want: ErrNoEvent},
		{name: "cut off", in: sampleEnd[:len(sampleEnd)-1], want: ErrTruncated},
		{name: "cut off in a string", in: `{"a":"b`, want: ErrTruncated},
		{name: "cut off in an escape", in: `{"a":"b\`, want: ErrTruncated},
		{name: "array", in: `[1]`, want: ErrNotObject},
		{name: "string", in: `"x"`, want: ErrNotObject},
		{name: "number", in: `12`, want: ErrNotObject},
		{name: "null", in: `null`, want: ErrNotObject},
		{name: "text", in: "hello", want: ErrNotObject},
		{name: "UTF-16 LE with mark", in: "\xFF\xFE{\x00}\x00", want: ErrUTF16}, // IO-02
		{name: "UTF-16 BE with mark", in: "\xFE\xFF\x00{\x00}", want: ErrUTF16},
		{name: "UTF-16 LE", in: "{\x00}\x00", want: ErrUTF16},
		{name: "UTF-16 BE", in: "\x00{\x00}", want: ErrUTF16},
		{name: "bad JSON", in: `{"a":}`, text: "not valid JSON at byte 6"},
		{name: "brackets do not match", in: `{"a":[}}`, text: "not valid JSON"},
		{name: "raw control character", in: "{\"a\":\"x\ny\"}", text: "not valid JSON"},
		{name: "NUL bytes", in: "{\"a\":1\x00}", text: "not valid JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{
				"whole":       strings.NewReader(tt.in),
				"in bytes":    iotest.OneByteReader(strings.NewReader(tt.in)),
				"with end":    iotest.DataErrReader(strings.NewReader(tt.in)),
				"in a buffer": bytes.NewBufferString(tt.in),
			} {
				event, err := ReadEvent(r, time.Time{})
				switch {
				case tt.want == nil && tt.text == "":
					if err != nil || event == nil {
						t.Errorf("%s: %v, %v", how, event, err)
					}
				case tt.text != "":
					if err == nil || !strings.Contains(err.Error(), tt.text) {
						t.Errorf("%s: error %v, want one with %q", how, err, tt.text)
					}
				case !errors.Is(err, tt.want):
					t.Errorf("%s: error %v, want %v", how, err, tt.want)
				}
			}
		})
	}
}

// endless gives the same bytes for ever.
type endless struct {
	chunk string
	given int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.chunk)
	e.given += int64(n)
	return n, nil
}

func TestReadEventIsBounded(t *testing.T) {
	big := &endless{chunk: strings.Repeat("a", 64<<10)}
	_, err := ReadEvent(io.MultiReader(strings.NewReader(`{"a":"`), big), time.Time{})
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v, want %v", err, ErrTooLarge)
	}
	if big.given > 3*maxEventBytes {
		t.Errorf("read %d bytes of endless input", big.given)
	}

	space := &endless{chunk: strings.Repeat(" ", 64<<10)}
	if _, err := ReadEvent(space, time.Time{}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("endless white space: error %v, want %v", err, ErrTooLarge)
	}
}

func TestReadEventReaders(t *testing.T) {
	broken := errors.New("broken")
	if _, err := ReadEvent(iotest.ErrReader(broken), time.Time{}); !errors.Is(err, broken) {
		t.Errorf("error %v, want the reader's", err)
	}
	if _, err := ReadEvent(nil, time.Time{}); !errors.Is(err, ErrNoEvent) {
		t.Errorf("nil reader: error %v, want %v", err, ErrNoEvent)
	}
	if _, err := ReadEvent(iotest.TimeoutReader(strings.NewReader(sampleEnd)), time.Time{}); err != nil {
		t.Errorf("error after the value: %v", err)
	}
	if _, err := ReadEvent(stuck{}, time.Time{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("reader that does nothing: error %v, want %v", err, io.ErrNoProgress)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// FuzzReadEvent states that no input panics, that it does not matter in which
// pieces it comes, and that nothing of an event is lost: what has no place in
// the type is in Extra.
func FuzzReadEvent(f *testing.F) {
	for _, seed := range []string{sampleEnd, sampleStop, "\xEF\xBB\xBF{}", `{"a":{"b":[1,"}"]}}x`, `{"effort":{"level":1}}`, `{"cwd":"\ud800"}`, "{", "\x00{", ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		raw, err := readObject(bytes.NewReader(in), time.Time{})
		raw2, err2 := readObject(iotest.OneByteReader(bytes.NewReader(in)), time.Time{})
		if !errors.Is(err2, err) || !bytes.Equal(raw, raw2) {
			t.Fatalf("whole: %q, %v; in bytes: %q, %v", raw, err, raw2, err2)
		}
		if err != nil {
			return
		}
		if !bytes.Contains(in, raw) {
			t.Fatalf("%q is not in the input", raw)
		}
		event, err := ParseEvent(raw)
		valid := json.Valid(raw)
		if valid != (err == nil) {
			t.Fatalf("valid JSON: %v, error: %v", valid, err)
		}
		if err != nil {
			if len(err.Error()) > 200 {
				t.Fatalf("error of %d bytes", len(err.Error()))
			}
			return
		}
		c := event.Base()
		for _, s := range []string{c.SessionID, c.TranscriptPath, c.Cwd, c.Name, c.PromptID, c.AgentID, c.AgentType, c.Effort} {
			if !utf8.ValidString(s) {
				t.Fatalf("%q is not valid UTF-8", s)
			}
		}
		if !bytes.Equal(c.Raw, raw) {
			t.Fatalf("%q came and %q is kept", raw, c.Raw)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatal(err)
		}
		for name, value := range fields {
			if got := c.Field(name); !bytes.Equal(got, value) {
				t.Fatalf("field %q came as %s and is %s", name, value, got)
			}
			if extra, ok := c.Extra[name]; ok && !bytes.Equal(extra, value) {
				t.Fatalf("field %q came as %s and is %s in Extra", name, value, extra)
			} else if !ok && name != "effort" && !hasPlace(reflect.TypeOf(event).Elem(), name) {
				t.Fatalf("field %q is lost", name)
			}
		}
		for name := range c.Extra {
			if _, ok := fields[name]; !ok {
				t.Fatalf("field %q came from nowhere", name)
			}
		}
	})
}

// hasPlace tells whether an event's type has a place for a field.
func hasPlace(event reflect.Type, name string) bool {
	for _, f := range reflect.VisibleFields(event) {
		if f.Tag.Get("json") == name {
			return true
		}
	}
	return false
}

// Recorded payloads: not a byte is lost, each field has its place, and what is
// in it is what came.
func TestParseRecordedEvents(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "testdata", "events", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, name := range Names() {
		missing[name] = true
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		event, err := ReadEvent(bytes.NewReader(raw), time.Time{})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		c := event.Base()
		delete(missing, c.Name)
		if c.SessionID == "" || c.TranscriptPath == "" || c.Cwd == "" {
			t.Errorf("%s: %+v", file, c)
		}
		if string(c.Raw)+"\n" != string(raw) {
			t.Errorf("%s: kept as %s", file, c.Raw)
		}
		for name, value := range c.Extra {
			if string(value) != "null" {
				t.Errorf("%s: no place for %s, %s", file, name, value)
			}
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatal(err)
		}
		v := reflect.ValueOf(event).Elem()
		for _, f := range reflect.VisibleFields(v.Type()) {
			name := f.Tag.Get("json")
			came, ok := fields[name]
			if !ok {
				if got := v.FieldByIndex(f.Index); name != "" && name != "-" && !got.IsZero() || c.Has(name) {
					t.Errorf("%s: %s did not come and is %v", file, name, got)
				}
				continue
			}
			got, err := encoded(name, v.FieldByIndex(f.Index).Interface())
			if err != nil || string(got) != string(came) && string(came) != "null" {
				t.Errorf("%s: %s came as %s and is %s, %v", file, name, came, got, err)
			}
			if !c.Has(name) || string(c.Field(name)) != string(came) {
				t.Errorf("%s: %s came as %s and is found as %s", file, name, came, c.Field(name))
			}
		}
	}
	for name := range missing {
		t.Errorf("no payload of %s", name)
	}
}

func TestFieldsByName(t *testing.T) {
	for in, want := range map[string]string{
		`{"custom_instructions":null}`:                      "null",
		`{"custom_instructions":""}`:                        `""`,
		`{"custom_instructions":"a","x":1}`:                 `"a"`,
		`{"custom_instructions":7}`:                         "7",
		`{"custom_instructions":"a"}`:                       `"a"`,
		`{"custom_instructions":1,"a":"\u0041"}`:            "1",
		`{"x":"custom_instructions"}`:                       "",
		`{"a":{"custom_instructions":1}}`:                   "",
		`{"Custom_Instructions":1}`:                         "",
		`{"custom_instructions":1,"custom_instructions":2}`: "2",
		`{}`: "",
	} {
		in = strings.Replace(in, "{", `{"hook_event_name":"PreCompact",`, 1)
		in = strings.Replace(in, ",}", "}", 1)
		event, err := ParseEvent([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		c := event.Base()
		if got := string(c.Field("custom_instructions")); got != want || c.Has("custom_instructions") != (want != "") {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		compact := event.(*PreCompact)
		if isText := strings.HasPrefix(want, `"`); (compact.CustomInstructions != nil) != isText {
			t.Errorf("%s: %v", in, compact.CustomInstructions)
		}
	}
	var none Common
	if none.Has("session_id") || none.InSubagent() || !(&Common{AgentID: "a"}).InSubagent() {
		t.Error("an event that was not read has fields")
	}
}

// Each field of each event may come with any type: the event is never lost,
// nor what came.
func TestFieldsOfOtherTypes(t *testing.T) {
	for _, name := range Names() {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(newEvent(name)).Elem()) {
			tag := f.Tag.Get("json")
			if tag == "" || tag == "-" || tag == "hook_event_name" {
				continue
			}
			for _, value := range []string{`"x"`, "7", "7.5", "1e999", "true", "null", "[]", "[7]", `{}`, `{"a":[1]}`, `{"name":"n","source":"s","more":1}`} {
				raw := `{"hook_event_name":"` + name + `","` + tag + `":` + value + `}`
				event, err := ParseEvent([]byte(raw))
				if err != nil {
					t.Errorf("%s: %v", raw, err)
					continue
				}
				c := event.Base()
				if c.Name != name || string(c.Raw) != raw || string(c.Field(tag)) != value {
					t.Errorf("%s: %+v", raw, c)
				}
				kept, extra := c.Extra[tag]
				got := reflect.ValueOf(event).Elem().FieldByIndex(f.Index)
				if extra && string(kept) != value || !extra && value != "null" && got.IsZero() && value != "[]" && value != "{}" {
					t.Errorf("%s: %v in its place, %s in Extra", raw, got, kept)
				}
			}
		}
	}
}

func TestLists(t *testing.T) {
	parse := func(raw string) Event {
		event, err := ParseEvent([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		return event
	}
	stop := parse(`{"hook_event_name":"Stop","background_tasks":[{"id":"a","type":"shell","new":1}],"session_crons":null}`).(*Stop)
	if tasks, err := stop.Tasks(); err != nil || len(tasks) != 1 || tasks[0] != (BackgroundTask{ID: "a", Type: "shell"}) {
		t.Errorf("%v, %v", tasks, err)
	}
	if crons, err := stop.Crons(); err != nil || len(crons) != 0 {
		t.Errorf("%v, %v", crons, err)
	}
	sub := parse(`{"hook_event_name":"SubagentStop","session_crons":[{"id":"c","recurring":true}],"background_tasks":"x"}`).(*SubagentStop)
	if crons, err := sub.Crons(); err != nil || len(crons) != 1 || crons[0] != (SessionCron{ID: "c", Recurring: true}) {
		t.Errorf("%v, %v", crons, err)
	}
	if _, err := sub.Tasks(); err == nil {
		t.Error("a text is a list of tasks")
	}
	request := parse(`{"hook_event_name":"PermissionRequest","permission_suggestions":[{"type":"addDirectories","directories":["/p"],"destination":"session"},{"type":"setMode","mode":"acceptEdits","destination":"session"}]}`).(*PermissionRequest)
	if updates, err := request.Suggestions(); err != nil || len(updates) != 2 || updates[1].Mode != "acceptEdits" {
		t.Errorf("%v, %v", updates, err)
	} else if got, err := Encode(request, PermissionRequestOutput{Decision: AllowRequest{UpdatedPermissions: updates}}); err != nil || !bytes.Contains(got, request.PermissionSuggestions) {
		t.Errorf("given back as %s, %v", got, err)
	}
	batch := parse(`{"hook_event_name":"PostToolBatch","tool_calls":[{"tool_name":"Bash","tool_input":{"a":1}}]}`).(*PostToolBatch)
	if calls, err := batch.Calls(); err != nil || len(calls) != 1 || string(calls[0].ToolInput) != `{"a":1}` {
		t.Errorf("%v, %v", calls, err)
	}
}
