package keeper

import (
	"github.com/session-keeper/session-keeper/hooklib"
	"github.com/session-keeper/session-keeper/internal/handoff"
	"github.com/session-keeper/session-keeper/internal/logfile"
)

// OpenLogAt returns a log in a state folder.
func OpenLogAt(state string) hooklib.Logger {
	return logfile.New(handoff.LogDir(state), "test", nil, nil)
}
