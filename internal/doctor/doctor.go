// Package doctor finds out what is wrong with an installation, and how to fix it.
//
// Each check looks at one thing and returns findings. A check that cannot look
// says so as a finding of its own, so that silence always means that all is
// well. Nothing is changed; where a check must try something, it tries it on
// files of its own and removes them again.
package doctor

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/install"
	"github.com/session-keeper/session-keeper/internal/keeper"
)

// Severity ranks findings.
type Severity string

// Severities.
const (
	OK      Severity = "ok"      // as it should be
	Note    Severity = "note"    // worth knowing; nothing is lost by it
	Problem Severity = "problem" // sessions are lost by it, or will be
)

// Finding is one thing that was found. Codes are stable: scripts may match
// them.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	Fix      string   `json:"fix,omitempty"`  // a command, or what to do
	File     string   `json:"file,omitempty"` // the file it is about
	Line     int      `json:"line,omitempty"` // in File, from 1
}

// World is what the checks look at. Tests make their own.
type World struct {
	Settings *config.Settings // nil if they cannot be read
	Err      error            // why
	Env      config.Env
	Keeper   *keeper.Keeper // nil without settings
	Managed  string         // an administrator's settings file for the client
	Version  string         // of this program; the hooks' should be the same
	Now      time.Time

	// Run runs a program and gives its output. nil runs it for real, for at
	// most runTimeout.
	Run func(ctx context.Context, path string, args ...string) (string, error)

	// Try has a wired hook archive a session that was made up for it, in a
	// home of its own, loses that session and restores it. It returns how long
	// the hook took. nil tries nothing.
	Try func(ctx context.Context, h install.Hook) (took time.Duration, err error)
}

// runTimeout bounds how long a hook may take to tell its version.
const runTimeout = 5 * time.Second

// checks are run in this order, which is that of the report.
var checks = []func(context.Context, *World) []Finding{
	checkConfig,
	checkSwitches,
	checkWiring,
	checkBudget,
	checkOtherHooks,
	checkStore,
	checkSpools,
	checkLive,
	checkSpeed,
	checkLastEvent,
	checkRetention,
	checkKeptOut,
	checkCatchUp,
}

// Run makes all checks. The error is only that of a cancelled context.
func Run(ctx context.Context, w *World) ([]Finding, error) {
	if w.Run == nil {
		w.Run = runProgram
	}
	var all []Finding
	for _, check := range checks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		all = append(all, check(ctx, w)...)
	}
	return all, ctx.Err()
}

// Blocked gives the problems for which sessions are not archived although our
// hook is wired: settings that the client does not load, switches, a hook that
// cannot be run. Without a directory in w, project settings are left aside.
func Blocked(ctx context.Context, w *World) []Finding {
	if w.Run == nil {
		w.Run = runProgram
	}
	var found []Finding
	for _, check := range []func(context.Context, *World) []Finding{checkSwitches, checkWiring, checkRetention} {
		for _, f := range check(ctx, w) {
			if f.Severity == Problem {
				found = append(found, f)
			}
		}
	}
	return found
}

// Problems counts the findings that are problems.
func Problems(findings []Finding) int {
	n := 0
	for _, f := range findings {
		if f.Severity == Problem {
			n++
		}
	}
	return n
}

func runProgram(ctx context.Context, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if ctx.Err() != nil {
		return text, fmt.Errorf("no answer within %v", runTimeout)
	}
	return text, err
}

func ok(code, format string, args ...any) Finding {
	return Finding{Code: code, Severity: OK, Message: fmt.Sprintf(format, args...)}
}

func note(code, fix, format string, args ...any) Finding {
	return Finding{Code: code, Severity: Note, Message: fmt.Sprintf(format, args...), Fix: fix}
}

func problem(code, fix, format string, args ...any) Finding {
	return Finding{Code: code, Severity: Problem, Message: fmt.Sprintf(format, args...), Fix: fix}
}

// at adds the place that a finding is about.
func (f Finding) at(file string, line int) Finding {
	f.File, f.Line = file, line
	return f
}

// Commands that fix things.
const (
	fixInstall = "session-keeper install"
	fixArchive = "session-keeper archive --all"
)

// checkConfig looks at our own settings file. While it cannot be read, hooks
// archive nothing: it may say what must stay out.
func checkConfig(_ context.Context, w *World) []Finding {
	if w.Settings == nil {
		return []Finding{problem("config-broken", "correct the settings file", "nothing is archived while the settings cannot be read: %v", w.Err)}
	}
	var found []Finding
	for _, warning := range w.Settings.Warnings {
		found = append(found, note("config-warning", "", "%s", warning).at(warning.File, warning.Line))
	}
	if root := w.Env.Getenv("SESSION_KEEPER_HOME"); root != "" {
		without := w.Env
		without.Getenv = func(name string) string {
			if name == "SESSION_KEEPER_HOME" {
				return ""
			}
			return w.Env.Getenv(name)
		}
		if s, err := config.Load(without); err == nil && s.Paths.Store != w.Settings.Paths.Store {
			found = append(found, note("store-differs", fmt.Sprintf("set root = %q under [archive] in %s, or unset SESSION_KEEPER_HOME", w.Settings.Paths.Store, w.Settings.Paths.Config),
				"SESSION_KEEPER_HOME points to %s, but without it the archive is %s: hooks that do not get the variable archive there", w.Settings.Paths.Store, s.Paths.Store))
		}
	}
	if w.Settings.Archive.Inline == config.InlineNever {
		found = append(found, note("inline-never", "", "[archive] inline is %q: all work is left to the worker", config.InlineNever))
	}
	return found
}

// checkSwitches looks for variables that keep sessions out, of this process
// and those that the client's settings give to every hook.
func checkSwitches(_ context.Context, w *World) []Finding {
	var found []Finding
	look := func(where string, get func(string) string) {
		if get("SESSION_KEEPER") == "off" {
			found = append(found, problem("switched-off", "unset SESSION_KEEPER", "SESSION_KEEPER=off in %s: no session is archived", where))
		}
		switch v := get("CLAUDE_CODE_SKIP_PROMPT_HISTORY"); v {
		case "", "0", "false":
		default:
			found = append(found, note("client-no-history", "unset CLAUDE_CODE_SKIP_PROMPT_HISTORY",
				"CLAUDE_CODE_SKIP_PROMPT_HISTORY is set in %s: Claude Code writes no transcript, so there is nothing to archive", where))
		}
	}
	look("this shell", w.Env.Getenv)
	for _, s := range w.clientSettings() {
		if s.settings != nil {
			env := s.settings.Env()
			look(s.file, func(name string) string { return env[name] })
		}
	}
	if w.Env.Getenv("CLAUDE_CODE_CHILD_SESSION") != "" && w.Env.Getenv("CLAUDE_CODE_FORCE_SESSION_PERSISTENCE") == "" {
		found = append(found, note("child-session", "",
			"this shell runs inside of a Claude Code session: an interactive session started from it saves no transcript (CLAUDE_CODE_CHILD_SESSION is set)"))
	}
	return found
}

// short shortens a path for people.
func (w *World) short(path string) string {
	if w.Env.Home != "" && strings.HasPrefix(path, w.Env.Home+string(filepath.Separator)) {
		return "~" + path[len(w.Env.Home):]
	}
	return path
}
