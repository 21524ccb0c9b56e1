package hooktest

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/session-keeper/session-keeper/hooklib"
)

// member is one member of a JSON object, object an object with an order.
type (
	member struct {
		name  string
		value any
	}
	object []member
)

// MarshalJSON writes the members in their order, and leaves <, > and & as they
// are, as the client does.
func (o object) MarshalJSON() ([]byte, error) { return []byte(strings.TrimSuffix(o.line(), "\n")), nil }

// line returns the object and a newline. A value that is no JSON is a fault of
// the test's, at which it panics.
func (o object) line() string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	write := func(v any) {
		if err := enc.Encode(v); err != nil {
			panic("hooktest: " + err.Error())
		}
		b.Truncate(b.Len() - 1)
	}
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		write(m.name)
		b.WriteByte(':')
		write(m.value)
	}
	b.WriteString("}\n")
	return b.String()
}

// Change changes a payload.
type Change struct {
	name  string
	value any
	drop  bool
}

// Set gives a field another value, or adds it. The value may be of any type,
// also of one that the client would not send.
func Set(name string, value any) Change { return Change{name: name, value: value} }

// Drop leaves a field out.
func Drop(name string) Change { return Change{name: name, drop: true} }

// Payload returns what the client writes to the standard input of a hook of an
// event: with the fields of client 2.1.332, in its order, and a newline. Which
// fields there are depends on a SessionStart's source, so Set("source",
// "resume") adds those of a resumed session. A name that the client does not
// have gives the fields that all events have.
func (s *Session) Payload(event string, changes ...Change) []byte {
	source := hooklib.SourceStartup
	for _, c := range changes {
		if text, ok := c.value.(string); ok && c.name == "source" && !c.drop {
			source = text
		}
	}
	o := s.payload(event, source)
	for _, c := range changes {
		i := slices.IndexFunc(o, func(m member) bool { return m.name == c.name })
		switch {
		case c.drop && i >= 0:
			o = slices.Delete(o, i, i+1)
		case c.drop:
		case i >= 0:
			o[i].value = c.value
		default:
			o = append(o, member{c.name, c.value})
		}
	}
	return []byte(o.line())
}

func (s *Session) payload(event, source string) object {
	const agentID, agentType = "a1b2c3d4", "general-purpose"
	var (
		o     = object{{"session_id", s.ID}, {"transcript_path", s.Transcript}, {"cwd", s.Project}}
		end   = object{{"hook_event_name", event}}
		with  = func(more ...member) object { return append(append(o, end...), more...) }
		mode  = func() { o = append(o, member{"permission_mode", "default"}) }
		turn  = func() { mode(); end = append(object{{"effort", object{{"level", "high"}}}}, end...) }
		agent = func() { o = append(o, member{"agent_id", agentID}, member{"agent_type", agentType}) }
		input = object{{"command", "echo hi"}, {"description", "run it"}}
		bash  = []member{{"tool_name", "Bash"}, {"tool_input", input}}
		call  = append(slices.Clone(bash), member{"tool_use_id", "toolu_01"})
		team  = member{"team_name", "session-" + s.ID[:8]}
		model = "claude-opus-5-5"
	)
	stale := []member{
		{"seconds_since_last_response", 3}, {"context_tokens", 132},
		{"prompt_cache_likely_expired", false}, {"estimated_cache_write_usd", 0.0007},
	}
	if event != hooklib.NameSetup && (event != hooklib.NameSessionStart || source == hooklib.SourceCompact || source == hooklib.SourceFork) {
		o = append(o, member{"prompt_id", s.PromptID})
	}
	switch event {
	case hooklib.NameSessionStart:
		first := member{"source", source}
		switch source {
		case hooklib.SourceResume:
			return with(append([]member{first}, stale...)...)
		case hooklib.SourceFork:
			return with(append([]member{first, {"model", model}, {"session_title", "my-branch"}}, stale...)...)
		case hooklib.SourceClear:
			return with(first)
		}
		return with(first, member{"model", model})
	case hooklib.NameSessionEnd:
		return with(member{"reason", "other"})
	case hooklib.NameSetup:
		return with(member{"trigger", "init"})
	case hooklib.NameUserPromptSubmit:
		mode()
		return with(member{"prompt", "hello"})
	case hooklib.NameUserPromptExpansion:
		mode()
		return with(member{"expansion_type", "slash_command"}, member{"command_name", "review"}, member{"command_args", "main"},
			member{"command_source", "plugin"}, member{"prompt", "/review main"})
	case hooklib.NameStop:
		turn()
		return with(member{"stop_hook_active", false}, member{"last_assistant_message", "Hello!"},
			member{"background_tasks", []any{}}, member{"session_crons", []any{}})
	case hooklib.NameStopFailure:
		o = append(o, member{"effort", object{{"level", "high"}}})
		return with(member{"error", "server_error"}, member{"last_assistant_message", "API Error: 500 Internal server error"})
	case hooklib.NameSubagentStart:
		agent()
		return with()
	case hooklib.NameSubagentStop:
		turn()
		agent()
		return with(member{"stop_hook_active", false},
			member{"agent_transcript_path", filepath.Join(strings.TrimSuffix(s.Transcript, ".jsonl"), "subagents", "agent-"+agentID+".jsonl")},
			member{"last_assistant_message", "done"}, member{"background_tasks", []any{}}, member{"session_crons", []any{}})
	case hooklib.NamePreCompact:
		return with(member{"trigger", "auto"}, member{"custom_instructions", nil})
	case hooklib.NamePostCompact:
		return with(member{"trigger", "auto"}, member{"compact_summary", "<analysis>…</analysis>\n<summary>…</summary>"})
	case hooklib.NamePreToolUse:
		turn()
		return with(call...)
	case hooklib.NamePostToolUse:
		turn()
		response := object{{"stdout", "hi"}, {"stderr", ""}, {"interrupted", false}, {"isImage", false}, {"noOutputExpected", false}}
		return with(append(bash, member{"tool_response", response}, member{"tool_use_id", "toolu_01"}, member{"duration_ms", 30})...)
	case hooklib.NamePostToolUseFailure:
		turn()
		return with(append(call, member{"error", "Exit code 3"}, member{"is_interrupt", false}, member{"duration_ms", 26})...)
	case hooklib.NamePostToolBatch:
		turn()
		return with(member{"tool_calls", []any{append(object(call), member{"tool_response", "hi"})}})
	case hooklib.NamePermissionRequest:
		turn()
		mode := object{{"type", "setMode"}, {"mode", "acceptEdits"}, {"destination", "session"}}
		return with(append(bash, member{"permission_suggestions", []any{mode}})...)
	case hooklib.NamePermissionDenied:
		turn()
		return with(append(call, member{"reason", "not asked for"})...)
	case hooklib.NamePreSkillShellCommand:
		mode()
		return with(member{"tool_name", "Bash"}, member{"tool_input", object{{"command", "git log -1"}}}, member{"tool_use_id", "toolu_04"},
			member{"command_name", "notes"}, member{"command_source", "plugin"}, member{"invoked_by", "user"})
	case hooklib.NameNotification:
		return with(member{"message", "Claude is waiting for your input"}, member{"title", "Claude Code"}, member{"notification_type", "idle_prompt"})
	case hooklib.NameMessageDisplay:
		return with(member{"turn_id", newID()}, member{"message_id", newID()}, member{"index", 0}, member{"final", true}, member{"delta", "Hello!"})
	case hooklib.NamePreModelSwitch, hooklib.NamePostModelSwitch:
		return with(member{"from_model", model}, member{"to_model", "claude-sonnet-5-5"}, member{"requested_model", "sonnet"}, member{"source", "command"},
			member{"context_tokens", 132}, member{"prompt_cache_warm", true}, member{"cache_ttl", "5m"},
			member{"estimated_cache_write_usd", 0.0007}, member{"pricing", "catalog"})
	case hooklib.NameTeammateIdle:
		mode()
		return with(member{"teammate_name", "tester"}, team)
	case hooklib.NameTaskCreated, hooklib.NameTaskCompleted:
		mode()
		return with(member{"task_id", "1"}, member{"task_subject", "write the tests"}, member{"task_description", "all of them"},
			member{"teammate_name", "tester"}, team)
	case hooklib.NameElicitation:
		mode()
		return with(member{"mcp_server_name", "notes"}, member{"message", "Which notebook?"}, member{"mode", "form"}, member{"elicitation_id", "e1"},
			member{"requested_schema", object{{"type", "object"}}})
	case hooklib.NameElicitationResult:
		mode()
		return with(member{"mcp_server_name", "notes"}, member{"elicitation_id", "e1"}, member{"mode", "form"}, member{"action", "accept"},
			member{"content", object{{"notebook", "work"}}})
	case hooklib.NameConfigChange:
		return with(member{"source", "project_settings"}, member{"file_path", filepath.Join(s.Project, ".claude", "settings.json")})
	case hooklib.NameInstructionsLoaded:
		return with(member{"file_path", filepath.Join(s.Project, "sub", "CLAUDE.md")}, member{"memory_type", "Project"}, member{"load_reason", "path_glob_match"},
			member{"globs", []string{"sub/**"}}, member{"trigger_file_path", filepath.Join(s.Project, "sub", "a.go")},
			member{"parent_file_path", filepath.Join(s.Project, "CLAUDE.md")})
	case hooklib.NameCwdChanged:
		return with(member{"old_cwd", filepath.Dir(s.Project)}, member{"new_cwd", s.Project})
	case hooklib.NameFileChanged:
		return with(member{"file_path", filepath.Join(s.Project, ".env")}, member{"event", "change"})
	case hooklib.NameDirectoryAdded:
		return with(member{"directory", filepath.Dir(s.Project)}, member{"source", "slash_command"})
	case hooklib.NameWorktreeCreate:
		return with(member{"name", "wt1"})
	case hooklib.NameWorktreeRemove:
		return with(member{"worktree_path", filepath.Join(s.Project, ".claude", "worktrees", "wt1")})
	}
	return with()
}
