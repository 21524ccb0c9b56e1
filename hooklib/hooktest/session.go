package hooktest

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/session-keeper/session-keeper/hooklib"
)

// Made-up secrets, of which nothing may be seen in what a hook prints.
const (
	apiKey         = "hooktest-api-key-5b1c7f"
	messagingToken = "hooktest-messaging-token-9d2e41"
)

// Session is a made-up session of a made-up home.
type Session struct {
	ID       string
	PromptID string
	Home     string // the user's home
	Config   string // the client's config folder, in Home
	Project  string // where the session began
	// Transcript is the session's file. It exists, with one prompt and its
	// answer; remove it for a session that has none, as at its start.
	Transcript string
}

// New makes a session in a temporary folder of the test's.
func New(t testing.TB) *Session {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir()) // the client gives real paths
	if err != nil {
		t.Fatal(err)
	}
	s := &Session{ID: newID(), PromptID: newID(), Home: filepath.Join(dir, "home"), Project: filepath.Join(dir, "project")}
	s.Config = filepath.Join(s.Home, ".claude")
	s.Transcript = filepath.Join(s.Config, "projects", folderName(s.Project), s.ID+".jsonl")
	for _, dir := range []string{filepath.Dir(s.Transcript), filepath.Join(s.Config, "session-env", s.ID), s.Project, filepath.Join(dir, "tmp")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	lines := object{
		{"parentUuid", nil}, {"isSidechain", false}, {"type", "user"}, {"message", map[string]any{"role": "user", "content": "hello"}},
		{"uuid", "00000000-0000-4000-8000-000000000001"}, {"timestamp", "2026-01-02T03:04:05.000Z"}, {"cwd", s.Project}, {"sessionId", s.ID},
	}.line() + object{
		{"parentUuid", "00000000-0000-4000-8000-000000000001"}, {"isSidechain", false}, {"type", "assistant"},
		{"message", map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": "Hello!"}}}},
		{"uuid", "00000000-0000-4000-8000-000000000002"}, {"timestamp", "2026-01-02T03:04:06.000Z"}, {"cwd", s.Project}, {"sessionId", s.ID},
	}.line()
	if err := os.WriteFile(s.Transcript, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// newID returns a random id of the client's form.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0F|0x40, b[8]&0x3F|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// folderName returns the client's name for a project's folder (observed on
// 2.1.332).
func folderName(path string) string {
	var name strings.Builder
	hash := int32(0)
	for _, unit := range utf16.Encode([]rune(path)) {
		hash = 31*hash + int32(unit)
		if c := byte(unit); unit < 0x80 && (c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z') {
			name.WriteByte(c)
		} else {
			name.WriteByte('-')
		}
	}
	if name.Len() <= 200 {
		return name.String()
	}
	return name.String()[:200] + "-" + strconv.FormatInt(max(int64(hash), -int64(hash)), 36)
}

// Env returns the environment that the client gives to a hook of an event, and
// nothing else: the test's own is not in it, but for PATH and what Windows
// needs. The home is the session's. The secrets in it are made up.
func (s *Session) Env(event string) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + s.Home,
		"TMPDIR=" + filepath.Join(filepath.Dir(s.Home), "tmp"),
		"CLAUDECODE=1",
		"CLAUDE_PROJECT_DIR=" + s.Project,
		"CLAUDE_CODE_SESSION_ID=" + s.ID,
		"CLAUDE_PID=" + strconv.Itoa(os.Getpid()),
		"CLAUDE_CODE_ENTRYPOINT=cli",
		"CLAUDE_CODE_SESSION_ATTENDED=1",
		"CLAUDE_CODE_CHILD_SESSION=1",
		"CLAUDE_CODE_CHILD_NOTES_DIR=" + filepath.Join(filepath.Dir(s.Home), "tmp", "started"),
		"CLAUDE_CONFIG_DIR=" + s.Config,
		"AI_AGENT=claude-code_2-1-332_harness",
		"ANTHROPIC_API_KEY=" + apiKey,
	}
	switch event {
	case hooklib.NameSessionStart, hooklib.NameSetup, hooklib.NameCwdChanged, hooklib.NameFileChanged:
		env = append(env, "CLAUDE_ENV_FILE="+filepath.Join(s.Config, "session-env", s.ID, strings.ToLower(event)+"-hook-0.sh"))
	}
	switch event {
	case hooklib.NameSessionStart, hooklib.NamePreCompact:
		env = append(env,
			"CLAUDE_CODE_MESSAGING_SOCKET="+filepath.Join(filepath.Dir(s.Home), "tmp", "socket"),
			"CLAUDE_CODE_MESSAGING_TOKEN="+messagingToken)
	}
	if runtime.GOOS == "windows" {
		env = append(env, "USERPROFILE="+s.Home)
		for _, name := range []string{"SystemRoot", "ComSpec", "PATHEXT", "TEMP", "TMP"} {
			env = append(env, name+"="+os.Getenv(name))
		}
	}
	return env
}

// lookup returns a getenv of an environment, in which the last of equal names
// counts.
func lookup(env []string) func(string) string {
	vars := map[string]string{}
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		vars[name] = value
	}
	return func(name string) string { return vars[name] }
}
