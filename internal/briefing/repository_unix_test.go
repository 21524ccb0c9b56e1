//go:build unix

package briefing

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Pipes in the place of Git's files hold nobody.
func TestFindRepositoryWaitsForNothing(t *testing.T) {
	top := RealDir(t.TempDir())
	put(t, filepath.Join(top, "a", ".git", "x"), "")
	for _, pipe := range []string{filepath.Join("a", ".git", "HEAD"), filepath.Join("a", "b", ".git")} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(top, pipe)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(filepath.Join(top, pipe), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan string)
	go func() {
		root, branch := FindRepository(filepath.Join(top, "a", "b"))
		done <- root + "|" + branch
	}()
	select {
	case got := <-done:
		if want := filepath.Join(top, "a") + "|"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("still waiting")
	}
}
