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
