package hooklib

// The names of the events that have a type here: all that client 2.1.332 has
// (documented). Every other name, and none, arrives as [Unknown].
const (
	NameSessionStart         = "SessionStart"
	NameSessionEnd           = "SessionEnd"
	NameSetup                = "Setup"
	NameUserPromptSubmit     = "UserPromptSubmit"
	NameUserPromptExpansion  = "UserPromptExpansion"
	NameStop                 = "Stop"
	NameStopFailure          = "StopFailure"
	NameSubagentStart        = "SubagentStart"
	NameSubagentStop         = "SubagentStop"
	NamePreCompact           = "PreCompact"
	NamePostCompact          = "PostCompact"
	NamePreToolUse           = "PreToolUse"
	NamePostToolUse          = "PostToolUse"
	NamePostToolUseFailure   = "PostToolUseFailure"
	NamePostToolBatch        = "PostToolBatch"
	NamePermissionRequest    = "PermissionRequest"
	NamePermissionDenied     = "PermissionDenied"
	NamePreSkillShellCommand = "PreSkillShellCommand"
	NameNotification         = "Notification"
	NameMessageDisplay       = "MessageDisplay"
	NamePreModelSwitch       = "PreModelSwitch"
	NamePostModelSwitch      = "PostModelSwitch"
	NameTeammateIdle         = "TeammateIdle"
	NameTaskCreated          = "TaskCreated"
	NameTaskCompleted        = "TaskCompleted"
	NameElicitation          = "Elicitation"
	NameElicitationResult    = "ElicitationResult"
	NameConfigChange         = "ConfigChange"
	NameInstructionsLoaded   = "InstructionsLoaded"
	NameCwdChanged           = "CwdChanged"
	NameFileChanged          = "FileChanged"
	NameDirectoryAdded       = "DirectoryAdded"
	NameWorktreeCreate       = "WorktreeCreate"
	NameWorktreeRemove       = "WorktreeRemove"
)

// Names returns the names of all events that have a type here, in a fixed
// order.
func Names() []string {
	return []string{
		NameSessionStart,
		NameSessionEnd,
		NameSetup,
		NameUserPromptSubmit,
		NameUserPromptExpansion,
		NameStop,
		NameStopFailure,
		NameSubagentStart,
		NameSubagentStop,
		NamePreCompact,
		NamePostCompact,
		NamePreToolUse,
		NamePostToolUse,
		NamePostToolUseFailure,
		NamePostToolBatch,
		NamePermissionRequest,
		NamePermissionDenied,
		NamePreSkillShellCommand,
		NameNotification,
		NameMessageDisplay,
		NamePreModelSwitch,
		NamePostModelSwitch,
		NameTeammateIdle,
		NameTaskCreated,
		NameTaskCompleted,
		NameElicitation,
		NameElicitationResult,
		NameConfigChange,
		NameInstructionsLoaded,
		NameCwdChanged,
		NameFileChanged,
		NameDirectoryAdded,
		NameWorktreeCreate,
		NameWorktreeRemove,
	}
}

// newEvent returns an empty event of the type that belongs to name.
func newEvent(name string) Event {
	switch name {
	case NameSessionStart:
		return new(SessionStart)
	case NameSessionEnd:
		return new(SessionEnd)
	case NameSetup:
		return new(Setup)
	case NameUserPromptSubmit:
		return new(UserPromptSubmit)
	case NameUserPromptExpansion:
		return new(UserPromptExpansion)
	case NameStop:
		return new(Stop)
	case NameStopFailure:
		return new(StopFailure)
	case NameSubagentStart:
		return new(SubagentStart)
	case NameSubagentStop:
		return new(SubagentStop)
	case NamePreCompact:
		return new(PreCompact)
	case NamePostCompact:
		return new(PostCompact)
	case NamePreToolUse:
		return new(PreToolUse)
	case NamePostToolUse:
		return new(PostToolUse)
	case NamePostToolUseFailure:
		return new(PostToolUseFailure)
	case NamePostToolBatch:
		return new(PostToolBatch)
	case NamePermissionRequest:
		return new(PermissionRequest)
	case NamePermissionDenied:
		return new(PermissionDenied)
	case NamePreSkillShellCommand:
		return new(PreSkillShellCommand)
	case NameNotification:
		return new(Notification)
	case NameMessageDisplay:
		return new(MessageDisplay)
	case NamePreModelSwitch:
		return new(PreModelSwitch)
	case NamePostModelSwitch:
		return new(PostModelSwitch)
	case NameTeammateIdle:
		return new(TeammateIdle)
	case NameTaskCreated:
		return new(TaskCreated)
	case NameTaskCompleted:
		return new(TaskCompleted)
	case NameElicitation:
		return new(Elicitation)
	case NameElicitationResult:
		return new(ElicitationResult)
	case NameConfigChange:
		return new(ConfigChange)
	case NameInstructionsLoaded:
		return new(InstructionsLoaded)
	case NameCwdChanged:
		return new(CwdChanged)
	case NameFileChanged:
		return new(FileChanged)
	case NameDirectoryAdded:
		return new(DirectoryAdded)
	case NameWorktreeCreate:
		return new(WorktreeCreate)
	case NameWorktreeRemove:
		return new(WorktreeRemove)
	}
	return new(Unknown)
}
