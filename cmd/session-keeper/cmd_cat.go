package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/internal/sessions"
	"github.com/session-keeper/session-keeper/transcript"
)

func newCatCmd(a *app) *cobra.Command {
	var (
		file, generation string
		files            bool
	)
	cmd := &cobra.Command{
		Use:   "cat ID [--file F] [--generation N] [--files]",
		Short: "Print a session's file, byte for byte",
		Long: `Print one file of a session exactly as it is: its transcript, or with --file
another one.
` + sessionHelp + `

The live file is printed while Claude Code has it and it is no shorter than the
archived one, else the archived one, and where that holds no message the newest
that does; --generation always takes the archive.
--files lists what F may be: family/path, or the path alone where it is clear.

Exit codes: 0; 1 failed; 2 wrong usage; 3 not found or ambiguous; 4 damaged:
what was printed is then not the whole file.`,
		Example: `  session-keeper cat last | jq -r .type
  session-keeper cat 0192ab --files
  session-keeper cat 0192ab --file tool-results/b1.txt --generation 2 > b1.txt`,
		Args:              oneArg("ID"),
		ValidArgsFunction: a.completeID(anySession, 1, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := a.openDesk()
			if err != nil {
				return err
			}
			s, err := d.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			src, err := d.source(cmd.Context(), s, generation)
			if err != nil {
				return err
			}
			if generation == "" && src.generation != nil {
				if err := a.hintLonger(cmd.Context(), d, s, src.generation); err != nil {
					return err
				}
			}
			if files {
				for _, f := range src.files {
					if _, err := fmt.Fprintf(a.out, "%12d  %s/%s\n", f.size, f.family, oneLine(f.path)); err != nil {
						return err
					}
				}
				return nil
			}
			f, err := src.pick(file)
			if err != nil {
				return err
			}
			return copyFile(cmd.Context(), a.out, f)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "print this `F` in place of the transcript")
	cmd.Flags().StringVar(&generation, "generation", "", "from generation `N` of the archive: a number, an id, or \"latest\"")
	cmd.Flags().BoolVar(&files, "files", false, "list the session's files, with their sizes in bytes")
	return cmd
}

// source is where a session is read from: its live files or one generation.
type source struct {
	session    *sessions.Session
	generation *archive.Generation // nil: live
	files      []sourceFile
}

type sourceFile struct {
	family, path string
	size         int64
	open         func() (io.ReadCloser, error)
}

// source chooses where to read a session: the generation that is named, else
// what is live, unless the archive has more of the conversation. Where the newest
// state holds no message and an older one does, that one is taken.
func (d *desk) source(ctx context.Context, s *sessions.Session, generation string) (*source, error) {
	if generation == "" && s.FactsOf != "" {
		generation = s.FactsOf
	}
	kept := sessions.KeptTranscript(s.Kept)
	live := s.Live
	if live == nil && s.Kept == nil {
		live = s.Traces
	}
	if generation == "" && live != nil && (kept == nil || s.Live != nil && s.Live.Size >= kept.Size) {
		files, _, err := live.ListFiles(ctx, transcript.FilesOptions{Slugs: s.Facts.Slugs})
		if err != nil {
			return nil, fmt.Errorf("list the session's files: %w", err)
		}
		src := &source{session: s}
		for _, f := range files {
			src.files = append(src.files, sourceFile{f.Family, f.Rel, f.Size, func() (io.ReadCloser, error) {
				r, _, err := transcript.OpenRegular(f.Path)
				return r, err
			}})
		}
		return src, nil
	}
	g, _, err := d.generation(ctx, s, generation)
	if err != nil {
		return nil, err
	}
	src := &source{session: s, generation: g}
	for _, f := range g.Files {
		src.files = append(src.files, sourceFile{f.Family, f.Path, f.Size, func() (io.ReadCloser, error) {
			return d.store.OpenFile(g, f)
		}})
	}
	return src, nil
}

// pick gives the file that a name means; the transcript for "".
func (s *source) pick(name string) (sourceFile, error) {
	if name == "" {
		for _, f := range s.files {
			if f.family == transcript.FamilyTranscript {
				return f, nil
			}
		}
		return sourceFile{}, fail(exitNotFound, fmt.Errorf("session %s has no transcript, only files of its agents", s.session.ID), "--files lists them")
	}
	var found []sourceFile
	for _, f := range s.files {
		full := f.family + "/" + f.path
		if full == name || f.family == transcript.FamilyTranscript && f.family == name {
			return f, nil
		}
		if f.path == name || strings.HasSuffix(f.path, "/"+name) {
			found = append(found, f)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return sourceFile{}, fail(exitNotFound, fmt.Errorf("session %s has no file %q", s.session.ID, shorten(name)), "--files lists them")
	}
	names := make([]string, len(found))
	for i, f := range found {
		names[i] = f.family + "/" + oneLine(f.path)
	}
	return sourceFile{}, failf(exitNotFound, "%q names %d files: %s", shorten(name), len(found), strings.Join(names, ", "))
}

// copyFile copies a file out; damage is told by the exit code.
func copyFile(ctx context.Context, w io.Writer, f sourceFile) error {
	r, err := f.open()
	if err != nil {
		return damaged(f, err)
	}
	defer r.Close()
	buf := make([]byte, 256<<10)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return damaged(f, err)
		}
	}
}

// damaged gives an error from reading the archive the exit code of damage.
func damaged(f sourceFile, err error) error {
	err = fmt.Errorf("%s/%s: %w", f.family, f.path, err)
	if errors.Is(err, archive.ErrDamaged) {
		return fail(exitDamaged, err, "another generation may be whole: try --generation")
	}
	return err
}
