package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/internal/keeper"
	"github.com/session-keeper/session-keeper/internal/optout"
	"github.com/session-keeper/session-keeper/internal/progress"
	"github.com/session-keeper/session-keeper/internal/sessions"
	"github.com/session-keeper/session-keeper/transcript"
)

// archivedSession is one session in the output of "archive --json". Fields
// are only ever added.
type archivedSession struct {
	ID          string   `json:"id"`
	Outcome     string   `json:"outcome"` // archived, unchanged, skipped, failed
	Generation  int      `json:"generation,omitempty"`
	Diverged    bool     `json:"diverged,omitempty"` // the archive keeps what went before, too
	NewBytes    int64    `json:"new_bytes"`
	StoredBytes int64    `json:"stored_bytes"`
	Lifted      string   `json:"lifted,omitempty"` // why it was kept out until now
	Why         string   `json:"why,omitempty"`    // skipped or failed
	Warnings    []string `json:"warnings,omitempty"`
}

type archiveOutput struct {
	Sessions    []archivedSession `json:"sessions"`
	Archived    int               `json:"archived"`
	Unchanged   int               `json:"unchanged"`
	Skipped     int               `json:"skipped"`
	Failed      int               `json:"failed"`
	NewBytes    int64             `json:"new_bytes"`
	StoredBytes int64             `json:"stored_bytes"`
}

func (o *archiveOutput) add(s archivedSession) {
	o.Sessions = append(o.Sessions, s)
	switch s.Outcome {
	case "archived":
		o.Archived++
	case "unchanged":
		o.Unchanged++
	case "skipped":
		o.Skipped++
	case "failed":
		o.Failed++
	}
	o.NewBytes += s.NewBytes
	o.StoredBytes += s.StoredBytes
}

func newArchiveCmd(a *app) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "archive (--all | ID... | PATH...) [--json]",
		Short: "Archive sessions now",
		Long: `Archive sessions as they are now, without waiting for their end. PATH is a
transcript in Claude Code's folders, one of its project folders, or a directory:
then all sessions that ran there are archived.
` + sessionHelp + `

--all archives every session on this machine that the archive does not have as
it is, those first that Claude Code is nearest to delete. It can be stopped at
any time, and goes on where it was.

A session that SESSION_KEEPER=off, an exclude or a pause kept out stays out of
--all; naming it archives it, and from then on it is archived like any other,
unless an exclude still matches. A forgotten session stays forgotten: "claude
--resume ID --fork-session" continues it under a new id, which is archived.

--json prints sessions (id, outcome, generation, diverged, new_bytes,
stored_bytes, lifted, why, warnings), archived, unchanged, skipped, failed,
new_bytes, stored_bytes.

Exit codes: 0; 1 failed, or a session failed; 2 wrong usage; 3 not found or
ambiguous; 5 forgotten; 130 interrupted: what was archived stays archived.`,
		Example: `  session-keeper archive --all
  session-keeper archive last
  session-keeper archive ~/work/app`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case all && len(args) > 0:
				return errors.New("--all takes no names")
			case !all && len(args) == 0:
				return errors.New("name sessions or paths, or give --all")
			}
			return nil
		},
		ValidArgsFunction: a.completeID(live, 0, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := a.openDesk()
			if err != nil {
				return err
			}
			out := &archiveOutput{Sessions: []archivedSession{}}
			if all {
				err = a.archiveAll(cmd.Context(), d, out, asJSON)
			} else {
				err = a.archiveNamed(cmd.Context(), d, args, out, asJSON)
			}
			if asJSON && (err == nil || len(out.Sessions) > 0) {
				err = errors.Join(err, writeJSON(a.out, out))
			}
			if err == nil && out.Failed > 0 {
				err = quietExit(exitFailed)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every session on this machine")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, as described above")
	return cmd
}

func (a *app) archiveAll(ctx context.Context, d *desk, out *archiveOutput, quiet bool) error {
	bar := progress.Bytes(a.errw, isTerminal(a.errw), -1, "archiving")
	var done int64
	summary, err := d.keeper.ArchiveAll(ctx, keeper.AllOptions{
		Progress: func(p keeper.AllProgress) {
			done = p.DoneBytes
			bar.Set(p.DoneBytes, p.TotalBytes)
			bar.Say("archiving %d of %d", min(p.Done+1, p.Total), p.Total)
		},
		Bytes: bar.Add,
	})
	bar.Done()
	for _, o := range summary.Outcomes {
		s := archived(o.SessionID, o.Result, o.Err)
		if o.Skipped != nil {
			s.Outcome, s.Why = "skipped", decisionText(*o.Skipped)
		}
		out.add(s)
		if !quiet && (s.Outcome == "failed" || s.Diverged || len(s.Warnings) > 0) {
			if perr := a.printArchived(s); perr != nil {
				return perr
			}
		}
	}
	for _, u := range summary.Unreadable {
		a.say("warning", oneLine(u.Path+": "+u.Reason))
	}
	a.warnAll(summary.SpoolErrors)
	if !quiet {
		_, perr := fmt.Fprintf(a.out, "%s archived, %d unchanged, %d skipped, %d failed: %s new, stored in %s\n",
			plural(out.Archived, "session"), out.Unchanged, out.Skipped, out.Failed, byteSize(out.NewBytes), byteSize(out.StoredBytes))
		err = errors.Join(err, perr)
	}
	if ctx.Err() != nil {
		a.say("hint", fmt.Sprintf("%s were archived; run it again to go on", byteSize(done)))
		return ctx.Err()
	}
	return err
}

func (a *app) archiveNamed(ctx context.Context, d *desk, args []string, out *archiveOutput, quiet bool) error {
	for _, arg := range args {
		bundles, err := a.bundles(ctx, d, arg)
		if err != nil {
			return err
		}
		for _, b := range bundles {
			s, err := a.archiveOne(ctx, d, b)
			if err != nil {
				return err
			}
			out.add(s)
			if !quiet {
				if err := a.printArchived(s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// archiveOne archives a session that the user named. The error is about the
// whole run; what is wrong with the session is in its outcome.
func (a *app) archiveOne(ctx context.Context, d *desk, b transcript.Bundle) (archivedSession, error) {
	mark, marked, err := optout.Marked(d.settings.Paths.State, b.SessionID)
	if err != nil {
		return archivedSession{}, fmt.Errorf("see whether session %s is kept out: %w", b.SessionID, err)
	}
	bar := progress.Bytes(a.errw, isTerminal(a.errw), b.Size, "archiving "+b.SessionID[:8])
	result, err := d.keeper.ArchiveSession(ctx, b, keeper.ArchiveOptions{Reason: archive.Manual, Progress: bar.Add})
	bar.Done()
	if ctx.Err() != nil {
		return archivedSession{}, ctx.Err()
	}
	var skipped *keeper.SkippedError
	forgotten := errors.Is(err, archive.ErrForgotten) || errors.As(err, &skipped) && skipped.Decision.Reason == optout.Forgotten
	if forgotten {
		return archivedSession{}, fail(exitRefused, fmt.Errorf("session %s was forgotten and stays so", b.SessionID),
			fmt.Sprintf("to archive what comes next, continue it under a new id: claude --resume %s --fork-session", b.SessionID))
	}
	s := archived(b.SessionID, result, err)
	if skipped != nil {
		s.Outcome, s.Why = "skipped", decisionText(skipped.Decision)
	}
	if err == nil && marked {
		s.Lifted = string(mark.Reason)
	}
	if err == nil && result.Generation != nil {
		// A mark is lifted now, an exclude of the settings is not.
		decision, err := optout.CheckPast(d.settings, b.SessionID, []string{result.Generation.Project.Cwd}, time.Time{})
		if err != nil {
			return archivedSession{}, fmt.Errorf("see whether session %s is kept out: %w", b.SessionID, err)
		}
		if decision.Skip {
			s.Warnings = append(s.Warnings, fmt.Sprintf("session %s was archived this once; what comes next stays out (%s)", b.SessionID, decisionText(decision)))
		}
	}
	return s, nil
}

func archived(id string, r archive.Result, err error) archivedSession {
	s := archivedSession{ID: id, Outcome: "unchanged", Diverged: r.Created && r.Diverged, NewBytes: r.NewBytes, StoredBytes: r.StoredBytes}
	if r.Generation != nil {
		s.Generation = r.Generation.Number
	}
	switch {
	case err != nil:
		s.Outcome, s.Why = "failed", err.Error()
	case r.Created:
		s.Outcome = "archived"
	}
	for _, w := range r.Warnings {
		s.Warnings = append(s.Warnings, w.Error())
	}
	for _, f := range r.Skipped {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%s/%s could not be read: %v", f.Family, f.Path, f.Err))
	}
	for _, f := range r.LeftOut {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%s/%s was left out: %s", f.Family, f.Path, f.Why))
	}
	return s
}

func decisionText(d optout.Decision) string {
	if d.Detail == "" {
		return string(d.Reason)
	}
	return string(d.Reason) + ": " + d.Detail
}

func (a *app) printArchived(s archivedSession) error {
	var line string
	switch s.Outcome {
	case "archived":
		line = fmt.Sprintf("archived  %s  generation %d, %s new, stored in %s", s.ID, s.Generation, byteSize(s.NewBytes), byteSize(s.StoredBytes))
	case "unchanged":
		line = fmt.Sprintf("unchanged %s  generation %d", s.ID, s.Generation)
	case "skipped":
		line = fmt.Sprintf("skipped   %s  %s", s.ID, oneLine(s.Why))
	default:
		line = fmt.Sprintf("failed    %s  %s", s.ID, oneLine(s.Why))
	}
	if _, err := fmt.Fprintln(a.out, line); err != nil {
		return err
	}
	if s.Lifted != "" {
		a.say("warning", fmt.Sprintf("session %s was kept out (%s); from now on it is archived like any other", s.ID, s.Lifted))
	}
	if s.Diverged {
		a.say("warning", fmt.Sprintf("the source of session %s is no longer what was archived; the archive keeps both", s.ID))
	}
	for _, w := range s.Warnings {
		a.say("warning", oneLine(w))
	}
	return nil
}

// bundles gives the live sessions that an argument names.
func (a *app) bundles(ctx context.Context, d *desk, arg string) ([]transcript.Bundle, error) {
	if looksLikePath(arg) {
		path := arg
		if !filepath.IsAbs(path) {
			path = filepath.Join(a.env.Dir, path)
		}
		fi, err := os.Stat(path)
		switch {
		case err != nil && strings.HasSuffix(arg, ".jsonl"):
			return nil, fail(exitNotFound, fmt.Errorf("no such file: %s", oneLine(arg)))
		case err != nil && strings.ContainsRune(arg, filepath.Separator):
			return a.bundlesIn(ctx, d, path) // its sessions may outlive a directory
		case err == nil && fi.IsDir():
			return a.bundlesIn(ctx, d, path)
		case err == nil:
			return bundleAt(d, path)
		}
	}
	if transcript.ValidSessionID(arg) {
		// Where it lies is all there is to know: nothing has to be read for it.
		b, err := d.catalog.Locator.Locate(arg, "")
		if err == nil {
			return []transcript.Bundle{b}, nil
		}
		if !errors.Is(err, transcript.ErrNotFound) {
			return nil, fmt.Errorf("look for session %s: %w", arg, err)
		}
	}
	s, err := d.find(ctx, arg)
	if err != nil {
		return nil, err
	}
	switch {
	case s.Live != nil:
		return []transcript.Bundle{*s.Live}, nil
	case s.Traces != nil:
		return []transcript.Bundle{*s.Traces}, nil
	}
	return nil, fail(exitNotFound, fmt.Errorf("session %s is not in Claude Code's folders any more", s.ID),
		fmt.Sprintf("the archive has it, generation %d", s.Kept.Number))
}

// looksLikePath tells paths from ids and titles; a title may hold slashes, so
// what is no path is looked up as a name still.
func looksLikePath(arg string) bool {
	if arg == "." || arg == ".." || strings.HasSuffix(arg, ".jsonl") {
		return true
	}
	if !strings.ContainsRune(arg, filepath.Separator) {
		return false
	}
	_, err := os.Stat(arg)
	return err == nil || strings.HasPrefix(arg, ".") || filepath.IsAbs(arg)
}

// bundleAt gives the session whose transcript lies at path.
func bundleAt(d *desk, path string) ([]transcript.Bundle, error) {
	id := strings.TrimSuffix(filepath.Base(path), ".jsonl")
	if !transcript.ValidSessionID(id) {
		return nil, fail(exitUsage, fmt.Errorf("not a transcript: %s", oneLine(path)), "a transcript is named <session id>.jsonl")
	}
	all, _, err := d.catalog.Locator.LocateAll(id)
	if err != nil && !errors.Is(err, transcript.ErrNotFound) {
		return nil, fmt.Errorf("look for session %s: %w", id, err)
	}
	given, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	for _, b := range all {
		if fi, err := os.Stat(b.Transcript); err == nil && os.SameFile(fi, given) {
			return []transcript.Bundle{b}, nil
		}
	}
	return nil, fail(exitNotFound, fmt.Errorf("%s does not lie in a folder where Claude Code keeps sessions", oneLine(path)),
		"[client] config_dirs in the settings file names further config folders")
}

// bundlesIn gives the sessions of a directory: of a project folder of the
// client, or those that ran there.
func (a *app) bundlesIn(ctx context.Context, d *desk, dir string) ([]transcript.Bundle, error) {
	real, err := realPath(a, dir)
	if err != nil {
		return nil, err
	}
	list, err := d.catalog.Load(ctx)
	if err != nil {
		return nil, err
	}
	var found []transcript.Bundle
	for _, s := range list.Sessions {
		for _, b := range []*transcript.Bundle{s.Live, s.Traces} {
			if b != nil && b.ProjectDir == real {
				found = append(found, *b)
			}
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	shown, _ := list.Apply(sessions.Filter{All: true, Project: real})
	for _, s := range shown {
		if s.Live != nil {
			found = append(found, *s.Live)
		}
	}
	if len(found) == 0 {
		return nil, fail(exitNotFound, fmt.Errorf("no live session ran in %s", oneLine(real)))
	}
	return found, nil
}
