//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/archive/spool"
)

// crowd is how many hooks run at the same time.
const crowd = 200

// maxWorkers is how many workers may live at any moment: one that drains, and
// one that waits for it.
const maxWorkers = 2

// RE-01, RE-02, CO-01: a client inside a client, a fleet of agents, or a script
// that ends many sessions at once asks for a worker each time. However many
// hooks run, two workers live at most, and every session is stored once.
func TestCrowdOfHooks(t *testing.T) {
	if testing.Short() {
		t.Skip("starts 400 hooks; run without -short")
	}
	for _, tt := range []struct {
		name     string
		sessions int
		inline   string
	}{
		{"one session", 1, "auto"},
		{"one session, handed over", 1, "never"},
		{"many sessions", crowd, "auto"},
		{"many sessions, handed over", crowd, "never"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			t.Cleanup((&host{t, home}).end)
			write := func(path, data string) {
				t.Helper()
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(filepath.Join(home, ".config", "session-keeper", "config.toml"), "[archive]\ninline = \""+tt.inline+"\"\n")
			want := map[string]string{}
			for i := range tt.sessions {
				id := fmt.Sprintf("0badcafe-0000-4000-8000-%012d", i)
				want[id] = fmt.Sprintf(`{"type":"user","uuid":"%d","sessionId":"%s"}`+"\n", i, id)
				write(filepath.Join(home, ".claude", "projects", "-src-p", id+".jsonl"), want[id])
			}

			dir := programs(t)
			counting, stop := context.WithCancel(t.Context())
			most := make(chan int)
			go func() { most <- mostWorkers(counting, filepath.Join(dir, "session-keeper-worker"), home) }()
			var hooks sync.WaitGroup
			for i := range crowd {
				id := fmt.Sprintf("0badcafe-0000-4000-8000-%012d", i%tt.sessions)
				event := fmt.Sprintf(`{"session_id":%q,"transcript_path":%q,"cwd":"/src/p","hook_event_name":"SessionEnd","reason":"other"}`,
					id, filepath.Join(home, ".claude", "projects", "-src-p", id+".jsonl"))
				hooks.Go(func() {
					cmd := exec.Command(filepath.Join(dir, "session-end-archive"))
					cmd.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin", "CLAUDE_CODE_SESSION_ID=" + id}
					cmd.Stdin = strings.NewReader(event)
					if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
						t.Errorf("hook of %s: %v %q", id, err, out)
					}
				})
			}
			hooks.Wait()
			spoolDir := filepath.Join(home, ".local", "state", "session-keeper", "spool")
			deadline := time.Now().Add(archiveTimeout)
			for {
				summary, err := spool.Status(spoolDir)
				if err != nil {
					t.Fatal(err)
				}
				if len(summary.Waiting) == 0 && !summary.Busy {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("nobody works on what is left: %d sessions", len(summary.Waiting))
				}
				time.Sleep(5 * time.Millisecond)
			}
			stop()
			n := <-most
			t.Logf("%d hooks, at most %d workers", crowd, n)
			if n > maxWorkers {
				t.Errorf("%d workers lived at the same time", n)
			}
			if n == 0 && tt.inline == "never" {
				t.Error("no worker was seen: the count does not count")
			}

			store, err := archive.Open(filepath.Join(home, ".local", "share", "session-keeper"))
			if err != nil {
				t.Fatal(err)
			}
			for id, text := range want {
				history, err := store.History(t.Context(), id)
				if err != nil {
					t.Errorf("%s: %v", id, err)
					continue
				}
				if len(history.Generations) != 1 {
					t.Errorf("%s: %d generations", id, len(history.Generations))
				}
				generation := history.Latest()
				for _, file := range generation.Files {
					r, err := store.OpenFile(generation, file)
					if err != nil {
						t.Errorf("%s: %v", id, err)
						continue
					}
					data, err := io.ReadAll(r)
					if closeErr := r.Close(); err == nil {
						err = closeErr
					}
					if err != nil || string(data) != text {
						t.Errorf("%s: %v, %d bytes for %d", id, err, len(data), len(text))
					}
				}
			}
			report, err := store.Verify(t.Context(), archive.VerifyOptions{})
			if err != nil || !report.OK() {
				t.Errorf("verify: %v, %+v", err, report)
			}
		})
	}
}

// mostWorkers looks at the processes of this machine again and again until ctx
// is done, and returns how many workers of a program lived at most at the same
// time. Dead ones that nobody has waited for do not count.
func mostWorkers(ctx context.Context, program, home string) int {
	most := 0
	for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		entries, err := os.ReadDir("/proc")
		if err != nil {
			continue
		}
		alive := 0
		for _, e := range entries {
			// Empty for a zombie.
			line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
			if err != nil {
				continue
			}
			args := bytes.Split(line, []byte{0})
			if len(args) > 1 && string(args[0]) == program && bytes.HasPrefix(args[1], []byte(home)) {
				alive++
			}
		}
		most = max(most, alive)
	}
	return most
}
