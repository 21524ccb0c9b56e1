package hooklib

import "encoding/json"

// The names of the events that have a type here. Every other name, and none,
// arrives as [Unknown].
const (
	NameSessionEnd   = "SessionEnd"
	NameStop         = "Stop"
	NameStopFailure  = "StopFailure"
	NameSubagentStop = "SubagentStop"
)

// Event is one event of a session: [*SessionEnd], [*Stop], [*StopFailure],
// [*SubagentStop] or [*Unknown].
type Event interface {
	// Base returns what all events have. It is never nil and may be changed.
	Base() *Common
}

// Common holds the fields that any event may have. The first four are on
// every event of the clients known so far (documented); all may be empty.
type Common struct {
	SessionID      string // session_id; the parent's, inside a subagent
	TranscriptPath string // transcript_path; may name a file that does not exist
	Cwd            string // cwd; follows cd in tools, so it is not the project's folder
	Name           string // hook_event_name

	PromptID       string // prompt_id; absent before the first prompt of a process (documented)
	PermissionMode string // permission_mode; not on session events (observed on 2.1.332)
	AgentID        string // agent_id; only inside a subagent (documented)
	AgentType      string // agent_type; empty for the compaction's summariser (observed on 2.1.332)
	Effort         string // effort.level

	// Extra holds each field that has no place in the event's type, and each
	// whose value has another type than expected, as it came.
	Extra map[string]json.RawMessage
}

// Base returns c itself, so that every type that embeds Common is an [Event].
func (c *Common) Base() *Common { return c }

// SessionEnd says that a session has ended in the client, or that another one
// takes its place.
type SessionEnd struct {
	Common
	Reason string // reason: clear, resume, logout, prompt_input_exit, other; others were and will be seen
}

// Stop says that the model has finished its turn.
type Stop struct {
	Common
	StopHookActive       bool            // stop_hook_active
	LastAssistantMessage string          // last_assistant_message, with white space trimmed (observed on 2.1.332)
	BackgroundTasks      json.RawMessage // background_tasks
	SessionCrons         json.RawMessage // session_crons
}

// StopFailure says that an API error ended the turn.
type StopFailure struct {
	Common
	Failure              string // error
	Details              string // error_details
	LastAssistantMessage string // last_assistant_message
}

// SubagentStop says that a subagent has finished. SessionID and
// TranscriptPath are its parent's.
type SubagentStop struct {
	Common
	AgentTranscriptPath  string          // agent_transcript_path; may name a file that never exists
	StopHookActive       bool            // stop_hook_active
	LastAssistantMessage string          // last_assistant_message
	BackgroundTasks      json.RawMessage // background_tasks, the parent session's
	SessionCrons         json.RawMessage // session_crons, the parent session's
}

// Unknown is an event without a type of its own here. Everything but the
// common fields is in Extra.
type Unknown struct {
	Common
}
