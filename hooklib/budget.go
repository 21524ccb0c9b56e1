package hooklib

import "time"

const (
	// DefaultBudget is how long the client lets a hook run at most events
	// (observed on 2.1.332 for SessionStart and PreCompact, documented for the
	// others).
	DefaultBudget = 600 * time.Second
	// DefaultPromptBudget is the same for UserPromptSubmit (documented).
	DefaultPromptBudget = 30 * time.Second
	// DefaultDisplayBudget is the same for MessageDisplay (documented).
	DefaultDisplayBudget = 10 * time.Second
	// DefaultSessionEndBudget is the same for SessionEnd (observed on 2.1.332).
	DefaultSessionEndBudget = 1500 * time.Millisecond
	// MaxSessionEndBudget is the most that a timeout in a settings file makes
	// of it (observed on 2.1.332).
	MaxSessionEndBudget = 60 * time.Second

	// KillDelay is how long after SIGTERM the client sends SIGKILL (observed on
	// 2.1.332).
	KillDelay = 1500 * time.Millisecond
)

// Budget returns how long the client lets a hook run for an event before it
// sends SIGTERM to the hook and all that it has started. Timeout is that of
// the wiring, 0 if it has none, which the client does not tell the hook.
//
// At SessionEnd the rules are (observed on 2.1.332): without a timeout 1.5 s,
// or what CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS says; with one, the smaller
// of it and that variable, or 60 s. The timeout of a plugin's hook does not
// count. Other versions let all hooks share one budget (documented), so it is
// an upper bound and no promise.
func Budget(event string, timeout time.Duration, env Env) time.Duration {
	if event == NameSessionEnd {
		limit := env.SessionEndTimeout
		switch {
		case timeout <= 0 || env.PluginRoot != "":
			if limit <= 0 {
				return DefaultSessionEndBudget
			}
			return limit
		case limit <= 0:
			limit = MaxSessionEndBudget
		}
		return min(timeout, limit)
	}
	switch {
	case timeout > 0:
		return timeout
	case event == NameUserPromptSubmit:
		return DefaultPromptBudget
	case event == NameMessageDisplay:
		return DefaultDisplayBudget
	}
	return DefaultBudget
}

// Deadline returns when the client ends this hook, counted from the start of
// the process; the zero time in a mode. See [Budget]. Where no event came it
// may have been the one with the least time, a SessionEnd.
func (c *Call) Deadline() time.Time {
	if c.mode {
		return time.Time{}
	}
	name := NameSessionEnd
	if c.Event != nil {
		name = c.Event.Base().Name
	}
	return c.Start.Add(Budget(name, c.timeout, c.Env))
}

// Left returns how much time there is until [Call.Deadline]; never less than
// 0, and a very long time in a mode.
func (c *Call) Left() time.Duration {
	if c.mode {
		return 1<<63 - 1
	}
	return max(0, time.Until(c.Deadline()))
}
