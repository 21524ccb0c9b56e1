package hooklib

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Env is what the client tells a hook through its environment. It holds only
// what is named here. The environment of a hook has secrets in it (observed on
// 2.1.332: the API key, which is not read, and a messaging token at some
// events): those kept here are of type [Secret], which prints as nothing.
type Env struct {
	ClaudeCode bool   // CLAUDECODE: a process of a Claude Code session, which hooks are (observed on 2.1.332)
	ProjectDir string // CLAUDE_PROJECT_DIR: where the session began; does not follow cd
	SessionID  string // CLAUDE_CODE_SESSION_ID: prefer the event's
	Entrypoint string // CLAUDE_CODE_ENTRYPOINT: cli, sdk-cli, …
	ConfigDir  string // CLAUDE_CONFIG_DIR, as it is set; empty if it is not
	PID        int    // CLAUDE_PID: the client's process; 0 if it is not told
	Effort     string // CLAUDE_EFFORT: prefer the event's

	// Child says that CLAUDE_CODE_CHILD_SESSION is set: a client started from
	// here is a child of this session. Clients from 2.1.172 on set it for all
	// hooks, those of a session that is no child too (observed on 2.1.332);
	// [Env.Nested] tells whose hook this is.
	Child         bool
	ChildNotesDir string // CLAUDE_CODE_CHILD_NOTES_DIR

	Unattended bool   // CLAUDE_CODE_SESSION_ATTENDED is 0: nobody sits at the session, as in print mode
	AIAgent    string // AI_AGENT: the client and its version, for programs that it runs

	Remote          bool   // CLAUDE_CODE_REMOTE: the client runs in the vendor's cloud
	RemoteSessionID string // CLAUDE_CODE_REMOTE_SESSION_ID
	BridgeSessionID string // CLAUDE_CODE_BRIDGE_SESSION_ID: set under remote control

	PluginRoot string // CLAUDE_PLUGIN_ROOT: set when a plugin wired this hook; changes with each update of it
	PluginData string // CLAUDE_PLUGIN_DATA: the plugin's own folder; gone once it is uninstalled

	// EnvFile is CLAUDE_ENV_FILE, a shell script that the client runs before
	// each command of the session. It belongs to SessionStart, Setup,
	// CwdChanged and FileChanged; at other events a nested client's hooks see
	// the outer session's (observed on 2.1.332). See [Call.Export].
	EnvFile string

	SessionEndTimeout time.Duration // CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS; 0 if it is not set
	SkipHistory       bool          // CLAUDE_CODE_SKIP_PROMPT_HISTORY: no transcript is written
	TraceParent       string        // TRACEPARENT

	MessagingSocket string // CLAUDE_CODE_MESSAGING_SOCKET; not at SessionEnd (observed on 2.1.332)
	MessagingToken  Secret // CLAUDE_CODE_MESSAGING_TOKEN
}

// ReadEnv reads the environment of a hook through getenv, which is os.Getenv
// but in tests.
func ReadEnv(getenv func(string) string) Env {
	return Env{
		ClaudeCode:        isSet(getenv("CLAUDECODE")),
		ProjectDir:        getenv("CLAUDE_PROJECT_DIR"),
		SessionID:         getenv("CLAUDE_CODE_SESSION_ID"),
		Entrypoint:        getenv("CLAUDE_CODE_ENTRYPOINT"),
		ConfigDir:         getenv("CLAUDE_CONFIG_DIR"),
		PID:               int(number(getenv("CLAUDE_PID"), 1<<31-1)),
		Effort:            getenv("CLAUDE_EFFORT"),
		Child:             isSet(getenv("CLAUDE_CODE_CHILD_SESSION")),
		ChildNotesDir:     getenv("CLAUDE_CODE_CHILD_NOTES_DIR"),
		Unattended:        getenv("CLAUDE_CODE_SESSION_ATTENDED") == "0",
		AIAgent:           getenv("AI_AGENT"),
		Remote:            isSet(getenv("CLAUDE_CODE_REMOTE")),
		RemoteSessionID:   getenv("CLAUDE_CODE_REMOTE_SESSION_ID"),
		BridgeSessionID:   getenv("CLAUDE_CODE_BRIDGE_SESSION_ID"),
		PluginRoot:        getenv("CLAUDE_PLUGIN_ROOT"),
		PluginData:        getenv("CLAUDE_PLUGIN_DATA"),
		EnvFile:           getenv("CLAUDE_ENV_FILE"),
		SessionEndTimeout: time.Duration(number(getenv("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS"), 1<<40)) * time.Millisecond,
		SkipHistory:       isSet(getenv("CLAUDE_CODE_SKIP_PROMPT_HISTORY")),
		TraceParent:       getenv("TRACEPARENT"),
		MessagingSocket:   getenv("CLAUDE_CODE_MESSAGING_SOCKET"),
		MessagingToken:    NewSecret(getenv("CLAUDE_CODE_MESSAGING_TOKEN")),
	}
}

// PluginOption returns what the user set for an option of the plugin that
// wired this hook (documented): a secret, for all that is known. An option
// that was not set is empty, even if it has a default (observed on 2.1.332).
func PluginOption(getenv func(string) string, key string) Secret {
	return NewSecret(getenv("CLAUDE_PLUGIN_OPTION_" + key))
}

// isSet reads a variable the way the client writes its switches.
func isSet(value string) bool {
	return value != "" && value != "0" && value != "false"
}

// number reads a variable that counts something; 0 if it does not.
func number(value string, most int64) int64 {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0
	}
	return n
}

// Nested tells whether this is the hook of a client that was itself started
// from a session, by a hook or a tool of it, and whether that can be told. A
// hook that starts clients is run by them again; and an interactive client of
// this kind writes no transcript (documented). The hook's own environment looks
// the same in both cases (observed on 2.1.332), so that of the client's process
// is looked at, which Linux and macOS show.
func (e Env) Nested() (nested, known bool) {
	if e.PID <= 1 {
		return false, false
	}
	return processHas(e.PID, "CLAUDE_CODE_CHILD_SESSION=")
}

// Secret is a text that must not be shown. All ways to print, log or encode it
// give a placeholder; [Secret.Reveal] gives the text.
type Secret struct{ text string }

// NewSecret makes a secret of text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text itself.
func (s Secret) Reveal() string { return s.text }

// IsSet tells whether there is a text.
func (s Secret) IsSet() bool { return s.text != "" }

// String returns a placeholder, or nothing if there is no text.
func (s Secret) String() string {
	if s.text == "" {
		return ""
	}
	return "(secret)"
}

// Format prints the placeholder, whatever the verb.
func (s Secret) Format(f fmt.State, verb rune) { fmt.Fprint(f, s.String()) }

// MarshalText encodes the placeholder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ErrNoEnvFile says that the client gives no file for variables at this event.
var ErrNoEnvFile = errors.New("the client takes no variables at this event")

// Export has the client set a variable for all commands of the session that
// follow. It appends one line to the file that the client names, quoted for a
// shell. There is such a file at SessionStart, Setup, CwdChanged and
// FileChanged; elsewhere, and where the client names none, the error is
// [ErrNoEnvFile].
func (c *Call) Export(name, value string) error {
	if !isVariableName(name) {
		return fmt.Errorf("export: %s is no name of a variable", quote(name))
	}
	if strings.ContainsRune(value, 0) {
		return fmt.Errorf("export %s: the value holds a NUL", name)
	}
	switch c.Event.(type) {
	case *SessionStart, *Setup, *CwdChanged, *FileChanged:
	default:
		return ErrNoEnvFile
	}
	if c.Env.EnvFile == "" { // an empty one came from client 2.0.76 (field report SS-16)
		return ErrNoEnvFile
	}
	f, err := os.OpenFile(c.Env.EnvFile, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("export %s: %w", name, err)
	}
	line := "export " + name + "='" + strings.ReplaceAll(value, "'", `'\''`) + "'\n"
	_, err = f.WriteString(line)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("export %s: %w", name, err)
	}
	return nil
}

func isVariableName(name string) bool {
	for i, c := range name {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
