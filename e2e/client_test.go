//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// clientVersion is the version that the tests were written against. The CI
// script installs it where clientPath looks.
const clientVersion = "2.1.332"

// runTimeout bounds one print-mode run, the clean-up run and the run on a large
// transcript included.
const runTimeout = 90 * time.Second

// clientPath finds the client's binary, or skips the test.
func clientPath(t *testing.T) string {
	t.Helper()
	path, missing := findClient()
	if missing != "" {
		t.Skip(missing)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s: %v", clientVariable, err)
	}
	return path
}

// clientVariable names the client's binary.
const clientVariable = "SESSION_KEEPER_E2E_CLIENT"

// findClient gives the path of the client's binary, or says why the tests with
// it are skipped and how to run them.
func findClient() (path, missing string) {
	if testing.Short() {
		return "", "the tests with the real client are left out by -short"
	}
	if path := os.Getenv(clientVariable); path != "" {
		return path, ""
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Sprintf("no home folder to look for the real client in: %v", err)
		}
		cache = filepath.Join(home, ".cache")
	}
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	path = filepath.Join(cache, "session-keeper-ci", "client-"+clientVersion, "node_modules", "@anthropic-ai",
		fmt.Sprintf("claude-code-%s-%s", runtime.GOOS, arch), "claude")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Sprintf("the tests with the real client are skipped: it is not installed. To run them:\n"+
			"  npm install --prefix DIR @anthropic-ai/claude-code@%s\n"+
			"  %s=DIR/node_modules/@anthropic-ai/claude-code-%s-%s/claude go test ./e2e/", clientVersion, clientVariable, runtime.GOOS, arch)
	}
	return path, ""
}

// lab is one user on a machine of their own: a home folder, a project, a mock
// API, the real client and our programs. Nothing of the machine's own settings
// reaches it.
type lab struct {
	t      *testing.T
	mock   *mock
	client string
	root   string // of everything below
	home   string
	config string // the client's folder
	bin    string // our programs
	env    []string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	client := clientPath(t)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatalf("resolve the test's folder: %v", err)
	}
	l := &lab{t: t, mock: startMock(t), client: client, root: root, home: filepath.Join(root, "home")}
	l.config = filepath.Join(l.home, ".claude")
	l.bin = programs(t)
	for _, dir := range []string{l.config, l.project("app"), filepath.Join(root, "tmp")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatalf("make the lab: %v", err)
		}
	}
	l.env = []string{
		"HOME=" + l.home, "PATH=/usr/local/bin:/usr/bin:/bin", "TERM=xterm-256color", "LANG=C.UTF-8",
		"TMPDIR=" + filepath.Join(root, "tmp"), "CLAUDE_CODE_TMPDIR=" + filepath.Join(root, "tmp"),
		"IS_SANDBOX=1", // lets it run as root
		"DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"ANTHROPIC_BASE_URL=" + l.mock.URL, "ANTHROPIC_API_KEY=dummy-test-key",
	}
	l.onboard(filepath.Join(l.home, ".claude.json"))
	return l
}

// onboard writes what the client asks for when it is started the first time.
func (l *lab) onboard(path string) {
	l.t.Helper()
	l.writeJSON(path, map[string]any{
		"hasCompletedOnboarding": true, "theme": "dark", "lastOnboardingVersion": clientVersion,
		"customApiKeyResponses": map[string]any{"approved": []string{"dummy-test-key"}, "rejected": []string{}},
		"projects":              map[string]any{l.project("app"): map[string]any{"hasTrustDialogAccepted": true}},
	})
}

// moveConfig gives the client another folder than the one in the home.
func (l *lab) moveConfig(dir string) {
	l.t.Helper()
	l.config = dir
	l.env = append(l.env, "CLAUDE_CONFIG_DIR="+dir)
	l.must(os.MkdirAll(dir, 0o700))
	l.onboard(filepath.Join(dir, ".claude.json"))
}

// project gives a folder to work in. It lies outside the home folder, so that a
// home can be put in another's place.
func (l *lab) project(name string) string { return filepath.Join(l.root, "src", name) }

func (l *lab) settings() string { return filepath.Join(l.config, "settings.json") }

func (l *lab) writeJSON(path string, v any) {
	l.t.Helper()
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		l.t.Fatalf("encode %s: %v", path, err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// output is what a finished program left.
type output struct {
	stdout, stderr string
	code           int
}

func (l *lab) run(dir, program string, extra []string, args ...string) output {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, append(append([]string{}, l.env...), extra...)
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		l.t.Fatalf("run %s %q: %v\n%s%s", filepath.Base(program), args, err, stdout.String(), stderr.String())
	}
	return output{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// print runs the client in print mode in the project "app" and fails the test
// if the client fails. It gives the id of the session.
func (l *lab) print(args ...string) string {
	l.t.Helper()
	return l.printIn(l.project("app"), nil, args...)
}

func (l *lab) printIn(dir string, extra []string, args ...string) string {
	l.t.Helper()
	out := l.run(dir, l.client, extra, append([]string{"--output-format", "json"}, args...)...)
	if out.code != 0 {
		l.t.Fatalf("client %q: exit code %d\n%s%s", args, out.code, out.stdout, out.stderr)
	}
	var result struct {
		SessionID string `json:"session_id"`
	}
	if err := json.Unmarshal([]byte(out.stdout), &result); err != nil || result.SessionID == "" {
		l.t.Fatalf("client %q: no session id in its output (%v)\n%s%s", args, err, out.stdout, out.stderr)
	}
	return result.SessionID
}

// keeper runs the command session-keeper and fails the test if it fails.
func (l *lab) keeper(args ...string) string {
	l.t.Helper()
	out := l.keeperCode(args...)
	if out.code != 0 {
		l.t.Fatalf("session-keeper %q: exit code %d\n%s%s", args, out.code, out.stdout, out.stderr)
	}
	return out.stdout
}

func (l *lab) keeperCode(args ...string) output {
	l.t.Helper()
	return l.run(l.project("app"), filepath.Join(l.bin, "session-keeper"), nil, args...)
}

// transcript finds the one transcript of a session, wherever the client put it.
func (l *lab) transcript(session string) string {
	l.t.Helper()
	found := l.transcripts(session)
	if len(found) != 1 {
		l.t.Fatalf("session %s: %d transcripts, want 1: %q", session, len(found), found)
	}
	return found[0]
}

func (l *lab) transcripts(session string) []string {
	l.t.Helper()
	found, err := filepath.Glob(filepath.Join(l.config, "projects", "*", session+".jsonl"))
	if err != nil {
		l.t.Fatal(err)
	}
	return found
}

// deleteSession does what the client's clean-up does: the transcript and the
// session's folder go, and the project's folder if it is empty then.
func (l *lab) deleteSession(session string) {
	l.t.Helper()
	path := l.transcript(session)
	l.must(os.Remove(path))
	l.must(os.RemoveAll(strings.TrimSuffix(path, ".jsonl")))
	for _, family := range []string{"file-history", "session-env", "tasks"} {
		l.must(os.RemoveAll(filepath.Join(l.config, family, session)))
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	l.must(err)
	if len(entries) == 0 {
		l.must(os.Remove(filepath.Dir(path)))
	}
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) read(path string) []byte {
	l.t.Helper()
	data, err := os.ReadFile(path)
	l.must(err)
	return data
}

// wait polls until ok, and fails the test after limit.
func (l *lab) wait(limit time.Duration, what string, ok func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("waited %v for %s", limit, what)
		}
	}
}

// copyTree copies a home folder with modes and times, as a backup would.
func (l *lab) copyTree(from, to string) {
	l.t.Helper()
	l.must(filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			return os.MkdirAll(target, info.Mode().Perm()|0o700)
		case info.Mode()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case !info.Mode().IsRegular():
			return nil // sockets of clients that are gone
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, data, info.Mode().Perm()); err != nil {
			return err
		}
		return os.Chtimes(target, info.ModTime(), info.ModTime())
	}))
}
