package hooklib

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// SessionStartOutput answers [SessionStart]. The client ignores a request to
// stop here (observed on 2.1.332).
type SessionStartOutput struct {
	// AdditionalContext is given to the model; at most [MaxText]. When a
	// session is resumed, a text that is already in it is dropped, any other is
	// added once more (observed on 2.1.332): keep it free of times and counters.
	AdditionalContext string

	// SessionTitle names the session. The client ignores it after clear and
	// compact (documented), so it is left out there.
	SessionTitle string

	InitialUserMessage string   // a first prompt, in print mode only (observed on 2.1.332)
	WatchPaths         []string // absolute paths whose changes are to raise [FileChanged]
	ReloadSkills       bool     // look for skills again when all hooks have ended
	SystemMessage      string
	TerminalSequence   string
}

func (SessionStartOutput) outputFor() string { return NameSessionStart }

func (o SessionStartOutput) answer(e Event) (a answer, err error) {
	if s, ok := e.(*SessionStart); ok && (s.Source == SourceClear || s.Source == SourceCompact) {
		o.SessionTitle = ""
	}
	a.SystemMessage, a.TerminalSequence = o.SystemMessage, o.TerminalSequence
	a.specific.AdditionalContext = o.AdditionalContext
	a.specific.SessionTitle = o.SessionTitle
	a.specific.InitialUserMessage = o.InitialUserMessage
	a.specific.ReloadSkills = o.ReloadSkills
	if len(o.WatchPaths) > 0 {
		a.specific.WatchPaths = &o.WatchPaths
	}
	return a, nil
}

// SetupOutput answers [Setup].
type SetupOutput struct {
	AdditionalContext string // documented; with -p --init it did not reach the model (observed on 2.1.332)
	SystemMessage     string
	TerminalSequence  string
}

func (SetupOutput) outputFor() string { return NameSetup }

func (o SetupOutput) answer(Event) (a answer, err error) {
	a.SystemMessage, a.TerminalSequence = o.SystemMessage, o.TerminalSequence
	a.specific.AdditionalContext = o.AdditionalContext
	return a, nil
}

// UserPromptSubmitOutput answers [UserPromptSubmit].
type UserPromptSubmitOutput struct {
	// Block, if it is not empty, keeps the prompt from the model. The user is
	// given this reason.
	Block string
	// HidePrompt leaves the prompt out of what the user is told of a block.
	HidePrompt bool

	AdditionalContext string
	SessionTitle      string
	Halt              string
	SystemMessage     string
	TerminalSequence  string
}

func (UserPromptSubmitOutput) outputFor() string { return NameUserPromptSubmit }

func (o UserPromptSubmitOutput) answer(Event) (a answer, err error) {
	a.SystemMessage, a.TerminalSequence = o.SystemMessage, o.TerminalSequence
	a.block(o.Block)
	a.halt(o.Halt)
	a.specific.AdditionalContext = o.AdditionalContext
	a.specific.SessionTitle = o.SessionTitle
	return a, hidePrompt(&a, o.HidePrompt)
}

// UserPromptExpansionOutput answers [UserPromptExpansion].
type UserPromptExpansionOutput struct {
	Block             string // if it is not empty, the reason for which the command is not expanded
	HidePrompt        bool   // leaves the prompt out of what the user is told of a block
	AdditionalContext string
	Halt              string
	SystemMessage     string
	TerminalSequence  string
}

func (UserPromptExpansionOutput) outputFor() string { return NameUserPromptExpansion }

func (o UserPromptExpansionOutput) answer(Event) (a answer, err error) {
	a.SystemMessage, a.TerminalSequence = o.SystemMessage, o.TerminalSequence
	a.block(o.Block)
	a.halt(o.Halt)
	a.specific.AdditionalContext = o.AdditionalContext
	return a, hidePrompt(&a, o.HidePrompt)
}

func hidePrompt(a *answer, hide bool) error {
	if hide && a.Decision == "" {
		return errors.New("hiding the prompt has a meaning for a blocked one only")
	}
	a.specific.SuppressOriginalPrompt = hide
	return nil
}

// StopOutput answers [Stop].
type StopOutput struct {
	// Block, if it is not empty, makes the model go on, and is what it is
	// told. After eight in a row the client stops all the same (documented);
	// look at [Stop].StopHookActive.
	Block string
	// AdditionalContext makes the model go on as well, without the word of a
	// failure (observed on 2.1.332).
	AdditionalContext string
	Halt              string
	SystemMessage     string
	TerminalSequence  string
}

func (StopOutput) outputFor() string { return NameStop }

func (o StopOutput) answer(Event) (a answer, err error) {
	a.SystemMessage, a.TerminalSequence = o.SystemMessage, o.TerminalSequence
	a.block(o.Block)
	a.halt(o.Halt)
	a.specific.AdditionalContext = o.AdditionalContext
	return a, nil
}

// SubagentStopOutput answers [SubagentStop]. A request to stop for good is
// ignored here (observed on 2.1.332).
type SubagentStopOutput struct {
	Block             string // if it is not empty, makes the subagent go on, and is what it is told
	AdditionalContext string // makes the subagent go on as well (observed on 2.1.332)
	SystemMessage     string
	TerminalSequence  string
}

func (SubagentStopOutput) outputFor() string { return NameSubagentStop }

func (o SubagentStopOutput) answer(Event) (a answer, err error) {
	a.SystemMessage, a.TerminalSequence = o.SystemMessage, o.TerminalSequence
	a.block(o.Block)
	a.specific.AdditionalContext = o.AdditionalContext
	return a, nil
}

// SubagentStartOutput answers [SubagentStart].
type SubagentStartOutput struct {
	AdditionalContext string // for the subagent
	SystemMessage     string
	TerminalSequence  string
}

func (SubagentStartOutput) outputFor() string { return NameSubagentStart }

func (o SubagentStartOutput) answer(e Event) (answer, error) { return SetupOutput(o).answer(e) }

// PreCompactOutput answers [PreCompact], at which the client takes every
// output as instructions for the summary, JSON too, and has no place for a
// message (observed on 2.1.332). At most one of its fields may be set.
type PreCompactOutput struct {
	// Block, if it is not empty, keeps the conversation from being compacted.
	// It is shown to the user if they asked for the compaction. Blocking one
	// that is to recover from a full context makes the request fail
	// (documented).
	Block string

	// Instructions is added to the instructions for the summary, word by word,
	// and shown to the user. It must not begin with a curly bracket: the client
	// might take it for something else.
	Instructions string
}

func (PreCompactOutput) outputFor() string { return NamePreCompact }

func (o PreCompactOutput) answer(Event) (a answer, err error) {
	if o.Block != "" && o.Instructions != "" {
		return a, errors.New("a compaction that is blocked has no instructions")
	}
	if strings.HasPrefix(trimSpace(o.Instructions), "{") {
		return a, errors.New("instructions for a summary must not begin with a curly bracket")
	}
	a.block(o.Block)
	if trimSpace(o.Instructions) != "" {
		a.plain = o.Instructions
	}
	return a, nil
}

// trimSpace cuts off what JavaScript and Go take for white space.
func trimSpace(s string) string { return strings.Trim(strings.TrimSpace(s), "\uFEFF \t\r\n") }

// Permission is what a hook says about a tool that is about to run: [Allow],
// [Deny], [Ask], [Defer] or [Rewrite].
type Permission interface {
	permission() (decision, reason string, input any)
}

// Allow runs the tool without asking the user.
type Allow struct {
	Reason       string // for the user
	UpdatedInput any    // if it is not nil, the input that the tool gets instead; a JSON object
}

// Deny refuses the tool.
type Deny struct {
	Reason string // for the model
}

// Ask asks the user.
type Ask struct {
	Reason       string // for the user
	UpdatedInput any    // as in Allow
}

// Defer leaves the tool to the program that started the client, which is to
// resume the session with the answer.
type Defer struct {
	Reason string
}

// Rewrite gives the tool another input, and leaves the rest to the client
// (observed on 2.1.332).
type Rewrite struct {
	UpdatedInput any // a JSON object
}

func (p Allow) permission() (string, string, any) { return "allow", p.Reason, p.UpdatedInput }
func (p Deny) permission() (string, string, any)  { return "deny", p.Reason, nil }
func (p Ask) permission() (string, string, any)   { return "ask", p.Reason, p.UpdatedInput }
func (p Defer) permission() (string, string, any) { return "defer", p.Reason, nil }

func (p Rewrite) permission() (string, string, any) { return "", "", p.UpdatedInput }

// PreToolUseOutput answers [PreToolUse].
type PreToolUseOutput struct {
	Permission        Permission // nil: as if there were no hook
	AdditionalContext string
	Halt              string
	SystemMessage     string
	TerminalSequence  string
}

func (PreToolUseOutput) outputFor() string { return NamePreToolUse }

func (o PreToolUseOutput) answer(Event) (a answer, err error) {
	a.SystemMessage, a.TerminalSequence = o.SystemMessage, o.TerminalSequence
	a.halt(o.Halt)
	a.specific.AdditionalContext = o.AdditionalContext
	if o.Permission != nil {
		var input any
		a.specific.PermissionDecision, a.specific.PermissionDecisionReason, input = o.Permission.permission()
		a.specific.UpdatedInput, err = object("updated input", input)
	}
	return a, err
}

// PreSkillShellCommandOutput answers [PreSkillShellCommand]. Allowing adds
// nothing there, and asking refuses (documented).
type PreSkillShellCommandOutput struct {
	Deny             string // if it is not empty, the reason for which the command does not run
	SystemMessage    string
	TerminalSequence string
}

func (PreSkillShellCommandOutput) outputFor() string { return NamePreSkillShellCommand }

func (o PreSkillShellCommandOutput) answer(Event) (a answer, err error) {
	a.SystemMessage, a.TerminalSequence = o.SystemMessage, o.TerminalSequence
	if o.Deny != "" {
		a.specific.PermissionDecision, a.specific.PermissionDecisionReason = "deny", o.Deny
	}
	return a, nil
}

// PostToolUseOutput answers [PostToolUse].
type PostToolUseOutput struct {
	Block             string // if it is not empty, tells the model what is wrong with the result
	AdditionalContext string
	ClassifierContext string // for the automatic mode's judge; at most [MaxClassifierContext]

	// UpdatedToolOutput, if it is not nil, is what the model gets instead of
	// the tool's result. The client ignores one that has not the form of that
	// tool's own (observed on 2.1.332); see [PostToolUse].ToolResponse.
	UpdatedToolOutput any

	Halt             string
	SystemMessage    string
	TerminalSequence string
}

func (PostToolUseOutput) outputFor() string { return NamePostToolUse }

func (o PostToolUseOutput) answer(Event) (a answer, err error) {
	a.SystemMessage, a.TerminalSequence = o.SystemMessage, o.TerminalSequence
	a.block(o.Block)
	a.halt(o.Halt)
	a.specific.AdditionalContext = o.AdditionalContext
	a.specific.ClassifierContext = o.ClassifierContext
	a.specific.UpdatedToolOutput, err = encoded("updated tool output", o.UpdatedToolOutput)
	return a, err
}

// PostToolUseFailureOutput answers [PostToolUseFailure]. A request to stop for
// good is ignored here (observed on 2.1.332).
type PostToolUseFailureOutput struct {
	Block             string // if it is not empty, tells the model more about what went wrong
	AdditionalContext string
	SystemMessage     string
	TerminalSequence  string
}

func (PostToolUseFailureOutput) outputFor() string { return NamePostToolUseFailure }

func (o PostToolUseFailureOutput) answer(e Event) (answer, error) {
	return SubagentStopOutput(o).answer(e)
}

// PostToolBatchOutput answers [PostToolBatch]. To block does the same as to
// halt here (observed on 2.1.332): the model is not told.
type PostToolBatchOutput struct {
	AdditionalContext string
	Halt              string
	SystemMessage     string
	TerminalSequence  string
}

func (PostToolBatchOutput) outputFor() string { return NamePostToolBatch }

func (o PostToolBatchOutput) answer(Event) (a answer, err error) {
	a.SystemMessage, a.TerminalSequence = o.SystemMessage, o.TerminalSequence
	a.halt(o.Halt)
	a.specific.AdditionalContext = o.AdditionalContext
	return a, nil
}

// RequestDecision is what a hook answers in the user's place to a
// [PermissionRequest]: [AllowRequest] or [DenyRequest].
type RequestDecision interface {
	decide() (*requestAnswer, error)
}

// AllowRequest gives the permission.
type AllowRequest struct {
	UpdatedInput       any                // if it is not nil, the input that the tool gets instead; a JSON object
	UpdatedPermissions []PermissionUpdate // what is to be allowed from now on, such as some of [PermissionRequest.Suggestions]
}

// PermissionUpdate is a change of what the client allows without asking.
type PermissionUpdate struct {
	Type        string           `json:"type"`                  // addRules, replaceRules, removeRules; setMode; addDirectories, removeDirectories
	Rules       []PermissionRule `json:"rules,omitempty"`       // for rules
	Behavior    string           `json:"behavior,omitempty"`    // for rules: allow, deny, ask
	Mode        string           `json:"mode,omitempty"`        // for setMode
	Directories []string         `json:"directories,omitempty"` // for directories
	Destination string           `json:"destination"`           // userSettings, projectSettings, localSettings, session, cliArg
}

// PermissionRule names a tool, or what of it is meant.
type PermissionRule struct {
	ToolName    string `json:"toolName"`
	RuleContent string `json:"ruleContent,omitempty"`
}

// check says whether the client would take u: it rejects the whole answer for
// one that it does not (observed on 2.1.332).
func (u PermissionUpdate) check() error {
	rules, mode, directories := len(u.Rules) > 0 || u.Behavior != "", u.Mode != "", len(u.Directories) > 0
	switch u.Type {
	case "addRules", "replaceRules", "removeRules":
		if len(u.Rules) == 0 || mode || directories || !slices.Contains([]string{"allow", "deny", "ask"}, u.Behavior) {
			return fmt.Errorf("%s needs rules and a behavior, and nothing else", u.Type)
		}
	case "setMode":
		if rules || directories || !slices.Contains([]string{"default", "acceptEdits", "bypassPermissions", "plan", "dontAsk", "auto"}, u.Mode) {
			return errors.New("setMode needs a mode, and nothing else")
		}
	case "addDirectories", "removeDirectories":
		if rules || mode || !directories {
			return fmt.Errorf("%s needs directories, and nothing else", u.Type)
		}
	default:
		return fmt.Errorf("type %s is not known", quote(u.Type))
	}
	if !slices.Contains([]string{"userSettings", "projectSettings", "localSettings", "session", "cliArg"}, u.Destination) {
		return fmt.Errorf("destination %s is not known", quote(u.Destination))
	}
	return nil
}

// DenyRequest refuses the permission.
type DenyRequest struct {
	Message   string // for the model
	Interrupt bool   // stops the model
}

func (d AllowRequest) decide() (*requestAnswer, error) {
	input, err := object("updated input", d.UpdatedInput)
	if err != nil {
		return nil, err
	}
	for _, u := range d.UpdatedPermissions {
		if err := u.check(); err != nil {
			return nil, fmt.Errorf("updated permissions: %w", err)
		}
	}
	return &requestAnswer{Behavior: "allow", UpdatedInput: input, UpdatedPermissions: d.UpdatedPermissions}, nil
}

func (d DenyRequest) decide() (*requestAnswer, error) {
	return &requestAnswer{Behavior: "deny", Message: valid(d.Message), Interrupt: d.Interrupt}, nil
}

// PermissionRequestOutput answers [PermissionRequest].
type PermissionRequestOutput struct {
	Decision         RequestDecision // nil: the user is asked
	SystemMessage    string
	TerminalSequence string
}

func (PermissionRequestOutput) outputFor() string { return NamePermissionRequest }

func (o PermissionRequestOutput) answer(Event) (a answer, err error) {
	a.SystemMessage, a.TerminalSequence = o.SystemMessage, o.TerminalSequence
	if o.Decision != nil {
		a.specific.Decision, err = o.Decision.decide()
	}
	return a, err
}

// PermissionDeniedOutput answers [PermissionDenied].
type PermissionDeniedOutput struct {
	Retry            bool // tells the model that it may try again
	SystemMessage    string
	TerminalSequence string
}

func (PermissionDeniedOutput) outputFor() string { return NamePermissionDenied }

func (o PermissionDeniedOutput) answer(Event) (a answer, err error) {
	a.SystemMessage, a.TerminalSequence = o.SystemMessage, o.TerminalSequence
	a.specific.Retry = o.Retry
	return a, nil
}

// NotificationOutput answers [Notification].
type NotificationOutput struct {
	AdditionalContext string
	SystemMessage     string
	TerminalSequence  string
}

func (NotificationOutput) outputFor() string { return NameNotification }

func (o NotificationOutput) answer(e Event) (answer, error) { return SetupOutput(o).answer(e) }

// MessageDisplayOutput answers [MessageDisplay].
type MessageDisplayOutput struct {
	// DisplayContent, if it is not nil, is shown instead of the lines. The
	// model and the transcript keep what was said.
	DisplayContent *string
}

func (MessageDisplayOutput) outputFor() string { return NameMessageDisplay }

func (o MessageDisplayOutput) answer(Event) (a answer, err error) {
	if o.DisplayContent != nil {
		content := valid(*o.DisplayContent)
		a.specific.DisplayContent = &content
	}
	return a, nil
}

// ModelSwitchDecision is what a hook says about a change of the model:
// [AllowSwitch], [DenySwitch] or [AskSwitch].
type ModelSwitchDecision interface {
	decideSwitch() (decision, reason string)
}

// AllowSwitch changes the model without asking the user.
type AllowSwitch struct{ Reason string }

// DenySwitch keeps the model.
type DenySwitch struct{ Reason string }

// AskSwitch asks the user; where there is none, the model is kept
// (documented).
type AskSwitch struct{ Reason string }

func (d AllowSwitch) decideSwitch() (string, string) { return "allow", d.Reason }
func (d DenySwitch) decideSwitch() (string, string)  { return "deny", d.Reason }
func (d AskSwitch) decideSwitch() (string, string)   { return "ask", d.Reason }

// PreModelSwitchOutput answers [PreModelSwitch].
type PreModelSwitchOutput struct {
	Decision         ModelSwitchDecision // nil: as if there were no hook
	SystemMessage    string
	TerminalSequence string
}

func (PreModelSwitchOutput) outputFor() string { return NamePreModelSwitch }

func (o PreModelSwitchOutput) answer(Event) (a answer, err error) {
	a.SystemMessage, a.TerminalSequence = o.SystemMessage, o.TerminalSequence
	if o.Decision != nil {
		a.specific.PermissionDecision, a.specific.PermissionDecisionReason = o.Decision.decideSwitch()
	}
	return a, nil
}

// PostModelSwitchOutput answers [PostModelSwitch].
type PostModelSwitchOutput struct {
	AdditionalContext string // given to the new model with its next request
	SystemMessage     string
	TerminalSequence  string
}

func (PostModelSwitchOutput) outputFor() string { return NamePostModelSwitch }

func (o PostModelSwitchOutput) answer(e Event) (answer, error) { return SetupOutput(o).answer(e) }

// TeammateIdleOutput answers [TeammateIdle].
type TeammateIdleOutput struct {
	Halt             string
	SystemMessage    string
	TerminalSequence string
}

func (TeammateIdleOutput) outputFor() string { return NameTeammateIdle }

func (o TeammateIdleOutput) answer(Event) (a answer, err error) {
	a.SystemMessage, a.TerminalSequence = o.SystemMessage, o.TerminalSequence
	a.halt(o.Halt)
	return a, nil
}

// TaskCreatedOutput answers [TaskCreated].
type TaskCreatedOutput struct {
	Halt             string
	SystemMessage    string
	TerminalSequence string
}

func (TaskCreatedOutput) outputFor() string { return NameTaskCreated }

func (o TaskCreatedOutput) answer(e Event) (answer, error) { return TeammateIdleOutput(o).answer(e) }

// TaskCompletedOutput answers [TaskCompleted].
type TaskCompletedOutput struct {
	Halt             string
	SystemMessage    string
	TerminalSequence string
}

func (TaskCompletedOutput) outputFor() string { return NameTaskCompleted }

func (o TaskCompletedOutput) answer(e Event) (answer, error) { return TeammateIdleOutput(o).answer(e) }

// ElicitationAction is an answer in the user's place to an MCP server:
// [Accept], [Decline] or [Cancel].
type ElicitationAction interface {
	action() (name string, content any)
}

// Accept answers with Content, a JSON object.
type Accept struct{ Content any }

// Decline says no.
type Decline struct{}

// Cancel does not answer.
type Cancel struct{}

func (a Accept) action() (string, any) { return "accept", a.Content }
func (Decline) action() (string, any)  { return "decline", nil }
func (Cancel) action() (string, any)   { return "cancel", nil }

// ElicitationOutput answers [Elicitation].
type ElicitationOutput struct {
	Action           ElicitationAction // nil: the user is asked
	SystemMessage    string
	TerminalSequence string
}

func (ElicitationOutput) outputFor() string { return NameElicitation }

func (o ElicitationOutput) answer(Event) (a answer, err error) {
	a.SystemMessage, a.TerminalSequence = o.SystemMessage, o.TerminalSequence
	if o.Action != nil {
		var content any
		a.specific.Action, content = o.Action.action()
		a.specific.Content, err = object("content", content)
	}
	return a, err
}

// ElicitationResultOutput answers [ElicitationResult].
type ElicitationResultOutput struct {
	Action           ElicitationAction // nil: the server gets what the user answered
	SystemMessage    string
	TerminalSequence string
}

func (ElicitationResultOutput) outputFor() string { return NameElicitationResult }

func (o ElicitationResultOutput) answer(e Event) (answer, error) {
	return ElicitationOutput(o).answer(e)
}

// ConfigChangeOutput answers [ConfigChange].
type ConfigChangeOutput struct {
	// Block, if it is not empty, is the reason for which the session keeps the
	// settings that it has. A change of the policy cannot be blocked
	// (documented), so it is left out there.
	Block            string
	SystemMessage    string
	TerminalSequence string
}

func (ConfigChangeOutput) outputFor() string { return NameConfigChange }

func (o ConfigChangeOutput) answer(e Event) (a answer, err error) {
	a.SystemMessage, a.TerminalSequence = o.SystemMessage, o.TerminalSequence
	if c, ok := e.(*ConfigChange); !ok || c.Source != "policy_settings" {
		a.block(o.Block)
	}
	return a, nil
}

// CwdChangedOutput answers [CwdChanged].
type CwdChangedOutput struct {
	// WatchPaths, if it is not nil, replaces the list of absolute paths whose
	// changes raise [FileChanged]; an empty list clears it.
	WatchPaths       []string
	SystemMessage    string
	TerminalSequence string
}

func (CwdChangedOutput) outputFor() string { return NameCwdChanged }

func (o CwdChangedOutput) answer(Event) (a answer, err error) {
	a.SystemMessage, a.TerminalSequence = o.SystemMessage, o.TerminalSequence
	if o.WatchPaths != nil {
		a.specific.WatchPaths = &o.WatchPaths
	}
	return a, nil
}

// FileChangedOutput answers [FileChanged].
type FileChangedOutput struct {
	WatchPaths       []string // as in [CwdChangedOutput]
	SystemMessage    string
	TerminalSequence string
}

func (FileChangedOutput) outputFor() string { return NameFileChanged }

func (o FileChangedOutput) answer(e Event) (answer, error) { return CwdChangedOutput(o).answer(e) }

// WorktreeCreateOutput answers [WorktreeCreate]. An error of the handler says
// that there is no worktree.
type WorktreeCreateOutput struct {
	Path string // of the worktree that was made; absolute
}

func (WorktreeCreateOutput) outputFor() string { return NameWorktreeCreate }

func (o WorktreeCreateOutput) answer(Event) (a answer, err error) {
	if !filepath.IsAbs(o.Path) || strings.ContainsAny(o.Path, "\r\n") || !utf8.ValidString(o.Path) {
		return a, errors.New("the worktree's path is not an absolute one in a single line of UTF-8")
	}
	a.plain = o.Path
	return a, nil
}
