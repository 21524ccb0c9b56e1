//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// killable is session-keeper built so that it can kill itself before and after
// each of its operations that change the disk.
func killable(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "session-keeper")
	if out, err := exec.Command("go", "build", "-tags", "killpoints", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build with kill points: %v\n%s", err, out)
	}
	return path
}

// tree reads all files below a folder, by relative path.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, root+string(filepath.Separator))] = string(data)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return files
}

func temporary(path string, _ string) bool { return strings.HasPrefix(filepath.Base(path), ".tmp-sk-") }

// A restore that is killed, at whichever of its operations, leaves whole files
// and no transcript without its side files; archiving what it left makes no new
// generation of half a session, and the next restore completes it.
func TestRestoreKilled(t *testing.T) {
	program := killable(t)
	m := newMachine(t)
	m.session(3, false)
	client := filepath.Join(m.home, ".claude")
	own := strings.TrimSuffix(m.path(), ".jsonl")
	for path, text := range map[string]string{
		filepath.Join(own, "subagents", "agent-1.jsonl"):                 "{}\n",
		filepath.Join(own, "tool-results", "t1.txt"):                     strings.Repeat("a result\n", 1000),
		filepath.Join(client, "file-history", interactiveID, "0123@v1"):  "before",
		filepath.Join(client, "session-env", interactiveID, "hook-0.sh"): "export A=1\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, errs := m.run("", "archive", interactiveID); code != 0 {
		t.Fatalf("archive: %d\n%s%s", code, out, errs)
	}
	want := tree(t, client)
	if len(want) != 5 {
		t.Fatalf("the session has %d files, want 5", len(want))
	}
	main := strings.TrimPrefix(m.path(), client+string(filepath.Separator))

	exec := func(env ...string) (*exec.Cmd, error) {
		cmd := exec.Command(program, "restore", interactiveID)
		cmd.Env = append([]string{"HOME=" + m.home, "PATH=" + os.Getenv("PATH")}, env...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, &out)
		}
		return cmd, err
	}
	for _, side := range []string{"before", "after"} {
		killed := 0
		for n := 1; ; n++ {
			if err := os.RemoveAll(client); err != nil {
				t.Fatal(err)
			}
			cmd, err := exec(fmt.Sprintf("SESSION_KEEPER_KILL_AT=%d", n), "SESSION_KEEPER_KILL_SIDE="+side)
			if err == nil {
				break
			}
			if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
				t.Fatalf("operation %d, %s: %v", n, side, err)
			}
			killed++
			left := tree(t, client)
			maps.DeleteFunc(left, temporary)
			for path, text := range left {
				if want[path] != text {
					t.Errorf("operation %d, %s: %s is not what was archived", n, side, path)
				}
			}
			if _, there := left[main]; there && len(left) != len(want) {
				t.Errorf("operation %d, %s: the transcript is there, of its side files %v", n, side, slices.Sorted(maps.Keys(left)))
			}
			if code, out, errs := m.run("", "archive", "--all"); code != 0 || !strings.HasPrefix(out, "0 sessions archived") {
				t.Errorf("operation %d, %s: archiving what was left: %d\n%s%s", n, side, code, out, errs)
			}
			if _, err := exec(); err != nil {
				t.Fatalf("operation %d, %s: the next run: %v", n, side, err)
			}
			got := tree(t, client)
			if !maps.Equal(got, want) {
				t.Errorf("operation %d, %s: after the next run there are %v", n, side, slices.Sorted(maps.Keys(got)))
			}
		}
		// Each of the five files is made, synced and renamed at least.
		if killed < 15 {
			t.Errorf("%s: died at %d operations only", side, killed)
		}
	}
}
