//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// console is a program at a terminal.
type console struct {
	t      *testing.T
	cmd    *exec.Cmd
	tty    *os.File
	output bytes.Buffer
	more   chan []byte
}

// onTerminal starts session-keeper with a terminal as its standard streams.
func onTerminal(t *testing.T, home string, args ...string) *console {
	t.Helper()
	cmd := exec.Command(filepath.Join(programs, "session-keeper"), args...)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=xterm"}
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	c := &console{t: t, cmd: cmd, tty: tty, more: make(chan []byte)}
	go func() {
		defer close(c.more)
		for {
			buf := make([]byte, 4096)
			n, err := tty.Read(buf)
			if n > 0 {
				c.more <- buf[:n]
			}
			if err != nil {
				return // the program has ended
			}
		}
	}()
	return c
}

const consolePatience = 30 * time.Second

// await reads until text appears.
func (c *console) await(text string) {
	c.t.Helper()
	timeout := time.After(consolePatience)
	for !strings.Contains(c.output.String(), text) {
		select {
		case b, ok := <-c.more:
			if !ok {
				c.t.Fatalf("ended without %q:\n%s", text, c.output.String())
			}
			c.output.Write(b)
		case <-timeout:
			c.t.Fatalf("no %q within %v:\n%s", text, consolePatience, c.output.String())
		}
	}
}

func (c *console) send(text string) {
	c.t.Helper()
	if _, err := c.tty.WriteString(text); err != nil {
		c.t.Fatal(err)
	}
}

// exits waits for the end and checks the exit code.
func (c *console) exits(want int) {
	c.t.Helper()
	timeout := time.After(consolePatience)
	for open := true; open; {
		select {
		case b, ok := <-c.more:
			c.output.Write(b)
			open = ok
		case <-timeout:
			c.t.Fatalf("did not end within %v:\n%s", consolePatience, c.output.String())
		}
	}
	code := 0
	var exit *exec.ExitError
	if err := c.cmd.Wait(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		c.t.Fatal(err)
	}
	if code != want {
		c.t.Fatalf("exit code %d, want %d:\n%s", code, want, c.output.String())
	}
}

// A purge on a terminal asks for the archive's path, and deletes the archive
// only if exactly that is typed.
func TestPurgeAsksForThePath(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		code   int
		stays  bool
	}{
		"Enter":      {"\r", exitOK, true},
		"other path": {"/\r", exitRefused, true},
		"yes":        {"yes\r", exitRefused, true},
		"the path":   {"", exitOK, false},
		"Ctrl-C":     {"\x03", exitInterrupted, true},
	} {
		t.Run(name, func(t *testing.T) {
			home, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			archive := filepath.Join(home, ".local", "share", "session-keeper")
			if answer := test.answer; answer == "" {
				test.answer = archive + "\r"
			}
			install := onTerminal(t, home, "install")
			install.await("Archive:")
			install.exits(exitOK)
			c := onTerminal(t, home, "uninstall", "--purge")
			c.await("else press Enter:")
			c.send(test.answer)
			c.exits(test.code)
			_, err = os.Stat(filepath.Join(archive, "format"))
			if stays := err == nil; stays != test.stays {
				t.Errorf("archive is there: %v, want %v\n%s", stays, test.stays, c.output.String())
			}
		})
	}
}

// Colours are for terminals, and for users who did not say NO_COLOR.
func TestColours(t *testing.T) {
	home := t.TempDir()
	c := onTerminal(t, home, "doctor")
	c.exits(exitDamaged)
	if !strings.Contains(c.output.String(), "\x1b[31mproblem\x1b[0m") {
		t.Errorf("no colour on a terminal: %q", c.output.String())
	}
	cmd := exec.Command(filepath.Join(programs, "session-keeper"), "doctor")
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=xterm", "NO_COLOR=1"}
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	var out bytes.Buffer
	_, _ = out.ReadFrom(tty) // ends with an error when the program has ended
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitDamaged {
		t.Errorf("doctor: %v", err)
	}
	if !strings.Contains(out.String(), "problem") || strings.Contains(out.String(), "\x1b[") {
		t.Errorf("with NO_COLOR: %q", out.String())
	}
}
