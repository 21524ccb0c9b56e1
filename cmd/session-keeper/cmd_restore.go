package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/durable"
	"github.com/session-keeper/session-keeper/internal/progress"
	"github.com/session-keeper/session-keeper/internal/restore"
	"github.com/session-keeper/session-keeper/internal/sessions"
)

// restoreOutput is the output of "restore --json". Fields are only ever added.
type restoreOutput struct {
	ID         string             `json:"id"`
	Generation int                `json:"generation"`
	Folder     string             `json:"folder"` // the client's project folder, its path
	Files      []restoredFile     `json:"files"`
	Conflicts  []restore.Conflict `json:"conflicts"`
	Notes      []restore.Note     `json:"notes"`
	DryRun     bool               `json:"dry_run"`
	Written    int                `json:"written"`          // files
	Resume     string             `json:"resume,omitempty"` // a line for a POSIX shell
}

type restoredFile struct {
	Family  string `json:"family"`
	Path    string `json:"path"`
	Target  string `json:"target,omitempty"`
	Action  string `json:"action"` // write, keep, refresh, skip
	Size    int64  `json:"size"`
	Mode    string `json:"mode,omitempty"`  // the one that a written file gets, in octal
	ModTime string `json:"mtime,omitempty"` // the one it gets or has
	Reason  string `json:"reason,omitempty"`
}

func newRestoreCmd(a *app) *cobra.Command {
	var (
		generation, project, configDir string
		asWas, dryRun, asJSON          bool
	)
	cmd := &cobra.Command{
		Use:   "restore ID [--project DIR] [--config-dir DIR] [--generation N] [--as-was] [--dry-run] [--json]",
		Short: "Put a session back where claude --resume finds it",
		Long: `Put an archived session back into Claude Code's folders, with all its files, and
print the command that continues it.
` + sessionHelp + `

Nothing is ever overwritten: if a file of the session lies there and differs,
nothing is written at all. Files that several sessions share (plans, todos) and
that differ are left as they are and named. The transcript comes last, so an
interrupted restore is finished by the next one.

The files get their archived times, or, where Claude Code's clean-up would soon
take them, times just fresh enough; "claude --continue" still continues the
session that was newest in the directory. They are private: the owner's bits of
the archived modes, nothing for others.

The archive does not know in which of Claude Code's config folders a session was.
Where there are several, it goes to the one that has a trace of it, else to one
that has its project's folder, else to the first; --config-dir names another.

--dry-run prints what would be done. --json prints id, generation, folder, files
(family, path, target, action, size, mode, mtime, reason), conflicts, notes,
dry_run, written and resume.

Exit codes: 0; 1 failed; 2 wrong usage; 3 not found, ambiguous, or a choice
between generations is needed; 4 damaged in the archive: nothing was written;
5 refused to overwrite: nothing was written; 130 interrupted.`,
		Example: `  session-keeper restore last
  session-keeper restore 0192ab --dry-run
  session-keeper restore "retry budget" --project ~/work/new-place`,
		Args:              oneArg("ID"),
		ValidArgsFunction: a.completeID(kept, 1, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			d, err := a.openDesk()
			if err != nil {
				return err
			}
			s, err := d.find(ctx, args[0])
			if err != nil {
				return err
			}
			g, err := a.chooseGeneration(ctx, d, s, generation)
			if err != nil {
				return err
			}
			r, err := a.restoreRequest(ctx, d, s, g, restoreTo{project, configDir}, asWas)
			if err != nil {
				return err
			}
			plan, err := restore.Make(r)
			var conflict *restore.ConflictError
			if err != nil && !errors.As(err, &conflict) {
				return fmt.Errorf("restore session %s: %w", s.ID, err)
			}
			addNotes(plan, s, g, r)
			if configDir == "" {
				a.noteConfigDir(plan, d, s)
			}
			out := restoreJSON(plan, g, conflict, dryRun)
			out.Resume = plan.ResumeCommand(a.configEnv(r.ConfigDir))
			if dryRun || conflict != nil {
				out.Written = 0
				if conflict != nil {
					out.Resume = ""
				}
				err = nil
				switch {
				case asJSON:
					err = writeJSON(a.out, out)
				case dryRun:
					err = a.printPlan(a.out, plan, out)
				}
				if conflict != nil {
					err = errors.Join(err, a.refusal(conflict, s))
				}
				return err
			}
			result, err := a.applyPlan(ctx, d, plan)
			if err != nil {
				return a.restoreFailure(ctx, d, s, g, err)
			}
			out.Written = result.Written
			if plan.Transcript != nil {
				switch {
				case !result.Conversation:
					plan.Notes = append(plan.Notes, restore.Note{Code: "no-conversation", Text: "the transcript holds no conversation: Claude Code will say that it finds none"})
					out.Resume = ""
				case !result.Anywhere:
					plan.Notes = append(plan.Notes, restore.Note{Code: "own-directory-only", Text: "its records are written with spaces: Claude Code finds the session from its own directory only"})
				}
				out.Notes = plan.Notes
			}
			if asJSON {
				return writeJSON(a.out, out)
			}
			return a.printRestored(plan, result, out)
		},
	}
	cmd.Flags().StringVar(&project, "project", "", "restore for resuming in `DIR` in place of the old directory")
	cmd.Flags().StringVar(&configDir, "config-dir", "", "restore into this config folder of Claude Code, `DIR` (like ~/.claude)")
	cmd.Flags().StringVar(&generation, "generation", "", "generation `N`: a number, an id, or \"latest\"")
	cmd.Flags().BoolVar(&asWas, "as-was", false, "leave out files that were gone when the generation was taken")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be done, do nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, as described above")
	return cmd
}

// chooseGeneration gives the generation that is named, else the latest, unless
// an older line of the session holds more conversation: then the user says
// which.
func (a *app) chooseGeneration(ctx context.Context, d *desk, s *sessions.Session, name string) (*archive.Generation, error) {
	if s.Kept == nil && len(s.Errors) == 0 {
		hint := "it never reached the archive: \"session-keeper doctor\" tells why"
		if s.Live != nil {
			hint = "Claude Code still has it: claude --resume " + s.ID
		}
		return nil, fail(exitNotFound, fmt.Errorf("session %s is not in the archive", s.ID), hint)
	}
	if s.Kept == nil {
		return nil, fail(exitDamaged, fmt.Errorf("session %s cannot be read from the archive: %w", s.ID, errors.Join(s.Errors...)),
			fmt.Sprintf("session-keeper verify %s tells what is damaged", s.ID))
	}
	latest, h, err := d.generation(ctx, s, name)
	if err != nil {
		return nil, err
	}
	for _, p := range h.Problems {
		a.say("warning", oneLine(fmt.Sprintf("a generation of this session cannot be read: %s: %v", p.Manifest, p.Err)))
	}
	if name != "" {
		return latest, nil
	}
	longer, err := d.longerLineages(ctx, s, h, latest)
	if err != nil || len(longer) == 0 {
		return latest, err
	}
	choices := append([]lineageTip{{latest, longer[0].latest, 0}}, longer...)
	var b strings.Builder
	fmt.Fprintf(&b, "the newest generation of session %s holds less of the conversation than older ones:", s.ID)
	for _, c := range choices {
		fmt.Fprintf(&b, "\n  --generation %s  taken %s, %s, %s", generationName(h, c.generation), c.generation.Taken.Local().Format("2006-01-02 15:04"),
			plural(int(c.messages), "message"), byteSize(transcriptSize(c.generation)))
	}
	if !a.interactive {
		return nil, fail(exitNotFound, errors.New(b.String()), "choose one with --generation")
	}
	answer, err := a.ask(ctx, fmt.Sprintf("%s\nWhich one? [1-%d, empty for none] ", plainText(b.String()), len(choices)))
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(answer)
	if err != nil || n < 1 || n > len(choices) {
		return nil, failf(exitNotFound, "nothing was restored")
	}
	return choices[n-1].generation, nil
}

// lineageTip is the last generation of a lineage.
type lineageTip struct {
	generation *archive.Generation
	messages   int64
	latest     int64 // messages of the latest generation
}

// longerLineages gives the tips of other lineages with more messages than the
// latest generation has.
func (d *desk) longerLineages(ctx context.Context, s *sessions.Session, h *archive.History, latest *archive.Generation) ([]lineageTip, error) {
	lineages := h.Lineages()
	if len(lineages) < 2 {
		return nil, nil
	}
	facts, err := d.facts(ctx, s, latest)
	if err != nil {
		if errors.Is(err, archive.ErrDamaged) {
			return nil, nil // told when its files are checked
		}
		return nil, fmt.Errorf("read the latest generation: %w", err)
	}
	have := sessions.Messages(facts)
	var longer []lineageTip
	for _, l := range lineages {
		if l.ID == latest.Lineage || len(l.Generations) == 0 {
			continue
		}
		tip := l.Generations[len(l.Generations)-1]
		facts, err := sessions.KeptFacts(ctx, d.store, tip)
		if errors.Is(err, archive.ErrDamaged) {
			continue // no choice to offer
		}
		if err != nil {
			return nil, fmt.Errorf("read generation %d: %w", tip.Number, err)
		}
		if n := sessions.Messages(facts); n > have {
			longer = append(longer, lineageTip{tip, n, have})
		}
	}
	return longer, nil
}

// generationName is the shortest name that means one generation.
func generationName(h *archive.History, g *archive.Generation) string {
	name := strconv.Itoa(g.Number)
	if found, err := h.Find(name); err == nil && found.Hash == g.Hash {
		return name
	}
	return g.Hash[:min(12, len(g.Hash))]
}

func transcriptSize(g *archive.Generation) int64 {
	if f := sessions.KeptTranscript(g); f != nil {
		return f.Size
	}
	return 0
}

// restoreTo is where the user wants a session; "" is for what is found.
type restoreTo struct {
	project   string // the directory to resume in
	configDir string // the client's config folder
}

func (a *app) restoreRequest(ctx context.Context, d *desk, s *sessions.Session, g *archive.Generation, to restoreTo, asWas bool) (restore.Request, error) {
	r := restore.Request{
		SessionID:      s.ID,
		ProjectDirName: a.projectDirName(d.settings.ProjectDirName),
		Folder:         g.Project.Folder,
		AsWas:          asWas,
		Now:            a.now(),
		Home:           a.env.Home,
		GOOS:           a.env.GOOS,
	}
	if to.configDir != "" {
		r.ConfigDir = a.absolute(to.configDir)
		if fi, err := os.Stat(r.ConfigDir); err != nil || !fi.IsDir() {
			return r, fail(exitUsage, fmt.Errorf("no such folder: %s", oneLine(to.configDir)), "--config-dir names a folder like ~/.claude; for the directory to resume in, give --project")
		}
	} else if r.ConfigDir = chooseConfigDir(d, s, g.Project.Folder); r.ConfigDir == "" {
		return r, errors.New("no config folder of Claude Code is known")
	}
	if to.project != "" {
		r.Project = a.absolute(to.project)
	}
	// What the records say comes first: an event's cwd follows each cd.
	facts, err := d.facts(ctx, s, g)
	if err != nil && !errors.Is(err, archive.ErrDamaged) {
		return r, fmt.Errorf("read the archived transcript: %w", err)
	}
	for _, dir := range []string{facts.RelocatedCwd, facts.FirstCwd, facts.LastCwd, g.Project.Cwd} {
		if dir != "" {
			r.Cwds = append(r.Cwds, dir)
		}
	}
	cwd := r.Project
	if cwd == "" && len(r.Cwds) > 0 {
		cwd = r.Cwds[0]
	}
	r.Retention = time.Duration(d.catalog.Retention(r.ConfigDir, cwd)) * 24 * time.Hour
	for _, f := range g.Files {
		r.Items = append(r.Items, restore.Item{
			Family: f.Family, Path: f.Path, Size: f.Size, SHA256: f.SHA256, Mode: f.Mode, ModTime: f.ModTime, Gone: f.Gone,
			Open: func() (io.ReadCloser, error) { return d.store.OpenFile(g, f) },
		})
	}
	return r, nil
}

// absolute completes a path that the user typed.
func (a *app) absolute(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.env.Dir, path)
	}
	return filepath.Clean(path)
}

// chooseConfigDir gives the client's config folder that a session belongs in: the
// one with a trace of it, else the only one with its project's folder, else the
// first; "" if none is known.
func chooseConfigDir(d *desk, s *sessions.Session, folder string) string {
	switch {
	case s.Live != nil:
		return s.Live.ConfigDir
	case s.Traces != nil:
		return s.Traces.ConfigDir
	case len(d.settings.ClientDirs) == 0:
		return ""
	}
	var with []string
	for _, dir := range d.settings.ClientDirs {
		if folder == "" || folder != filepath.Base(folder) {
			break
		}
		if fi, err := os.Stat(filepath.Join(dir, "projects", folder)); err == nil && fi.IsDir() {
			with = append(with, dir)
		}
	}
	if len(with) == 1 {
		return with[0]
	}
	return d.settings.ClientDirs[0]
}

// noteConfigDir says that a config folder was chosen where nothing of the
// session tells in which it was.
func (a *app) noteConfigDir(p *restore.Plan, d *desk, s *sessions.Session) {
	if s.Live != nil || s.Traces != nil {
		return
	}
	var others []string
	for _, dir := range d.settings.ClientDirs {
		if _, err := os.Stat(dir); err == nil && !samePath(dir, p.ConfigDir) {
			others = append(others, a.tilde(dir))
		}
	}
	if len(others) > 0 {
		p.Notes = append(p.Notes, restore.Note{Code: "config-dir-chosen", Text: fmt.Sprintf(
			"the archive does not know which of Claude Code's folders this session was in: taken is %s; restore --config-dir DIR takes another one (%s)",
			a.tilde(p.ConfigDir), strings.Join(others, ", "))})
	}
}

// addNotes adds what the plan cannot know.
func addNotes(p *restore.Plan, s *sessions.Session, g *archive.Generation, r restore.Request) {
	for _, f := range g.LeftOut {
		p.Notes = append(p.Notes, restore.Note{Code: "not-archived", Text: fmt.Sprintf("%s/%s (%s) was never archived: %s", f.Family, f.Path, byteSize(f.Size), f.Why)})
	}
	if p.Transcript == nil {
		return
	}
	if s.Kind == sessions.Print {
		p.Notes = append(p.Notes, restore.Note{Code: "hidden-in-picker", Text: "Claude Code's picker hides sessions of print mode and the SDK; claude --resume with the id finds it"})
	}
	const short = 7 * 24 * time.Hour
	if r.Retention > 0 && r.Retention <= short {
		p.Notes = append(p.Notes, restore.Note{Code: "short-retention", Text: fmt.Sprintf("Claude Code is set to delete sessions after %s without use", plural(int(r.Retention/(24*time.Hour)), "day"))})
	}
	p.Notes = append(p.Notes, restore.Note{Code: "launch-flags", Text: "resuming does not bring back how claude was started: --mcp-config, --settings, --plugin-dir, --add-dir, the permission mode"})
}

// configEnv is what the resume command needs in its environment to look into
// the config folder; nothing where the client looks there anyway.
func (a *app) configEnv(configDir string) string {
	set := a.getenv("CLAUDE_CONFIG_DIR")
	if set == "" && a.env.Home != "" {
		set = filepath.Join(a.env.Home, ".claude")
	}
	if samePath(set, configDir) {
		return ""
	}
	return "CLAUDE_CONFIG_DIR=" + restore.Quote(configDir)
}

func samePath(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	fa, err := os.Stat(a)
	if err != nil {
		return false
	}
	fb, err := os.Stat(b)
	return err == nil && os.SameFile(fa, fb)
}

func (a *app) applyPlan(ctx context.Context, d *desk, plan *restore.Plan) (*restore.Result, error) {
	state := d.settings.Paths.State
	if err := durable.MkdirAll(state); err != nil {
		return nil, fmt.Errorf("make the state folder: %w", err)
	}
	_, bytes := plan.Writes()
	bar := progress.Bytes(a.errw, isTerminal(a.errw), 2*bytes, "restoring")
	defer bar.Done()
	result, err := restore.Apply(ctx, plan, restore.Options{
		Lock:     filepath.Join(state, "restore.lock"),
		Progress: bar.Add,
		Now:      a.now(),
	})
	if err == nil && !slices.Contains(d.settings.ClientDirs, plan.ConfigDir) {
		// A folder that the user named: from now on it is looked into as well.
		err = config.RememberClientDir(state, plan.ConfigDir)
	}
	return result, err
}

// restoreFailure gives an error of Apply its exit code and says what is left.
func (a *app) restoreFailure(ctx context.Context, d *desk, s *sessions.Session, g *archive.Generation, err error) error {
	var (
		damage   *restore.DamageError
		conflict *restore.ConflictError
	)
	switch {
	case errors.As(err, &damage):
		hints := d.wholeGenerations(ctx, s, g)
		return fail(exitDamaged, fmt.Errorf("restore session %s: %w; nothing was written", s.ID, err),
			append(hints, fmt.Sprintf("session-keeper verify %s tells all that is damaged", s.ID))...)
	case errors.As(err, &conflict):
		return fail(exitRefused, fmt.Errorf("restore session %s: %w", s.ID, err), "run it again when nothing else works on this session")
	case errors.Is(err, restore.ErrBusy):
		return fail(exitFailed, err, "run it again when that is done")
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fail(exitFailed, fmt.Errorf("restore session %s: %w", s.ID, err), "what was placed is whole; run it again to finish")
}

// wholeGenerations names the generations that can be restored in place of a
// damaged one, the newest first.
func (d *desk) wholeGenerations(ctx context.Context, s *sessions.Session, not *archive.Generation) []string {
	const most = 3
	h, err := d.store.History(ctx, s.ID)
	if err != nil {
		return nil
	}
	var hints []string
	for i := len(h.Generations) - 1; i >= 0 && len(hints) < most && ctx.Err() == nil; i-- {
		g := h.Generations[i]
		if g.Hash == not.Hash || !d.whole(ctx, g) {
			continue
		}
		hints = append(hints, fmt.Sprintf("generation %s of %s is whole: session-keeper restore %s --generation %s",
			generationName(h, g), g.Taken.Local().Format("2006-01-02 15:04"), s.ID, generationName(h, g)))
	}
	if len(hints) == 0 {
		hints = append(hints, "no other generation is whole; session-keeper cat "+s.ID+" --file F gives the files that are")
	}
	return hints
}

func (d *desk) whole(ctx context.Context, g *archive.Generation) bool {
	for _, f := range g.Files {
		if copyFile(ctx, io.Discard, sourceFile{f.Family, f.Path, f.Size, func() (io.ReadCloser, error) { return d.store.OpenFile(g, f) }}) != nil {
			return false
		}
	}
	return true
}

func (a *app) refusal(c *restore.ConflictError, s *sessions.Session) error {
	return fail(exitRefused, c,
		"nothing was written",
		fmt.Sprintf("session-keeper cat %s --generation latest prints the archived transcript; move the file that is in the way aside to restore", s.ID))
}

func restoreJSON(p *restore.Plan, g *archive.Generation, c *restore.ConflictError, dryRun bool) restoreOutput {
	out := restoreOutput{
		ID:         p.SessionID,
		Generation: g.Number,
		Folder:     p.ProjectDir,
		Files:      []restoredFile{},
		Conflicts:  []restore.Conflict{},
		Notes:      append([]restore.Note{}, p.Notes...),
		DryRun:     dryRun,
	}
	for _, s := range p.Steps() {
		f := restoredFile{
			Family: s.Item.Family, Path: s.Item.Path, Target: s.Path, Action: string(s.Action), Size: s.Item.Size, ModTime: stamp(s.ModTime), Reason: s.Reason,
		}
		if s.Action == restore.Write {
			f.Mode = fmt.Sprintf("%04o", s.Mode)
		}
		out.Files = append(out.Files, f)
	}
	if c != nil {
		out.Conflicts = c.Conflicts
	}
	return out
}

func (a *app) printPlan(w io.Writer, p *restore.Plan, out restoreOutput) error {
	if _, err := fmt.Fprintf(w, "session %s, generation %d, into %s\n", p.SessionID, out.Generation, a.tilde(oneLine(p.ProjectDir))); err != nil {
		return err
	}
	for _, s := range p.Steps() {
		where := s.Path
		if where == "" {
			where = s.Item.Family + "/" + s.Item.Path
		}
		line := fmt.Sprintf("  %-7s  %s", s.Action, a.tilde(oneLine(where)))
		switch s.Action {
		case restore.Write:
			line += fmt.Sprintf("  (%s, of %s)", byteSize(s.Item.Size), s.ModTime.Local().Format("2006-01-02 15:04"))
		case restore.Skip:
			line += "  (" + oneLine(s.Reason) + ")"
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	files, bytes := p.Writes()
	end := fmt.Sprintf("would write %s, %s; nothing was done", plural(files, "file"), byteSize(bytes))
	if n := len(out.Conflicts); n > 0 {
		end = fmt.Sprintf("would write nothing, because of %s in the way", plural(n, "file"))
	}
	if _, err := fmt.Fprintln(w, end); err != nil {
		return err
	}
	return a.printEnd(w, p, out)
}

func (a *app) printRestored(p *restore.Plan, result *restore.Result, out restoreOutput) error {
	var err error
	if result.Written == 0 {
		_, err = fmt.Fprintf(a.out, "session %s is there already, whole: %s\n", p.SessionID, a.tilde(oneLine(p.ProjectDir)))
	} else {
		_, err = fmt.Fprintf(a.out, "restored session %s, generation %d: %s, %s, into %s\n",
			p.SessionID, out.Generation, plural(result.Written, "file"), byteSize(result.Bytes), a.tilde(oneLine(p.ProjectDir)))
	}
	if err != nil {
		return err
	}
	return a.printEnd(a.out, p, out)
}

func (a *app) printEnd(w io.Writer, p *restore.Plan, out restoreOutput) error {
	for _, n := range out.Notes {
		if _, err := fmt.Fprintf(w, "note: %s\n", oneLine(n.Text)); err != nil {
			return err
		}
	}
	if out.Resume == "" {
		return nil
	}
	command := out.Resume
	if harmless(command, false) != command {
		// A directory's name that would steer the terminal.
		command = "claude --resume " + p.SessionID
	}
	when := "To continue it"
	if out.DryRun {
		when = "To continue it after the restore"
	}
	_, err := fmt.Fprintf(w, "\n%s:\n\n  %s\n", when, a.paint("1", command))
	return err
}
