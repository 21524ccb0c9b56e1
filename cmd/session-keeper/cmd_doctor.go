package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/doctor"
	"github.com/session-keeper/session-keeper/internal/install"
	"github.com/session-keeper/session-keeper/internal/keeper"
)

// doctorOutput is what "doctor --json" prints.
type doctorOutput struct {
	Problems int              `json:"problems"` // findings that are problems
	Findings []doctor.Finding `json:"findings"`
}

func newDoctorCmd(a *app) *cobra.Command {
	var asJSON, quick bool
	cmd := &cobra.Command{
		Use:   "doctor [--quick] [--json]",
		Short: "Find out what is wrong, and the command that fixes it",
		Long: `Look at the whole installation: which hooks are wired and whether they run, the
archive and its disk, work that waits, the last event, how much time Claude Code
gives the hook, how long it keeps transcripts, and what is not archived. The
wired commands are tried on a sample session in a temporary home, as self-test
does it; --quick leaves that out.

Each line begins with ok, note or problem. Notes are worth knowing; with a
problem, sessions are lost or will be. Below stands what to do about it.
Nothing is changed.

--json prints one object: "problems", their number, and "findings", a list with
code, severity (ok, note, problem), message, and where they apply fix, file and
line. Codes do not change between versions.

Exit codes: 0 no problem; 1 failed; 2 wrong usage; 4 at least one problem.`,
		Example: `  session-keeper doctor
  session-keeper doctor --json | jq -r '.findings[] | select(.severity == "problem").code'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := a.doctorWorld()
			if !quick {
				w.Try = func(ctx context.Context, h install.Hook) (time.Duration, error) {
					t, err := a.trySample(ctx, h)
					if err != nil {
						return 0, err
					}
					return t.took, nil
				}
			}
			findings, err := doctor.Run(cmd.Context(), w)
			if err != nil {
				return err
			}
			problems := doctor.Problems(findings)
			if asJSON {
				err = writeJSON(a.out, doctorOutput{Problems: problems, Findings: findings})
			} else {
				err = a.printFindings(findings)
			}
			if err != nil {
				return err
			}
			if problems > 0 {
				return quietExit(exitDamaged)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&quick, "quick", false, "do not try the wired commands")
	return cmd
}

// doctorWorld is what doctor looks at. Settings that cannot be read are a
// finding like any other.
func (a *app) doctorWorld() *doctor.World {
	w := &doctor.World{Env: a.env, Managed: managedSettings(a.env.GOOS), Version: buildVersion().Version, Now: a.now()}
	w.Settings, w.Err = config.Load(a.env)
	if w.Err != nil {
		w.Settings = nil
		return w
	}
	w.Keeper = keeper.New(w.Settings, nil)
	w.Keeper.Now = a.now
	return w
}

func (a *app) printFindings(findings []doctor.Finding) error {
	const width = len("problem")
	for _, f := range findings {
		colour := map[doctor.Severity]string{doctor.OK: "32", doctor.Note: "33", doctor.Problem: "31"}[f.Severity]
		label := a.paint(colour, fmt.Sprintf("%-*s", width, f.Severity))
		if err := a.printf("%s  %s\n", label, plainText(f.Message)); err != nil {
			return err
		}
		if f.Fix != "" {
			if err := a.printf("%*s  -> %s\n", width, "", f.Fix); err != nil {
				return err
			}
		}
	}
	if n := doctor.Problems(findings); n > 0 {
		return a.printf("%s\n", plural(n, "problem"))
	}
	return nil
}
