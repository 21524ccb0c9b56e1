// Package sessionkeeper keeps Claude Code sessions: archived, findable, resumable.
//
// This package holds no code. The parts are:
//
//   - hooklib: the hook protocol, event in, output and exit code out
//   - transcript: the transcript format and where the client keeps it
//   - archive: the store, and archive/spool, the hand-off in front of it
//   - cmd: the hook binaries and session-keeper, the command for people
//   - internal: what the commands share
//
// README.md shows a session, FORMAT.md the bytes on disk.
package sessionkeeper
