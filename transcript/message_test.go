package transcript

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func parse(t testing.TB, line string) *Record {
	t.Helper()
	f, err := ParseFields([]byte(line))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return &Record{Fields: f, Raw: []byte(line)}
}

func TestReadMessage(t *testing.T) {
	r := parse(t, `{"type":"assistant","message":{"Role":"x","role":"assistant","id":"msg_1","model":"claude-x","stop_reason":"tool_use",
		"content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a\u00e9\n"},{"type":"text","text":"b"},
		{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls","Command":"no"}}],
		"usage":{"input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":3,"cache_read_input_tokens":4}}}`)
	m := r.ReadMessage()
	if m.Role != "assistant" || m.ID != "msg_1" || m.Model != "claude-x" || m.StopReason != "tool_use" || m.Plain || !m.HasUsage ||
		m.Usage != (Usage{1, 2, 3, 4}) || len(m.Content) != 4 {
		t.Fatalf("%+v", m)
	}
	if m.Content[0].Type != "thinking" || m.Content[0].Text != "hm" || m.Text() != "aé\n\n\nb" {
		t.Errorf("%+v, text %q", m.Content[0], m.Text())
	}
	if call := m.Content[3]; call.ID != "t1" || call.Name != "Bash" || call.Input.Member("command").String() != "ls" || !call.Raw.Present() {
		t.Errorf("%+v", call)
	}
}

// OS-03: content of every shape.
func TestReadMessageShapes(t *testing.T) {
	for in, want := range map[string]string{
		`"text"`:  `true text:text`,
		`""`:      `true text:`,
		`[]`:      `false`,
		`null`:    `false`,
		`5`:       `false`,
		`{"a":1}`: `false`,
		`["x",7]`: `false :x :`,
		`[{}]`:    `false :`,
		`[{"type":"tool_result","tool_use_id":"t","content":"out"}]`: `false tool_result:<t text:out>`,
		`[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":[{"type":"text","text":"a"},{"type":"image","source":{"media_type":"image/png"}}]}]`: `false tool_result:<t error text:a image:(image/png)>`,
		`[{"type":"tool_result","tool_use_id":"t"}]`: `false tool_result:<t>`,
		`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"xx"}},{"type":"document","source":{}}]`: `false image:(image/png) document:`,
		`[{"type":"new_kind","text":"x","content":"y"}]`:                                                                     `false new_kind:x`,
	} {
		m := parse(t, `{"type":"user","message":{"content":`+in+`}}`).ReadMessage()
		got := fmt.Sprint(m.Plain) + describe(m.Content)
		if got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	for _, line := range []string{`{}`, `{"message":null}`, `{"message":"x"}`, `{"message":[]}`, `{"message":{}}`} {
		if m := parse(t, line).ReadMessage(); m.Content != nil || m.HasUsage || m.Role != "" {
			t.Errorf("%s: %+v", line, m)
		}
	}
}

func describe(blocks []Block) string {
	var b strings.Builder
	for _, x := range blocks {
		fmt.Fprintf(&b, " %s:%s", x.Type, x.Text)
		if x.MediaType != "" {
			fmt.Fprintf(&b, "(%s)", x.MediaType)
		}
		if x.ToolUseID != "" {
			e := ""
			if x.IsError {
				e = " error"
			}
			fmt.Fprintf(&b, "<%s%s%s>", x.ToolUseID, e, describe(x.Content))
		}
	}
	return b.String()
}

func TestView(t *testing.T) {
	for in, want := range map[string]View{
		says("u", "hello"):                                                          ViewPrompt,
		says("u", "<div>"):                                                          ViewPrompt,
		says("u", ""):                                                               ViewOther,
		says("u", "\n <command-name>/x"):                                            ViewCommand,
		says("u", "<bash-input>ls"):                                                 ViewCommand,
		says("u", "<bash-stdout>a"):                                                 ViewCommandOutput,
		says("u", "[Request interrupted by user]"):                                  ViewInterruption,
		says("u", "<task-notification>x"):                                           ViewMeta,
		user("u", `[{"type":"text","text":"<system-reminder>x"}]`):                  ViewMeta,
		user("u", `[{"type":"image"}]`):                                             ViewPrompt,
		user("u", `[{"type":"text","text":"x"},{"type":"tool_result"}]`):            ViewToolResult,
		`{"type":"assistant"}`:                                                      ViewAnswer,
		`{"type":"system","subtype":"compact_boundary"}`:                            ViewBoundary,
		`{"type":"system","subtype":"api_error"}`:                                   ViewSystem,
		`{"type":"queue-operation","operation":"enqueue","content":"x"}`:            ViewQueued,
		`{"type":"queue-operation","operation":"enqueue","content":""}`:             ViewOther,
		`{"type":"queue-operation","operation":"dequeue"}`:                          ViewOther,
		`{"type":"attachment","attachment":{"type":"queued_command","prompt":"x"}}`: ViewQueued,
		`{"type":"attachment","attachment":{"type":"date"}}`:                        ViewOther,
		`{"type":"attachment"}`:                                                     ViewOther,
		`{"type":"progress","message":{"content":"x"}}`:                             ViewOther,
		`{}`: ViewOther,
	} {
		r := parse(t, in)
		if got := r.View(); got != want {
			t.Errorf("%s: %v, want %v", in, got, want)
		}
		if p := r.Prompt(); (p != "") != (want == ViewPrompt && !strings.Contains(in, "image") || want == ViewQueued) {
			t.Errorf("%s: prompt %q", in, p)
		}
	}
	for v := ViewOther; v <= ViewSystem; v++ {
		if strings.HasPrefix(v.String(), "view ") {
			t.Errorf("view %d has no name", v)
		}
	}
	if View(99).String() != "view 99" {
		t.Error(View(99).String())
	}
}

// Every record of every vector has a view and a message that can be read.
func TestVectorsHaveViews(t *testing.T) {
	paths, err := filepath.Glob("../testdata/vectors/resume/*.jsonl")
	if err != nil || len(paths) < 50 {
		t.Fatal(paths, err)
	}
	prompts := 0
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		r := NewReader(f)
		for r.Next() {
			if r.Record().View() == ViewPrompt {
				prompts++
				if m := r.Record().ReadMessage(); len(m.Content) == 0 {
					t.Errorf("%s: a prompt without content on line %d", path, r.Record().Line)
				}
			}
		}
		if r.Err() != nil {
			t.Error(r.Err())
		}
		f.Close()
	}
	if prompts < 80 {
		t.Errorf("%d prompts", prompts)
	}
}

func TestNames(t *testing.T) {
	for _, k := range Kinds() {
		if strings.HasPrefix(k.String(), "kind ") {
			t.Errorf("kind %d has no name", k)
		}
	}
	if len(Kinds()) != int(TooLong) || Kind(99).String() != "kind 99" || Format(99).String() != "format 99" || End(99).String() != "end 99" || How(99).String() != "how 99" {
		t.Error("names of unknown values")
	}
	for f := FormatLines; f <= FormatUTF16; f++ {
		if strings.HasPrefix(f.String(), "format ") {
			t.Errorf("format %d has no name", f)
		}
	}
	for e := EndUnknown; e <= EndTorn; e++ {
		if strings.HasPrefix(e.String(), "end ") {
			t.Errorf("end %d has no name", e)
		}
	}
}
