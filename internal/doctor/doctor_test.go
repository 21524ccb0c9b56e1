package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/archive/spool"
	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/handoff"
	"github.com/session-keeper/session-keeper/internal/install"
	"github.com/session-keeper/session-keeper/internal/keeper"
	"github.com/session-keeper/session-keeper/internal/optout"
)

const testVersion = "v1.2.3"

var testNow = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// lab is a home of its own in which all is well, until a test changes it.
type lab struct {
	t       *testing.T
	home    string
	hook    string // the wired program; it is never really run
	project string
	vars    map[string]string
	managed string
	answer  string // of the hook to -version
	fails   error
}

func newLab(t *testing.T) *lab {
	t.Helper()
	home := t.TempDir()
	l := &lab{
		t: t, home: home, hook: filepath.Join(home, "bin", "session-end-archive"), project: filepath.Join(home, "project"),
		vars: map[string]string{}, managed: filepath.Join(home, "managed.json"), answer: "session-end-archive " + testVersion,
	}
	for _, path := range []string{l.hook, l.worker(), l.compact()} {
		l.write(path, "#!/bin/sh\n")
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := install.Install(install.Options{File: l.settings(), State: l.state(), Binary: l.hook, GOOS: "linux", Now: testNow}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Create(l.store()); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) settings() string { return filepath.Join(l.home, ".claude", "settings.json") }
func (l *lab) worker() string   { return filepath.Join(l.home, "bin", "session-keeper-worker") }
func (l *lab) compact() string  { return filepath.Join(l.home, "bin", "pre-compact-snapshot") }
func (l *lab) state() string    { return filepath.Join(l.home, ".local", "state", "session-keeper") }
func (l *lab) store() string    { return filepath.Join(l.home, ".local", "share", "session-keeper") }

func (l *lab) write(path, text string) {
	l.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) world() *World {
	env := config.Env{Getenv: func(name string) string { return l.vars[name] }, Home: l.home, Dir: l.project, GOOS: "linux"}
	w := &World{
		Env: env, Managed: l.managed, Version: testVersion, Now: testNow,
		Run: func(_ context.Context, path string, args ...string) (string, error) {
			switch {
			case path == l.hook && len(args) == 1 && args[0] == "-version":
				return l.answer, l.fails
			case path == l.worker() && len(args) == 1 && args[0] == "-version":
				return "session-keeper-worker " + testVersion, nil
			case path == l.compact() && len(args) == 1 && args[0] == "-version":
				return "pre-compact-snapshot " + testVersion, nil
			}
			return "", fmt.Errorf("unexpected run of %s %q", path, args)
		},
	}
	if w.Settings, w.Err = config.Load(env); w.Err != nil {
		w.Settings = nil
		return w
	}
	w.Keeper = keeper.New(w.Settings, nil)
	w.Keeper.Now = func() time.Time { return testNow }
	return w
}

func (l *lab) run() []Finding {
	l.t.Helper()
	findings, err := Run(context.Background(), l.world())
	if err != nil {
		l.t.Fatal(err)
	}
	return findings
}

// want fails unless there is a finding with this code and severity whose
// message holds text; it gives it back.
func (l *lab) want(code string, severity Severity, text string) Finding {
	l.t.Helper()
	findings := l.run()
	for _, f := range findings {
		if f.Code == code && f.Severity == severity && strings.Contains(f.Message, text) {
			if f.Severity == Problem && f.Fix == "" && code != "store-unreadable" {
				l.t.Errorf("%s has no fix", code)
			}
			return f
		}
	}
	l.t.Errorf("no %s %s with %q among\n%s", severity, code, text, lines(findings))
	return Finding{}
}

func (l *lab) wantNone(codes ...string) {
	l.t.Helper()
	for _, f := range l.run() {
		for _, code := range codes {
			if f.Code == code {
				l.t.Errorf("unwanted: %s", lines([]Finding{f}))
			}
		}
	}
}

func lines(findings []Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "  %s %s: %s [%s]\n", f.Severity, f.Code, f.Message, f.Fix)
	}
	return b.String()
}

func (l *lab) wire(handler string) {
	l.write(l.settings(), `{"hooks":{"SessionEnd":[{"hooks":[`+handler+`]}]}}`)
}

func (l *lab) handler(extra string) string {
	return `{"type":"command","command":"'` + l.hook + `' || exit 1"` + extra + `}`
}

func TestAllWell(t *testing.T) {
	l := newLab(t)
	findings := l.run()
	if n := Problems(findings); n != 0 {
		t.Errorf("%d problems:\n%s", n, lines(findings))
	}
	l.want("wired", OK, l.hook)
	l.want("budget", OK, "60 s (the hook's timeout)")
	l.want("store", OK, "archive ~/.local/share/session-keeper")
	l.want("links", OK, "hard link")
	l.want("archived", OK, "0 sessions")
	l.want("no-event", Note, "")
	l.want("retention-default", Note, "30 days")
	// Looking leaves no trace.
	for _, dir := range []string{l.store(), filepath.Dir(l.settings()), l.state()} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".tmp") {
				t.Errorf("left behind in %s: %s", dir, e.Name())
			}
		}
	}
}

func TestWiring(t *testing.T) {
	l := newLab(t)
	l.write(l.settings(), "{}")
	if f := l.want("not-wired", Problem, "~/.claude/settings.json"); f.Fix != "session-keeper install" {
		t.Errorf("fix %q", f.Fix)
	}
	l.write(l.settings(), "{ // cut")
	if f := l.want("settings-unreadable", Problem, "ignores the whole file"); f.File != l.settings() {
		t.Errorf("file %q", f.File)
	}
	l.write(l.settings(), "{\n\"hooks\":{\"SessionEnd\":[{\"hooks\":["+l.handler("")+"]}],\n}}")
	if f := l.want("settings-not-strict", Problem, "line 2"); f.Line != 2 || f.File != l.settings() {
		t.Errorf("at %s:%d", f.File, f.Line)
	}
	l.wantNone("wired", "not-wired")
	l.write(l.settings(), "\xff\xfe{\x00}\x00") // IO-02
	l.want("settings-unreadable", Problem, "UTF-16LE")

	l.wire(l.handler(`,"timeout":60,"if":"Bash(*)"`))
	l.want("wired-if", Problem, "never runs it")
	l.wire(l.handler(`,"timeout":60,"async":true`))
	l.want("wired-async", Note, "")
	l.write(l.settings(), `{"hooks":{"SessionEnd":[{"matcher":"clear","hooks":[`+l.handler("")+`]}]}}`)
	l.want("wired-matcher", Note, `"clear"`)
}

// IN-10, IN-11, IN-13: doctor counts.
func TestWiredTwice(t *testing.T) {
	l := newLab(t)
	l.wire(l.handler("") + "," + l.handler(""))
	l.want("wired-twice", Note, "wired 2 times")
	// The same command in user and project settings runs once.
	l.wire(l.handler(""))
	l.write(filepath.Join(l.project, ".claude", "settings.json"), `{"hooks":{"SessionEnd":[{"hooks":[`+l.handler("")+`]}]}}`)
	l.want("wired-project", Note, "")
	l.wantNone("wired-twice")
	// A plugin's copy runs in addition.
	plugin := filepath.Join(l.home, ".claude", "plugins", "cache", "m", "session-keeper", "1.0")
	l.write(filepath.Join(l.home, ".claude", "plugins", "installed_plugins.json"),
		`{"version":2,"plugins":{"session-keeper@m":[{"scope":"user","installPath":"`+plugin+`"}],"off@m":[{"installPath":"`+plugin+`"}]}}`)
	l.write(filepath.Join(plugin, "hooks", "hooks.json"),
		`{"hooks":{"SessionEnd":[{"hooks":[{"type":"command","command":"\"${CLAUDE_PLUGIN_ROOT}\"/bin/session-end-archive","timeout":30}]}]}}`)
	l.write(l.settings(), `{"hooks":{"SessionEnd":[{"hooks":[`+l.handler(`,"timeout":60`)+`]}]},"enabledPlugins":{"session-keeper@m":true,"off@m":false}}`)
	f := l.want("wired-twice", Note, "wired 2 times")
	if !strings.Contains(f.Fix, "plugin") {
		t.Errorf("fix %q", f.Fix)
	}
	l.want("hook-missing", Problem, filepath.Join(plugin, "bin", "session-end-archive"))
	// SE-06: a plugin's timeout raises nothing.
	l.want("budget", OK, "1.5 s (the default: a timeout in a plugin does not raise it)")
	l.want("budget", OK, "60 s")
}

func TestHookRuns(t *testing.T) { // PL-08: a program that lost its bit is named, with what mends it
	l := newLab(t)
	l.answer = "session-end-archive v1.0.0"
	l.want("hook-version", Note, "v1.0.0")
	l.answer, l.fails = "cannot execute", errors.New("exit status 126")
	l.want("hook-fails", Problem, "cannot execute")
	l.fails = nil
	if err := os.Chmod(l.hook, 0o644); err != nil {
		t.Fatal(err)
	}
	if f := l.want("hook-not-executable", Problem, l.hook); !strings.HasPrefix(f.Fix, "chmod +x ") {
		t.Errorf("fix %q", f.Fix)
	}
	if err := os.Chmod(l.hook, 0o755); err != nil {
		t.Fatal(err)
	}
	l.answer = "session-end-archive " + testVersion
	if err := os.Remove(l.worker()); err != nil {
		t.Fatal(err)
	}
	l.want("worker-missing", Problem, l.worker())
	if err := os.Remove(l.hook); err != nil {
		t.Fatal(err)
	}
	l.want("hook-missing", Problem, "does not exist")
	if f := l.want("hook-missing", Problem, ""); f.Fix != "session-keeper install" {
		t.Errorf("fix %q", f.Fix)
	}
	// Install leaves alone what the user arranged, so it is no fix there.
	l.wire(`{"type":"command","command":"nice ` + l.hook + `"}`)
	if f := l.want("hook-missing", Problem, ""); !strings.HasPrefix(f.Fix, "correct the command in line 1 of ") {
		t.Errorf("fix %q", f.Fix)
	}
	l.wire(`{"type":"command","command":"session-end-archive"}`)
	l.want("hook-not-checked", Note, "not an absolute path")
}

// Blocked gives what keeps a wired hook from archiving, and nothing else.
func TestBlocked(t *testing.T) {
	l := newLab(t)
	blocked := func() string {
		t.Helper()
		var codes []string
		for _, f := range Blocked(context.Background(), l.world()) {
			codes = append(codes, f.Code)
		}
		return strings.Join(codes, " ")
	}
	if got := blocked(); got != "" { // an empty archive, no event: no matter
		t.Errorf("all well: %q", got)
	}
	hooks := `"hooks":{"SessionEnd":[{"hooks":[` + l.handler("") + `]}]}}`
	for settings, want := range map[string]string{
		`{ /* */ ` + hooks:                            "settings-not-strict",
		`{"cleanupPeriodDays":0,` + hooks:             "retention-invalid",
		`{"disableAllHooks":true,` + hooks:            "hooks-disabled",
		`{"model":1,` + hooks:                         "settings-wrong-type",
		`{"model":null,` + hooks:                      "settings-wrong-type",
		`{"disableAllHooks":"no",` + hooks:            "settings-wrong-type",
		`{"permissions":{"allow":"x"},` + hooks:       "settings-wrong-type",
		`{"permissions":{"allow":["x"]},` + hooks:     "",
		`{"env":{"A":1},` + hooks:                     "",
		`{"zz":1,` + hooks:                            "",
		`{"env":{"SESSION_KEEPER":"off"},` + hooks:    "switched-off",
		`{"cleanupPeriodDays":3,"model":"x",` + hooks: "",
		`{}`: "not-wired",
		`{`:  "settings-unreadable not-wired",
	} {
		l.write(l.settings(), settings)
		if got := blocked(); got != want {
			t.Errorf("%.30s: %q, want %q", settings, got, want)
		}
	}
}

// SE-05, SE-20: the client's rule for the time of a SessionEnd hook, as
// measured on 2.1.332.
func TestBudget(t *testing.T) {
	for _, test := range []struct {
		timeout, env float64
		plugin       bool
		want         float64
	}{
		{0, 0, false, 1.5}, {5, 0, false, 5}, {60, 0, false, 60}, {90, 0, false, 60},
		{0, 4000, false, 4}, {5, 10000, false, 5}, {5, 2000, false, 2}, {90, 80000, false, 80},
		{0, 0, true, 1.5}, {30, 0, true, 1.5}, {30, 20000, true, 20},
	} {
		if got := budget(test.timeout, test.env, test.plugin); got != test.want {
			t.Errorf("budget(%v, %v, %v) = %v, want %v", test.timeout, test.env, test.plugin, got, test.want)
		}
	}
	l := newLab(t)
	l.wire(l.handler(""))
	l.want("budget", OK, "1.5 s (Claude Code's default)")
	l.vars[budgetVariable] = "4000"
	l.want("budget", OK, "4 s ("+budgetVariable+" in the environment)")
	// The settings' own variable counts as well.
	l.write(l.settings(), `{"env":{"`+budgetVariable+`":"500"},"hooks":{"SessionEnd":[{"hooks":[`+l.handler(`,"timeout":60`)+`]}]}}`)
	l.want("budget-short", Note, "0.5 s")
	l.vars[budgetVariable] = "soon"
	l.want("budget-variable", Note, `"soon"`)
}

// SE-07, SS-22: milliseconds where seconds are meant.
func TestTimeoutUnit(t *testing.T) {
	l := newLab(t)
	l.wire(l.handler(`,"timeout":60000`) + `,{"type":"command","command":"save.sh","timeout":30000}`)
	if f := l.want("timeout-unit", Note, "timeout 60000 of"); f.Fix != "session-keeper install" {
		t.Errorf("fix %q", f.Fix)
	}
	l.want("timeout-unit", Note, "timeout 30000 of save.sh")
}

// SE-21: other hooks of the same event are listed.
func TestOtherHooks(t *testing.T) {
	l := newLab(t)
	l.wire(l.handler("") + `,{"type":"command","command":"sleep 2"},{"type":"prompt","prompt":"x"}`)
	l.want("other-hook", Note, "sleep 2")
	l.want("other-hook", Note, "of type prompt")
}

func TestDisabled(t *testing.T) {
	l := newLab(t)
	user := `{"disableAllHooks":true,"hooks":{"SessionEnd":[{"hooks":[` + l.handler("") + `]}]}}`
	l.write(l.settings(), user)
	l.want("hooks-disabled", Problem, l.settings())
	// A project's false beats the user's true.
	l.write(filepath.Join(l.project, ".claude", "settings.local.json"), `{"disableAllHooks":false}`)
	l.wantNone("hooks-disabled")
	l.write(l.managed, `{"allowManagedHooksOnly":true}`)
	l.want("hooks-managed", Problem, "allowManagedHooksOnly")
	l.write(l.managed, `{"strictPluginOnlyCustomization":["hooks"]}`)
	l.want("hooks-managed", Problem, "strictPluginOnlyCustomization")
}

// CL-07, CL-08: zero, negative, text, short and absent; never is 0 advised.
func TestRetention(t *testing.T) {
	l := newLab(t)
	set := func(value string) {
		l.write(l.settings(), `{"cleanupPeriodDays":`+value+`,"hooks":{"SessionEnd":[{"hooks":[`+l.handler("")+`]}]}}`)
	}
	for _, value := range []string{"0", "-1", "1.5", `"30"`, "null"} {
		set(value)
		f := l.want("retention-invalid", Problem, "cleanupPeriodDays is "+value)
		if !strings.Contains(f.Fix, `"cleanupPeriodDays": 36500`) {
			t.Errorf("%s: fix %q", value, f.Fix)
		}
	}
	set("7")
	l.want("retention-short", Note, "after 7 days")
	set("36500")
	l.want("retention", OK, "36500 days")
	set("36500 /* long */") // not strict, so not loaded
	l.want("retention-default", Note, "after 30 days")
	set("36500")
	// A project's setting beats the user's.
	project := filepath.Join(l.project, ".claude", "settings.json")
	l.write(project, `{"cleanupPeriodDays":1}`)
	if f := l.want("retention-short", Note, "after 1 days"); f.File != project || !strings.Contains(f.Fix, project) {
		t.Errorf("file %q, fix %q", f.File, f.Fix)
	}
	for _, f := range l.run() {
		if strings.Contains(f.Fix, `"cleanupPeriodDays": 0`) {
			t.Errorf("advises 0: %s", f.Fix)
		}
	}
}

func TestSwitches(t *testing.T) {
	l := newLab(t)
	l.vars["SESSION_KEEPER"] = "off"
	l.vars["CLAUDE_CODE_SKIP_PROMPT_HISTORY"] = "1"
	l.vars["CLAUDE_CODE_CHILD_SESSION"] = "1"
	l.want("switched-off", Problem, "this shell")
	l.want("client-no-history", Note, "no transcript")
	l.want("child-session", Note, "saves no transcript")
	clear(l.vars)
	l.wantNone("switched-off", "client-no-history", "child-session")
	l.write(l.settings(), `{"env":{"SESSION_KEEPER":"off"},"hooks":{"SessionEnd":[{"hooks":[`+l.handler("")+`]}]}}`)
	l.want("switched-off", Problem, l.settings())
}

func TestConfig(t *testing.T) {
	l := newLab(t)
	file := filepath.Join(l.home, ".config", "session-keeper", "config.toml")
	other := filepath.Join(l.home, "elsewhere")
	if _, err := archive.Create(other); err != nil {
		t.Fatal(err)
	}
	l.vars["SESSION_KEEPER_HOME"] = other
	f := l.want("store-differs", Note, other)
	if !strings.Contains(f.Fix, file) {
		t.Errorf("fix %q", f.Fix)
	}
	l.write(file, "[archive]\nroot = \""+other+"\"\n")
	l.wantNone("store-differs")
	l.write(file, "[archive]\nexclude = [\n")
	if f := l.want("config-broken", Problem, file); f.Fix == "" {
		t.Error("no fix")
	}
}

// SM-08: a wider mode is pointed out and left.
func TestStore(t *testing.T) {
	l := newLab(t)
	if err := os.Chmod(l.store(), 0o755); err != nil {
		t.Fatal(err)
	}
	if f := l.want("mode-wide", Note, "755"); f.Fix != "chmod 700 '"+l.store()+"'" {
		t.Errorf("fix %q", f.Fix)
	}
	if fi, err := os.Stat(l.store()); err != nil || fi.Mode().Perm() != 0o755 {
		t.Errorf("mode became %v, %v", fi.Mode(), err)
	}
	if err := os.RemoveAll(l.store()); err != nil {
		t.Fatal(err)
	}
	l.want("store-missing", Problem, l.store())
	l.write(filepath.Join(l.store(), "format"), `{"format":"session-keeper archive","version":9,"store_id":"3f0c3b5e-3b56-4a5c-9a38-4f9a4b8a8f11","hash":"sha256","read_features":["later"],"write_features":[]}`)
	l.want("store-newer", Problem, "")
}

// What archive --all leaves out or cannot take is not told as something that it
// would take in.
func TestCatchUpLeavesOut(t *testing.T) {
	l := newLab(t)
	folder := filepath.Join(l.home, ".claude", "projects", "-project")
	l.write(filepath.Join(folder, "11111111-1111-4111-8111-111111111111.jsonl"), `{"type":"user","cwd":"`+l.home+`/secret/x","message":{"role":"user","content":"x"}}`+"\n")
	l.write(filepath.Join(folder, "22222222-2222-4222-8222-222222222222.jsonl"), "")
	l.want("not-archived", Note, "1 of 2 sessions not archived")
	l.write(filepath.Join(l.home, ".config", "session-keeper", "config.toml"), "[archive]\nexclude = [\"~/secret\"]\n")
	l.want("kept-out", Note, "1 session kept out")
	l.want("archived", OK, "none left out")
}

// RE-02: what is not archived yet is counted, with the command that takes it in.
func TestCatchUp(t *testing.T) {
	l := newLab(t)
	session := func(id string, age time.Duration) string {
		path := filepath.Join(l.home, ".claude", "projects", "-project", id+".jsonl")
		l.write(path, `{"type":"user","sessionId":"`+id+`","message":{"role":"user","content":"x"}}`+"\n")
		if err := os.Chtimes(path, testNow.Add(-age), testNow.Add(-age)); err != nil {
			t.Fatal(err)
		}
		return id
	}
	fresh := session("11111111-1111-4111-8111-111111111111", time.Hour)
	if f := l.want("not-archived", Note, "1 of 1 session not archived"); f.Fix != "session-keeper archive --all" {
		t.Errorf("fix %q", f.Fix)
	}
	old := session("22222222-2222-4222-8222-222222222222", 25*24*time.Hour)
	l.want("expiring", Problem, "2 of 2 sessions not archived, and Claude Code deletes 1 of them within a week")
	if err := optout.MarkOut(l.state(), old, optout.Off, testNow); err != nil {
		t.Fatal(err)
	}
	l.want("kept-out", Note, "1 session kept out")
	l.want("not-archived", Note, "1 of 2 sessions not archived")
	if err := optout.Forget(l.state(), fresh, testNow); err != nil {
		t.Fatal(err)
	}
	l.want("kept-out", Note, "2 sessions kept out")
	l.want("archived", OK, "none left out")
	n, err := l.world().Survey(context.Background())
	if err != nil || n.Sessions != 2 || n.Expiring != 1 || n.KeptOut != 2 || n.Bytes == 0 {
		t.Errorf("survey %+v, %v", n, err)
	}
}

// A job that was given up is named with its reason, and one that nobody comes
// to is counted.
func TestSpool(t *testing.T) {
	l := newLab(t)
	const id = "33333333-3333-4333-8333-333333333333"
	path := filepath.Join(l.home, ".claude", "projects", "-project", id+".jsonl")
	l.write(path, "{}\n")
	dir := filepath.Join(l.state(), "spool")
	request := spool.Request{
		StoreRoot: l.store(), SessionID: id, Transcript: path, Reason: "session-end",
		Event: spool.Event{Name: "SessionEnd", Time: testNow}, ConfigDir: filepath.Join(l.home, ".claude"), Folder: "-project",
	}
	if _, err := spool.HandOff(context.Background(), dir, request); err != nil {
		t.Fatal(err)
	}
	sum, err := spool.Status(dir)
	if err != nil || len(sum.Waiting) != 1 {
		t.Fatalf("spool: %+v, %v", sum, err)
	}
	w := l.world()
	at := func(d time.Duration) string {
		w.Now = sum.Waiting[0].Since.Add(d)
		return lines(checkSpools(context.Background(), w))
	}
	if got := at(time.Minute); !strings.Contains(got, "ok spool: 1 session being archived") {
		t.Errorf("after a minute:\n%s", got)
	}
	if got := at(2 * time.Hour); !strings.Contains(got, "note spool-overdue: 1 session waiting") {
		t.Errorf("after two hours:\n%s", got)
	}
	_, err = spool.Drain(context.Background(), dir, spool.DrainOptions{
		Process: func(context.Context, spool.Work) (int64, error) {
			return 0, fmt.Errorf("the store is read-only: %w", spool.ErrRefused)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := at(3 * time.Hour); !strings.Contains(got, "problem parked: session "+id) || !strings.Contains(got, "the store is read-only") {
		t.Errorf("parked:\n%s", got)
	}
}

func TestPaused(t *testing.T) {
	l := newLab(t)
	if err := optout.Pause(l.state(), time.Time{}, testNow); err != nil {
		t.Fatal(err)
	}
	if f := l.want("paused", Note, "until session-keeper unpause"); f.Fix != "session-keeper unpause" {
		t.Errorf("fix %q", f.Fix)
	}
}

// Sessions come and go, and the hook is never heard of: that is said, whatever the
// reason is.
func TestHookIsSilent(t *testing.T) {
	l := newLab(t)
	at := func(path string, ago time.Duration) {
		t.Helper()
		if err := os.Chtimes(path, testNow.Add(-ago), testNow.Add(-ago)); err != nil {
			t.Fatal(err)
		}
	}
	at(filepath.Join(l.state(), "install.json"), 48*time.Hour)
	transcript := filepath.Join(l.home, ".claude", "projects", "-p", "0b6b52c5-8c1e-4c6f-9d1e-6f0f5f3a2b10.jsonl")
	l.write(transcript, "{}\n")
	for _, ago := range []time.Duration{72 * time.Hour, 10 * time.Minute} { // from before; may be open
		at(transcript, ago)
		l.want("no-event", Note, "")
		l.wantNone("hook-silent")
	}
	at(transcript, 5*time.Hour)
	if f := l.want("hook-silent", Note, "1 session written since the hook was wired"); !strings.Contains(f.Fix, "/hooks") {
		t.Errorf("fix %q", f.Fix)
	}
	l.wantNone("no-event")
	l.write(filepath.Join(handoff.LogDir(l.state()), "session-end-archive-2026-11-30.jsonl"),
		`{"level":"info","time":"2026-11-30T11:00:00Z","program":"session-end-archive","message":"handed off","event":"SessionEnd"}`+"\n")
	l.want("last-event", OK, "")
	l.wantNone("hook-silent")
}

func TestLastEvent(t *testing.T) {
	l := newLab(t)
	log := func(lines ...string) {
		l.write(filepath.Join(handoff.LogDir(l.state()), "session-end-archive-2026-11-30.jsonl"), strings.Join(lines, "\n")+"\n")
	}
	const session = `"session":"0b6b52c5-8c1e-4c6f-9d1e-6f0f5f3a2b10"`
	line := func(level, at, message, more string) string {
		return `{"level":"` + level + `","time":"2026-11-30T` + at + `Z","program":"session-end-archive","message":"` + message + `",` + more + `}`
	}
	event := line("info", "11:00:00", "handed off", `"event":"SessionEnd","reason":"clear",`+session)
	failure := func(at string) string { return line("error", at, "failed", `"error":"disk is full"`) }
	log(failure("09:00:00"), event)
	l.want("last-event", OK, "last event, 1 hour ago: SessionEnd (clear), handed off")
	l.want("failures", Note, "seven days: 1")
	log(event, line("info", "11:00:01", "archived", session), line("info", "11:00:02", "drained", `"done":1`))
	l.want("last-event", OK, "SessionEnd (clear), handed off, then archived")
	l.wantNone("failures", "last-failed", "no-event")
	log(event, failure("11:30:00"))
	l.want("last-failed", Problem, "30 minutes ago, is a failure of session-end-archive: failed: disk is full")
	l.wantNone("failures")
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, newLab(t).world()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The wired command is tried as it stands, once for each event, and what the
// user arranged is not.
func TestLive(t *testing.T) {
	l := newLab(t)
	var tried []string
	fails := error(nil)
	run := func() []Finding {
		tried = nil
		w := l.world()
		w.Try = func(_ context.Context, h install.Hook) (time.Duration, error) {
			tried = append(tried, h.Event+" "+h.Command)
			return 12 * time.Millisecond, fails
		}
		found, err := Run(context.Background(), w)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	find := func(found []Finding, code string) *Finding {
		for _, f := range found {
			if f.Code == code {
				return &f
			}
		}
		return nil
	}
	if f := find(run(), "self-test"); f == nil || f.Severity != OK || !strings.Contains(f.Message, "12 ms") {
		t.Errorf("%+v", f)
	}
	if want := []string{"SessionEnd " + install.ShellCommand(l.hook), "PreCompact " + install.ShellCommand(l.compact())}; !slices.Equal(tried, want) {
		t.Errorf("tried %q, want %q", tried, want)
	}
	// The same in the project's settings is the same command.
	data, err := os.ReadFile(l.settings())
	if err != nil {
		t.Fatal(err)
	}
	l.write(filepath.Join(l.project, ".claude", "settings.json"), string(data))
	run()
	if len(tried) != 2 {
		t.Errorf("tried %q", tried)
	}
	fails = errors.New("it did not come into the archive")
	found := run()
	if f := find(found, "self-test-failed"); f == nil || f.Severity != Problem || !strings.Contains(f.Message, fails.Error()) || f.Fix == "" {
		t.Errorf("%+v", f)
	}
	l.wire(`{"type":"command","command":"nice ` + l.hook + `"}`)
	if err := os.RemoveAll(l.project); err != nil {
		t.Fatal(err)
	}
	if f := find(run(), "self-test-skipped"); f == nil || f.Severity != Note || f.Line != 1 {
		t.Errorf("%+v", f)
	}
	if len(tried) != 0 {
		t.Errorf("what the user arranged was tried: %q", tried)
	}
}

// How long the hooks took is taken from the log: their last hundred runs.
func TestSpeed(t *testing.T) {
	l := newLab(t)
	var b strings.Builder
	line := func(program, message, took string) {
		fmt.Fprintf(&b, `{"level":"info","time":"2026-11-30T10:00:00Z","program":%q,"message":%q,"took":%q}`+"\n", program, message, took)
	}
	for range 10 {
		line("session-end-archive", "handed off", "9s") // longer ago
	}
	for i := range 100 {
		line("session-end-archive", "handed off", fmt.Sprintf("%d.04ms", i+1))
	}
	line("session-end-archive", "something else", "8s")
	line("session-end-archive", "handed off", "none")
	l.write(filepath.Join(handoff.LogDir(l.state()), "session-end-archive-2026-11-30.jsonl"), b.String())
	l.want("hook-time", OK, "session-end-archive got a session to safety within 51ms (median of the last 100 runs; 100ms at worst)")

	b.Reset()
	line("session-end-archive", "handed off", "250ms")
	l.write(filepath.Join(handoff.LogDir(l.state()), "session-end-archive-2026-11-30.jsonl"), b.String())
	l.want("hook-time", Note, "250ms (median of the last 1 runs")
}

// What this disk can do is said, whatever it is.
func TestDisk(t *testing.T) {
	l := newLab(t)
	codes := map[string]bool{}
	for _, f := range l.run() {
		codes[f.Code] = true
	}
	if codes["snapshots"] == codes["snapshots-no"] || codes["snapshots-unknown"] || codes["locks-unknown"] || !codes["links"] {
		t.Errorf("%v", codes)
	}
	for _, dir := range []string{filepath.Join(l.home, ".claude"), l.state(), filepath.Join(l.state(), "spool")} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".tmp") {
				t.Errorf("left behind: %s", e.Name())
			}
		}
	}
}
