package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/doctor"
	"github.com/session-keeper/session-keeper/internal/handoff"
	"github.com/session-keeper/session-keeper/internal/install"
	"github.com/session-keeper/session-keeper/internal/keeper"
)

const hookName = "session-end-archive"

func newInstallCmd(a *app) *cobra.Command {
	var (
		dryRun      bool
		hook, scope string
		events      []string
	)
	cmd := &cobra.Command{
		Use:   "install [--dry-run] [--scope SCOPE] [--events LIST] [--hook PATH]",
		Short: "Wire the hooks into Claude Code's settings",
		Long: `Wire the hooks into Claude Code's user settings, and make the archive.

--scope project and --scope local wire them into .claude/settings.json or
.claude/settings.local.json of the current directory in place of that, for its
sessions alone. Where the same command is wired in several files, Claude Code runs
it once.

From then on each session is archived when it ends, and before it is compacted.
Only entries of ours are added to settings.json, as text: comments, order and
layout stay byte for byte, and a copy of the file from before is kept. Running it
again changes nothing, or mends what an older version or another place left
behind. An entry of ours that you have arranged yourself, such as one behind
"nice", stays as it is.
With comments or trailing commas, Claude Code 2.1.332 loads nothing of the file:
that, and whatever else keeps Claude Code from running the hook, is named at the
end and makes the exit code 4.

Sessions from before are not archived by this; the last lines say how many
there are, and the command that takes them in.

Exit codes: 0 done; 1 failed, and settings.json is as it was; 2 wrong usage;
4 wired, but sessions will not be archived until what is named is put right.`,
		Example: `  session-keeper install --dry-run        show what would change
  session-keeper install
  session-keeper install --events SessionEnd,PreCompact,Stop
                                          archive after each answer as well`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, e := range events {
				if !slices.Contains(install.Events, e) {
					return usagef("unknown event %q: known are %s", shorten(e), strings.Join(install.Events, ", "))
				}
			}
			return a.install(cmd.Context(), hook, scope, events, dryRun)
		},
	}
	cmd.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "show the change of settings.json, write nothing")
	cmd.Flags().StringVar(&scope, "scope", scopeUser, scopeUsage)
	cmd.Flags().StringSliceVar(&events, "events", install.DefaultEvents, "events to wire, a `LIST` of "+strings.Join(install.Events, ", "))
	cmd.Flags().StringVar(&hook, "hook", "", "the hook's `PATH` (default: "+hookName+" beside this program)")
	return cmd
}

func (a *app) install(ctx context.Context, hook, scope string, events []string, dryRun bool) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	if hook, err = a.hookPath(hook); err != nil {
		return err
	}
	if err := refusePluginPath(s, hook); err != nil {
		return err
	}
	if err := a.checkPrograms(hook, events); err != nil {
		return err
	}
	file, err := a.scopeSettings(s, scope)
	if err != nil {
		return err
	}
	if scope == scopeProject {
		a.say("warning", fmt.Sprintf("%s is for all who work on the project, and what is wired there is a path of this machine; --scope local is for you alone", a.tilde(file)))
	}
	o := install.Options{File: file, State: s.Paths.State, Binary: hook, Events: events, GOOS: a.env.GOOS, Now: a.now(), DryRun: dryRun}
	if dryRun {
		res, err := install.Install(o)
		if err != nil {
			return fail(exitFailed, err, settingsHint(file))
		}
		if err := a.warnLoose(res.File); err != nil {
			return err
		}
		if !res.Changed {
			return a.printf("%s needs no change.\n", a.tilde(file))
		}
		_, err = fmt.Fprint(a.out, res.Diff)
		return err
	}

	// The archive first: a wired hook finds its place made.
	k := keeper.New(s, nil)
	k.Now = a.now
	store, err := k.OpenStore()
	if err != nil {
		return fail(exitFailed, fmt.Errorf("make the archive: %w", err), settingsHint(file))
	}
	res, err := install.Install(o)
	if err != nil {
		return fail(exitFailed, err, settingsHint(file))
	}
	if err := a.reportInstall(s, res); err != nil {
		return err
	}
	if err := a.printf("Archive: %s\n", a.tilde(store.Root())); err != nil {
		return err
	}
	var blocked []doctor.Finding
	if scope == scopeUser {
		blocked = a.blocked(ctx, s)
	} else if err := a.warnLoose(res.File); err != nil {
		return err
	}
	if err := a.reportSurvey(ctx, s, k, len(blocked) > 0); err != nil || len(blocked) == 0 {
		return err
	}
	return blockedError("the hook is wired, but sessions will not be archived", blocked)
}

// blocked gives what keeps a wired hook from archiving, whatever the current
// directory and its settings are.
func (a *app) blocked(ctx context.Context, s *config.Settings) []doctor.Finding {
	w := &doctor.World{Settings: s, Env: s.Env, Managed: managedSettings(a.env.GOOS), Version: buildVersion().Version, Now: a.now()}
	w.Env.Dir = ""
	getenv := w.Env.Getenv
	w.Env.Getenv = func(name string) string {
		if name == "SESSION_KEEPER" {
			return "" // off in this shell says nothing about the client's
		}
		return getenv(name)
	}
	return doctor.Blocked(ctx, w)
}

// blockedError says that the hook is in place and of no use yet.
func blockedError(what string, blocked []doctor.Finding) error {
	var messages, hints []string
	for _, f := range blocked {
		messages = append(messages, f.Message)
		if f.Fix != "" && !slices.Contains(hints, f.Fix) {
			hints = append(hints, f.Fix)
		}
	}
	return fail(exitDamaged, fmt.Errorf("%s: %s", what, strings.Join(messages, "; ")), hints...)
}

// reportInstall tells what is in the settings now, as it was read back.
func (a *app) reportInstall(s *config.Settings, res *install.Result) error {
	file := a.tilde(res.File)
	switch {
	case !res.Changed:
		if err := a.printf("%s needs no change.\n", file); err != nil {
			return err
		}
	case res.Created:
		if err := a.printf("Made %s.\n", file); err != nil {
			return err
		}
	default:
		if err := a.printf("Changed %s; the copy from before is %s\n", file, a.tilde(res.Backup)); err != nil {
			return err
		}
	}
	if res.Target != "" {
		if err := a.printf("It is a link; the file itself is %s\n", a.tilde(res.Target)); err != nil {
			return err
		}
	}
	if res.InPlace {
		a.say("warning", "the file could not be replaced by a new one and was written in place")
	}
	for _, h := range res.Hooks {
		if err := a.printf("%s runs %s\n", h.Event, h.Display()); err != nil {
			return err
		}
		switch {
		case !h.Plain:
			a.say("warning", fmt.Sprintf("line %d of %s runs the hook in a way of your own, which was left as it is", h.Line, file))
		case h.Matcher != "" && h.Matcher != "*":
			a.say("warning", fmt.Sprintf("line %d of %s runs the hook only for %q, which was left as it is", h.Line, file, h.Matcher))
		}
	}
	return a.reportElsewhere(s, res.File)
}

// warnLoose warns of settings that are wired and yet never loaded.
func (a *app) warnLoose(file string) error {
	settings, err := install.Read(file)
	if err != nil || settings == nil {
		return err
	}
	if line := settings.Loose(); line > 0 {
		a.say("warning", fmt.Sprintf("Claude Code does not load %s, so no hook in it runs: line %d is not strict JSON (no comments, no trailing commas)", a.tilde(file), line))
	}
	return nil
}

// reportElsewhere names entries of ours in settings files other than edited,
// with the command that takes them out.
func (a *app) reportElsewhere(s *config.Settings, edited string) error {
	for _, file := range doctor.ProjectFiles(a.env.Dir) {
		if own, err := userSettings(s); file == edited || err == nil && own == file {
			continue // the home directory is the current one
		}
		settings, err := install.Read(file)
		if err != nil {
			a.say("warning", err.Error())
			continue
		}
		if settings == nil {
			continue
		}
		for _, h := range settings.Hooks() {
			if h.Ours() {
				scope := scopeProject
				if filepath.Base(file) == install.LocalSettingsName {
					scope = scopeLocal
				}
				a.say("warning", fmt.Sprintf("%s, line %d, runs %s as well: %s (session-keeper uninstall --scope %s takes it out)", a.tilde(file), h.Line, h.Name, h.Display(), scope))
			}
		}
	}
	return nil
}

// reportSurvey tells what there is to archive, and how, and starts nothing.
func (a *app) reportSurvey(ctx context.Context, s *config.Settings, k *keeper.Keeper, blocked bool) error {
	w := &doctor.World{Settings: s, Env: s.Env, Keeper: k, Managed: managedSettings(a.env.GOOS), Now: a.now()}
	n, err := w.Survey(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		a.say("warning", fmt.Sprintf("sessions from before cannot be counted: %v", err))
		return nil
	}
	switch {
	case n.Sessions == 0 && blocked:
		return a.printf("No sessions from before were found.\n")
	case n.Sessions == 0:
		return a.printf("No sessions from before were found. The next one that ends will be archived.\n")
	}
	line := fmt.Sprintf("%s %s, %s", humanize.Comma(int64(n.Sessions)), noun(n.Sessions, "session"), byteSize(n.Bytes))
	if n.Expiring > 0 {
		line += fmt.Sprintf(", %s %s this week", humanize.Comma(int64(n.Expiring)), verb(n.Expiring, "expires", "expire"))
	}
	if err := a.printf("%s\n", line); err != nil {
		return err
	}
	if n.Missing == 0 {
		return nil
	}
	return a.printf("Not archived yet: %s. To archive them now:\n  session-keeper archive --all\n", humanize.Comma(int64(n.Missing)))
}

func noun(n int, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// printf prints to stdout.
func (a *app) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(a.out, format, args...)
	return err
}

// userSettings is the user's settings file of the client.
func userSettings(s *config.Settings) (string, error) {
	if len(s.ClientDirs) == 0 {
		return "", fail(exitFailed, errors.New("the config folder of Claude Code is not known"), "set HOME or CLAUDE_CONFIG_DIR")
	}
	return filepath.Join(s.ClientDirs[0], install.SettingsName), nil
}

// Scopes of the client's settings that we edit.
const (
	scopeUser    = "user"
	scopeProject = "project"
	scopeLocal   = "local"

	scopeUsage = "`SCOPE` of the settings: user, project or local"
)

// scopeSettings is the settings file of a scope.
func (a *app) scopeSettings(s *config.Settings, scope string) (string, error) {
	name := install.SettingsName
	switch scope {
	case scopeUser:
		return userSettings(s)
	case scopeLocal:
		name = install.LocalSettingsName
	case scopeProject:
	default:
		return "", usagef("unknown scope %q: there are user, project, local", shorten(scope))
	}
	if a.env.Dir == "" {
		return "", fail(exitFailed, errors.New("the current directory is not known"), "change to the project's directory")
	}
	return filepath.Join(a.env.Dir, ".claude", name), nil
}

func settingsHint(file string) string {
	return "nothing was written to " + file
}

// hookPath finds the hook's program: as named, or beside this program. Its
// path is absolute, because it is wired as it stands.
func (a *app) hookPath(named string) (string, error) {
	path := named
	if path == "" {
		dir, err := programDir()
		if err != nil {
			return "", fmt.Errorf("find this program: %w", err)
		}
		path = filepath.Join(dir, hookName)
		if a.env.GOOS == "windows" {
			path += ".exe"
		}
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.env.Dir, path)
	}
	_, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && named == "":
		return "", fail(exitFailed, fmt.Errorf("%s is not beside this program: %w", hookName, err), "build both into one folder (./install.sh does), or give its path with --hook")
	case err != nil:
		return "", fail(exitFailed, err)
	}
	return path, nil
}

// checkPrograms looks whether the programs of the events that are to be wired,
// and the one that they start, can be run.
func (a *app) checkPrograms(hook string, events []string) error {
	programs := []string{hook, handoff.WorkerOf(hook)}
	for _, event := range events {
		if name := install.Program(event); name != hookName {
			programs = append(programs, install.Beside(hook, name))
		}
	}
	for _, program := range programs {
		fi, err := os.Stat(program)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fail(exitFailed, fmt.Errorf("%s is not beside the hook: %w", filepath.Base(program), err), "build all programs into one folder (./install.sh does)")
		case err != nil:
			return fail(exitFailed, err)
		case fi.IsDir(), a.env.GOOS != "windows" && fi.Mode()&0o111 == 0:
			return fail(exitFailed, fmt.Errorf("%s is not a program that can be run", program), "chmod +x "+install.Quote(program))
		}
	}
	return nil
}

// refusePluginPath keeps a path out of the settings that Claude Code itself
// deletes: a plugin's folder goes with each update of the plugin.
func refusePluginPath(s *config.Settings, hook string) error {
	real, err := filepath.EvalSymlinks(hook)
	if err != nil {
		return fail(exitFailed, err)
	}
	for _, dir := range s.ClientDirs {
		plugins := filepath.Join(dir, "plugins")
		if resolved, err := filepath.EvalSymlinks(plugins); err == nil {
			plugins = resolved
		}
		if within(plugins, real) {
			return fail(exitFailed, fmt.Errorf("%s lies in a plugin's folder, which Claude Code deletes when the plugin is updated", hook),
				"a plugin brings its own hooks; else install session-keeper into a place that stays (./install.sh does), and run install from there")
		}
	}
	return nil
}

// programDir is the folder that this program was started from. Where that is
// a link, as package managers make them, the link's own folder is taken: it
// stays, while what it points to changes with each version.
func programDir() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	named, err := exec.LookPath(os.Args[0])
	if err != nil {
		return filepath.Dir(self), nil
	}
	if named, err = filepath.Abs(named); err != nil {
		return filepath.Dir(self), nil
	}
	a, errA := os.Stat(self)
	b, errB := os.Stat(named)
	if errA != nil || errB != nil || !os.SameFile(a, b) {
		return filepath.Dir(self), nil
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(named), filepath.Base(hookName))); err != nil {
		return filepath.Dir(self), nil
	}
	return filepath.Dir(named), nil
}
