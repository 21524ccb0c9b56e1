package hooklib

import "strconv"

// Env is what the client tells a hook through its environment. It holds only
// what is named here: the environment of a hook has secrets in it (observed on
// 2.1.332: the API key, and a messaging token at some events), so nothing else
// is read and nothing is logged.
type Env struct {
	ProjectDir string // CLAUDE_PROJECT_DIR: where the session began; does not follow cd
	SessionID  string // CLAUDE_CODE_SESSION_ID: prefer the event's
	Entrypoint string // CLAUDE_CODE_ENTRYPOINT: cli, sdk-cli, …
	ConfigDir  string // CLAUDE_CONFIG_DIR, as it is set; empty if it is not
	PID        int    // CLAUDE_PID: the client's process; 0 if it is not told
	Child      bool   // CLAUDE_CODE_CHILD_SESSION: a client that was started from a session
	Remote     bool   // CLAUDE_CODE_REMOTE: the client runs in the vendor's cloud
	PluginRoot string // CLAUDE_PLUGIN_ROOT: set when a plugin wired this hook
}

// ReadEnv reads the environment of a hook through getenv, which is os.Getenv
// but in tests.
func ReadEnv(getenv func(string) string) Env {
	pid, err := strconv.Atoi(getenv("CLAUDE_PID"))
	if err != nil || pid < 0 {
		pid = 0
	}
	return Env{
		ProjectDir: getenv("CLAUDE_PROJECT_DIR"),
		SessionID:  getenv("CLAUDE_CODE_SESSION_ID"),
		Entrypoint: getenv("CLAUDE_CODE_ENTRYPOINT"),
		ConfigDir:  getenv("CLAUDE_CONFIG_DIR"),
		PID:        pid,
		Child:      isSet(getenv("CLAUDE_CODE_CHILD_SESSION")),
		Remote:     isSet(getenv("CLAUDE_CODE_REMOTE")),
		PluginRoot: getenv("CLAUDE_PLUGIN_ROOT"),
	}
}

// isSet reads a variable the way the client writes its switches.
func isSet(value string) bool {
	return value != "" && value != "0" && value != "false"
}
