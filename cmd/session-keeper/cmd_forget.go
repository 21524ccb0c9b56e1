package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/session-keeper/session-keeper/internal/restore"
	"github.com/session-keeper/session-keeper/internal/sessions"
	"github.com/session-keeper/session-keeper/transcript"
)

// forgetOutput is the output of "forget --json". Fields are only ever added.
type forgetOutput struct {
	ID          string   `json:"id"`
	Generations int      `json:"generations"`
	Segments    int      `json:"segments"`
	Bytes       int64    `json:"bytes"`
	LogLines    int      `json:"log_lines"`
	Live        []string `json:"live"` // the client's own files, which stay
}

func newForgetCmd(a *app) *cobra.Command {
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "forget ID [--yes] [--json]",
		Short: "Remove every trace of a session from the archive",
		Long: `Remove a session from the archive, the spool, the logs and the caches, for good,
and never archive it again. What other sessions share with it stays theirs.
` + sessionHelp + `

Claude Code's own files of the session are not touched: where they lie, and how
to remove them, is printed.

--json prints id, generations, segments, bytes, log_lines and live.

Exit codes: 0; 1 failed; 2 wrong usage, or a confirmation is needed; 3 not found
or ambiguous.`,
		Example: `  session-keeper forget 0192abcd-…
  session-keeper forget "salary review" --yes`,
		Args:              oneArg("ID"),
		ValidArgsFunction: a.completeID(anySession, 1, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := a.openDesk()
			if err != nil {
				return err
			}
			s, err := d.find(cmd.Context(), args[0])
			if err != nil {
				// Spool and logs may know a session that nothing else does,
				// for example after a forget that was cut off.
				if !transcript.ValidSessionID(args[0]) || !errors.Is(err, transcript.ErrNotFound) {
					return err
				}
				s = &sessions.Session{ID: args[0]}
			}
			if !yes {
				if err := a.confirmForget(cmd.Context(), s); err != nil {
					return err
				}
			}
			report, err := d.keeper.Forget(cmd.Context(), s.ID)
			if err != nil {
				return fail(exitFailed, fmt.Errorf("forget session %s: %w", s.ID, err), "nothing more of it is archived from now on; put right what is named above and run it again for the rest: what is gone stays gone")
			}
			if err := sessions.ForgetCached(d.settings.Paths.Cache, s.ID); err != nil {
				return fmt.Errorf("forget session %s: clear the cache: %w", s.ID, err)
			}
			live := clientFiles(d, s.ID)
			if asJSON {
				return writeJSON(a.out, forgetOutput{
					ID: s.ID, Generations: report.Store.Generations, Segments: report.Store.Segments, Bytes: report.Store.Bytes,
					LogLines: report.LogLines, Live: live,
				})
			}
			_, err = fmt.Fprintf(a.out, "forgotten: %s, %s (%s), %s of the log\n",
				plural(report.Store.Generations, "generation"), plural(report.Store.Segments, "segment"), byteSize(report.Store.Bytes), plural(report.LogLines, "line"))
			if err != nil || len(live) == 0 {
				return err
			}
			if _, err := fmt.Fprintf(a.out, "Claude Code still has its own files of this session. To remove them:\n"); err != nil {
				return err
			}
			for _, path := range live {
				if _, err := fmt.Fprintf(a.out, "  rm -r -- %s\n", restore.Quote(path)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, as described above")
	return cmd
}

func (a *app) confirmForget(ctx context.Context, s *sessions.Session) error {
	if !a.interactive {
		return fail(exitUsage, errors.New("forgetting cannot be undone"), "confirm with --yes")
	}
	title := s.ID
	if s.Facts.Title != "" {
		title = fmt.Sprintf("%q (%s, last used %s)", oneLine(s.Title()), s.ID, ago(s.Last, a.now()))
	}
	answer, err := a.ask(ctx, fmt.Sprintf("Forget session %s for good? It cannot be brought back. [y/N] ", title))
	if err != nil {
		return err
	}
	switch strings.ToLower(answer) {
	case "y", "yes":
		return nil
	}
	return failf(exitFailed, "nothing was forgotten")
}

// clientFiles lists what the client has of a session: files and folders that
// are the session's alone.
func clientFiles(d *desk, id string) []string {
	live := []string{}
	seen := map[string]bool{}
	add := func(path string) {
		if !seen[path] {
			if _, err := os.Lstat(path); err == nil {
				seen[path] = true
				live = append(live, path)
			}
		}
	}
	all, _, err := d.catalog.Locator.LocateAll(id)
	if err != nil {
		return live // nothing of it lies there
	}
	for _, b := range all {
		files, _, err := b.Files()
		if err != nil {
			continue
		}
		for _, f := range files {
			switch f.Family {
			case transcript.FamilyPlans, transcript.FamilyAgents:
				// Others may use a plan; an agent's file is named after the
				// agent, so it is listed by itself.
				if f.Family == transcript.FamilyAgents {
					add(f.Path)
				}
			default:
				add(ownRoot(f.Path, id))
			}
		}
	}
	return live
}

// ownRoot is the outermost part of a path that is named after the session.
func ownRoot(path, id string) string {
	root := path
	for p := path; filepath.Dir(p) != p; p = filepath.Dir(p) {
		if filepath.Base(p) == id {
			root = p
		}
	}
	return root
}
