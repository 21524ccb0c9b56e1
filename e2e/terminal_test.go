//go:build unix

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// terminal is the client in interactive mode. The client draws with cursor
// movements, so what is read off the screen is compared without any spaces.
type terminal struct {
	t   *testing.T
	cmd *exec.Cmd
	pty *os.File

	mu     sync.Mutex
	drawn  strings.Builder
	mark   int           // of drawn: text before it has been waited for
	closed chan struct{} // when nothing more will be drawn
	exited chan struct{}
}

// screenTimeout bounds the wait for one thing to appear, on a machine whose
// cores other tests use too.
const screenTimeout = 45 * time.Second

// interactive starts the client in a terminal, in the project "app", and waits
// until it takes input.
func (l *lab) interactive(extra []string, args ...string) *terminal {
	l.t.Helper()
	cmd := exec.Command(l.client, args...)
	cmd.Dir, cmd.Env = l.project("app"), append(append([]string{}, l.env...), extra...)
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 160})
	if err != nil {
		l.t.Fatalf("start the client in a terminal: %v", err)
	}
	term := &terminal{t: l.t, cmd: cmd, pty: file, closed: make(chan struct{}), exited: make(chan struct{})}
	go term.read()
	go func() {
		// The exit code tells nothing here: the tests end clients in many ways.
		_ = cmd.Wait()
		close(term.exited)
	}()
	l.t.Cleanup(term.end)
	term.waitFor("shift+tab to cycle")
	return term
}

func (term *terminal) read() {
	defer close(term.closed)
	buf := make([]byte, 64<<10)
	for {
		n, err := term.pty.Read(buf)
		term.mu.Lock()
		term.drawn.Write(buf[:n])
		term.mu.Unlock()
		if err != nil {
			return // EIO once the client has gone
		}
	}
}

// end stops the client if it still runs, and only it.
func (term *terminal) end() {
	select {
	case <-term.exited:
	default:
		term.kill()
	}
	if err := term.pty.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		term.t.Errorf("close the terminal: %v", err)
	}
	<-term.closed
	if term.t.Failed() {
		term.t.Logf("screen: …%s", last(term.text(0), 3000))
	}
}

// kill takes the client away as a power cut would.
func (term *terminal) kill() {
	term.t.Helper()
	if err := term.cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		term.t.Errorf("kill the client: %v", err)
	}
	term.waitExit()
}

func (term *terminal) waitExit() {
	term.t.Helper()
	select {
	case <-term.exited:
	case <-time.After(screenTimeout):
		term.t.Errorf("the client still runs after %v", screenTimeout)
	}
}

// escapes are the control sequences that the client draws with: CSI, OSC, DCS
// and the short ones.
var escapes = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[PX^_][^\x1b]*\x1b\\|\x1b[ -/]*[0-~]`)

func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == '\u00a0' {
			return -1
		}
		return r
	}, s)
}

// text gives what was drawn since the mark, without sequences and spaces.
func (term *terminal) text(mark int) string {
	term.mu.Lock()
	raw := term.drawn.String()
	term.mu.Unlock()
	return squeeze(escapes.ReplaceAllString(raw[min(mark, len(raw)):], ""))
}

// waitFor waits until text has been drawn since the last thing waited for.
func (term *terminal) waitFor(text string) {
	term.t.Helper()
	want := squeeze(text)
	for deadline := time.Now().Add(screenTimeout); ; time.Sleep(30 * time.Millisecond) {
		term.mu.Lock()
		mark, now := term.mark, term.drawn.Len()
		term.mu.Unlock()
		if strings.Contains(term.text(mark), want) {
			term.mu.Lock()
			term.mark = now
			term.mu.Unlock()
			return
		}
		if time.Now().After(deadline) {
			term.t.Fatalf("waited %v for %q on the screen, which shows …%s", screenTimeout, text, last(term.text(mark), 2000))
		}
	}
}

// enter types a line. The key comes on its own, a little later: the client takes
// text that arrives together with a line end for pasted text.
func (term *terminal) enter(line string) {
	term.t.Helper()
	term.write(line)
	term.waitFor(line)
	time.Sleep(200 * time.Millisecond)
	term.write("\r")
}

func (term *terminal) write(s string) {
	term.t.Helper()
	if _, err := term.pty.WriteString(s); err != nil {
		term.t.Fatalf("type %q: %v", s, err)
	}
}

func last(s string, n int) string { return s[max(0, len(s)-n):] }
