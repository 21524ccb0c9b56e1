package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/session-keeper/session-keeper/internal/config"
)

// Exit codes, the same for every command. The README and each command's help
// name them.
const (
	exitOK          = 0
	exitFailed      = 1   // something did not work
	exitUsage       = 2   // the command line is wrong
	exitNotFound    = 3   // no such session, or more than one
	exitDamaged     = 4   // damage or a fault was found
	exitRefused     = 5   // would have overwritten something
	exitInterrupted = 130 // Ctrl-C, or a request to end
)

const programName = "session-keeper"

// app is what the commands get of the world: streams, environment and clock.
// Tests make their own; nothing in this package reads the process's.
type app struct {
	in   io.Reader
	out  io.Writer
	errw io.Writer

	env config.Env
	now func() time.Time

	loaded *config.Settings // by settings

	// colour is true when stdout is a terminal that shows colours and the
	// user did not set NO_COLOR.
	colour bool
	// interactive is true when stdin and stderr are terminals: a question can
	// be asked.
	interactive bool
}

// processApp is the app of the running process.
func processApp() *app {
	return &app{
		in:          os.Stdin,
		out:         os.Stdout,
		errw:        os.Stderr,
		env:         config.SystemEnv(),
		now:         time.Now,
		colour:      wantsColour(os.Stdout, os.Getenv),
		interactive: term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd())),
	}
}

func wantsColour(f *os.File, getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// settings reads the settings once per run, and prints their warnings. Commands
// that do not need them do not call it, so that a broken settings file never
// stands in the way of "version" or "--help".
func (a *app) settings() (*config.Settings, error) {
	if a.loaded != nil {
		return a.loaded, nil
	}
	s, err := config.Load(a.env)
	if err != nil {
		return nil, fail(exitFailed, err, "correct the settings file, then try again")
	}
	for _, w := range s.Warnings {
		a.say("warning", w.String())
	}
	a.loaded = s
	return s, nil
}

// paint wraps s in a terminal attribute ("1" bold, "2" faint, "31" red, "32"
// green, "33" yellow) where colour is wanted.
func (a *app) paint(attribute, s string) string {
	if !a.colour || s == "" {
		return s
	}
	return "\x1b[" + attribute + "m" + s + "\x1b[0m"
}

// exitError is an error with the exit code and the hints that go with it.
type exitError struct {
	code  int
	err   error // nil: the command has said all there is to say
	hints []string
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// fail gives err an exit code, and hints for the user in lines of their own.
func fail(code int, err error, hints ...string) error {
	return &exitError{code: code, err: err, hints: hints}
}

// failf is fail with a formatted message and no hint.
func failf(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

// usagef reports a wrong command line.
func usagef(format string, args ...any) error { return failf(exitUsage, format, args...) }

// quietExit ends with a code and no message: the output has said it.
func quietExit(code int) error { return &exitError{code: code} }

// run executes one command line and returns its exit code. The first Ctrl-C
// (or SIGTERM) cancels the command's context, the second one kills.
func run(a *app, args []string) (code int) {
	// An unrecovered panic would exit 2, which is "wrong usage" here.
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(a.errw, "%s: error: internal error: %v\n%s", programName, p, debug.Stack())
			code = exitFailed
		}
	}()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	root := newRoot(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		a.say("error", "interrupted")
		return exitInterrupted
	}
	return a.report(err)
}

// report prints err with its hints and returns its exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		a.say("error", err.Error())
		return exitFailed
	}
	if exit.err != nil {
		// err, not exit.err: what was wrapped around it belongs to it.
		a.say("error", err.Error())
	}
	for _, hint := range exit.hints {
		a.say("hint", hint)
	}
	return exit.code
}

// say writes one "session-keeper: error: …", "… hint: …" or "… warning: …"
// to stderr. It has nowhere to report that stderr is closed.
func (a *app) say(kind, message string) {
	_, _ = fmt.Fprintf(a.errw, "%s: %s: %s\n", programName, kind, plainText(strings.TrimRight(message, "\n")))
}

// writeJSON prints v as one indented JSON value; text such as <id> stays as it
// is.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// getenv reads the environment that the command runs in.
func (a *app) getenv(name string) string {
	if a.env.Getenv == nil {
		return ""
	}
	return a.env.Getenv(name)
}

// ask puts a question on the terminal and gives the answer's line without its
// blanks. No answer, at the end of input, is an empty one. Ctrl-C ends the wait
// with the context's error.
func (a *app) ask(ctx context.Context, question string) (string, error) {
	if _, err := fmt.Fprint(a.errw, question); err != nil {
		return "", err
	}
	type reply struct {
		line string
		err  error
	}
	// The read cannot be cancelled; after an interruption the process ends
	// with it.
	replies := make(chan reply, 1)
	go func() {
		line, err := bufio.NewReader(a.in).ReadString('\n')
		replies <- reply{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case r := <-replies:
		if r.err != nil && !errors.Is(r.err, io.EOF) {
			return "", fmt.Errorf("read the answer: %w", r.err)
		}
		return strings.TrimSpace(r.line), nil
	}
}
