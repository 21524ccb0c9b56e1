package main

import (
	"fmt"

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
unreferenced and problems, each with session, manifest, segment, family, path
and error as far as they are known.

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
			if asJSON {
				err = writeJSON(a.out, verifyJSON(report))
			} else {
				err = a.printVerify(report)
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

func verifyJSON(r *archive.Report) verifyOutput {
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
	for _, p := range r.Problems {
		out.Problems = append(out.Problems, verifyProblem{p.Session, p.Manifest, p.Segment, p.Family, p.Path, p.Err.Error()})
	}
	return out
}

func (a *app) printVerify(r *archive.Report) error {
	for _, p := range r.Problems {
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
