//go:build unix

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// onTerminal runs the built program on a terminal of so many columns and
// returns what it showed.
func (m *machine) onTerminal(columns uint16, env []string, args ...string) string {
	m.t.Helper()
	cmd := exec.Command(filepath.Join(programs, "session-keeper"), args...)
	cmd.Env = append([]string{"HOME=" + m.home, "PATH=" + os.Getenv("PATH"), "TERM=xterm", "TZ=UTC"}, env...)
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: columns})
	if err != nil {
		m.t.Fatal(err)
	}
	defer f.Close()
	// Linux ends the read with an error when the program is gone.
	out, _ := io.ReadAll(f)
	if err := cmd.Wait(); err != nil {
		m.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return strings.ReplaceAll(string(out), "\r\n", "\n")
}

var colourCode = regexp.MustCompile(`\x1b\[[0-9;]*m`)

func TestListOnTerminal(t *testing.T) {
	m := newMachine(t)
	m.session(2, true)
	out := m.onTerminal(60, nil, "list")
	if !colourCode.MatchString(out) {
		t.Errorf("no colour on a terminal:\n%q", out)
	}
	for _, line := range strings.Split(colourCode.ReplaceAllString(out, ""), "\n") {
		if width(line) > 60 {
			t.Errorf("line takes %d of 60 cells: %q", width(line), line)
		}
	}
	if !strings.Contains(out, interactiveID[:8]) || strings.Contains(out, interactiveID) {
		t.Errorf("want the id cut to what is needed:\n%s", out)
	}
	if out := m.onTerminal(60, []string{"NO_COLOR=1"}, "list"); colourCode.MatchString(out) {
		t.Errorf("colour in spite of NO_COLOR:\n%q", out)
	}
}

func TestShowIsPaged(t *testing.T) {
	m := newMachine(t)
	m.session(2, false)
	out := m.onTerminal(80, []string{"PAGER=sed s/^/P:/", "NO_COLOR=1"}, "show", "last")
	if !strings.Contains(out, "P:prompt 1") {
		t.Errorf("not through the pager:\n%s", out)
	}
	// A pager that is left early is no error.
	m.session(5000, false)
	if out := m.onTerminal(80, []string{"PAGER=head -n 3"}, "show", "last"); strings.Contains(out, "error") {
		t.Errorf("leaving the pager is told as an error:\n%s", out)
	}
}

// The first Ctrl-C at a question ends the command, with nothing done.
func TestInterruptedQuestion(t *testing.T) {
	for _, c := range []struct {
		question string
		args     []string
	}{
		{"Forget session", []string{"forget", "last"}},
		{"Which one?", []string{"restore", interactiveID}},
	} {
		m := newMachine(t)
		m.session(5, true)
		m.session(0, true)
		if err := os.RemoveAll(filepath.Join(m.home, ".claude")); err != nil {
			t.Fatal(err)
		}
		if c.args[0] == "forget" {
			m.session(5, false) // "last" wants a session with words
		}
		cmd := exec.Command(filepath.Join(programs, "session-keeper"), c.args...)
		cmd.Env = []string{"HOME=" + m.home, "PATH=" + os.Getenv("PATH"), "TERM=xterm"}
		f, err := pty.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for b := make([]byte, 1024); !strings.Contains(out.String(), c.question); {
			n, err := f.Read(b)
			if err != nil {
				t.Fatalf("%v: %v\n%s", c.args, err, out.String())
			}
			out.Write(b[:n])
		}
		if _, err := f.Write([]byte{3}); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		rest, _ := io.ReadAll(f)
		err = cmd.Wait()
		kill.Stop()
		f.Close()
		if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(string(rest), "interrupted") {
			t.Errorf("%v: %v, want exit code %d\n%s%s", c.args, err, exitInterrupted, out.String(), rest)
		}
		if code, _, errs := m.run("", "cat", interactiveID, "--generation", "1"); code != 0 {
			t.Errorf("%v: the archive has lost it: %s", c.args, errs)
		}
	}
}
