package handoff

import (
	"context"

	"github.com/session-keeper/session-keeper/hooklib"
	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/optout"
)

// HandlePreCompact hands a session off that is about to be compacted, and
// answers with the instructions for the summary that the settings hold, if any.
// A compaction must go on whatever is wrong with us, so there is never an error:
// it is logged, as is what there was to do about it.
func HandlePreCompact(ctx context.Context, c *hooklib.Call, _ *hooklib.PreCompact) (hooklib.PreCompactOutput, error) {
	logFailure(c, handleEvent(ctx, c))
	return hooklib.PreCompactOutput{Instructions: compactInstructions()}, nil
}

// HandlePostCompact hands off a session that was compacted.
func HandlePostCompact(ctx context.Context, c *hooklib.Call, _ *hooklib.PostCompact) error {
	logFailure(c, handleEvent(ctx, c))
	return nil
}

// HandleNoCompact is HandleNoEvent for a hook that never fails.
func HandleNoCompact(ctx context.Context, c *hooklib.Call) (handled bool, err error) {
	handled, err = HandleNoEvent(ctx, c)
	logFailure(c, err)
	return handled, nil
}

func logFailure(c *hooklib.Call, err error) {
	if err != nil {
		c.Log.Log(hooklib.Error, "failed", "error", err)
	}
}

func compactInstructions() string {
	env := config.SystemEnv()
	if optout.IsOff(env.Getenv) {
		return ""
	}
	s, err := config.Load(env)
	if err != nil {
		return "" // HandleEvent has told
	}
	return s.Compact.Instructions
}
