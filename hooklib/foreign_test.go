package hooklib

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// SS-07 and the like: the settings files have other readers.
func TestForeign(t *testing.T) {
	client := Env{ClaudeCode: true}
	tests := []struct {
		name, in string
		env      Env
		want     string
	}{
		{"cursor-agent 2026.08.11", `{"conversation_id":"c","generation_id":"g","model":"m","is_background_agent":false,"session_id":"s","hook_event_name":"sessionStart","cursor_version":"2026.08.11-e8db854","workspace_roots":["/p"],"user_email":"a@example.com","transcript_path":null}`, Env{}, AgentCursor},
		{"Cursor in a session of the client", `{"hook_event_name":"Stop","cursor_version":"3.2.16","session_id":"s"}`, client, AgentCursor},
		{"Cursor without its version", `{"hook_event_name":"Stop","conversation_id":"c","generation_id":"g"}`, client, AgentCursor},
		{"Cursor by its folders", `{"hook_event_name":"PreToolUse","workspace_roots":["/p"],"cwd":""}`, Env{}, AgentCursor},
		{"a version of another type", `{"hook_event_name":"Stop","cursor_version":7}`, client, ""},
		{"VS Code 1.110", `{"timestamp":"2026-02-09T10:30:00.000Z","cwd":"/p","sessionId":"s","hookEventName":"PreToolUse","transcript_path":"/t.json","tool_name":"editFiles"}`, Env{}, AgentCopilot},
		{"VS Code in a session of the client", `{"timestamp":"2026-02-09T10:30:00.000Z","sessionId":"s","hookEventName":"Stop"}`, client, AgentCopilot},
		{"VS Code with the client's names", `{"timestamp":"2026-06-09T10:30:00.000Z","session_id":"s","hook_event_name":"Stop"}`, Env{}, AgentCopilot},
		{"Copilot's command line", `{"sessionId":"s","timestamp":1770633000000,"cwd":"/p","reason":"complete"}`, client, AgentCopilot},
		{"a client that tells the time", `{"timestamp":"2026-06-09T10:30:00.000Z","session_id":"s","hook_event_name":"Stop"}`, client, ""},
		{"names like stop", `{"session_id":"s","hook_event_name":"agentStop"}`, client, AgentOther},
		{"an event of tomorrow", `{"session_id":"s","hook_event_name":"Brewed","workspace":"x"}`, client, ""},
		{"hardly anything", `{"session_id":"s"}`, Env{}, ""},
		{"nothing", `{}`, Env{}, ""},
		{"an old client", `{"session_id":"s","transcript_path":"/t","hook_event_name":"SessionEnd","reason":"exit"}`, Env{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			event, err := ParseEvent([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if got := Foreign(event, tt.env); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			vars := map[string]string{}
			if tt.env.ClaudeCode {
				vars["CLAUDECODE"] = "1"
			}
			called := ""
			hook := Hook{Name: "h", Getenv: from(vars), Handle: func(_ context.Context, c *Call) error { called = "called by " + c.Foreign(); return nil }}
			var stdout, stderr bytes.Buffer
			code := Run(hook, nil, strings.NewReader(tt.in), &stdout, &stderr)
			if code != 0 || stdout.Len()+stderr.Len() > 0 || (called == "") != (tt.want != "") {
				t.Errorf("exit code %d, stdout %q, stderr %q, %s", code, stdout.String(), stderr.String(), called)
			}
			hook.AcceptForeign = true
			if code := Run(hook, nil, strings.NewReader(tt.in), &stdout, &stderr); code != 0 || called != "called by "+tt.want {
				t.Errorf("accepted: exit code %d, %q", code, called)
			}
		})
	}
	if (&Call{}).Foreign() != "" {
		t.Error("a mode is foreign")
	}
}

// No payload of the client is taken for another agent's, in whatever
// environment.
func TestRecordedEventsAreNotForeign(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "testdata", "events", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d events, %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		event, err := ParseEvent(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, env := range []Env{{}, {ClaudeCode: true}} {
			if agent := Foreign(event, env); agent != "" {
				t.Errorf("%s: %s", file, agent)
			}
		}
	}
}

// Whatever the environment, other agents' payloads are told, but for those
// that the environment alone gives away.
func TestForeignPayloads(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "testdata", "events", "foreign", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d events, %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		event, err := ReadEvent(bytes.NewReader(raw), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		want, _, _ := strings.Cut(strings.ReplaceAll(filepath.Base(file), "vscode", AgentCopilot), "-")
		if got := Foreign(event, Env{}); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
		if got := Foreign(event, Env{ClaudeCode: true}); got != want && !strings.Contains(file, "client-names") {
			t.Errorf("%s in a session of the client: %q, want %q", file, got, want)
		}
	}
}
