package digest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A script writes a transcript as the client does.
type script struct {
	t      testing.TB
	lines  []string
	n      int
	parent string
	side   bool
}

func newScript(t testing.TB) *script { return &script{t: t} }

func encode(t testing.TB, v any) string {
	t.Helper()
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

type object map[string]any

// add appends a record to the chain and returns its uuid.
func (s *script) add(kind string, more object) string {
	s.t.Helper()
	s.n++
	r := object{
		"type": kind, "uuid": fmt.Sprintf("%08d-0000-4000-8000-000000000000", s.n), "parentUuid": nil, "isSidechain": s.side,
		"timestamp": time.Date(2026, 11, 30, 9, 0, s.n, 0, time.UTC).Format(time.RFC3339Nano),
		"cwd":       "/home/dev/app", "gitBranch": "main", "entrypoint": "cli", "version": "2.1.332",
	}
	if s.parent != "" {
		r["parentUuid"] = s.parent
	}
	for k, v := range more {
		r[k] = v
	}
	s.lines = append(s.lines, encode(s.t, r))
	s.parent = r["uuid"].(string)
	return s.parent
}

func (s *script) raw(line string) { s.lines = append(s.lines, line) }

func (s *script) user(content any) string {
	return s.add("user", object{"message": object{"role": "user", "content": content}})
}

func (s *script) meta(content any) string {
	return s.add("user", object{"isMeta": true, "message": object{"role": "user", "content": content}})
}

func (s *script) answer(blocks ...any) string {
	return s.add("assistant", object{"message": object{"role": "assistant", "id": fmt.Sprintf("msg_%d", s.n), "model": "m", "content": blocks}})
}

func (s *script) say(text string) string { return s.answer(object{"type": "text", "text": text}) }

// call has the assistant use a tool and returns the call's id.
func (s *script) call(name string, input object) string {
	id := fmt.Sprintf("toolu_%d", s.n)
	s.answer(object{"type": "tool_use", "id": id, "name": name, "input": input})
	return id
}

func (s *script) result(id, text string, failed bool, details any) {
	s.add("user", object{
		"message":       object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed}}},
		"toolUseResult": details,
	})
}

// tool is a call with its result.
func (s *script) tool(name string, input object, failed bool) {
	s.result(s.call(name, input), "CANARY-RESULT", failed, object{"stdout": "CANARY-STDOUT"})
}

func (s *script) text() string { return strings.Join(s.lines, "\n") + "\n" }

func (s *script) input() Input { return input(s.text()) }

func compaction(t testing.TB, in Input) string {
	t.Helper()
	text, notes, err := Compaction(context.Background(), in, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if notes.Units != units(text) || notes.Units > CompactionLimit {
		t.Errorf("notes say %d units, the text has %d", notes.Units, units(text))
	}
	unfenced(t, text)
	return text
}

func lastSession(t testing.TB, in Input) (string, Notes) {
	t.Helper()
	text, notes, err := LastSession(context.Background(), in, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if notes.Units != units(text) || notes.Units > LastSessionLimit {
		t.Errorf("notes say %d units, the text has %d", notes.Units, units(text))
	}
	unfenced(t, text)
	return text, notes
}

// unfenced gives the lines outside of fences, as a reader of Markdown sees them,
// and fails if a fence is left open or is opened other than by us.
func unfenced(t testing.TB, text string) string {
	t.Helper()
	var out []string
	open := ""
	for _, line := range strings.Split(text, "\n") {
		bare := strings.TrimSpace(line)
		ticks := bare[:len(bare)-len(strings.TrimLeft(bare, "`"))]
		switch {
		case open != "":
			if bare == ticks && len(ticks) >= len(open) {
				if bare != open || line != bare {
					t.Errorf("a fence %q is closed by %q", open, line)
				}
				open = ""
			}
		case len(ticks) >= 3:
			if line != ticks+"text" {
				t.Errorf("a fence is opened by %q", line)
			}
			open = ticks
		default:
			out = append(out, line)
		}
	}
	if open != "" {
		t.Errorf("a fence stays open in:\n%s", text)
	}
	return strings.Join(out, "\n")
}

// section gives what stands below the heading that begins so, up to the next one.
func part(text, heading string) string {
	_, rest, ok := strings.Cut(text, "\n## "+heading)
	if !ok {
		return ""
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

func contains(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			t.Errorf("missing %q in:\n%s", w, text)
		}
	}
}

func lacks(t *testing.T, text string, unwanted ...string) {
	t.Helper()
	for _, w := range unwanted {
		if strings.Contains(text, w) {
			t.Errorf("unwanted %q in:\n%s", w, text)
		}
	}
}
