package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/session-keeper/session-keeper/internal/optout"
)

func newPauseCmd(a *app) *cobra.Command {
	var length time.Duration
	cmd := &cobra.Command{
		Use:   "pause [--for DURATION]",
		Short: "Stop archiving, for a while or until unpause",
		Long: `Stop archiving on this machine, for a while or until "session-keeper unpause".

Sessions that end or go on in a pause are not archived then, and not caught up
later either. "session-keeper archive ID" takes one of them in after all. What
is in the archive already stays.

Other ways to keep a session out: SESSION_KEEPER=off in its environment, and
[archive] exclude patterns in the settings.

Exit codes: 0 done; 1 failed; 2 wrong usage.`,
		Example: `  session-keeper pause
  session-keeper pause --for 2h`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("for") && length <= 0 {
				return usagef("--for needs a length of time such as 30m or 2h")
			}
			s, err := a.settings()
			if err != nil {
				return err
			}
			now := a.now()
			var until time.Time
			if length > 0 {
				until = now.Add(length)
			}
			if err := optout.Pause(s.Paths.State, until, now); err != nil {
				return err
			}
			return a.printPause(s.Paths.State)
		},
	}
	cmd.Flags().DurationVar(&length, "for", 0, "end the pause by itself after this `DURATION`, such as 30m or 2h")
	return cmd
}

func newUnpauseCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "unpause",
		Short: "Go on archiving after a pause",
		Long: `Go on archiving after a pause. Sessions of the pause stay out of the archive.

Exit codes: 0 done, also if there was no pause; 1 failed; 2 wrong usage.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.settings()
			if err != nil {
				return err
			}
			was, err := optout.Unpause(s.Paths.State, a.now())
			if err != nil {
				return err
			}
			if !was {
				return a.printf("Archiving was not paused.\n")
			}
			if _, paused, err := optout.PausedAt(s.Paths.State, a.now()); err != nil || paused {
				return errors.Join(err, a.printPause(s.Paths.State))
			}
			return a.printf("Archiving goes on. Sessions of the pause stay out, unless you name them: session-keeper archive ID\n")
		},
	}
}

// printPause tells the state as it was read back.
func (a *app) printPause(state string) error {
	pause, paused, err := optout.PausedAt(state, a.now())
	switch {
	case err != nil:
		return err
	case !paused:
		return a.printf("Sessions are archived.\n")
	case pause.Until.IsZero():
		return a.printf("Archiving is paused until session-keeper unpause.\n")
	}
	return a.printf("Archiving is paused until %s.\n", pause.Until.Local().Format("2006-01-02 15:04"))
}
