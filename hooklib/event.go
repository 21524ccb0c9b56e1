package hooklib

import (
	"bytes"
	"encoding/json"
)

// Event is one event of a session: a pointer to the type of its name, such as
// [*SessionStart], or [*Unknown].
//
// A field that the client did not send has its zero value, and so has one whose
// value is null or of another type than here. [Common.Has] and [Common.Field]
// tell these apart; nothing that came is lost.
type Event interface {
	// Base returns what all events have. It is never nil and may be changed.
	Base() *Common
}

// Common holds the fields that any event may have. The first four are on
// every event of the clients known so far (documented); all may be empty.
type Common struct {
	SessionID      string `json:"session_id"`      // the parent's, inside a subagent
	TranscriptPath string `json:"transcript_path"` // may name a file that does not exist, or not yet
	Cwd            string `json:"cwd"`             // follows cd in tools, so it is not the project's folder
	Name           string `json:"hook_event_name"`

	PromptID       string `json:"prompt_id"`       // absent before the first prompt of a process (documented)
	PermissionMode string `json:"permission_mode"` // not on session and compaction events (observed on 2.1.332)
	AgentID        string `json:"agent_id"`        // only inside a subagent (documented)
	AgentType      string `json:"agent_type"`      // a subagent's, or the session's own with --agent; empty for the compaction's summariser (observed on 2.1.332)
	Effort         string `json:"-"`               // effort.level; only where a model with effort is at work

	// Extra holds each field that has no place in the event's type, and each
	// whose value has another type than expected, as it came.
	Extra map[string]json.RawMessage `json:"-"`

	// Raw is the whole event as it came, byte for byte, without what stood
	// before and after the object. Hold it as read only.
	Raw json.RawMessage `json:"-"`
}

// Base returns c itself, so that every type that embeds Common is an [Event].
func (c *Common) Base() *Common { return c }

// Field returns the value of any field of the event by the client's name for
// it, as raw JSON, whether it has a place in a type or not; nil if the field is
// absent. A null that was sent is the four bytes null.
func (c *Common) Field(name string) json.RawMessage {
	if raw, ok := c.Extra[name]; ok {
		return raw
	}
	if !bytes.Contains(c.Raw, []byte(name)) && bytes.IndexByte(c.Raw, '\\') < 0 {
		return nil // the usual case, told without decoding
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(c.Raw, &fields) != nil {
		return nil
	}
	return fields[name]
}

// Has tells whether the client sent the field at all, be it null.
func (c *Common) Has(name string) bool { return c.Field(name) != nil }

// InSubagent tells whether the event comes from inside a subagent.
func (c *Common) InSubagent() bool { return c.AgentID != "" }

// The values of [SessionStart].Source known so far. Others come.
const (
	SourceStartup = "startup"
	SourceResume  = "resume"
	SourceClear   = "clear"
	SourceCompact = "compact"
	SourceFork    = "fork" // before 2.1.214 a fork said resume (documented)
)

// SessionStart says that a session begins or goes on. It fires again with each
// resume, and has fired twice within a second (field report SS-05).
type SessionStart struct {
	Common
	Source       string `json:"source"`
	Model        string `json:"model"`         // often absent: in print mode, on resume, after clear (observed on 2.1.332)
	SessionTitle string `json:"session_title"` // only if the session has one

	// These come with resume and fork only (from 2.1.251 on); nil if absent.
	SecondsSinceLastResponse *float64 `json:"seconds_since_last_response"`
	ContextTokens            *int64   `json:"context_tokens"`
	PromptCacheLikelyExpired *bool    `json:"prompt_cache_likely_expired"`
	EstimatedCacheWriteUSD   *float64 `json:"estimated_cache_write_usd"`
}

// SessionEnd says that a session has ended in the client, or that another one
// takes its place. It can come without a SessionStart, without a transcript,
// and not at all.
type SessionEnd struct {
	Common
	Reason string `json:"reason"` // clear, resume, logout, prompt_input_exit, other; others were and will be seen
}

// Setup says that the client was started with --init, --init-only or
// --maintenance.
type Setup struct {
	Common
	Trigger string `json:"trigger"` // init, maintenance
}

// UserPromptSubmit says that a prompt was given, before the model sees it.
type UserPromptSubmit struct {
	Common
	Prompt       string `json:"prompt"`
	Source       string `json:"source"`        // user, sdk, system, loop_wakeup, schedule_wakeup, poll_event; may be absent
	SessionTitle string `json:"session_title"` // only if the session has one
}

// UserPromptExpansion says that a command is about to be expanded to a prompt.
type UserPromptExpansion struct {
	Common
	ExpansionType string `json:"expansion_type"` // slash_command, mcp_prompt
	CommandName   string `json:"command_name"`
	CommandArgs   string `json:"command_args"`
	CommandSource string `json:"command_source"`
	Prompt        string `json:"prompt"`
}

// Stop says that the model has finished its turn. In an interactive session
// the last answer may reach the transcript only some 100 ms later (observed on
// 2.1.332); LastAssistantMessage has it.
type Stop struct {
	Common
	StopHookActive       bool            `json:"stop_hook_active"`       // a stop hook has already made the model go on
	LastAssistantMessage string          `json:"last_assistant_message"` // with white space trimmed (observed on 2.1.332)
	BackgroundTasks      json.RawMessage `json:"background_tasks"`       // see [Stop.Tasks]
	SessionCrons         json.RawMessage `json:"session_crons"`          // see [Stop.Crons]
}

// Tasks decodes BackgroundTasks.
func (e *Stop) Tasks() ([]BackgroundTask, error) { return list[BackgroundTask](e.BackgroundTasks) }

// Crons decodes SessionCrons.
func (e *Stop) Crons() ([]SessionCron, error) { return list[SessionCron](e.SessionCrons) }

// StopFailure says that an API error ended the turn. It comes instead of Stop.
type StopFailure struct {
	Common
	Failure              string `json:"error"` // rate_limit, overloaded, server_error, …
	Details              string `json:"error_details"`
	LastAssistantMessage string `json:"last_assistant_message"`
}

// SubagentStart says that a subagent begins.
type SubagentStart struct{ Common }

// SubagentStop says that a subagent has finished. SessionID and
// TranscriptPath are its parent's. The summariser of a compaction is one, with
// an empty AgentType and a transcript that never exists (observed on 2.1.332).
type SubagentStop struct {
	Common
	AgentTranscriptPath  string          `json:"agent_transcript_path"` // may name a file that never exists
	StopHookActive       bool            `json:"stop_hook_active"`
	LastAssistantMessage string          `json:"last_assistant_message"`
	BackgroundTasks      json.RawMessage `json:"background_tasks"` // the parent session's; see [SubagentStop.Tasks]
	SessionCrons         json.RawMessage `json:"session_crons"`    // the parent session's; see [SubagentStop.Crons]
}

// Tasks decodes BackgroundTasks.
func (e *SubagentStop) Tasks() ([]BackgroundTask, error) {
	return list[BackgroundTask](e.BackgroundTasks)
}

// Crons decodes SessionCrons.
func (e *SubagentStop) Crons() ([]SessionCron, error) { return list[SessionCron](e.SessionCrons) }

// BackgroundTask is work that goes on while the model does not.
type BackgroundTask struct {
	ID          string `json:"id"`
	Type        string `json:"type"`
	Status      string `json:"status"`
	Description string `json:"description"` // at most 1,000 characters (documented)
	Command     string `json:"command"`
	AgentType   string `json:"agent_type"`
	Server      string `json:"server"`
	Tool        string `json:"tool"`
	Name        string `json:"name"`
}

// SessionCron is a time at which the session will be woken.
type SessionCron struct {
	ID        string `json:"id"`
	Schedule  string `json:"schedule"`
	Recurring bool   `json:"recurring"`
	Prompt    string `json:"prompt"` // at most 1,000 characters (documented)
}

// PreCompact says that the conversation is about to be compacted. An automatic
// one may fire without a compaction and again at the next prompt (observed on
// 2.1.332).
type PreCompact struct {
	Common
	Trigger string `json:"trigger"` // manual, auto

	// CustomInstructions is what the user wrote after /compact. It is nil if
	// there is nothing, for which the client sends null (observed on 2.1.332);
	// other versions send an empty string (field report PC-01).
	CustomInstructions *string `json:"custom_instructions"`
}

// PostCompact says that a compaction is done. Its record is not in the
// transcript yet (observed on 2.1.332).
type PostCompact struct {
	Common
	Trigger        string `json:"trigger"`         // manual, auto
	CompactSummary string `json:"compact_summary"` // with the model's own tags
}

// MCPServer says which server a tool belongs to. Name is text from a
// configuration: not to be trusted.
type MCPServer struct {
	Name   string `json:"name"`
	Source string `json:"source"`
}

// PreToolUse says that a tool is about to run.
type PreToolUse struct {
	Common
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	ToolUseID string          `json:"tool_use_id"`
	MCPServer *MCPServer      `json:"mcp_server"` // nil for the client's own tools
}

// PostToolUse says that a tool has run.
type PostToolUse struct {
	Common
	ToolName     string          `json:"tool_name"`
	ToolInput    json.RawMessage `json:"tool_input"`
	ToolResponse json.RawMessage `json:"tool_response"`
	ToolUseID    string          `json:"tool_use_id"`
	DurationMS   *float64        `json:"duration_ms"` // without prompts and hooks; nil if absent
	MCPServer    *MCPServer      `json:"mcp_server"`
}

// PostToolUseFailure says that a tool has failed or was interrupted.
type PostToolUseFailure struct {
	Common
	ToolName    string          `json:"tool_name"`
	ToolInput   json.RawMessage `json:"tool_input"`
	ToolUseID   string          `json:"tool_use_id"`
	Failure     string          `json:"error"`
	IsInterrupt bool            `json:"is_interrupt"`
	DurationMS  *float64        `json:"duration_ms"`
	MCPServer   *MCPServer      `json:"mcp_server"`
}

// PostToolBatch says that all tools of one answer have run.
type PostToolBatch struct {
	Common
	ToolCalls json.RawMessage `json:"tool_calls"` // see [PostToolBatch.Calls]
}

// Calls decodes ToolCalls.
func (e *PostToolBatch) Calls() ([]ToolCall, error) { return list[ToolCall](e.ToolCalls) }

// ToolCall is one call of a [PostToolBatch].
type ToolCall struct {
	ToolName     string          `json:"tool_name"`
	ToolInput    json.RawMessage `json:"tool_input"`
	ToolUseID    string          `json:"tool_use_id"`
	ToolResponse json.RawMessage `json:"tool_response"`
}

// PermissionRequest says that the user is about to be asked for permission.
type PermissionRequest struct {
	Common
	ToolName              string          `json:"tool_name"`
	ToolInput             json.RawMessage `json:"tool_input"`
	PermissionSuggestions json.RawMessage `json:"permission_suggestions"` // see [PermissionRequest.Suggestions]
	MCPServer             *MCPServer      `json:"mcp_server"`
}

// Suggestions decodes PermissionSuggestions: what the client would offer the
// user as a lasting answer. They may be given back in [AllowRequest].
func (e *PermissionRequest) Suggestions() ([]PermissionUpdate, error) {
	return list[PermissionUpdate](e.PermissionSuggestions)
}

// PermissionDenied says that the automatic mode has refused a tool.
type PermissionDenied struct {
	Common
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	ToolUseID string          `json:"tool_use_id"`
	Reason    string          `json:"reason"`
	MCPServer *MCPServer      `json:"mcp_server"`
}

// PreSkillShellCommand says that a command in the text of a skill is about to
// run.
type PreSkillShellCommand struct {
	Common
	ToolName      string          `json:"tool_name"`  // Bash, PowerShell
	ToolInput     json.RawMessage `json:"tool_input"` // {"command":"…"}, with arguments filled in
	ToolUseID     string          `json:"tool_use_id"`
	CommandName   string          `json:"command_name"`
	CommandSource string          `json:"command_source"`
	InvokedBy     string          `json:"invoked_by"` // user, claude, other
}

// Notification says that the client wants the user's attention.
type Notification struct {
	Common
	Message          string `json:"message"`
	Title            string `json:"title"`
	NotificationType string `json:"notification_type"`
}

// MessageDisplay says that lines of an answer are about to be shown.
type MessageDisplay struct {
	Common
	TurnID    string `json:"turn_id"`
	MessageID string `json:"message_id"` // not the API's
	Index     int64  `json:"index"`      // counts from 0 within the message
	Final     bool   `json:"final"`      // the last of its message
	Delta     string `json:"delta"`      // whole lines, but for the last
}

// PreModelSwitch says that the session is about to change its model.
type PreModelSwitch struct {
	Common
	FromModel              string  `json:"from_model"`
	ToModel                string  `json:"to_model"`
	RequestedModel         *string `json:"requested_model"` // nil for "default", which the client sends as null (documented)
	Source                 string  `json:"source"`          // command, picker, sdk
	ContextTokens          int64   `json:"context_tokens"`
	PromptCacheWarm        bool    `json:"prompt_cache_warm"`
	CacheTTL               string  `json:"cache_ttl"` // 5m, 1h
	EstimatedCacheWriteUSD float64 `json:"estimated_cache_write_usd"`
	Pricing                string  `json:"pricing"` // configured, catalog, default
}

// PostModelSwitch says that the session has changed its model.
type PostModelSwitch struct {
	Common
	FromModel              string  `json:"from_model"`
	ToModel                string  `json:"to_model"`
	RequestedModel         *string `json:"requested_model"` // nil for "default"
	Source                 string  `json:"source"`          // command, picker, sdk, auto, resume
	ContextTokens          int64   `json:"context_tokens"`
	PromptCacheWarm        bool    `json:"prompt_cache_warm"`
	CacheTTL               string  `json:"cache_ttl"`
	EstimatedCacheWriteUSD float64 `json:"estimated_cache_write_usd"`
	Pricing                string  `json:"pricing"`
}

// TeammateIdle says that a teammate has nothing to do.
type TeammateIdle struct {
	Common
	TeammateName string `json:"teammate_name"`
	TeamName     string `json:"team_name"` // going out of use (documented)
}

// TaskCreated says that a task was put on the list.
type TaskCreated struct {
	Common
	TaskID          string `json:"task_id"`
	TaskSubject     string `json:"task_subject"`
	TaskDescription string `json:"task_description"`
	TeammateName    string `json:"teammate_name"`
	TeamName        string `json:"team_name"` // going out of use (documented)
}

// TaskCompleted says that a task is about to be marked as done.
type TaskCompleted struct {
	Common
	TaskID          string `json:"task_id"`
	TaskSubject     string `json:"task_subject"`
	TaskDescription string `json:"task_description"`
	TeammateName    string `json:"teammate_name"`
	TeamName        string `json:"team_name"` // going out of use (documented)
}

// Elicitation says that an MCP server wants to ask the user something.
type Elicitation struct {
	Common
	MCPServerName   string          `json:"mcp_server_name"`
	Message         string          `json:"message"`
	Mode            string          `json:"mode"` // form, url
	URL             string          `json:"url"`
	ElicitationID   string          `json:"elicitation_id"`
	RequestedSchema json.RawMessage `json:"requested_schema"`
}

// ElicitationResult says what the user answered to an MCP server.
type ElicitationResult struct {
	Common
	MCPServerName string          `json:"mcp_server_name"`
	ElicitationID string          `json:"elicitation_id"`
	Mode          string          `json:"mode"`   // form, url
	Action        string          `json:"action"` // accept, decline, cancel
	Content       json.RawMessage `json:"content"`
}

// ConfigChange says that a settings file has changed.
type ConfigChange struct {
	Common
	Source   string `json:"source"` // user_settings, project_settings, local_settings, policy_settings, skills
	FilePath string `json:"file_path"`
}

// InstructionsLoaded says that a file of instructions was read.
type InstructionsLoaded struct {
	Common
	FilePath        string   `json:"file_path"`
	MemoryType      string   `json:"memory_type"` // User, Project, Local, Managed
	LoadReason      string   `json:"load_reason"` // session_start, nested_traversal, path_glob_match, include, compact
	Globs           []string `json:"globs"`
	TriggerFilePath string   `json:"trigger_file_path"`
	ParentFilePath  string   `json:"parent_file_path"`
}

// CwdChanged says that the session works in another folder.
type CwdChanged struct {
	Common
	OldCwd string `json:"old_cwd"`
	NewCwd string `json:"new_cwd"`
}

// FileChanged says that a watched file has changed.
type FileChanged struct {
	Common
	FilePath string `json:"file_path"`
	Change   string `json:"event"` // change, add, unlink
}

// DirectoryAdded says that the session may use another folder.
type DirectoryAdded struct {
	Common
	Directory string `json:"directory"`
	Source    string `json:"source"` // slash_command, register_repo_root
}

// WorktreeCreate asks for a new worktree.
type WorktreeCreate struct {
	Common
	WorktreeName string `json:"name"`
}

// WorktreeRemove asks for a worktree to be removed.
type WorktreeRemove struct {
	Common
	WorktreePath string `json:"worktree_path"`
}

// Unknown is an event without a type of its own here. Everything but the
// common fields is in Extra.
type Unknown struct {
	Common
}

// list decodes an array; an absent one, and null, is empty.
func list[T any](raw json.RawMessage) (items []T, err error) {
	if len(raw) == 0 {
		return nil, nil
	}
	err = json.Unmarshal(raw, &items)
	return items, err
}
