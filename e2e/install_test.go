//go:build unix

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFromInstallToResume is a new user's first day: one command installs, the
// client is used as always, loses the project's folder, and one command brings
// the session back.
func TestFromInstallToResume(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	prefix := filepath.Join(l.root, "it's mine")
	l.bin = filepath.Join(prefix, "bin")

	// Building needs what the machine has; nothing else of it gets in.
	extra := []string{"GOFLAGS=-mod=readonly", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "PATH=" + os.Getenv("PATH")}
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		out, err := exec.Command("go", "env", name).Output()
		l.must(err)
		extra = append(extra, name+"="+strings.TrimSpace(string(out)))
	}
	script, err := filepath.Abs(filepath.Join("..", "install.sh"))
	l.must(err)
	out := l.run(l.root, script, extra, "--prefix", prefix)
	if out.code != 0 || !strings.Contains(out.stdout, "it works") {
		t.Fatalf("install.sh: exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}

	session := l.print("-p", "prompt-one")
	want := l.waitStored(session)
	l.waitIdle()
	if list := l.keeper("list"); !strings.Contains(list, session) {
		t.Errorf("list does not show the session:\n%s", list)
	}
	where := l.transcript(session)
	l.must(os.RemoveAll(filepath.Dir(where)))
	restored := l.keeper("restore", "last")
	if line := "cd " + l.project("app") + " && claude --resume " + session; !strings.Contains(restored, line) {
		t.Errorf("no %q in\n%s", line, restored)
	}
	if !bytes.Equal(l.read(where), want) {
		t.Error("restored with other bytes")
	}
	l.print("-p", "--resume", session, "prompt-two")
	if requests := l.mock.sent("prompt-two"); len(requests) != 1 || !holds(requests[0], "prompt-one") || !holds(requests[0], "mock reply to prompt-one") {
		t.Errorf("the conversation is not there: %d requests", len(requests))
	}

	out = l.run(l.root, script, extra, "--uninstall", "--prefix", prefix)
	if out.code != 0 {
		t.Fatalf("install.sh --uninstall: exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	if got := l.stored(session); !bytes.HasPrefix(got, want) {
		t.Error("the archive did not stay")
	}
}
