package hooklib

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// The exit codes of a hook. There is no third.
const (
	exitDone   = 0
	exitFailed = 1
)

// DefaultEventTimeout is how long after the start of the process the event
// must be complete. A session's end leaves a hook 1.5 s by default (observed
// on 2.1.332), and what follows the event takes milliseconds.
const DefaultEventTimeout = time.Second

// maxPanicText bounds, in bytes, what of a panic's value is shown.
const maxPanicText = 200

// processStart is as near to the start of the process as a package can see.
var processStart = time.Now()

// Hook is a program that the client runs for its events.
type Hook struct {
	Name    string // the program's name in messages; "" for that of the executable
	Version string // what -version prints after the name; "" for what the build recorded
	Usage   string // what -h prints

	// On holds a handler for each event that the hook is for. An error is for
	// the user to see: it is printed, with its hint if it is a [*Failure], and
	// the exit code is 1. What the user need not see is logged, and nil
	// returned. The context is never cancelled, which would take a goroutine;
	// [Call.Left] and [Call.Interrupted] tell when to end.
	On Handlers

	// Handle handles each event that On has no handler for. It may be all
	// that there is: a hook that does the same at many events needs no other.
	// It prints through [Call.Stdout] or [Call.Answer].
	Handle func(ctx context.Context, c *Call) error

	// NoEvent is called in place of a handler when standard input gave no
	// usable event: none in time, or something that is not one. Call.Event is
	// nil then; Call.Env may still name the session. It returns whether there
	// was something to do all the same, and an error as a handler does. If
	// not, and without NoEvent, what was wrong is printed, and the exit code
	// is 0. It is logged in any case.
	NoEvent func(ctx context.Context, c *Call) (handled bool, err error)

	// Modes are other things that the program can do, each behind a flag.
	// No event is read for them.
	Modes []Mode

	// Log takes log lines; nil drops them.
	Log Logger

	// EventTimeout replaces DefaultEventTimeout if it is not 0.
	EventTimeout time.Duration

	// Timeout is the timeout with which the hook is wired, 0 for none. The
	// client does not tell the hook; [Call.Left] counts with it.
	Timeout time.Duration

	// AcceptForeign hands events of other agents to the handlers, who can
	// tell them by [Call.Foreign]. Without it the hook does nothing for them:
	// it logs one line, prints nothing and exits 0.
	AcceptForeign bool

	// Getenv replaces os.Getenv if it is not nil.
	Getenv func(name string) string
}

// Mode is another thing that a hook's program can do.
type Mode struct {
	Flag  string // the flag's name, without a dash; it takes one argument
	Usage string
	Run   func(ctx context.Context, c *Call, argument string) error
}

// Call is one run of a hook.
type Call struct {
	Event  Event // nil in a mode, and in NoEvent
	Env    Env
	Start  time.Time // the process's start, from which all deadlines count
	Log    Logger
	Stdout io.Writer // part of the protocol; fails in a handler of On, whose output is printed instead
	Stderr io.Writer

	mode        bool          // no event is read
	timeout     time.Duration // of the wiring
	signals     <-chan os.Signal
	interrupted bool
}

// Interrupted tells whether a signal has asked the process to end. A step
// that was begun is to be finished, a long one not begun any more: the client
// kills what is left about 1.5 s after the signal (observed on 2.1.332).
func (c *Call) Interrupted() bool {
	if c.interrupted {
		return true
	}
	select {
	case <-c.signals: // never ready for a nil channel
		c.interrupted = true
	default:
	}
	return c.interrupted
}

// Elapsed returns the time since the process started.
func (c *Call) Elapsed() time.Duration { return time.Since(c.Start) }

// Failure is an error with a hint: what the user can do about it.
type Failure struct {
	Err  error
	Hint string
}

func (f *Failure) Error() string {
	if f.Err == nil {
		return "unknown failure"
	}
	return f.Err.Error()
}

func (f *Failure) Unwrap() error { return f.Err }

// Main runs h with the process's arguments and standard streams and returns
// the exit code, 0 or 1. It is meant to be all that main calls:
//
//	func main() { os.Exit(hooklib.Main(hook)) }
func Main(h Hook) int {
	// First thing: the client may be tearing down already. Notify, not Ignore,
	// because an ignored signal stays ignored in a child.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, os.Interrupt)
	// Without this a write to a standard stream that nobody reads any more
	// ends the process. With it the write returns an error.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	// What cannot be recovered from shall at least not exit 2: at this level
	// the runtime ends the process by a signal instead.
	debug.SetTraceback("crash")
	noCoreDump()

	returned := false
	defer func() {
		// runtime.Goexit in a handler cannot be recovered from, and once the
		// main goroutine is gone the runtime exits 2.
		if !returned {
			os.Exit(exitFailed)
		}
	}()
	code := run(h, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, processStart, signals)
	returned = true
	return code
}

// Run runs h with the given arguments and streams and returns the exit code,
// 0 or 1. The deadline for the event holds if stdin is an *os.File; any other
// reader must end by itself. Run installs no signal handling.
func Run(h Hook, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return run(h, args, stdin, stdout, stderr, time.Now(), nil)
}

func run(h Hook, args []string, stdin io.Reader, stdout, stderr io.Writer, start time.Time, signals <-chan os.Signal) (code int) {
	c := &Call{Start: start, Log: h.Log, Stdout: stdout, Stderr: stderr, timeout: h.Timeout, signals: signals}
	if c.Log == nil {
		c.Log = Discard
	}
	if c.Stdout == nil {
		c.Stdout = io.Discard
	}
	if c.Stderr == nil {
		c.Stderr = io.Discard
	}
	name := h.Name
	if name == "" {
		name = filepath.Base(os.Args[0])
	}

	defer func() {
		if v := recover(); v != nil {
			code = exitFailed
			reportPanic(c, name, v)
		}
	}()

	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors and help are printed here, once
	version := fs.Bool("version", false, "print the version")
	arguments := make([]string, len(h.Modes))
	for i, m := range h.Modes {
		fs.StringVar(&arguments[i], m.Flag, "", m.Usage)
	}
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(c.Stderr, strings.TrimRight(h.Usage, "\n"))
		return exitDone
	case err != nil:
		return fail(c, name, &Failure{Err: err, Hint: fmt.Sprintf("%s -h tells how it is used", name)})
	case fs.NArg() > 0:
		return fail(c, name, &Failure{
			Err:  fmt.Errorf("unexpected argument %s", quote(fs.Arg(0))),
			Hint: fmt.Sprintf("the event is read from standard input; %s -h tells how it is used", name),
		})
	}
	if *version {
		v := h.Version
		if v == "" {
			v = BuildVersion()
		}
		if _, err := fmt.Fprintf(c.Stdout, "%s %s\n", name, v); err != nil {
			return exitFailed
		}
		return exitDone
	}

	getenv := h.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	c.Env = ReadEnv(getenv)
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for i, m := range h.Modes {
		if !given[m.Flag] {
			continue
		}
		if m.Run == nil {
			return fail(c, name, fmt.Errorf("-%s: not built in", m.Flag))
		}
		c.mode = true
		return finish(c, name, m.Run(context.Background(), c, arguments[i]))
	}

	if h.Handle == nil && reflect.ValueOf(h.On).IsZero() {
		return fail(c, name, errors.New("this hook has no handler"))
	}
	timeout := h.EventTimeout
	if timeout == 0 {
		timeout = DefaultEventTimeout
	}
	event, err := ReadEvent(stdin, start.Add(timeout))
	if err != nil {
		// Not a failure of ours, and nothing the user could mend: what this
		// event was to archive is found again later.
		c.Log.Log(Warn, "no usable event", "error", err)
		if h.NoEvent != nil {
			handled, err := h.NoEvent(context.Background(), c)
			if handled || err != nil {
				return finish(c, name, err)
			}
		}
		fmt.Fprintf(c.Stderr, "%s: warning: read event: %v\n", name, err)
		return exitDone
	}
	c.Event = event
	if agent := c.Foreign(); agent != "" && !h.AcceptForeign {
		c.Log.Log(Info, "the event of another agent: nothing to do", "agent", agent)
		return exitDone
	}
	return finish(c, name, h.handle(context.Background(), c))
}

// handle has c's event handled, and prints the answer.
func (h *Hook) handle(ctx context.Context, c *Call) error {
	stdout := c.Stdout
	c.Stdout = reserved{}
	out, found, err := h.On.run(ctx, c)
	c.Stdout = stdout
	switch {
	case err != nil:
		return err
	case out != nil:
		return c.Answer(out)
	case found:
		return nil
	case h.Handle != nil:
		return h.Handle(ctx, c)
	}
	c.Log.Log(Debug, "no handler for this event")
	return nil
}

// Answer prints out as the answer to c's event, in a single write. It is for a
// [Hook].Handle, which must print nothing else; the outputs of On's handlers
// are printed without it. An output that the client would not take as a whole
// is an error, and nothing is printed. See [Encode].
func (c *Call) Answer(out Output) error {
	line, err := Encode(c.Event, out)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if line == nil {
		return nil
	}
	if _, err := c.Stdout.Write(line); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// reserved is the standard output of a handler whose output is printed for it.
type reserved struct{}

func (reserved) Write([]byte) (int, error) {
	return 0, errors.New("standard output is kept for the answer that the handler returns")
}

func finish(c *Call, name string, err error) int {
	if err != nil {
		return fail(c, name, err)
	}
	return exitDone
}

// fail reports an error that the user must see.
func fail(c *Call, name string, err error) int {
	c.Log.Log(Error, "failed", "error", err)
	fmt.Fprintf(c.Stderr, "%s: error: %v\n", name, err)
	var f *Failure
	if errors.As(err, &f) && f.Hint != "" {
		fmt.Fprintf(c.Stderr, "%s: hint: %s\n", name, f.Hint)
	}
	return exitFailed
}

// reportPanic tells of a panic. The stack holds no text of a conversation:
// values in it are addresses.
func reportPanic(c *Call, name string, value any) {
	stack := debug.Stack()
	// The logger or a broken value's String method may be what panicked.
	defer func() {
		if recover() != nil {
			fmt.Fprintf(c.Stderr, "%s: error: internal error\n", name)
		}
	}()
	text := fmt.Sprint(value)
	if len(text) > maxPanicText {
		text = text[:maxPanicText] + "…"
	}
	text = strings.Join(strings.Fields(text), " ")
	fmt.Fprintf(c.Stderr, "%s: error: internal error: %s\n", name, text)
	c.Log.Log(Error, "internal error", "error", text, "stack", string(stack))
}

// BuildVersion returns the version that the build of this program recorded,
// "(devel)" if none.
func BuildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// maxQuoted bounds, in bytes, what of bad input is shown.
const maxQuoted = 64

// quote shows bad input, cut short.
func quote(s string) string {
	if len(s) <= maxQuoted {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q… (%d bytes)", s[:maxQuoted], len(s))
}
