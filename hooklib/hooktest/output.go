package hooktest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/session-keeper/session-keeper/hooklib"
)

// accepted says what the client takes as the answer to an event.
type accepted struct {
	plain    bool     // text that is no JSON
	decision bool     // "decision":"block" with a reason
	halt     bool     // "continue":false with a reason
	message  bool     // systemMessage and terminalSequence
	specific []string // the fields of hookSpecificOutput, but for its name
}

// answers holds what each event takes. What is not here is discarded or does
// harm. The events of sessions, prompts, compactions, tools, permissions and
// subagents are as observed on 2.1.332, the others as documented.
func answers(event string) (a accepted, known bool) {
	if !slices.Contains(hooklib.Names(), event) {
		return a, false
	}
	a.message = true
	switch event {
	case hooklib.NameSessionStart:
		a.plain = true
		a.specific = []string{"additionalContext", "initialUserMessage", "sessionTitle", "watchPaths", "reloadSkills"}
	case hooklib.NameUserPromptSubmit:
		a.plain, a.decision, a.halt = true, true, true
		a.specific = []string{"additionalContext", "sessionTitle", "suppressOriginalPrompt"}
	case hooklib.NameUserPromptExpansion:
		a.plain, a.decision, a.halt = true, true, true
		a.specific = []string{"additionalContext", "suppressOriginalPrompt"}
	case hooklib.NameStop, hooklib.NamePostToolBatch:
		a.decision, a.halt = true, true
		a.specific = []string{"additionalContext"}
	case hooklib.NameSubagentStop, hooklib.NamePostToolUseFailure:
		a.decision = true
		a.specific = []string{"additionalContext"}
	case hooklib.NameSetup, hooklib.NameSubagentStart, hooklib.NameNotification, hooklib.NamePostModelSwitch:
		a.specific = []string{"additionalContext"}
	case hooklib.NamePreCompact:
		return accepted{plain: true, decision: true}, true
	case hooklib.NamePreToolUse:
		a.halt = true
		a.specific = []string{"permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext"}
	case hooklib.NamePostToolUse:
		a.decision, a.halt = true, true
		a.specific = []string{"additionalContext", "classifierContext", "updatedToolOutput", "updatedMCPToolOutput"}
	case hooklib.NamePermissionRequest:
		a.specific = []string{"decision"}
	case hooklib.NamePermissionDenied:
		a.specific = []string{"retry"}
	case hooklib.NamePreSkillShellCommand, hooklib.NamePreModelSwitch:
		a.specific = []string{"permissionDecision", "permissionDecisionReason"}
	case hooklib.NameMessageDisplay:
		return accepted{specific: []string{"displayContent"}}, true
	case hooklib.NameTeammateIdle, hooklib.NameTaskCreated, hooklib.NameTaskCompleted:
		a.halt = true
	case hooklib.NameElicitation, hooklib.NameElicitationResult:
		a.specific = []string{"action", "content"}
	case hooklib.NameConfigChange:
		a.decision = true
	case hooklib.NameCwdChanged, hooklib.NameFileChanged:
		a.specific = []string{"watchPaths"}
	default:
		// SessionEnd, PostCompact, StopFailure, InstructionsLoaded,
		// DirectoryAdded and WorktreeRemove take nothing; WorktreeCreate a path.
		a = accepted{}
	}
	return a, true
}

// CheckOutput says whether what a hook printed for an event would reach the
// client as it was meant: nothing in it is rejected, ignored, cut, or taken for
// something else. Printing nothing is always right, but for WorktreeCreate.
func CheckOutput(payload, stdout []byte) error {
	event, err := hooklib.ParseEvent(payload)
	name := ""
	if err == nil {
		name = event.Base().Name
	}
	text := bytes.TrimSpace(stdout)
	a, known := answers(name)
	switch {
	case len(text) == 0 && name == hooklib.NameWorktreeCreate:
		return errors.New("the path of the new worktree was not printed")
	case len(text) == 0:
		return nil
	case !known:
		return fmt.Errorf("printed %s for an event that is not known", short(text))
	case !utf8.Valid(stdout):
		return fmt.Errorf("printed %s, which is not UTF-8", short(text))
	case bytes.HasPrefix(stdout, []byte("\xEF\xBB\xBF")):
		return errors.New("printed a byte order mark")
	case name == hooklib.NameWorktreeCreate:
		if !filepath.IsAbs(string(text)) || bytes.IndexByte(text, '\n') >= 0 {
			return fmt.Errorf("printed %s for the path of a worktree", short(text))
		}
		return nil
	case text[0] != '{' && !a.plain:
		return fmt.Errorf("printed %s: %s does not take plain text", short(text), name)
	case text[0] != '{':
		return limit("plain text", string(text), hooklib.MaxText)
	}
	return checkObject(name, a, text)
}

func checkObject(name string, a accepted, text []byte) error {
	var fields map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&fields); err != nil {
		return fmt.Errorf("printed %s, which begins like JSON and is none: %w", short(text), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("printed more than one JSON object: %s", short(text))
	}
	if name == hooklib.NamePreCompact && fields["decision"] == nil {
		return fmt.Errorf("printed %s, which the client takes for instructions for the summary", short(text))
	}
	for field, value := range fields {
		var err error
		switch {
		case field == "decision" && a.decision:
			if decision, e := textOf(value); e != nil || decision != "block" {
				err = fmt.Errorf("decision is %s; only \"block\" has a meaning", short(value))
			} else if reason, e := textOf(fields["reason"]); e != nil || reason == "" {
				err = errors.New("a block has no reason")
			}
		case field == "reason" && fields["decision"] != nil && a.decision:
		case field == "continue" && a.halt:
			if string(value) != "false" {
				err = fmt.Errorf("continue is %s; only false has a meaning", short(value))
			}
		case field == "stopReason" && string(fields["continue"]) == "false" && a.halt:
			_, err = textOf(value)
		case field == "systemMessage" && a.message:
			err = limitOf(field, value, hooklib.MaxText)
		case field == "terminalSequence" && a.message:
			var sequence string
			if sequence, err = textOf(value); err == nil {
				err = hooklib.CheckTerminalSequence(sequence)
			}
		case field == "hookSpecificOutput" && len(a.specific) > 0:
			err = checkSpecific(name, a.specific, value)
		default:
			err = fmt.Errorf("%s does not take %s", name, short([]byte(field)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func checkSpecific(name string, known []string, raw json.RawMessage) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return errors.New("hookSpecificOutput is no object")
	}
	if got, err := textOf(fields["hookEventName"]); err != nil || got != name {
		return fmt.Errorf("hookEventName is %s, not %q", short(fields["hookEventName"]), name)
	}
	delete(fields, "hookEventName")
	for field, value := range fields {
		var err error
		switch {
		case !slices.Contains(known, field):
			err = fmt.Errorf("hookSpecificOutput of %s does not take %s", name, short([]byte(field)))
		case field == "additionalContext":
			err = limitOf(field, value, hooklib.MaxText)
		case field == "classifierContext":
			err = limitOf(field, value, hooklib.MaxClassifierContext)
		case field == "permissionDecision":
			err = oneOf(field, value, map[string][]string{
				hooklib.NamePreToolUse:           {"allow", "deny", "ask", "defer"},
				hooklib.NamePreModelSwitch:       {"allow", "deny", "ask"},
				hooklib.NamePreSkillShellCommand: {"deny"},
			}[name])
		case field == "action":
			err = oneOf(field, value, []string{"accept", "decline", "cancel"})
		case field == "decision":
			err = checkDecision(value)
		case field == "updatedInput", field == "content":
			if value[0] != '{' {
				err = fmt.Errorf("%s is no object", field)
			}
		case field == "watchPaths":
			err = checkPaths(value)
		case field == "retry", field == "reloadSkills", field == "suppressOriginalPrompt":
			var b bool
			err = json.Unmarshal(value, &b)
		case field == "updatedToolOutput", field == "updatedMCPToolOutput":
		default:
			_, err = textOf(value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func checkDecision(raw json.RawMessage) error {
	var decision map[string]json.RawMessage
	if json.Unmarshal(raw, &decision) != nil || decision == nil {
		return errors.New("decision is no object")
	}
	takes := map[string][]string{"allow": {"updatedInput", "updatedPermissions"}, "deny": {"message", "interrupt"}}
	behavior, err := textOf(decision["behavior"])
	if err != nil || takes[behavior] == nil {
		return fmt.Errorf("behavior is %s", short(decision["behavior"]))
	}
	for field := range decision {
		if field != "behavior" && !slices.Contains(takes[behavior], field) {
			return fmt.Errorf("to %s a request does not take %s", behavior, short([]byte(field)))
		}
	}
	return nil
}

func checkPaths(raw json.RawMessage) error {
	var paths []string
	if err := json.Unmarshal(raw, &paths); err != nil {
		return errors.New("watchPaths is no list of texts")
	}
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("watch path %s is not absolute", short([]byte(path)))
		}
	}
	return nil
}

func textOf(raw json.RawMessage) (string, error) {
	var s *string
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil || s == nil {
		return "", fmt.Errorf("%s is no text", short(raw))
	}
	return *s, nil
}

func oneOf(field string, raw json.RawMessage, values []string) error {
	if s, err := textOf(raw); err != nil || !slices.Contains(values, s) {
		return fmt.Errorf("%s is %s, none of %s", field, short(raw), strings.Join(values, ", "))
	}
	return nil
}

func limitOf(field string, raw json.RawMessage, most int) error {
	s, err := textOf(raw)
	if err != nil {
		return err
	}
	return limit(field, s, most)
}

func limit(field, s string, most int) error {
	if n := hooklib.Units(s); n > most {
		return &hooklib.LengthError{Field: field, Units: n, Limit: most}
	}
	return nil
}

// short shows a text, cut short.
func short(b []byte) string {
	const most = 80
	if len(b) > most {
		return fmt.Sprintf("%q… (%d bytes)", b[:most], len(b))
	}
	return fmt.Sprintf("%q", b)
}
