package hooklib

import "context"

// Handlers says what a hook does at each event. A handler that returns an
// output has it printed as the client wants it, if there is no error; one of
// an event that takes no answer returns just an error.
type Handlers struct {
	SessionStart         func(ctx context.Context, c *Call, e *SessionStart) (SessionStartOutput, error)
	SessionEnd           func(ctx context.Context, c *Call, e *SessionEnd) error
	Setup                func(ctx context.Context, c *Call, e *Setup) (SetupOutput, error)
	UserPromptSubmit     func(ctx context.Context, c *Call, e *UserPromptSubmit) (UserPromptSubmitOutput, error)
	UserPromptExpansion  func(ctx context.Context, c *Call, e *UserPromptExpansion) (UserPromptExpansionOutput, error)
	Stop                 func(ctx context.Context, c *Call, e *Stop) (StopOutput, error)
	StopFailure          func(ctx context.Context, c *Call, e *StopFailure) error
	SubagentStart        func(ctx context.Context, c *Call, e *SubagentStart) (SubagentStartOutput, error)
	SubagentStop         func(ctx context.Context, c *Call, e *SubagentStop) (SubagentStopOutput, error)
	PreCompact           func(ctx context.Context, c *Call, e *PreCompact) (PreCompactOutput, error)
	PostCompact          func(ctx context.Context, c *Call, e *PostCompact) error
	PreToolUse           func(ctx context.Context, c *Call, e *PreToolUse) (PreToolUseOutput, error)
	PostToolUse          func(ctx context.Context, c *Call, e *PostToolUse) (PostToolUseOutput, error)
	PostToolUseFailure   func(ctx context.Context, c *Call, e *PostToolUseFailure) (PostToolUseFailureOutput, error)
	PostToolBatch        func(ctx context.Context, c *Call, e *PostToolBatch) (PostToolBatchOutput, error)
	PermissionRequest    func(ctx context.Context, c *Call, e *PermissionRequest) (PermissionRequestOutput, error)
	PermissionDenied     func(ctx context.Context, c *Call, e *PermissionDenied) (PermissionDeniedOutput, error)
	PreSkillShellCommand func(ctx context.Context, c *Call, e *PreSkillShellCommand) (PreSkillShellCommandOutput, error)
	Notification         func(ctx context.Context, c *Call, e *Notification) (NotificationOutput, error)
	MessageDisplay       func(ctx context.Context, c *Call, e *MessageDisplay) (MessageDisplayOutput, error)
	PreModelSwitch       func(ctx context.Context, c *Call, e *PreModelSwitch) (PreModelSwitchOutput, error)
	PostModelSwitch      func(ctx context.Context, c *Call, e *PostModelSwitch) (PostModelSwitchOutput, error)
	TeammateIdle         func(ctx context.Context, c *Call, e *TeammateIdle) (TeammateIdleOutput, error)
	TaskCreated          func(ctx context.Context, c *Call, e *TaskCreated) (TaskCreatedOutput, error)
	TaskCompleted        func(ctx context.Context, c *Call, e *TaskCompleted) (TaskCompletedOutput, error)
	Elicitation          func(ctx context.Context, c *Call, e *Elicitation) (ElicitationOutput, error)
	ElicitationResult    func(ctx context.Context, c *Call, e *ElicitationResult) (ElicitationResultOutput, error)
	ConfigChange         func(ctx context.Context, c *Call, e *ConfigChange) (ConfigChangeOutput, error)
	InstructionsLoaded   func(ctx context.Context, c *Call, e *InstructionsLoaded) error
	CwdChanged           func(ctx context.Context, c *Call, e *CwdChanged) (CwdChangedOutput, error)
	FileChanged          func(ctx context.Context, c *Call, e *FileChanged) (FileChangedOutput, error)
	DirectoryAdded       func(ctx context.Context, c *Call, e *DirectoryAdded) error
	WorktreeCreate       func(ctx context.Context, c *Call, e *WorktreeCreate) (WorktreeCreateOutput, error)
	WorktreeRemove       func(ctx context.Context, c *Call, e *WorktreeRemove) error
}

// run calls the handler of c's event, and tells whether there is one.
func (h *Handlers) run(ctx context.Context, c *Call) (out Output, found bool, err error) {
	switch e := c.Event.(type) {
	case *SessionStart:
		return reply(h.SessionStart, ctx, c, e)
	case *SessionEnd:
		return watch(h.SessionEnd, ctx, c, e)
	case *Setup:
		return reply(h.Setup, ctx, c, e)
	case *UserPromptSubmit:
		return reply(h.UserPromptSubmit, ctx, c, e)
	case *UserPromptExpansion:
		return reply(h.UserPromptExpansion, ctx, c, e)
	case *Stop:
		return reply(h.Stop, ctx, c, e)
	case *StopFailure:
		return watch(h.StopFailure, ctx, c, e)
	case *SubagentStart:
		return reply(h.SubagentStart, ctx, c, e)
	case *SubagentStop:
		return reply(h.SubagentStop, ctx, c, e)
	case *PreCompact:
		return reply(h.PreCompact, ctx, c, e)
	case *PostCompact:
		return watch(h.PostCompact, ctx, c, e)
	case *PreToolUse:
		return reply(h.PreToolUse, ctx, c, e)
	case *PostToolUse:
		return reply(h.PostToolUse, ctx, c, e)
	case *PostToolUseFailure:
		return reply(h.PostToolUseFailure, ctx, c, e)
	case *PostToolBatch:
		return reply(h.PostToolBatch, ctx, c, e)
	case *PermissionRequest:
		return reply(h.PermissionRequest, ctx, c, e)
	case *PermissionDenied:
		return reply(h.PermissionDenied, ctx, c, e)
	case *PreSkillShellCommand:
		return reply(h.PreSkillShellCommand, ctx, c, e)
	case *Notification:
		return reply(h.Notification, ctx, c, e)
	case *MessageDisplay:
		return reply(h.MessageDisplay, ctx, c, e)
	case *PreModelSwitch:
		return reply(h.PreModelSwitch, ctx, c, e)
	case *PostModelSwitch:
		return reply(h.PostModelSwitch, ctx, c, e)
	case *TeammateIdle:
		return reply(h.TeammateIdle, ctx, c, e)
	case *TaskCreated:
		return reply(h.TaskCreated, ctx, c, e)
	case *TaskCompleted:
		return reply(h.TaskCompleted, ctx, c, e)
	case *Elicitation:
		return reply(h.Elicitation, ctx, c, e)
	case *ElicitationResult:
		return reply(h.ElicitationResult, ctx, c, e)
	case *ConfigChange:
		return reply(h.ConfigChange, ctx, c, e)
	case *InstructionsLoaded:
		return watch(h.InstructionsLoaded, ctx, c, e)
	case *CwdChanged:
		return reply(h.CwdChanged, ctx, c, e)
	case *FileChanged:
		return reply(h.FileChanged, ctx, c, e)
	case *DirectoryAdded:
		return watch(h.DirectoryAdded, ctx, c, e)
	case *WorktreeCreate:
		return reply(h.WorktreeCreate, ctx, c, e)
	case *WorktreeRemove:
		return watch(h.WorktreeRemove, ctx, c, e)
	}
	return nil, false, nil
}

func reply[E Event, O Output](handle func(context.Context, *Call, E) (O, error), ctx context.Context, c *Call, e E) (Output, bool, error) {
	if handle == nil {
		return nil, false, nil
	}
	out, err := handle(ctx, c, e)
	return out, true, err
}

func watch[E Event](handle func(context.Context, *Call, E) error, ctx context.Context, c *Call, e E) (Output, bool, error) {
	if handle == nil {
		return nil, false, nil
	}
	return nil, true, handle(ctx, c, e)
}
