// Package hooklib speaks the hook protocol of Claude Code: event in, exit code out.
//
// A hook is a program that the client starts for an event of a session. The
// event arrives as one JSON object on standard input, the answer is what the
// program prints and the code it exits with. This package reads the event,
// runs a [Hook]'s handler and turns whatever happens into an exit code:
//
//	0  done, or nothing to do
//	1  a failure that the user must see; one line on stderr says what and what to do
//
// It never exits 2, which the client takes as "block": not for a panic in the
// handler, not for a bad flag, not for a hook that was put together wrongly.
//
// # What it promises
//
//   - One JSON value is read, within a deadline that counts from the start of
//     the process. The end of standard input is never waited for: some clients
//     keep the other end open (observed in the field from 2.0 to 2.1.258).
//   - Every field may be absent, unknown, or of another type than expected.
//     Nothing of the event is lost: what has no place stays as raw JSON.
//   - Signals are caught before anything else is done, so that a client that
//     tears down does not cut a step in half. They end nothing by themselves;
//     [Call.Interrupted] tells a handler not to begin anything long.
//   - A write to a standard stream whose reader has gone is an error, never
//     the end of the process.
//   - The package starts no goroutine.
//
// # What Go does not let a program promise
//
// A fatal error of the Go runtime cannot be recovered from and exits 2: memory
// exhausted, a stack over its limit, a concurrent map write, all goroutines
// asleep. The package keeps them out of reach as far as it can (one goroutine,
// bounded input, bounded nesting). What is left is the wiring's part: a hook
// is to be wired as a shell command that ends in "|| exit 1", which turns any
// failure into 1.
package hooklib
