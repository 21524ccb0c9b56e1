package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Groups of commands, in the order of the help text.
const (
	groupSessions = "sessions"
	groupArchive  = "archive"
	groupSetup    = "setup"
)

// constructors lists every command; each lives in cmd_<name>.go.
var constructors = []struct {
	group string
	make  func(*app) *cobra.Command
}{
	{groupSessions, newListCmd},
	{groupSessions, newShowCmd},
	{groupSessions, newCatCmd},
	{groupSessions, newRestoreCmd},
	{groupArchive, newArchiveCmd},
	{groupArchive, newVerifyCmd},
	{groupArchive, newForgetCmd},
	{groupArchive, newPauseCmd},
	{groupArchive, newUnpauseCmd},
	{groupSessions, newProjectDirCmd},
	{groupSetup, newInstallCmd},
	{groupSetup, newUninstallCmd},
	{groupSetup, newDoctorCmd},
	{groupSetup, newSelfTestCmd},
	{groupSetup, newVersionCmd},
}

// newRoot builds the command tree for one run.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:     programName,
		Version: buildVersion().String(),
		Short:   "Keep every Claude Code session, find it again, continue it",
		Long: `session-keeper keeps every Claude Code session and brings it back.

The hooks that "session-keeper install" wires into Claude Code archive each
session when it ends. This command lists, shows, checks and restores what they
kept, long after Claude Code has deleted its own copy.`,
		Example: `  session-keeper install            wire the hooks into Claude Code
  session-keeper list               sessions, live and archived
  session-keeper restore last       bring the newest archived session back
  session-keeper doctor             what is wrong, and the command that fixes it`,
		// All errors are printed by report, in one form.
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          rootArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errw)
	root.SetHelpTemplate(helpTemplate)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fail(exitUsage, err, seeHelp(cmd))
	})
	root.AddGroup(
		&cobra.Group{ID: groupSessions, Title: "Sessions:"},
		&cobra.Group{ID: groupArchive, Title: "The archive:"},
		&cobra.Group{ID: groupSetup, Title: "Setting up:"},
	)
	root.SetHelpCommandGroupID(groupSetup)
	root.SetCompletionCommandGroupID(groupSetup)
	for _, c := range constructors {
		cmd := c.make(a)
		cmd.GroupID = c.group
		cmd.DisableFlagsInUseLine = true
		root.AddCommand(cmd)
	}
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	wrapArgs(root)
	return root
}

// helpTemplate is cobra's own order without its blank first line when there
// is no long text; exit codes end the long text of each command.
const helpTemplate = `{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{if or .Runnable .HasSubCommands}}{{.UsageString}}{{end}}`

// rootArgs refuses an unknown command, with the nearest known ones.
func rootArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hints := []string{seeHelp(cmd)}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hints = append([]string{"did you mean " + strings.Join(near, " or ") + "?"}, hints...)
	}
	return fail(exitUsage, fmt.Errorf("unknown command %q", shorten(args[0])), hints...)
}

// wrapArgs makes the argument check of every command a usage error.
func wrapArgs(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		wrapArgs(sub)
	}
	check := cmd.Args
	if check == nil || !cmd.HasParent() {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			return nil
		}
		return fail(exitUsage, err, seeHelp(cmd))
	}
}

func seeHelp(cmd *cobra.Command) string {
	return fmt.Sprintf("see %q", cmd.CommandPath()+" --help")
}

// maxQuoted bounds what an error message repeats of the user's input, in bytes.
const maxQuoted = 64

func shorten(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	return s[:maxQuoted] + "…"
}

// noArgs refuses any argument, in plainer words than cobra's.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", shorten(args[0]))
	}
	return nil
}

// oneArg wants exactly one argument, called by its name in messages.
func oneArg(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return fmt.Errorf("%s is missing", name)
		case 1:
			return nil
		}
		return fmt.Errorf("one %s is expected, found %d arguments", name, len(args))
	}
}
