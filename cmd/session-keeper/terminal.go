package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

// Titles, prompts and tool output come from anywhere, and a terminal obeys
// what is in them. oneLine and plainText make them harmless: what controls a
// terminal or the direction of text is shown, not sent.

// oneLine makes s safe to print within one line.
func oneLine(s string) string {
	return harmless(strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return r == ' ' || r == '\t' || r == '\n' || r == '\r'
	}), " "), false)
}

// plainText makes s safe to print, line feeds and tabs kept.
func plainText(s string) string {
	return harmless(strings.ReplaceAll(s, "\r\n", "\n"), true)
}

func harmless(s string, lines bool) string {
	clean := true
	for _, r := range s {
		if r == utf8.RuneError || controls(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for _, r := range s { // invalid bytes come as U+FFFD
		switch {
		case lines && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case r < 0x20:
			b.WriteRune(0x2400 + r) // the picture of the control character
		case r == 0x7f:
			b.WriteRune(0x2421)
		case controls(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// controls reports whether r steers the terminal or hides or reorders text.
// The joiners U+200C and U+200D stay: scripts and emoji need them.
func controls(r rune) bool {
	switch {
	case r >= 0x20 && r < 0x7f: // nearly all of it
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0: // C0, DEL, C1
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // direction
		return true
	case r == 0x200b, r == 0x2060, r == 0xfeff, r == 0x2028, r == 0x2029, r >= 0xfff9 && r <= 0xfffb: // unseen, lines
		return true
	case r >= 0xe0000 && r <= 0xe007f: // tags
		return true
	}
	return false
}

// width counts the cells that s takes on a terminal.
func width(s string) int { return uniseg.StringWidth(s) }

// fit cuts s to at most cells, with an ellipsis, between whole characters.
func fit(s string, cells int) string {
	if width(s) <= cells {
		return s
	}
	if cells <= 0 {
		return ""
	}
	var b strings.Builder
	used, state := 0, -1
	for rest := s; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used+w > cells-1 {
			break
		}
		used += w
		b.WriteString(cluster)
	}
	return b.String() + "…"
}

// pad fills s with spaces up to cells.
func pad(s string, cells int) string {
	if n := cells - width(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// padLeft is pad with the spaces first.
func padLeft(s string, cells int) string {
	if n := cells - width(s); n > 0 {
		return strings.Repeat(" ", n) + s
	}
	return s
}

// isTerminal reports whether w is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// columns gives the width of the terminal behind stdout, 0 when it is none.
func (a *app) columns() int {
	f, ok := a.out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	if w, err := strconv.Atoi(a.getenv("COLUMNS")); err == nil && w > 0 {
		return w
	}
	const usual = 80
	return usual
}

// page runs write with a pager behind it when stdout is a terminal: $PAGER,
// else less. A user who leaves the pager early is not an error.
func (a *app) page(write func(w io.Writer) error) error {
	if !isTerminal(a.out) {
		return write(a.out)
	}
	pager := a.getenv("PAGER")
	if pager == "" {
		if _, err := exec.LookPath("less"); err != nil {
			return write(a.out)
		}
		pager = "less -R"
	}
	shell, err := exec.LookPath("sh")
	if err != nil || pager == "cat" {
		return write(a.out)
	}
	cmd := exec.Command(shell, "-c", pager)
	cmd.Stdout, cmd.Stderr = a.out, a.errw
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start the pager: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the pager: %w", err)
	}
	werr := write(pipe)
	if errors.Is(werr, syscall.EPIPE) || errors.Is(werr, os.ErrClosed) {
		werr = nil // the user has seen enough
	}
	cerr := pipe.Close()
	if errors.Is(cerr, os.ErrClosed) || errors.Is(cerr, syscall.EPIPE) {
		cerr = nil
	}
	// What the pager itself returns says nothing about the session.
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return errors.Join(werr, fmt.Errorf("pager: %w", err))
	}
	return errors.Join(werr, cerr)
}

// ago tells a time for people: exact when it is old, relative when it is new.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	switch d := now.Sub(t); {
	case d < 0:
		return t.Local().Format("2006-01-02 15:04")
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	case d < 7*24*time.Hour:
		return fmt.Sprintf("%d d ago", int(d.Hours()/24))
	}
	return t.Local().Format("2006-01-02")
}

// byteSize writes a number of bytes for people, in powers of 1000.
func byteSize(n int64) string {
	const unit = 1000
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, exp := float64(n)/unit, 0
	for value >= unit-0.5 && exp < 5 {
		value /= unit
		exp++
	}
	if value < 9.95 {
		return fmt.Sprintf("%.1f %cB", value, "kMGTPE"[exp])
	}
	return fmt.Sprintf("%.0f %cB", value, "kMGTPE"[exp])
}

// plural gives "1 session", "3 sessions", "2 entries".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if stem, ok := strings.CutSuffix(thing, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
