package hooklib

import "encoding/json"

// The programs other than Claude Code that are known to run the hooks of its
// settings files.
const (
	AgentCursor  = "cursor"
	AgentCopilot = "copilot"
	AgentOther   = "other"
)

// Foreign returns which program sent an event, if it was not Claude Code; "" if
// it was, or if nothing tells. A hook that is wired in Claude Code's settings
// is run by other agents too, with payloads that resemble the client's and
// transcripts that are none of its own. Only what the client is known never to
// send counts, and an absent field never does: old clients sent less.
//
//   - Cursor loads the hooks of .claude/settings.json, settings.local.json and
//     ~/.claude/settings.json (documented on cursor.com, "Third Party Hooks").
//     Its payloads have cursor_version, conversation_id, generation_id and
//     workspace_roots, event names such as sessionStart, and a null
//     transcript_path (payload of cursor-agent 2026.08.11 in
//     github.com/herdrdev/herdr/issues/2832).
//   - Copilot in VS Code reads the same three files (documented in VS Code's
//     "Agent hooks"), Copilot's command line those of the project (documented in
//     GitHub's "Hooks reference"). Their payloads have sessionId, hookEventName
//     and timestamp in place of the client's names; those with the client's
//     names are told by the timestamp, which the client never sends, where the
//     environment is not that of a Claude Code hook.
//
// The environment decides nothing alone: Claude Code runs in the terminals of
// these programs, and they run in its sessions.
func Foreign(e Event, env Env) (agent string) {
	c := e.Base()
	switch {
	case c.hasText("cursor_version"),
		c.Has("conversation_id") && c.Has("generation_id"),
		c.Has("workspace_roots") && c.TranscriptPath == "":
		return AgentCursor
	case c.hasText("hookEventName"), c.hasText("sessionId") && c.SessionID == "":
		return AgentCopilot
	case c.Has("timestamp") && !env.ClaudeCode:
		return AgentCopilot
	case c.Name != "" && c.Name[0] >= 'a' && c.Name[0] <= 'z':
		// All names of the client begin with a capital letter.
		return AgentOther
	}
	return ""
}

// hasText tells whether a field without a place holds a string that is not
// empty.
func (c *Common) hasText(name string) bool {
	var s string
	return json.Unmarshal(c.Extra[name], &s) == nil && s != ""
}

// Foreign returns which program sent the event, if it was not Claude Code. See
// the function [Foreign].
func (c *Call) Foreign() (agent string) {
	if c.Event == nil {
		return ""
	}
	return Foreign(c.Event, c.Env)
}
