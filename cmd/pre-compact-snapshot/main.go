// Pre-compact-snapshot archives Claude Code sessions before they are compacted.
//
// Usage:
//
//	pre-compact-snapshot < event.json
//	pre-compact-snapshot -version
//
// It is a hook: the client runs it for the event PreCompact and, where it is
// wired to it, for PostCompact, and writes the event to its standard input as
// one JSON object. It gives the session's transcript a second name in a local
// folder (the spool) and starts session-keeper-worker, which archives it, and
// waits for nothing: a compaction is neither held up nor changed.
//
// It prints nothing, unless the settings hold instructions for summaries:
//
//	[compact]
//	instructions = "Keep the names of all files that were changed."
//
// Then it prints that text, which the client adds to the instructions for the
// summary.
//
// Exit codes:
//
//	0  always, at an event: what went wrong is in the log, and doctor tells it
//	1  wrong usage
//
// A session stays out of the archive for the reasons that hold for
// session-end-archive.
package main

import (
	"os"

	"github.com/session-keeper/session-keeper/hooklib"
	"github.com/session-keeper/session-keeper/internal/handoff"
)

const name = "pre-compact-snapshot"

const usage = `usage: pre-compact-snapshot < event.json
       pre-compact-snapshot -version

Archives the session that an event of Claude Code names, before it is compacted.
The client runs it as a hook for PreCompact; "session-keeper install" wires it.

  -version   print the version
  -h         print this

It prints what the settings hold as compact.instructions, else nothing, and exits 0.
Kept out: SESSION_KEEPER=off, archive.exclude, session-keeper pause, forget.
`

func main() { os.Exit(hooklib.Main(hook())) }

func hook() hooklib.Hook {
	return hooklib.Hook{
		Name:  name,
		Usage: usage,
		On: hooklib.Handlers{
			PreCompact:  handoff.HandlePreCompact,
			PostCompact: handoff.HandlePostCompact,
		},
		NoEvent: handoff.HandleNoCompact,
		Log:     handoff.OpenLog(name, os.Stderr),
	}
}
