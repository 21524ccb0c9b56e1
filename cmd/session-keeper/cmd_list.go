package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/session-keeper/session-keeper/internal/progress"
	"github.com/session-keeper/session-keeper/internal/sessions"
	"github.com/session-keeper/session-keeper/transcript"
)

// listedSession is one session in the output of "list --json". Fields are
// only ever added.
type listedSession struct {
	ID          string   `json:"id"`
	Title       string   `json:"title"`
	TitleSource string   `json:"title_source,omitempty"` // where the client would take it from
	Kind        string   `json:"kind"`                   // session, print, agent, empty, husk
	State       string   `json:"state"`                  // the main one
	States      []string `json:"states"`                 // all that hold
	Project     string   `json:"project,omitempty"`      // the directory, as the records have it
	Folder      string   `json:"folder,omitempty"`       // the client's project folder, by name
	Branch      string   `json:"branch,omitempty"`
	First       string   `json:"first,omitempty"` // first message, RFC 3339
	Last        string   `json:"last,omitempty"`  // last message, RFC 3339
	Size        int64    `json:"size"`            // of the transcript, bytes
	Prompts     int64    `json:"prompts"`
	Answers     int64    `json:"answers"`
	ToolCalls   int64    `json:"tool_calls"`
	Compactions int64    `json:"compactions"`
	Damaged     int64    `json:"damaged"` // damaged parts of the transcript
	Models      []string `json:"models,omitempty"`
	Client      string   `json:"client,omitempty"`     // version that wrote last
	Entrypoint  string   `json:"entrypoint,omitempty"` // as the records have it
	Transcript  string   `json:"transcript,omitempty"` // path of the live one
	Copies      []string `json:"copies,omitempty"`     // further live ones of the same id
	Expires     string   `json:"expires,omitempty"`    // when the client may delete it, RFC 3339
	Generation  int      `json:"generation,omitempty"` // number of the latest in the archive
	Taken       string   `json:"taken,omitempty"`      // when that was, RFC 3339
	From        []string `json:"from,omitempty"`       // other sessions whose records are in it
	Errors      []string `json:"errors,omitempty"`     // what could not be read
}

type listOutput struct {
	Sessions []listedSession `json:"sessions"`
	Hidden   struct {
		Print int `json:"print"`
		Agent int `json:"agent"`
		Empty int `json:"empty"`
	} `json:"hidden"`
}

func newListCmd(a *app) *cobra.Command {
	var (
		f       sessions.Filter
		asJSON  bool
		project string
		since   string
		state   string
	)
	cmd := &cobra.Command{
		Use:   "list [--all] [--project DIR] [--state STATE] [--since TIME] [--json]",
		Short: "List sessions, live and archived",
		Long: `List the sessions in Claude Code's folders and in the archive, the one with the
newest message first.

States: live (open in a running client), archived, behind (the archive lacks
bytes of it), expiring (behind, and the client deletes it within a week),
unclean end (its client was killed), source gone (only the archive has it),
lost (traces without a transcript, and no archive), kept out (by your wish).
Sessions of print mode, of agents and without a message are hidden and counted
in the last line; where there is nothing else, print mode is shown.

--json prints {"sessions": [...], "hidden": {"print", "agent", "empty"}}; a
session has id, title, kind, state, states, project, folder, branch, first,
last, size, prompts, answers, tool_calls, compactions, damaged, models, client,
entrypoint, transcript, copies, expires, generation, taken, from, errors.

Exit codes: 0; 1 failed; 2 wrong usage.`,
		Example: `  session-keeper list
  session-keeper list --project . --since 7d
  session-keeper list --state expiring
  session-keeper list --all --json | jq -r '.sessions[].id'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if f.State, err = parseState(state); err != nil {
				return err
			}
			if f.Since, err = parseSince(since, a.now()); err != nil {
				return err
			}
			if project != "" {
				if f.Project, err = realPath(a, project); err != nil {
					return fmt.Errorf("find the project: %w", err)
				}
			}
			if f.Limit < 0 {
				return usagef("--limit is negative")
			}
			d, err := a.openDesk()
			if err != nil {
				return err
			}
			var bar *progress.Bar
			if isTerminal(a.errw) {
				d.catalog.Progress = func(done, total int64) {
					const worthABar = 200
					if bar == nil && total >= worthABar {
						bar = progress.Count(a.errw, true, total, "reading sessions")
					}
					bar.Set(done, total)
				}
			}
			list, err := d.catalog.Load(cmd.Context())
			bar.Done()
			if err != nil {
				return err
			}
			shown, hidden := list.Apply(f)
			a.warnAll(list.Problems)
			for _, s := range list.Skipped {
				a.say("warning", oneLine(s.Path+": "+s.Reason))
			}
			for _, s := range shown {
				a.warnAll(s.Errors)
			}
			if asJSON {
				out := listOutput{Sessions: []listedSession{}}
				for _, s := range shown {
					out.Sessions = append(out.Sessions, listed(s))
				}
				out.Hidden.Print, out.Hidden.Agent, out.Hidden.Empty = hidden.Print, hidden.Agent, hidden.Empty
				return writeJSON(a.out, out)
			}
			return a.printList(a.out, list.Sessions, shown, hidden)
		},
	}
	cmd.Flags().BoolVarP(&f.All, "all", "a", false, "also sessions of print mode, of agents, and without a message")
	cmd.Flags().StringVar(&project, "project", "", "only sessions that ran in `DIR` or below it")
	cmd.Flags().StringVar(&since, "since", "", "only sessions with activity since `TIME`: 36h, 7d, 2w, or a date (2006-01-02)")
	cmd.Flags().StringVar(&state, "state", "", "only sessions in this `STATE`")
	cmd.Flags().StringVar(&f.Branch, "branch", "", "only sessions on this git `BRANCH`")
	cmd.Flags().IntVarP(&f.Limit, "limit", "n", 0, "at most `N` sessions")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, as described above")
	return cmd
}

func listed(s *sessions.Session) listedSession {
	l := listedSession{
		ID:          s.ID,
		Title:       s.Title(),
		TitleSource: string(s.Facts.TitleSource),
		Kind:        string(s.Kind),
		State:       string(s.State),
		States:      []string{},
		Project:     s.Project(),
		Folder:      s.Folder(),
		Branch:      s.Branch(),
		First:       stamp(s.Facts.First),
		Last:        stamp(s.Last),
		Size:        s.Size,
		Prompts:     s.Facts.Prompts,
		Answers:     s.Facts.Answers,
		ToolCalls:   s.Facts.ToolCalls,
		Compactions: s.Facts.Compactions,
		Models:      s.Facts.Models,
		Client:      s.Facts.Version,
		Entrypoint:  s.Facts.Entrypoint,
		Expires:     stamp(s.Expires),
		From:        s.From(),
	}
	for _, state := range s.States {
		l.States = append(l.States, string(state))
	}
	for kind, n := range s.Facts.Damaged {
		if kind == transcript.TornTail && s.Is(sessions.Live) {
			continue // being written
		}
		l.Damaged += n
	}
	if s.Live != nil {
		l.Transcript, l.Copies = s.Live.Transcript, s.Live.Others
	}
	if s.Kept != nil {
		l.Generation, l.Taken = s.Kept.Number, stamp(s.Kept.Taken)
	}
	for _, err := range s.Errors {
		l.Errors = append(l.Errors, err.Error())
	}
	return l
}

// stamp writes a time for programs, nothing for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// The columns of the list.
const (
	colID = iota
	colLast
	colSize
	colState
	colProject
	colTitle
	numCols
)

type listRow [numCols]string

// columnGap stands between two columns.
const columnGap = "  "

func (a *app) printList(w io.Writer, all, shown []*sessions.Session, hidden sessions.Hidden) error {
	columns := a.columns()
	idLen := 36
	if columns > 0 {
		idLen = uniqueLength(all)
	}
	rows := []listRow{{"ID", "LAST", "SIZE", "STATE", "PROJECT", "TITLE"}}
	for _, s := range shown {
		rows = append(rows, a.listRow(s, idLen))
	}
	if len(shown) > 0 {
		widths := listWidths(rows, columns)
		for i, r := range rows {
			var cells []string
			for col, width := range widths {
				if width == 0 {
					continue // no room for this column
				}
				cell := r[col]
				switch col {
				case colSize:
					cell = padLeft(cell, width)
				case colProject:
					cell = pad(fitTail(cell, width), width)
				case colTitle:
					cell = fit(cell, width)
				default:
					cell = pad(fit(cell, width), width)
				}
				if i > 0 && col == colState {
					cell = a.paintState(cell, shown[i-1].State)
				}
				cells = append(cells, cell)
			}
			line := strings.TrimRight(strings.Join(cells, columnGap), " ")
			if i == 0 {
				line = a.paint("1", line)
			}
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintln(w, listEnd(len(shown), hidden))
	return err
}

func (a *app) listRow(s *sessions.Session, idLen int) listRow {
	where := a.tilde(oneLine(s.Project()))
	if where == "" {
		where = "-"
	}
	if b := oneLine(s.Branch()); b != "" && b != "HEAD" {
		where += " (" + b + ")"
	}
	state := string(s.State)
	if s.Kind == sessions.Print || s.Kind == sessions.Agent || s.Kind == sessions.Empty {
		state += ", " + string(s.Kind)
	}
	if s.State == sessions.Live && s.Is(sessions.Behind) {
		state += ", behind"
	}
	if s.Live != nil && len(s.Live.Others) > 0 {
		// The client may find none of them from elsewhere.
		state += fmt.Sprintf(", %d copies", 1+len(s.Live.Others))
	}
	return listRow{s.ID[:min(idLen, len(s.ID))], ago(s.Last, a.now()), byteSize(s.Size), state, where, oneLine(s.Title())}
}

// listWidths gives the columns' widths in cells. On a terminal of so many
// columns (0: no terminal) the title and the project share what is left; where
// that is too little, the project goes, then the size, then the time.
func listWidths(rows []listRow, columns int) [numCols]int {
	const minTitle = 12
	var widths [numCols]int
	for _, r := range rows {
		for col, cell := range r {
			widths[col] = max(widths[col], width(cell))
		}
	}
	if columns <= 0 {
		return widths
	}
	free := func() int { // for title and project
		left := columns
		for _, col := range []int{colID, colLast, colSize, colState} {
			if widths[col] > 0 {
				left -= widths[col] + len(columnGap)
			}
		}
		return left
	}
	left := free()
	if left >= 2*minTitle+len(columnGap) {
		left -= len(columnGap)
		widths[colProject] = min(widths[colProject], max(left/2, left-widths[colTitle]))
		widths[colTitle] = min(widths[colTitle], left-widths[colProject])
		return widths
	}
	widths[colProject] = 0
	for _, col := range []int{colSize, colLast} {
		if free() < minTitle {
			widths[col] = 0
		}
	}
	widths[colTitle] = max(min(widths[colTitle], free()), 1)
	return widths
}

func (a *app) paintState(s string, state sessions.State) string {
	switch state {
	case sessions.Lost, sessions.Expiring:
		return a.paint("31", s)
	case sessions.Behind, sessions.Unclean:
		return a.paint("33", s)
	case sessions.Live, sessions.Archived:
		return a.paint("32", s)
	}
	return a.paint("2", s)
}

func listEnd(shown int, h sessions.Hidden) string {
	end := plural(shown, "session")
	if shown == 0 {
		end = "no sessions"
	}
	var hidden []string
	for _, x := range []struct {
		n    int
		what string
	}{{h.Print, "of print mode"}, {h.Agent, "of agents"}, {h.Empty, "empty"}} {
		if x.n > 0 {
			hidden = append(hidden, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	if len(hidden) > 0 {
		end += "; hidden: " + strings.Join(hidden, ", ") + " (--all shows them)"
	}
	return end
}

// fitTail cuts like fit, but keeps the end, which tells paths apart.
func fitTail(s string, cells int) string {
	if width(s) <= cells || cells <= 1 {
		return fit(s, cells)
	}
	runes := []rune(s)
	for len(runes) > 0 && width(string(runes)) > cells-1 {
		runes = runes[1:]
	}
	return "…" + string(runes)
}

// uniqueLength is how much of the ids tells them all apart, at least 8
// characters.
func uniqueLength(list []*sessions.Session) int {
	n := 8
	seen := map[string]bool{}
	for _, s := range list {
		for n < len(s.ID) && seen[s.ID[:n]] {
			n++
			seen = map[string]bool{}
			for _, t := range list {
				if t == s {
					break
				}
				seen[t.ID[:min(n, len(t.ID))]] = true
			}
		}
		seen[s.ID[:min(n, len(s.ID))]] = true
	}
	return n
}

func parseState(s string) (sessions.State, error) {
	if s == "" {
		return "", nil
	}
	var names []string
	for _, state := range sessions.States() {
		if strings.EqualFold(s, string(state)) || strings.EqualFold(s, strings.ReplaceAll(string(state), " ", "-")) {
			return state, nil
		}
		names = append(names, strings.ReplaceAll(string(state), " ", "-"))
	}
	return "", usagef("unknown state %q: there are %s", shorten(s), strings.Join(names, ", "))
}

// parseSince reads a time: a date, a full time, or how long ago.
func parseSince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for unit, days := range map[string]int{"d": 1, "w": 7} {
		if n, err := strconv.Atoi(strings.TrimSuffix(s, unit)); err == nil && strings.HasSuffix(s, unit) && n >= 0 && n < 100_000 {
			return now.AddDate(0, 0, -n*days), nil
		}
	}
	return time.Time{}, usagef("not a time: %q; give 36h, 7d, 2w, or a date like 2006-01-02", shorten(s))
}

// realPath gives a directory the way the records name it.
func realPath(a *app, dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(a.env.Dir, dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		// It may be gone; its sessions are still of interest.
		return filepath.Clean(dir), nil
	}
	return real, nil
}
