// Package hooktest tests a hook of one's own the way Claude Code runs it.
//
// A [Session] is a home with a session in it, in a temporary folder. It makes
// the payload of any event as the client sends it, and the environment that the
// client gives. [Session.Run] runs a program with them, as the client does: in
// a session and process group of its own, with sockets for standard streams,
// standard input left open, SIGTERM to all that it has started when its time is
// up, and SIGKILL 1.5 s later. [Session.Call] runs a [hooklib.Hook] within the
// test. [Result.Check] then says whether the client would have been content:
//
//	func TestHook(t *testing.T) {
//		s := hooktest.New(t)
//		p := hooktest.Program{Path: hooktest.Build(t, ".")}
//		s.Run(t, p, s.Payload(hooklib.NameSessionStart)).Check(t)
//		s.Torture(t, p, s.Payload(hooklib.NameSessionStart))
//	}
//
// Nothing that a program has started is alive when the test ends, as far as
// the platform lets it be found.
package hooktest
