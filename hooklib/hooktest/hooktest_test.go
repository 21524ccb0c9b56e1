package hooktest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/hooklib"
)

// selfVariable makes the test binary one of the programs.
const selfVariable = "HOOKTEST_SELF"

func TestMain(m *testing.M) {
	if name := os.Getenv(selfVariable); name != "" {
		os.Exit(programs[name]())
	}
	flag.Parse()
	os.Exit(m.Run())
}

// good is a hook that does what it should at two events.
var good = hooklib.Hook{
	Name: "good",
	On: hooklib.Handlers{
		SessionStart: func(_ context.Context, c *hooklib.Call, e *hooklib.SessionStart) (hooklib.SessionStartOutput, error) {
			return hooklib.SessionStartOutput{AdditionalContext: "The source is " + e.Source + "."}, nil
		},
		SessionEnd: func(_ context.Context, c *hooklib.Call, e *hooklib.SessionEnd) error {
			return os.WriteFile(filepath.Join(c.Env.ConfigDir, "ended"), []byte(e.SessionID), 0o600)
		},
	},
}

// programs are what the test binary can be: programs["good"], and a kind for
// each fault.
var programs map[string]func() int

func init() {
	programs = map[string]func() int{
		"good":    func() int { return hooklib.Main(good) },
		"exit 2":  func() int { return 2 },
		"exit 3":  func() int { return 3 },
		"panic":   func() int { panic("boom") },
		"fail":    func() int { fmt.Fprintln(os.Stderr, "said why"); return 1 },
		"printer": func() int { fmt.Println("hello"); return 0 },
		"print and fail": func() int {
			fmt.Println("hello")
			return 1
		},
		"leak":    func() int { fmt.Fprintln(os.Stderr, os.Environ()); return 0 },
		"flood":   func() int { _, _ = io.CopyN(os.Stdout, zeros{}, 3*maxOutput); return 0 },
		"forever": func() int { time.Sleep(time.Hour); return 0 },
		"deaf":    func() int { ignoreTerm(); time.Sleep(time.Hour); return 0 },
		"waits for the end": func() int {
			if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
				return 1
			}
			return 0
		},
		"reads a line": func() int {
			line, err := bufio.NewReader(os.Stdin).ReadString('\n')
			if err != nil || !json.Valid([]byte(line)) {
				return 1
			}
			return 0
		},
		"holder": func() int { return child(os.Stdout, false) },
		"worker": func() int { return child(nil, true) },
		"parent": func() int {
			if code := child(nil, true); code != 0 {
				return code
			}
			time.Sleep(time.Hour)
			return 0
		},
		"environment": func() int {
			sorted := slices.Sorted(slices.Values(os.Environ()))
			fmt.Fprintln(os.Stderr, strings.Join(sorted, "\n"))
			return 0
		},
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// child starts one that sleeps.
func child(out *os.File, own bool) int {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), selfVariable+"=forever")
	if out != nil {
		cmd.Stdout = out
	}
	if own {
		cmd.SysProcAttr = ownSession()
	}
	if cmd.Start() != nil {
		return 1
	}
	return 0
}

func self(t testing.TB, name string) Program {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if programs[name] == nil {
		t.Fatalf("no program %q", name)
	}
	// A binary with the race detector sleeps a second at its end if not told.
	return Program{Path: exe, Env: []string{selfVariable + "=" + name, "GORACE=atexit_sleep_ms=0"}}
}

func TestPayloads(t *testing.T) {
	s := New(t)
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "events", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d events, %v", len(files), err)
	}
	recorded := map[string]map[string]bool{} // the shapes of each event's payloads
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, shape := shapeOf(t, raw)
		if recorded[name] == nil {
			recorded[name] = map[string]bool{}
		}
		recorded[name][shape] = true
	}
	payloads := [][]byte{}
	for _, name := range hooklib.Names() {
		payloads = append(payloads, s.Payload(name))
	}
	for _, source := range []string{"resume", "clear", "compact", "fork"} {
		payloads = append(payloads, s.Payload(hooklib.NameSessionStart, Set("source", source)))
	}
	for _, raw := range payloads {
		name, shape := shapeOf(t, raw)
		if !recorded[name][shape] {
			t.Errorf("no recorded payload of %s has the fields %s; there are %s", name, shape, slices.Sorted(maps.Keys(recorded[name])))
		}
		event, err := hooklib.ParseEvent(raw)
		if err != nil {
			t.Fatal(err)
		}
		c := event.Base()
		if _, unknown := event.(*hooklib.Unknown); unknown || c.SessionID != s.ID || c.TranscriptPath != s.Transcript || c.Cwd != s.Project {
			t.Errorf("%s: %s", name, raw)
		}
		got := s.Call(t, good, raw)
		if got.ExitCode != 0 || len(got.Stderr) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
		if name != hooklib.NameWorktreeCreate { // which must be answered
			got.Check(t)
		}
	}
	if info, err := os.Stat(s.Transcript); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("transcript: %v, %v", info, err)
	}
}

// shapeOf returns the event's name and its fields in order.
func shapeOf(t testing.TB, raw []byte) (name, shape string) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		t.Fatalf("%s: %v, %v", raw, token, err)
	}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err := errors.Join(err, d.Decode(&value)); err != nil {
			t.Fatal(err)
		}
		shape += " " + key.(string)
		if key == "hook_event_name" {
			name = strings.Trim(string(value), `"`)
		}
	}
	return name, shape
}

func TestChanges(t *testing.T) {
	s := New(t)
	raw := s.Payload(hooklib.NameSessionEnd, Set("reason", "a<b"), Drop("prompt_id"), Set("new", []int{1}), Drop("none"), Set("cwd", 7), Drop("new"), Set("last", nil))
	want := `{"session_id":"` + s.ID + `","transcript_path":` + quoted(s.Transcript) + `,"cwd":7,"hook_event_name":"SessionEnd","reason":"a<b","last":null}` + "\n"
	if string(raw) != want {
		t.Errorf("got  %swant %s", raw, want)
	}
	if name, shape := shapeOf(t, s.Payload("Brewed")); name != "Brewed" || shape != " session_id transcript_path cwd prompt_id hook_event_name" {
		t.Errorf("%q, %q", name, shape)
	}
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Folder names as the client made them.
func TestFolderName(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "testdata", "vectors", "paths.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct{ Path, Dir string }
	}
	if err := json.Unmarshal(raw, &file); err != nil || len(file.Vectors) < 30 {
		t.Fatalf("%d vectors, %v", len(file.Vectors), err)
	}
	for _, v := range file.Vectors {
		if got := folderName(v.Path); got != v.Dir {
			t.Errorf("%q: %q, want %q", v.Path, got, v.Dir)
		}
	}
}

func TestRunGood(t *testing.T) {
	s := New(t)
	for _, pipes := range []bool{false, true} {
		p := self(t, "good")
		p.Pipes = pipes
		r := s.Run(t, p, s.Payload(hooklib.NameSessionStart))
		r.Check(t)
		var out struct {
			Specific struct{ AdditionalContext string } `json:"hookSpecificOutput"`
		}
		if err := json.Unmarshal(r.Stdout, &out); err != nil || out.Specific.AdditionalContext != "The source is startup." || r.ExitCode != 0 || r.Took <= 0 {
			t.Errorf("%+v, %v", r, err)
		}
		if r.Budget != hooklib.DefaultBudget {
			t.Errorf("budget %v", r.Budget)
		}
	}
	p := self(t, "good")
	p.Timeout = time.Minute
	r := s.Run(t, p, s.Payload(hooklib.NameSessionEnd))
	r.Check(t)
	if got, err := os.ReadFile(filepath.Join(s.Config, "ended")); err != nil || string(got) != s.ID || r.Budget != time.Minute {
		t.Errorf("%q, %v, budget %v", got, err, r.Budget)
	}
}

func TestTorture(t *testing.T) {
	s := New(t)
	for _, event := range []string{hooklib.NameSessionStart, hooklib.NameSessionEnd} {
		p := self(t, "good")
		p.Timeout = time.Minute // a busy machine is no fault of the hook's
		t.Run(event, func(t *testing.T) { s.Torture(t, p, s.Payload(event)) })
	}
	t.Run("call", func(t *testing.T) { s.Call(t, good, []byte("{")).Check(t) })
}

// The faults that the package is to find are found.
func TestProblems(t *testing.T) {
	tests := []struct {
		program string
		how     Stdin
		event   string
		timeout time.Duration
		want    string // in a problem; "" for none
	}{
		{"exit 2", Open, "Stop", 0, "exited 2"},
		{"panic", Open, "Stop", 0, "exited 2"},
		{"exit 3", Open, "Stop", 0, "code 3"},
		{"fail", Open, "Stop", 0, ""},
		{"printer", Open, "SessionStart", 0, ""},
		{"printer", Open, "Stop", 0, "does not take plain text"},
		{"printer", Open, "SessionEnd", time.Minute, "does not take plain text"},
		{"printer", Silent, "SessionStart", 0, "without an event"},
		{"print and fail", Open, "SessionStart", 0, "printed something and failed"},
		{"leak", Open, "SessionStart", 0, "secret"},
		{"flood", Open, "SessionStart", 0, "more than the client takes"},
		{"waits for the end", Open, "SessionEnd", 0, "longer than the client lets it: 1.5s"},
		{"waits for the end", Closed, "SessionEnd", time.Minute, ""},
		{"waits for the end", Pieces, "UserPromptSubmit", 300 * time.Millisecond, "longer than"},
		{"reads a line", Open, "Stop", 0, ""},
		{"reads a line", Late, "Stop", 0, ""},
		{"reads a line", Pieces, "Stop", 0, ""},
		{"reads a line", Truncated, "Stop", 0, ""},
		{"reads a line", Empty, "Stop", 0, ""},
		{"reads a line", Stalled, "Stop", 300 * time.Millisecond, "longer than"},
		{"holder", Open, "Stop", 0, "holds the hook's standard streams"},
		{"worker", Open, "Stop", 0, ""},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.program, " ", tt.how, " ", tt.event), func(t *testing.T) {
			t.Parallel()
			s := New(t)
			p := self(t, tt.program)
			p.Stdin, p.Timeout = tt.how, tt.timeout
			r := s.Run(t, p, s.Payload(tt.event))
			got := strings.Join(r.problems(), "; ")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("problems: %q, want %q", got, tt.want)
			}
		})
	}
}

// What Check says goes to the test.
func TestCheckFails(t *testing.T) {
	s := New(t)
	var rec recorder
	s.Run(t, self(t, "exit 2"), s.Payload(hooklib.NamePreCompact)).Check(&rec)
	if !strings.Contains(rec.String(), "the hook exited 2") {
		t.Errorf("said: %q", rec.String())
	}
}

type recorder struct {
	testing.TB
	strings.Builder
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	fmt.Fprintf(&r.Builder, format, args...)
}

// The environment is the session's: nothing of the real home is in it.
func TestEnv(t *testing.T) {
	t.Setenv("HOOKTEST_REAL", "1")
	s := New(t)
	p := self(t, "environment")
	p.Env = append(p.Env, "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS=4000", "CLAUDE_PID=7")
	for _, event := range []string{hooklib.NameSessionStart, hooklib.NameSessionEnd} {
		r := s.Run(t, p, s.Payload(event))
		env := hooklib.ReadEnv(lookup(strings.Split(string(r.Stderr), "\n")))
		if env.ProjectDir != s.Project || env.SessionID != s.ID || env.ConfigDir != s.Config || env.PID != 7 || !env.ClaudeCode || env.Unattended {
			t.Errorf("%s: %+v", event, env)
		}
		start := event == hooklib.NameSessionStart
		if (env.EnvFile != "") != start || env.MessagingToken.IsSet() != start {
			t.Errorf("%s: %+v", event, env)
		}
		if event == hooklib.NameSessionEnd && r.Budget != 4*time.Second {
			t.Errorf("budget %v", r.Budget)
		}
		if strings.Contains(string(r.Stderr), "HOOKTEST_REAL") || !strings.Contains(string(r.Stderr), "HOME="+s.Home) {
			t.Errorf("%s: %s", event, r.Stderr)
		}
	}
	if env := hooklib.ReadEnv(lookup(s.Env(hooklib.NameSessionStart))); reflect.DeepEqual(env, hooklib.Env{}) || filepath.Dir(filepath.Dir(env.EnvFile)) != filepath.Join(s.Config, "session-env") {
		t.Errorf("%+v", env)
	}
}

func TestCheckOutput(t *testing.T) {
	path := quoted(t.TempDir())
	long := strings.Repeat("é", hooklib.MaxText)
	tests := []struct{ event, out, want string }{ // want is in the error; "" for none
		{"Stop", "", ""},
		{"Stop", " \n", ""},
		{"SessionStart", "plain", ""},
		{"SessionStart", long, ""},
		{"SessionStart", long + "a", "10001 UTF-16 units"},
		{"SessionStart", "a\xFF", "not UTF-8"},
		{"SessionStart", "\uFEFF{}", "byte order mark"},
		{"SessionStart", `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"` + long + `"}}`, ""},
		{"SessionStart", `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"` + long + `a"}}`, "10001 UTF-16 units"},
		{"SessionStart", `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"a"`, "is none"},
		{"SessionStart", `{"hookSpecificOutput":{"additionalContext":"a"}}`, "hookEventName"}, // PC-11
		{"SessionStart", `{"hookSpecificOutput":{"hookEventName":"Stop"}}`, "hookEventName"},
		{"SessionStart", `{"additionalContext":"a"}`, "does not take"},
		{"SessionStart", `{"additional_context":"a","hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"a"}}`, "does not take"}, // SS-07
		{"SessionStart", `{}` + "\n" + `{}`, "more than one"},                                                                                         // SS-11
		{"SessionStart", `{} trailing`, "more than one"},
		{"SessionStart", `{"continue":false,"stopReason":"x"}`, "does not take"},
		{"SessionStart", `{"suppressOutput":true}`, "does not take"},
		{"SessionStart", `{"hookSpecificOutput":[]}`, "no object"},
		{"SessionStart", `{"hookSpecificOutput":{"hookEventName":"SessionStart","watchPaths":[` + path + `],"reloadSkills":true,"sessionTitle":"t","initialUserMessage":"m"},"systemMessage":"s"}`, ""},
		{"SessionStart", `{"hookSpecificOutput":{"hookEventName":"SessionStart","watchPaths":["a"]}}`, "not absolute"},
		{"SessionStart", `{"hookSpecificOutput":{"hookEventName":"SessionStart","watchPaths":"a"}}`, "no list"},
		{"SessionStart", `{"hookSpecificOutput":{"hookEventName":"SessionStart","reloadSkills":1}}`, "cannot unmarshal"},
		{"SessionStart", `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":null}}`, "no text"},
		{"SessionEnd", "x", "does not take plain text"},
		{"SessionEnd", `{"systemMessage":"x"}`, "does not take"},
		{"PreCompact", "keep names", ""},
		{"PreCompact", `{"systemMessage":"x"}`, "instructions"},
		{"PreCompact", `{"hookSpecificOutput":{"hookEventName":"PreCompact"}}`, "instructions"}, // PC-10
		{"PreCompact", `{"decision":"block","reason":"x"}`, ""},
		{"PreCompact", `{"decision":"block"}`, "no reason"},
		{"PostCompact", `{"hookSpecificOutput":{"hookEventName":"PostCompact","additionalContext":"a"}}`, "does not take"}, // PC-12
		{"Stop", "plain", "plain text"},
		{"Stop", `[1]`, "plain text"},
		{"Stop", `{"decision":"block","reason":"x"}`, ""},
		{"Stop", `{"decision":"block","reason":""}`, "no reason"},
		{"Stop", `{"decision":"approve","reason":"x"}`, "decision"},
		{"Stop", `{"reason":"x"}`, "does not take"},
		{"Stop", `{"continue":false,"stopReason":"x"}`, ""},
		{"Stop", `{"continue":true}`, "continue"},
		{"Stop", `{"stopReason":"x"}`, "does not take"},
		{"Stop", `{"systemMessage":7}`, "no text"},
		{"Stop", `{"terminalSequence":"\u0007"}`, ""},
		{"Stop", `{"terminalSequence":"x"}`, "terminal sequence"},
		{"SubagentStop", `{"continue":false,"stopReason":"x"}`, "does not take"},
		{"PostToolUseFailure", `{"continue":false,"stopReason":"x"}`, "does not take"},
		{"UserPromptExpansion", "plain", ""},
		{"PreToolUse", `{"decision":"block","reason":"x"}`, "does not take"},
		{"PreToolUse", `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"x"}}`, ""},
		{"PreToolUse", `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"maybe"}}`, "none of allow"},
		{"PreToolUse", `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":7}}`, "no object"},
		{"PreModelSwitch", `{"hookSpecificOutput":{"hookEventName":"PreModelSwitch","permissionDecision":"defer"}}`, "none of allow"},
		{"PreSkillShellCommand", `{"hookSpecificOutput":{"hookEventName":"PreSkillShellCommand","permissionDecision":"allow"}}`, "none of deny"},
		{"PermissionRequest", `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow","updatedPermissions":[]}}}`, ""},
		{"PermissionRequest", `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","updatedInput":{}}}}`, "does not take"},
		{"PermissionRequest", `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"ask"}}}`, "behavior"},
		{"PermissionRequest", `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":"allow"}}`, "no object"},
		{"PermissionDenied", `{"hookSpecificOutput":{"hookEventName":"PermissionDenied","retry":true}}`, ""},
		{"Elicitation", `{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"accept","content":{}}}`, ""},
		{"Elicitation", `{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"yes"}}`, "none of accept"},
		{"PostToolUse", `{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":7,"classifierContext":"` + long[:4002] + `"}}`, "2001 UTF-16 units"},
		{"WorktreeCreate", "", "not printed"},
		{"WorktreeCreate", strings.Trim(path, `"`) + "\n", ""},
		{"WorktreeCreate", "wt1", "path of a worktree"},
		{"Brewed", "", ""},
		{"Brewed", "x", "not known"},
	}
	for _, tt := range tests {
		err := CheckOutput([]byte(`{"hook_event_name":"`+tt.event+`"}`), []byte(tt.out))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %s: %v, want %q", tt.event, short([]byte(tt.out)), err, tt.want)
		}
	}
	if err := CheckOutput([]byte("{"), []byte("x")); err == nil {
		t.Error("an answer to no event is taken")
	}
}

// FuzzCheckOutput states that no output makes the check panic, and that what it
// takes as JSON is JSON.
func FuzzCheckOutput(f *testing.F) {
	for _, seed := range []string{"", "x", "{", `{"decision":"block","reason":"x"}`, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{}}}`, `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny"}}}`} {
		f.Add(uint8(len(seed)), []byte(seed))
	}
	names := hooklib.Names()
	f.Fuzz(func(t *testing.T, event uint8, stdout []byte) {
		name := names[int(event)%len(names)]
		err := CheckOutput([]byte(`{"hook_event_name":"`+name+`"}`), stdout)
		if text := bytes.TrimSpace(stdout); err == nil && len(text) > 0 && text[0] == '{' && !json.Valid(text) {
			t.Fatalf("%s: %q is taken", name, stdout)
		}
	})
}

// Whatever hooklib prints is what this package takes.
func TestCheckTakesWhatEncodeGives(t *testing.T) {
	dir := t.TempDir()
	shown := "x"
	all := []hooklib.Output{
		hooklib.SessionStartOutput{AdditionalContext: "a", SessionTitle: "b", InitialUserMessage: "c", WatchPaths: []string{dir}, ReloadSkills: true, SystemMessage: "d", TerminalSequence: "\x07"},
		hooklib.SetupOutput{AdditionalContext: "a", SystemMessage: "b", TerminalSequence: "\x07"},
		hooklib.UserPromptSubmitOutput{Block: "a", HidePrompt: true, AdditionalContext: "b", SessionTitle: "c", Halt: "d", SystemMessage: "e", TerminalSequence: "\x07"},
		hooklib.UserPromptExpansionOutput{Block: "a", HidePrompt: true, AdditionalContext: "b", Halt: "d", SystemMessage: "c", TerminalSequence: "\x07"},
		hooklib.StopOutput{Block: "a", AdditionalContext: "b", Halt: "c", SystemMessage: "d", TerminalSequence: "\x07"},
		hooklib.SubagentStartOutput{AdditionalContext: "a", SystemMessage: "b", TerminalSequence: "\x07"},
		hooklib.SubagentStopOutput{Block: "a", AdditionalContext: "b", SystemMessage: "d", TerminalSequence: "\x07"},
		hooklib.PreCompactOutput{Block: "a"}, hooklib.PreCompactOutput{Instructions: "a"},
		hooklib.PreToolUseOutput{Permission: hooklib.Allow{Reason: "a", UpdatedInput: map[string]int{"a": 1}}, AdditionalContext: "b", Halt: "c", SystemMessage: "d", TerminalSequence: "\x07"},
		hooklib.PreToolUseOutput{Permission: hooklib.Deny{Reason: "a"}}, hooklib.PreToolUseOutput{Permission: hooklib.Ask{Reason: "a"}}, hooklib.PreToolUseOutput{Permission: hooklib.Defer{}}, hooklib.PreToolUseOutput{Permission: hooklib.Rewrite{UpdatedInput: map[string]int{}}},
		hooklib.PostToolUseOutput{Block: "a", AdditionalContext: "b", ClassifierContext: "c", UpdatedToolOutput: 7, Halt: "d", SystemMessage: "e", TerminalSequence: "\x07"},
		hooklib.PostToolUseFailureOutput{Block: "a", AdditionalContext: "b", SystemMessage: "d", TerminalSequence: "\x07"},
		hooklib.PostToolBatchOutput{AdditionalContext: "b", Halt: "c", SystemMessage: "d", TerminalSequence: "\x07"},
		hooklib.PermissionRequestOutput{Decision: hooklib.AllowRequest{UpdatedInput: map[string]int{}, UpdatedPermissions: []hooklib.PermissionUpdate{{Type: "setMode", Mode: "plan", Destination: "session"}}}, SystemMessage: "a", TerminalSequence: "\x07"},
		hooklib.PermissionRequestOutput{Decision: hooklib.DenyRequest{Message: "a", Interrupt: true}},
		hooklib.PermissionDeniedOutput{Retry: true, SystemMessage: "a", TerminalSequence: "\x07"},
		hooklib.PreSkillShellCommandOutput{Deny: "a", SystemMessage: "b", TerminalSequence: "\x07"},
		hooklib.NotificationOutput{AdditionalContext: "a", SystemMessage: "b", TerminalSequence: "\x07"},
		hooklib.MessageDisplayOutput{DisplayContent: &shown},
		hooklib.PreModelSwitchOutput{Decision: hooklib.AskSwitch{Reason: "a"}, SystemMessage: "b", TerminalSequence: "\x07"},
		hooklib.PreModelSwitchOutput{Decision: hooklib.AllowSwitch{}}, hooklib.PreModelSwitchOutput{Decision: hooklib.DenySwitch{}},
		hooklib.PostModelSwitchOutput{AdditionalContext: "a", SystemMessage: "b", TerminalSequence: "\x07"},
		hooklib.TeammateIdleOutput{Halt: "a", SystemMessage: "b", TerminalSequence: "\x07"},
		hooklib.TaskCreatedOutput{Halt: "a", SystemMessage: "b", TerminalSequence: "\x07"},
		hooklib.TaskCompletedOutput{Halt: "a", SystemMessage: "b", TerminalSequence: "\x07"},
		hooklib.ElicitationOutput{Action: hooklib.Accept{Content: map[string]int{"a": 1}}, SystemMessage: "a", TerminalSequence: "\x07"},
		hooklib.ElicitationResultOutput{Action: hooklib.Cancel{}, SystemMessage: "a", TerminalSequence: "\x07"}, hooklib.ElicitationResultOutput{Action: hooklib.Decline{}},
		hooklib.ConfigChangeOutput{Block: "a", SystemMessage: "b", TerminalSequence: "\x07"},
		hooklib.CwdChangedOutput{WatchPaths: []string{dir}, SystemMessage: "a", TerminalSequence: "\x07"},
		hooklib.FileChangedOutput{WatchPaths: []string{}, SystemMessage: "a", TerminalSequence: "\x07"},
		hooklib.WorktreeCreateOutput{Path: dir},
	}
	s := New(t)
	answered := 0
	for _, name := range hooklib.Names() {
		payload := s.Payload(name)
		event, err := hooklib.ParseEvent(payload)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, out := range all {
			if reflect.TypeOf(out).Name() != name+"Output" {
				continue
			}
			found = true
			line, err := hooklib.Encode(event, out)
			if err != nil || len(line) == 0 {
				t.Errorf("%s: %q, %v", name, line, err)
			} else if err := CheckOutput(payload, line); err != nil {
				t.Errorf("%s: %s: %v", name, line, err)
			}
		}
		if found {
			answered++
		}
	}
	if answered != len(hooklib.Names())-6 {
		t.Errorf("outputs of %d events", answered)
	}
}
