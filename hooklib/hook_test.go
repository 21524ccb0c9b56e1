package hooklib

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
)

// hookVariable makes the test binary one of the hooks of testHooks.
const hookVariable = "HOOKLIB_TEST_HOOK"

func TestMain(m *testing.M) {
	if name := os.Getenv(hookVariable); name != "" {
		os.Exit(Main(testHooks[name]))
	}
	flag.Parse()
	os.Exit(m.Run())
}

var testHooks = map[string]Hook{
	"goexit": {Name: "h", Handle: func(context.Context, *Call) error { runtime.Goexit(); return nil }},
	"panic":  {Name: "h", Handle: func(context.Context, *Call) error { panic("boom") }},
	"runtime error": {Name: "h", Handle: func(_ context.Context, c *Call) error {
		panic(runtimeError(len(c.Event.Base().Name)))
	}},
	"no handler": {Name: "h"},
	"nothing":    {},
	"stack": {Name: "h", Handle: func(context.Context, *Call) error {
		debug.SetMaxStack(1 << 16)
		return fmt.Errorf("%d deep", deeper(1))
	}},
	"goroutine": {Name: "h", Handle: func(context.Context, *Call) error {
		go panic("in a goroutine")
		time.Sleep(time.Minute)
		return nil
	}},
	"unlock": {Name: "h", Handle: func(context.Context, *Call) error {
		new(sync.Mutex).Unlock()
		return nil
	}},
	"chatty": {Name: "h", Handle: func(_ context.Context, c *Call) error {
		fmt.Fprintln(c.Stderr, "ready")
		// The test closes the other end of both streams, then standard input.
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
		_, errOut := fmt.Fprintln(c.Stdout, "late")
		_, errErr := fmt.Fprintln(c.Stderr, "late")
		if errOut == nil || errErr == nil {
			return errors.New("late writes reported no error")
		}
		return nil
	}},
	"waiting": {Name: "h", EventTimeout: time.Minute, Handle: func(context.Context, *Call) error { return nil }},
	"patient": {Name: "h", Handle: func(_ context.Context, c *Call) error {
		fmt.Fprintln(c.Stdout, "ready")
		for end := time.Now().Add(time.Minute); !c.Interrupted(); {
			if time.Now().After(end) {
				return errors.New("no signal came")
			}
			time.Sleep(time.Millisecond)
		}
		if !c.Interrupted() {
			return errors.New("the signal was forgotten")
		}
		fmt.Fprintln(c.Stdout, "finished")
		return nil
	}},
}

// runtimeError makes the runtime itself panic: the string has no byte.
func runtimeError(n int) byte { return ""[n] }

func TestRunExitCodes(t *testing.T) {
	said := errors.New("it went wrong")
	handler := func(err error) func(context.Context, *Call) error {
		return func(context.Context, *Call) error { return err }
	}
	tests := []struct {
		name           string
		hook           Hook
		args           []string
		stdin          string
		code           int
		stdout, stderr string // stderr: a part of it; "" for none at all
	}{
		{name: "done", hook: Hook{Name: "h", Handle: handler(nil)}, stdin: sampleEnd},
		{name: "error", hook: Hook{Name: "h", Handle: handler(said)}, stdin: sampleEnd, code: 1, stderr: "h: error: it went wrong\n"},
		{name: "hint", hook: Hook{Name: "h", Handle: handler(&Failure{said, "try this"})}, stdin: sampleEnd, code: 1, stderr: "h: error: it went wrong\nh: hint: try this\n"},
		{name: "wrapped hint", hook: Hook{Name: "h", Handle: handler(fmt.Errorf("outer: %w", &Failure{said, "try this"}))}, stdin: sampleEnd, code: 1, stderr: "h: error: outer: it went wrong\nh: hint: try this\n"},
		{name: "empty failure", hook: Hook{Name: "h", Handle: handler(&Failure{})}, stdin: sampleEnd, code: 1, stderr: "h: error: unknown failure"},
		{name: "panic", hook: testHooks["panic"], stdin: sampleEnd, code: 1, stderr: "h: error: internal error: boom\n"},
		{name: "runtime error", hook: testHooks["runtime error"], stdin: sampleEnd, code: 1, stderr: "index out of range"},
		{name: "panic with nil", hook: Hook{Name: "h", Handle: func(context.Context, *Call) error { panic(nil) }}, stdin: sampleEnd, code: 1, stderr: "internal error"},
		{name: "long panic", hook: Hook{Name: "h", Handle: func(context.Context, *Call) error { panic(strings.Repeat("x\n", 1000)) }}, stdin: sampleEnd, code: 1, stderr: "x …\n"},
		{name: "panic in the panic", hook: Hook{Name: "h", Handle: func(context.Context, *Call) error { panic(vicious{}) }}, stdin: sampleEnd, code: 1, stderr: "h: error: internal error"},
		{name: "panic in the log", hook: Hook{Name: "h", Handle: handler(said), Log: vicious{}}, stdin: sampleEnd, code: 1, stderr: "h: error: internal error"},
		{name: "no handler", hook: Hook{Name: "h"}, stdin: sampleEnd, code: 1, stderr: "no handler"},
		{name: "no event", hook: Hook{Name: "h", Handle: handler(said)}, stderr: "h: warning: read event: nothing on standard input\n"},
		// SE-19: bad input is no failure.
		{name: "bad event", hook: Hook{Name: "h", Handle: handler(said)}, stdin: "{]", stderr: "h: warning: read event: the event is not valid JSON"},
		{name: "bad event, but something to do", hook: noEvent(true, nil), stdin: "{]"},
		{name: "bad event, and nothing to do", hook: noEvent(false, nil), stdin: "{]", stderr: "h: warning: read event: the event is not valid JSON"},
		{name: "bad event, and a failure", hook: noEvent(true, said), stdin: "{]", code: 1, stderr: "h: error: it went wrong\n"},
		{name: "help", hook: Hook{Name: "h", Usage: "usage: h\n"}, args: []string{"-h"}, stderr: "usage: h\n"},
		{name: "long help", hook: Hook{Name: "h", Usage: "usage: h\n"}, args: []string{"--help"}, stderr: "usage: h\n"},
		{name: "version", hook: Hook{Name: "h", Version: "v1.2.3"}, args: []string{"-version"}, stdout: "h v1.2.3\n"},
		{name: "bad flag", hook: Hook{Name: "h", Handle: handler(nil)}, args: []string{"-nope"}, code: 1, stderr: "h: error: flag provided but not defined: -nope\nh: hint: h -h tells how it is used\n"},
		{name: "argument", hook: Hook{Name: "h", Handle: handler(nil)}, args: []string{strings.Repeat("x", 1000)}, code: 1, stderr: `h: error: unexpected argument "` + strings.Repeat("x", maxQuoted) + `"… (1000 bytes)`},
		{name: "mode", hook: modal(nil), args: []string{"-work", "dir"}, stdout: "dir\n"},
		{name: "mode with nothing", hook: modal(nil), args: []string{"-work", ""}, stdout: "\n"},
		{name: "mode fails", hook: modal(said), args: []string{"-work=dir"}, stdout: "dir\n", code: 1, stderr: "h: error: it went wrong"},
		{name: "mode without argument", hook: modal(nil), args: []string{"-work"}, code: 1, stderr: "h: error: flag needs an argument: -work"},
		{name: "mode without work", hook: Hook{Name: "h", Modes: []Mode{{Flag: "work"}}}, args: []string{"-work", "x"}, code: 1, stderr: "not built in"},
		{name: "mode given twice in the hook", hook: Hook{Name: "h", Modes: []Mode{{Flag: "work"}, {Flag: "work"}}}, code: 1, stderr: "internal error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := Run(tt.hook, tt.args, strings.NewReader(tt.stdin), &stdout, &stderr)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if stdout.String() != tt.stdout {
				t.Errorf("stdout %q, want %q", stdout.String(), tt.stdout)
			}
			if tt.stderr == "" && stderr.Len() > 0 || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("stderr %q, want %q in it", stderr.String(), tt.stderr)
			}
			if stderr.Len() > 1000 {
				t.Errorf("stderr has %d bytes", stderr.Len())
			}
		})
	}
}

func noEvent(handled bool, err error) Hook {
	return Hook{
		Name:   "h",
		Handle: func(context.Context, *Call) error { panic("there is no event") },
		NoEvent: func(_ context.Context, c *Call) (bool, error) {
			if c.Event != nil {
				return false, errors.New("there is an event")
			}
			return handled, err
		},
	}
}

func modal(err error) Hook {
	return Hook{Name: "h", Modes: []Mode{{Flag: "work", Run: func(_ context.Context, c *Call, dir string) error {
		fmt.Fprintln(c.Stdout, dir)
		return err
	}}}}
}

// vicious panics wherever it is used.
type vicious struct{}

func (vicious) String() string            { panic("String") }
func (vicious) Log(Level, string, ...any) { panic("Log") }

func TestRunWithoutStreams(t *testing.T) {
	called := false
	h := Hook{Handle: func(_ context.Context, c *Call) error {
		called = true
		c.Log.Log(Info, "x")
		_, errOut := fmt.Fprintln(c.Stdout, "x")
		_, errErr := fmt.Fprintln(c.Stderr, "x")
		if c.Interrupted() {
			return errors.New("interrupted by nothing")
		}
		return errors.Join(errOut, errErr)
	}}
	if code := Run(h, nil, strings.NewReader(sampleEnd), nil, nil); code != 0 || !called {
		t.Errorf("exit code %d, handler called: %v", code, called)
	}
	if code := Run(h, nil, nil, nil, nil); code != 0 {
		t.Errorf("without standard input: exit code %d", code)
	}
}

func TestCall(t *testing.T) {
	t.Setenv("CLAUDE_PROJECT_DIR", "/p")
	t.Setenv("CLAUDE_PID", "42")
	t.Setenv("CLAUDE_CODE_CHILD_SESSION", "1")
	before := time.Now()
	h := Hook{Handle: func(_ context.Context, c *Call) error {
		if c.Env.ProjectDir != "/p" || c.Env.PID != 42 || !c.Env.Child || c.Env.Remote {
			t.Errorf("environment %+v", c.Env)
		}
		if c.Start.Before(before) || c.Elapsed() < 0 {
			t.Errorf("start %v", c.Start)
		}
		if _, ok := c.Event.(*SessionEnd); !ok {
			t.Errorf("event %T", c.Event)
		}
		return nil
	}}
	if code := Run(h, nil, strings.NewReader(sampleEnd), nil, nil); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestReadEnv(t *testing.T) {
	for value, want := range map[string]int{"": 0, "x": 0, "-3": 0, "7": 7, "99999999999999999999": 0} {
		env := ReadEnv(func(name string) string {
			if name == "CLAUDE_PID" {
				return value
			}
			return ""
		})
		if env.PID != want {
			t.Errorf("CLAUDE_PID=%q: %d, want %d", value, env.PID, want)
		}
	}
	for value, want := range map[string]bool{"": false, "0": false, "false": false, "1": true, "true": true} {
		if got := ReadEnv(func(string) string { return value }).Child; got != want {
			t.Errorf("CLAUDE_CODE_CHILD_SESSION=%q: %v, want %v", value, got, want)
		}
	}
}

// The log gets the error, and the stack of a panic.
func TestRunLogs(t *testing.T) {
	var log recorder
	Run(Hook{Name: "h", Log: &log, Handle: testHooks["panic"].Handle}, nil, strings.NewReader(sampleEnd), nil, nil)
	if got := log.String(); !strings.Contains(got, "error internal error error=boom") || !strings.Contains(got, "hook_test.go") {
		t.Errorf("log: %s", got)
	}
	log.Reset()
	Run(Hook{Name: "h", Log: &log}, nil, strings.NewReader("{"), nil, nil)
	if got := log.String(); !strings.Contains(got, "no handler") {
		t.Errorf("log: %s", got)
	}
	log.Reset()
	Run(Hook{Name: "h", Log: &log, Handle: func(context.Context, *Call) error { return nil }}, nil, strings.NewReader("{"), nil, nil)
	if got := log.String(); !strings.Contains(got, "warn no usable event") {
		t.Errorf("log: %s", got)
	}
}

type recorder struct{ strings.Builder }

func (r *recorder) Log(level Level, message string, pairs ...any) {
	fmt.Fprintf(r, "%s %s", level, message)
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(r, " %v=%v", pairs[i], pairs[i+1])
	}
	r.WriteByte('\n')
}

// hookCommand returns the test binary as one of testHooks.
func hookCommand(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), hookVariable+"="+name)
	return cmd
}

// deeper does not end before the stack does.
func deeper(n int) int {
	if n < 0 {
		return n
	}
	return deeper(n+1) + n
}

// A real process: what no call of Run can show.
func TestMainNeverExits2(t *testing.T) {
	for _, name := range []string{"goexit", "panic", "runtime error", "no handler", "nothing"} {
		cmd := hookCommand(t, name)
		cmd.Stdin = strings.NewReader(sampleEnd)
		var exit *exec.ExitError
		if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("%s: %v, want exit status 1", name, err)
		}
	}
}
