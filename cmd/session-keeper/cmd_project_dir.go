package main

import (
	"errors"
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
			if name := a.getenv("CLAUDE_CODE_PROJECT_DIR_NAME"); name != "" && a.getenv("CLAUDE_CONFIG_DIR") != "" && transcript.ValidProjectDirName(name) {
				return a.printf("%s\n", name)
			}
			return a.printf("%s\n", transcript.FolderName(dir))
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "print the path of each such folder that exists, in every known config folder")
	return cmd
}

// printProjectDirs prints the folders that hold, or would hold, sessions of
// dir and that exist.
func (a *app) printProjectDirs(dir string) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	found := false
	locator := transcript.Locator{ConfigDirs: s.ClientDirs, ProjectDirName: s.ProjectDirName}
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
