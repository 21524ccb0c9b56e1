//go:build unix

package briefing

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Nothing that lies in a home holds a session: pipes, sockets, devices.
func TestLoadWaitsForNothing(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "z.md"), small)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	link(t, "/dev/zero", filepath.Join(dir, "device.md"))
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan []string)
	go func() {
		got := told(dir, Folder{Kind: Personal, Dir: dir}.Load())
		got = append(got, told(pipe, Folder{Kind: Personal, Dir: pipe}.Load())...)
		trust := CheckTrust(dir, pipe, pipe)
		for _, problem := range trust.Problems {
			got = append(got, strings.ReplaceAll(problem.Error(), pipe, "PIPE"))
		}
		if trust.Trusted {
			got = append(got, "a pipe trusts "+dir)
		}
		done <- got
	}()
	select {
	case got := <-done:
		want := []string{
			"device.md | DIR/device.md: " + errOutside.Error(), "pipe.md | DIR/pipe.md: not a regular file", "z.md | z",
			" | DIR: not a folder", "PIPE: not a regular file", "PIPE: not a regular file",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	case <-time.After(20 * time.Second):
		t.Fatal("still waiting")
	}
}

func TestLoadUnreadable(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads everything")
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.md"), small)
	put(t, filepath.Join(dir, "b.md"), small)
	if err := os.Chmod(filepath.Join(dir, "a.md"), 0); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(told(dir, Folder{Kind: Personal, Dir: dir}.Load()), "\n")
	if want := "a.md | DIR/a.md: permission denied\nb.md | b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
