package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/session-keeper/session-keeper/transcript"
)

func newProjectDirCmd(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "project-dir [--all] [DIR]",
		Short: "Print the folder in which Claude Code keeps a directory's sessions",
		Long: `Print the name of the folder in which Claude Code keeps the sessions of a
directory (default: the current one), below "projects" in its config folder.

The name is made from the directory's real path, so links are followed. It
cannot be turned back, and different directories may share one. A directory
that no longer exists is taken as it is written.

Exit codes: 0 done; 1 failed; 2 wrong usage; with --all, 3 if no folder exists.`,
		Example: `  session-keeper project-dir
  ls ~/.claude/projects/"$(session-keeper project-dir ~/src/app)"
  session-keeper project-dir --all ~/src/app`,
		Args: atMostOneArg("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := a.env.Dir
			if len(args) > 0 {
				dir = args[0]
			}
			if dir == "" {
				return usagef("the current directory is not known: name one")
			}
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(a.env.Dir, dir)
			}
			real, err := filepath.EvalSymlinks(dir)
			switch {
			case err == nil:
				dir = real
			case !errors.Is(err, fs.ErrNotExist):
				return err
			default:
				dir = filepath.Clean(dir)
			}
			if all {
				return a.printProjectDirs(dir)
			}
			if a.getenv("CLAUDE_CONFIG_DIR") != "" {
				if name := a.projectDirName(a.getenv(projectDirVariable)); name != "" {
					return a.printf("%s\n", name)
				}
			}
			return a.printf("%s\n", transcript.FolderName(dir))
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "print the path of each such folder that exists, in every known config folder")
	return cmd
}

// projectDirVariable replaces the name of every project folder, beside
// CLAUDE_CONFIG_DIR (documented).
const projectDirVariable = "CLAUDE_CODE_PROJECT_DIR_NAME"

// projectDirName gives a name from that variable if Claude Code takes it. One
// that it does not take has no effect (observed on 2.1.332).
func (a *app) projectDirName(name string) string {
	if name == "" || transcript.ValidProjectDirName(name) {
		return name
	}
	a.say("warning", fmt.Sprintf("%s is %q, which Claude Code does not take and ignores: 1 to 64 of A-Z a-z 0-9 _ - are allowed", projectDirVariable, shorten(name)))
	return ""
}

// printProjectDirs prints the folders that hold, or would hold, sessions of
// dir and that exist.
func (a *app) printProjectDirs(dir string) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	found := false
	locator := transcript.Locator{ConfigDirs: s.ClientDirs, ProjectDirName: a.projectDirName(s.ProjectDirName)}
	for _, configDir := range s.ClientDirs {
		name, err := locator.Folder(configDir, dir)
		if err != nil {
			return err
		}
		path := filepath.Join(configDir, "projects", name)
		if fi, err := os.Stat(path); err != nil || !fi.IsDir() {
			continue
		}
		found = true
		if err := a.printf("%s\n", path); err != nil {
			return err
		}
	}
	if !found {
		return failf(exitNotFound, "Claude Code has no folder for %s", dir)
	}
	return nil
}
