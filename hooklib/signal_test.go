//go:build unix

package hooklib

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Writes to streams whose readers have gone are errors, not the end.
func TestMainSurvivesLateWrites(t *testing.T) {
	cmd := hookCommand(t, "chatty")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(stdin, sampleEnd); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stderr).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	for _, c := range []io.Closer{stdout, stderr, stdin} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// SE-10: a signal does not cut a handler off.
func TestMainFinishesOnSignal(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		cmd := hookCommand(t, "patient")
		cmd.Stdin = strings.NewReader(sampleEnd)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(stdout)
		if line, err := lines.ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("%v: %q, %v", sig, line, err)
		}
		for range 2 { // the client may send more than one
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
		}
		rest, err := io.ReadAll(lines)
		if err != nil || string(rest) != "finished\n" {
			t.Errorf("%v: %q, %v", sig, rest, err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", sig, err)
		}
	}
}

// What the Go runtime lets nobody recover from ends by a signal: the client
// takes that as a failure of the hook and not as an objection.
func TestFatalErrorsDoNotExit2(t *testing.T) {
	bySignal := func(name string, err error) {
		t.Helper()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != -1 {
			t.Errorf("%s: %v, want death by a signal", name, err)
		}
	}
	for _, name := range []string{"stack", "goroutine", "unlock"} {
		cmd := hookCommand(t, name)
		cmd.Dir = t.TempDir()
		cmd.Stdin = strings.NewReader(sampleEnd)
		bySignal(name, cmd.Run())
		if entries, err := os.ReadDir(cmd.Dir); err != nil || len(entries) > 0 {
			t.Errorf("%s left %v, %v", name, entries, err)
		}
	}

	cmd := hookCommand(t, "patient")
	cmd.Stdin = strings.NewReader(sampleEnd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = io.ReadFull(out, make([]byte, len("ready\n")))
	if err := errors.Join(err, cmd.Process.Signal(syscall.SIGQUIT)); err != nil {
		t.Error(err)
	}
	bySignal("SIGQUIT", cmd.Wait())
}
