// Package hooklib speaks the hook protocol of Claude Code: event in, answer out.
//
// A hook is a program that the client starts for an event of a session. The
// event arrives as one JSON object on standard input, the answer is what the
// program prints and the code it exits with. This package reads the event into
// the type of its name, runs the handler that a [Hook] has for it, prints the
// output that the handler returns, and turns whatever happens into an exit
// code:
//
//	0  done, or nothing to do
//	1  a failure that the user must see; one line on stderr says what and what to do
//
// It never exits 2, which the client takes as "block": not for a panic in the
// handler, not for a bad flag, not for a hook that was put together wrongly. To
// block, a handler says so in its output.
//
// docs/hooks.md in this module has a whole hook and how to wire it; the package
// hooktest runs one as the client does.
//
// # What it promises
//
//   - One JSON value is read, within a deadline that counts from the start of
//     the process. The end of standard input is never waited for: some clients
//     keep the other end open (observed in the field from 2.0 to 2.1.258).
//   - Every field may be absent, unknown, or of another type than expected.
//     Nothing of the event is lost: what has no place stays as raw JSON, and
//     [Common.Raw] is all that came.
//   - Each event has its own type of output, or none, so that what the client
//     rejects or ignores there cannot be said; what a type cannot rule out,
//     such as a text that is too long, is an error. The answer is printed in a
//     single write, if the handler returned no error, and is the same bytes each
//     time.
//   - An event that another agent sent, because it reads the client's settings
//     as well, does nothing; see [Foreign].
//   - Secrets of the environment are not printed; see [Secret].
//   - Signals are caught before anything else is done, so that a client that
//     tears down does not cut a step in half. They end nothing by themselves;
//     [Call.Interrupted] tells a handler not to begin anything long.
//   - A write to a standard stream whose reader has gone is an error, never
//     the end of the process.
//   - The package starts no goroutine.
//
// # What Go does not let a program promise
//
// A fatal error of the Go runtime cannot be recovered from: memory exhausted, a
// stack over its limit, a concurrent map write, all goroutines asleep, a panic
// in a goroutine of the handler's. By itself it exits 2. Under [Main] it ends
// the process by SIGABRT instead, without a core file, which the client takes
// for a failure; Windows has no such signal. The package keeps such errors out
// of reach as far as it can (one goroutine, bounded input, bounded nesting), and
// a hook is best wired as a shell command that ends in "|| exit 1", which turns
// any failure into 1.
package hooklib
