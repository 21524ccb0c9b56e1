package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/internal/progress"
)

// verifyOutput is the output of "verify --json". Fields are only ever added.
type verifyOutput struct {
	OK           bool            `json:"ok"`
	Sessions     int             `json:"sessions"`
	Generations  int             `json:"generations"`
	Files        int             `json:"files"`
	Segments     int             `json:"segments"`
	Bytes        int64           `json:"bytes"`
	StoredBytes  int64           `json:"stored_bytes"`
	Unreferenced int             `json:"unreferenced"`
	Problems     []verifyProblem `json:"problems"`
}

type verifyProblem struct {
	Session  string `json:"session,omitempty"`
	Manifest string `json:"manifest,omitempty"`
	Segment  string `json:"segment,omitempty"`
	Family   string `json:"family,omitempty"`
	Path     string `json:"path,omitempty"`
	Offset   *int64 `json:"offset,omitempty"` // so many bytes of the file are whole
	Error    string `json:"error"`
}

func newVerifyCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [ID] [--json]",
		Short: "Check the archive, every byte of it",
		Long: `Read every segment and manifest of the archive, or those of one session, and
check them against their hashes. Nothing is changed.
` + sessionHelp + `

--json prints ok, sessions, generations, files, segments, bytes, stored_bytes,
unreferenced and problems, each with session, manifest, segment, family, path,
offset (so many bytes of the file are whole) and error as far as they are known.

Exit codes: 0 all is well; 1 failed; 2 wrong usage; 3 not found or ambiguous;
4 damage found.`,
		Example: `  session-keeper verify
  session-keeper verify last --json`,
		Args:              atMostOneArg("ID"),
		ValidArgsFunction: a.completeID(kept, 1, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := a.openDesk()
			if err != nil {
				return err
			}
			if d.store == nil {
				return fail(exitNotFound, fmt.Errorf("there is no archive at %s", d.settings.Paths.Store), `"session-keeper doctor" tells what is wired and what is not`)
			}
			var o archive.VerifyOptions
			if len(args) == 1 {
				s, err := d.find(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if s.Kept == nil && len(s.Errors) == 0 {
					return failf(exitNotFound, "session %s is not in the archive", s.ID)
				}
				o.Session = s.ID
			}
			bar := progress.Bytes(a.errw, isTerminal(a.errw), -1, "checking")
			o.Progress = bar.Set
			report, err := d.store.Verify(cmd.Context(), o)
			bar.Done()
			if err != nil {
				return fmt.Errorf("verify: %w", err)
			}
			offsets, err := d.damageOffsets(cmd.Context(), report.Problems)
			if err != nil {
				return err
			}
			if asJSON {
				err = writeJSON(a.out, verifyJSON(report, offsets))
			} else {
				err = a.printVerify(report, offsets)
			}
			if err != nil {
				return err
			}
			if len(report.Problems) > 0 {
				return fail(exitDamaged, fmt.Errorf("%s", plural(len(report.Problems), "problem")+" found"), repairHints(d, report)...)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, as described above")
	return cmd
}

// damageOffsets tells for problems with a file how many of its bytes come before
// the first damage; -1 where that is not known. Only the first problem of a state
// of a file gets one.
func (d *desk) damageOffsets(ctx context.Context, problems []archive.Problem) ([]int64, error) {
	// Each look reads a file up to its damage. Where there is more than this, the
	// disk is the matter, and not the place in a file.
	const most = 100
	offsets := make([]int64, len(problems))
	type state struct{ manifest, family, path string }
	seen := map[state]bool{}
	for i, p := range problems {
		offsets[i] = -1
		key := state{p.Manifest, p.Family, p.Path}
		if p.Family == "" || p.Segment == "" || seen[key] || len(seen) >= most {
			continue
		}
		seen[key] = true
		n, err := d.wholeBytes(ctx, p)
		if err != nil {
			return nil, err
		}
		offsets[i] = n
	}
	return offsets, nil
}

// wholeBytes reads the file that a problem is about up to its damage. The error
// is that of a cancelled context.
func (d *desk) wholeBytes(ctx context.Context, p archive.Problem) (int64, error) {
	h, err := d.store.History(ctx, p.Session)
	if err != nil {
		return -1, ctx.Err()
	}
	for _, g := range h.Generations {
		if !strings.Contains(p.Manifest, g.Hash) {
			continue
		}
		for _, f := range g.Files {
			if f.Family != p.Family || f.Path != p.Path {
				continue
			}
			count := &counter{}
			err := copyFile(ctx, count, sourceFile{f.Family, f.Path, f.Size, func() (io.ReadCloser, error) { return d.store.OpenFile(g, f) }})
			if ctx.Err() != nil {
				return -1, ctx.Err()
			}
			if err == nil {
				return -1, nil // whole meanwhile
			}
			return count.n, nil
		}
	}
	return -1, nil
}

// counter counts what is written to it.
type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}

func verifyJSON(r *archive.Report, offsets []int64) verifyOutput {
	out := verifyOutput{
		OK:           len(r.Problems) == 0,
		Sessions:     r.Sessions,
		Generations:  r.Generations,
		Files:        r.Files,
		Segments:     r.Segments,
		Bytes:        r.Bytes,
		StoredBytes:  r.StoredBytes,
		Unreferenced: r.Unreferenced,
		Problems:     []verifyProblem{},
	}
	for i, p := range r.Problems {
		problem := verifyProblem{Session: p.Session, Manifest: p.Manifest, Segment: p.Segment, Family: p.Family, Path: p.Path, Error: p.Err.Error()}
		if offsets[i] >= 0 {
			problem.Offset = &offsets[i]
		}
		out.Problems = append(out.Problems, problem)
	}
	return out
}

func (a *app) printVerify(r *archive.Report, offsets []int64) error {
	for i, p := range r.Problems {
		line := "damaged:"
		if p.Session != "" {
			line += " session " + p.Session
		}
		if p.Manifest != "" {
			line += ", manifest " + p.Manifest
		}
		if p.Family != "" {
			line += fmt.Sprintf(", file %s/%s", p.Family, oneLine(p.Path))
		}
		if offsets[i] >= 0 {
			line += fmt.Sprintf(" from byte %d on", offsets[i])
		}
		if p.Segment != "" {
			line += ", segment " + p.Segment
		}
		if _, err := fmt.Fprintf(a.out, "%s: %s\n", a.paint("31", line), oneLine(p.Err.Error())); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(a.out, "checked %s, %s, %s: %s, stored in %s\n",
		plural(r.Sessions, "session"), plural(r.Generations, "generation"), plural(r.Segments, "segment"), byteSize(r.Bytes), byteSize(r.StoredBytes))
	if err != nil {
		return err
	}
	if r.Unreferenced > 0 {
		_, err = fmt.Fprintf(a.out, "%s that no generation needs: harmless\n", plural(r.Unreferenced, "segment"))
	}
	return err
}

// repairHints tells what can be done about damage.
func repairHints(d *desk, r *archive.Report) []string {
	live, hints := map[string]bool{}, []string(nil)
	for _, p := range r.Problems {
		if p.Session == "" || live[p.Session] {
			continue
		}
		if b, err := d.catalog.Locator.Locate(p.Session, ""); err == nil && b.Transcript != "" {
			live[p.Session] = true
			hints = append(hints, fmt.Sprintf("session %s is still live: session-keeper archive %s stores it again", p.Session, p.Session))
		}
	}
	return append(hints,
		"copy what is damaged back from a backup of "+d.settings.Paths.Store+"; every file there has its hash in its name",
		"what is not named above is whole, and older generations may be: session-keeper restore ID offers them")
}

// atMostOneArg wants one argument or none.
func atMostOneArg(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return oneArg(name)(cmd, args)
	}
}
