package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/archive/spool"
	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/doctor"
	"github.com/session-keeper/session-keeper/internal/install"
	"github.com/session-keeper/session-keeper/internal/keeper"
)

func newUninstallCmd(a *app) *cobra.Command {
	var (
		dryRun, purge bool
		archivePath   string
		scope         string
	)
	cmd := &cobra.Command{
		Use:   "uninstall [--dry-run] [--scope SCOPE] [--purge] [--delete-archive PATH]",
		Short: "Take the hooks out of Claude Code's settings",
		Long: `Take the hooks out of Claude Code's user settings, and out of every settings file
that "session-keeper install" wired: other config folders, projects. What is wired
by hand in the current directory's settings is named; --scope project or --scope
local takes it out of that file, and does nothing else.

Exactly our own entries go; if nothing else was changed since the install, the
file is byte for byte what it was. The archive, settings and state stay, and
are listed with their sizes.

--purge removes all of it but the archive: state, spool, logs, copies of
settings.json, cache, and our own settings. Sessions that wait in the spool and
are not archived yet would go with it, so it refuses while there are any.

The archive itself goes only with its path typed out: as --delete-archive PATH,
or, with --purge on a terminal, when asked.

Exit codes: 0 done; 1 failed; 2 wrong usage; 5 refused, because something would
be lost.`,
		Example: `  session-keeper uninstall --dry-run
  session-keeper uninstall
  session-keeper uninstall --purge`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("delete-archive") && archivePath == "" {
				return usagef("--delete-archive needs the archive's path")
			}
			if cmd.Flags().Changed("scope") {
				if purge || archivePath != "" {
					return usagef("--scope goes with neither --purge nor --delete-archive")
				}
				return a.uninstallScope(scope, dryRun)
			}
			return a.uninstall(cmd.Context(), dryRun, purge, archivePath)
		},
	}
	cmd.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "show the change of settings.json and what would be removed, change nothing")
	cmd.Flags().StringVar(&scope, "scope", "", scopeUsage+"; only that file")
	cmd.Flags().BoolVar(&purge, "purge", false, "remove state, spool, logs, cache and our settings as well")
	cmd.Flags().StringVar(&archivePath, "delete-archive", "", "delete the archive, whose `PATH` must be typed out in full")
	return cmd
}

// uninstallScope takes our entries out of one settings file.
func (a *app) uninstallScope(scope string, dryRun bool) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	file, err := a.scopeSettings(s, scope)
	if err != nil {
		return err
	}
	if err := a.unwire(s, file, dryRun); err != nil {
		return err
	}
	return a.reportElsewhere(s, file)
}

// leftover is something of ours on this machine.
type leftover struct {
	what, path string
	bytes      int64
	purge      bool // goes with --purge
}

func (a *app) uninstall(ctx context.Context, dryRun, purge bool, archivePath string) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	file, err := userSettings(s)
	if err != nil {
		return err
	}
	if archivePath != "" {
		if err := a.checkArchivePath(s, archivePath); err != nil {
			return err
		}
	}
	left, err := a.leftovers(s)
	if err != nil {
		return err
	}
	if purge {
		// Before anything is changed: what waits there is in no archive yet.
		if err := a.refuseWaiting(s); err != nil {
			return err
		}
	}
	// Also those of other config folders of the client, as CLAUDE_CONFIG_DIR
	// named them then.
	files, err := install.Recorded(s.Paths.State)
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f string) bool { return f == file })
	var failed []error
	for _, file := range append([]string{file}, files...) {
		// One that cannot be edited keeps no other from being so.
		if err := a.unwire(s, file, dryRun); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	if err := a.reportElsewhere(s, file); err != nil {
		return err
	}
	if purge && archivePath == "" && a.interactive && !dryRun {
		if archivePath, err = a.askArchivePath(ctx, s); err != nil {
			return err
		}
	}
	return a.removeLeftovers(ctx, left, dryRun, purge, archivePath)
}

// unwire takes our entries out of one settings file, and reports from what is
// then in it.
func (a *app) unwire(s *config.Settings, file string, dryRun bool) error {
	res, err := install.Uninstall(install.Options{File: file, State: s.Paths.State, GOOS: a.env.GOOS, Now: a.now(), DryRun: dryRun})
	if err != nil {
		return fail(exitFailed, err, settingsHint(file))
	}
	switch {
	case !res.Changed:
		err = a.printf("%s holds nothing of ours.\n", a.tilde(file))
	case dryRun:
		_, err = fmt.Fprint(a.out, res.Diff)
	case res.Removed:
		err = a.printf("Removed %s, which held nothing else.\n", a.tilde(file))
	default:
		err = a.printf("Took our entries out of %s.\n", a.tilde(file))
	}
	if err != nil {
		return err
	}
	if res.InPlace && !dryRun {
		a.say("warning", "the file could not be replaced by a new one and was written in place")
	}
	if n := len(res.Hooks); n > 0 {
		return fmt.Errorf("%s still holds entries of ours: %d", file, n)
	}
	return nil
}

// leftovers lists what there is of ours beside the wiring.
func (a *app) leftovers(s *config.Settings) ([]leftover, error) {
	k := keeper.New(s, nil)
	spools, err := k.Spools()
	if err != nil {
		return nil, err
	}
	all := []leftover{{what: "archive", path: s.Paths.Store}}
	for _, dir := range spools {
		if within(s.Paths.State, dir) {
			continue // counted with the state
		}
		all = append(all, leftover{what: "spool", path: dir, purge: true})
	}
	all = append(all,
		leftover{what: "state, spool, logs, copies of settings.json", path: s.Paths.State, purge: true},
		leftover{what: "cache", path: s.Paths.Cache, purge: true},
		leftover{what: "settings", path: s.Paths.Config, purge: true},
	)
	var left []leftover
	for _, l := range all {
		if _, err := os.Lstat(l.path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if l.bytes, _, err = doctor.Size(l.path); err != nil {
			return nil, err
		}
		left = append(left, l)
	}
	return left, nil
}

// refuseWaiting keeps a purge from taking sessions that are not archived yet.
func (a *app) refuseWaiting(s *config.Settings) error {
	spools, err := keeper.New(s, nil).Spools()
	if err != nil {
		return err
	}
	for _, dir := range spools {
		sum, err := spool.Status(dir)
		if err != nil {
			return err
		}
		if n := len(sum.Waiting); n > 0 || sum.Busy {
			return fail(exitRefused, fmt.Errorf("%s in %s not archived yet, nothing was changed", plural(n, "session"), dir),
				"session-keeper archive --all takes them in; session-keeper doctor says why one cannot be",
				"to give them up, remove that folder")
		}
	}
	return nil
}

// within reports whether path is dir or lies below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// checkArchivePath accepts only the archive's own path, typed out.
func (a *app) checkArchivePath(s *config.Settings, typed string) error {
	if typed != s.Paths.Store {
		return fail(exitRefused, fmt.Errorf("%q is not the archive's path, nothing was changed", shorten(typed)), "the archive is "+s.Paths.Store)
	}
	if _, err := archive.Open(s.Paths.Store); err != nil {
		return fail(exitRefused, fmt.Errorf("nothing was changed: %w", err), "what is no archive is not deleted as one")
	}
	return nil
}

// askArchivePath asks on the terminal for the archive's path. An empty answer
// keeps the archive.
func (a *app) askArchivePath(ctx context.Context, s *config.Settings) (string, error) {
	if _, err := archive.Open(s.Paths.Store); err != nil {
		return "", nil
	}
	typed, err := a.ask(ctx, fmt.Sprintf("The archive stays. To delete it as well, type its path (%s), else press Enter: ", s.Paths.Store))
	if err != nil || typed == "" {
		return "", err
	}
	return typed, a.checkArchivePath(s, typed)
}

// removeLeftovers removes what was asked for, and lists what stays.
func (a *app) removeLeftovers(ctx context.Context, left []leftover, dryRun, purge bool, archivePath string) error {
	var stay []leftover
	for _, l := range left {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !(purge && l.purge) && l.path != archivePath {
			stay = append(stay, l)
			continue
		}
		did := "Removed"
		if dryRun {
			did = "Would remove"
		} else if err := removeAll(l.path); err != nil {
			return fmt.Errorf("remove %s: %w", l.what, err)
		}
		if err := a.printf("%s %s: %s (%s)\n", did, l.what, a.tilde(l.path), byteSize(l.bytes)); err != nil {
			return err
		}
	}
	if len(stay) == 0 {
		return nil
	}
	if err := a.printf("What stays:\n"); err != nil {
		return err
	}
	for _, l := range stay {
		if err := a.printf("  %-8s %s: %s\n", byteSize(l.bytes), l.what, a.tilde(l.path)); err != nil {
			return err
		}
	}
	return nil
}

// removeAll removes a file or folder of ours, and its folder if that is named
// after us and empty then. A link is removed itself, not what it points to.
func removeAll(path string) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	parent := filepath.Dir(path)
	if filepath.Base(parent) != programName {
		return nil
	}
	if entries, err := os.ReadDir(parent); err == nil && len(entries) == 0 {
		return os.Remove(parent)
	}
	return nil
}
