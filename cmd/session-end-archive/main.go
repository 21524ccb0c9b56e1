// Session-end-archive archives Claude Code sessions as they end.
//
// Usage:
//
//	session-end-archive < event.json
//	session-end-archive -version
//
// It is a hook: the client runs it for the event SessionEnd and, where it is
// wired to them, for Stop, StopFailure and SubagentStop, and writes the event
// to its standard input as one JSON object. It finds the session's transcript,
// gives it a second name in a local folder (the spool), so that its bytes
// outlive the client's clean-up, and returns within milliseconds, whatever the
// transcript's size. It starts session-keeper-worker, which moves what is in the
// spool to the archive, and for a small session waits for that, a tenth of a
// second at most.
//
// It prints nothing on standard output, and never changes a transcript.
//
// Exit codes:
//
//	0  the session was handed over, or there is nothing to do
//	1  a failure that the user must see; stderr says what to do about it
//
// There is no exit code 2, which the client would take as an objection.
//
// A session stays out of the archive if SESSION_KEEPER is "off" in the
// environment, if its directory matches a glob of archive.exclude in the
// settings, while archiving is paused (session-keeper pause), and after it was
// forgotten (session-keeper forget).
//
// What it does is logged, one JSON object a line, in the state folder under
// log/: ids, paths, sizes and errors, never text of a conversation.
package main

import (
	"os"

	"github.com/session-keeper/session-keeper/hooklib"
	"github.com/session-keeper/session-keeper/internal/handoff"
)

const name = "session-end-archive"

const usage = `usage: session-end-archive < event.json
       session-end-archive -version

Archives the session that an event of Claude Code names. The client runs it as
a hook for SessionEnd, Stop, StopFailure and SubagentStop; "session-keeper
install" wires it.

  -version   print the version
  -h         print this

Exit codes: 0 done or nothing to do, 1 a failure that the user must see.
Kept out: SESSION_KEEPER=off, archive.exclude, session-keeper pause, forget.
`

func main() { os.Exit(hooklib.Main(hook())) }

func hook() hooklib.Hook {
	return hooklib.Hook{
		Name:    name,
		Usage:   usage,
		Handle:  handoff.HandleEvent,
		NoEvent: handoff.HandleNoEvent,
		Log:     handoff.OpenLog(name, os.Stderr),
	}
}
