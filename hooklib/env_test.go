package hooklib

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

func from(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestReadEnvTakesAll(t *testing.T) {
	vars := map[string]string{
		"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": "/p", "CLAUDE_CODE_SESSION_ID": "s", "CLAUDE_CODE_ENTRYPOINT": "cli",
		"CLAUDE_CONFIG_DIR": "/c", "CLAUDE_PID": "42", "CLAUDE_EFFORT": "high", "CLAUDE_CODE_CHILD_SESSION": "1",
		"CLAUDE_CODE_CHILD_NOTES_DIR": "/n", "CLAUDE_CODE_SESSION_ATTENDED": "0", "AI_AGENT": "a", "CLAUDE_CODE_REMOTE": "true",
		"CLAUDE_CODE_REMOTE_SESSION_ID": "r", "CLAUDE_CODE_BRIDGE_SESSION_ID": "b", "CLAUDE_PLUGIN_ROOT": "/pr",
		"CLAUDE_PLUGIN_DATA": "/pd", "CLAUDE_ENV_FILE": "/e", "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS": "4000",
		"CLAUDE_CODE_SKIP_PROMPT_HISTORY": "1", "TRACEPARENT": "00-x", "CLAUDE_CODE_MESSAGING_SOCKET": "/s",
		"CLAUDE_CODE_MESSAGING_TOKEN": "t0ken",
	}
	read := map[string]bool{}
	env := ReadEnv(func(name string) string { read[name] = true; return vars[name] })
	want := Env{
		ClaudeCode: true, ProjectDir: "/p", SessionID: "s", Entrypoint: "cli", ConfigDir: "/c", PID: 42, Effort: "high", Child: true,
		ChildNotesDir: "/n", Unattended: true, AIAgent: "a", Remote: true, RemoteSessionID: "r", BridgeSessionID: "b",
		PluginRoot: "/pr", PluginData: "/pd", EnvFile: "/e", SessionEndTimeout: 4 * time.Second, SkipHistory: true, TraceParent: "00-x",
		MessagingSocket: "/s", MessagingToken: NewSecret("t0ken"),
	}
	if env != want {
		t.Errorf("got  %+v\nwant %+v", env, want)
	}
	for i := range reflect.TypeFor[Env]().NumField() {
		if reflect.ValueOf(env).Field(i).IsZero() {
			t.Errorf("%s is not read", reflect.TypeFor[Env]().Field(i).Name)
		}
	}
	for name := range read {
		if vars[name] == "" {
			t.Errorf("%s is read as well", name)
		}
	}
	if ReadEnv(from(nil)) != (Env{}) {
		t.Error("an empty environment gives more than nothing")
	}
	if ReadEnv(from(map[string]string{"CLAUDE_CODE_SESSION_ATTENDED": "1"})).Unattended {
		t.Error("attended is unattended")
	}
}

func TestSecretsStaySecret(t *testing.T) {
	const text = "t0ken"
	env := ReadEnv(from(map[string]string{"CLAUDE_CODE_MESSAGING_TOKEN": text, "ANTHROPIC_API_KEY": text, "ANTHROPIC_AUTH_TOKEN": text}))
	option := PluginOption(from(map[string]string{"CLAUDE_PLUGIN_OPTION_KEY": text}), "KEY")
	if !option.IsSet() || option.Reveal() != text || env.MessagingToken.Reveal() != text {
		t.Fatal("the secrets are not there")
	}
	call := &Call{Env: env}
	for _, v := range []any{env, &env, env.MessagingToken, &env.MessagingToken, option, call, []Secret{option}, map[string]Secret{"a": option}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			if s := fmt.Sprintf(verb, v); strings.Contains(s, text) || strings.Contains(s, fmt.Sprintf("%x", text)) {
				t.Errorf("%s of a %T shows it: %s", verb, v, s)
			}
		}
	}
	for _, v := range []any{env, option} {
		if b, err := json.Marshal(v); err != nil || strings.Contains(string(b), text) {
			t.Errorf("JSON of a %T: %s, %v", v, b, err)
		}
	}
	if s := NewSecret(""); s.IsSet() || s.String() != "" || fmt.Sprint(option) != "(secret)" {
		t.Errorf("%q, %q", s, option)
	}
}

func TestBudget(t *testing.T) {
	ms := func(n string) Env {
		return ReadEnv(from(map[string]string{"CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS": n}))
	}
	plugin := Env{PluginRoot: "/p"}
	tests := []struct {
		event   string
		timeout time.Duration
		env     Env
		want    time.Duration
	}{
		// As measured on client 2.1.332.
		{NameSessionEnd, 0, Env{}, 1500 * time.Millisecond},
		{NameSessionEnd, 5 * time.Second, Env{}, 5 * time.Second},
		{NameSessionEnd, 90 * time.Second, Env{}, 60 * time.Second},
		{NameSessionEnd, 0, ms("4000"), 4 * time.Second},
		{NameSessionEnd, 5 * time.Second, ms("10000"), 5 * time.Second},
		{NameSessionEnd, 5 * time.Second, ms("2000"), 2 * time.Second},
		{NameSessionEnd, 90 * time.Second, ms("80000"), 80 * time.Second},
		{NameSessionEnd, 30 * time.Second, plugin, 1500 * time.Millisecond},
		{NameSessionEnd, 0, ms("-1"), 1500 * time.Millisecond},
		{NameSessionEnd, 0, ms("99999999999999999999"), 1500 * time.Millisecond},
		{NameSessionStart, 0, Env{}, 600 * time.Second},
		{NamePreCompact, 2 * time.Second, Env{}, 2 * time.Second},
		{NamePreCompact, 2 * time.Second, plugin, 2 * time.Second},
		// As documented.
		{NameUserPromptSubmit, 0, Env{}, 30 * time.Second},
		{NameMessageDisplay, 0, Env{}, 10 * time.Second},
		{"Brewed", 0, Env{}, 600 * time.Second},
	}
	for _, tt := range tests {
		if got := Budget(tt.event, tt.timeout, tt.env); got != tt.want {
			t.Errorf("%s, timeout %v, %v: %v, want %v", tt.event, tt.timeout, tt.env.SessionEndTimeout, got, tt.want)
		}
	}
}

func TestLeft(t *testing.T) {
	start := time.Now()
	c := &Call{Event: eventNamed(t, NameSessionEnd), Start: start, timeout: time.Hour, Env: Env{SessionEndTimeout: time.Hour}}
	if !c.Deadline().Equal(start.Add(time.Hour)) || c.Left() <= 0 || c.Left() > time.Hour {
		t.Errorf("deadline %v, left %v", c.Deadline(), c.Left())
	}
	c.Start = start.Add(-2 * time.Hour)
	if c.Left() != 0 {
		t.Errorf("left %v after the deadline", c.Left())
	}
	none := &Call{Start: start}
	if got := none.Deadline().Sub(start); got != DefaultSessionEndBudget {
		t.Errorf("without an event: %v", got)
	}
	if mode := (&Call{mode: true}); !mode.Deadline().IsZero() || mode.Left() < time.Hour {
		t.Errorf("a mode: deadline %v, left %v", mode.Deadline(), mode.Left())
	}
	hook := Hook{Timeout: 7 * time.Minute, Handle: func(_ context.Context, c *Call) error {
		if got := c.Deadline().Sub(c.Start); got != 7*time.Minute {
			t.Errorf("the hook's timeout gives %v", got)
		}
		return nil
	}}
	if code := Run(hook, nil, strings.NewReader(sampleStop), nil, nil); code != 0 {
		t.Errorf("exit code %d", code)
	}
	worker := Hook{Modes: []Mode{{Flag: "work", Run: func(_ context.Context, c *Call, _ string) error {
		if !c.Deadline().IsZero() {
			t.Errorf("the deadline of a mode is %v", c.Deadline())
		}
		return nil
	}}}}
	if code := Run(worker, []string{"-work", "x"}, nil, nil, nil); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// SS-16: an env file that is absent, empty, in no folder, read-only, or full.
func TestExport(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "env.sh")
	if err := os.WriteFile(file, []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	start := &Call{Event: eventNamed(t, NameSessionStart), Env: Env{EnvFile: file}}
	if err := start.Export("A_1", "it's $HOME `x`\n\\"); err != nil {
		t.Fatal(err)
	}
	if err := start.Export("B", ""); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if want := "before\nexport A_1='it'\\''s $HOME `x`\n\\'\nexport B=''\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if sh, err := exec.LookPath("sh"); err == nil {
		out, err := exec.Command(sh, "-c", `before() { :; }; . "$0"; printf %s "$A_1"`, file).Output()
		if err != nil || string(out) != "it's $HOME `x`\n\\" {
			t.Errorf("a shell reads %q, %v", out, err)
		}
	}
	made := &Call{Event: eventNamed(t, NameCwdChanged), Env: Env{EnvFile: filepath.Join(dir, "new.sh")}}
	if err := made.Export("A", "1"); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		call  *Call
		name  string
		value string
		want  error
	}{
		{&Call{Event: start.Event}, "A", "", ErrNoEnvFile},
		{&Call{Event: eventNamed(t, NameSessionEnd), Env: start.Env}, "A", "", ErrNoEnvFile},
		{&Call{Env: start.Env}, "A", "", ErrNoEnvFile},
		{&Call{Event: start.Event, Env: Env{EnvFile: filepath.Join(dir, "none", "x")}}, "A", "", os.ErrNotExist},
		{start, "1A", "", nil},
		{start, "", "", nil},
		{start, "A;rm", "", nil},
		{start, "É", "", nil},
		{start, "A", "a\x00b", nil},
	} {
		err := tt.call.Export(tt.name, tt.value)
		if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%q=%q: %v, want %v", tt.name, tt.value, err, tt.want)
		}
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(got) {
		t.Errorf("a refused export wrote: %q, %v", after, err)
	}
}

// RE-01: a client that a session started.
func TestNested(t *testing.T) {
	if nested, known := (Env{}).Nested(); nested || known {
		t.Errorf("without a process: %v, %v", nested, known)
	}
	if _, known := (Env{PID: 1<<31 - 1}).Nested(); known {
		t.Error("something is known of a process that is not there")
	}
	for variable, want := range map[string]bool{"CLAUDE_CODE_CHILD_SESSION=1": true, "NOT_CLAUDE_CODE_CHILD_SESSION=1": false} {
		cmd := hookCommand(t, "waiting")
		cmd.Env = []string{hookVariable + "=waiting", variable} // nothing of the test's
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		shown := runtime.GOOS == "linux" || runtime.GOOS == "darwin"
		nested, known := Env{PID: cmd.Process.Pid}.Nested()
		// A process has no environment to show while it is being made.
		for end := time.Now().Add(time.Minute); shown && !known && time.Now().Before(end); time.Sleep(time.Millisecond) {
			nested, known = Env{PID: cmd.Process.Pid}.Nested()
		}
		if err := stdin.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		if known != shown || nested != (want && shown) {
			t.Errorf("%s: nested %v, known %v", variable, nested, known)
		}
	}
}
