package main

import (
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/internal/sessions"
	"github.com/session-keeper/session-keeper/transcript"
)

func newShowCmd(a *app) *cobra.Command {
	var (
		generation, around string
		maxChars           int
	)
	cmd := &cobra.Command{
		Use:   "show ID [--generation N] [--around TEXT] [--max-chars N]",
		Short: "Read a session",
		Long: `Print a session as text: prompts and answers, each tool call in one line, prompts
that were queued, and where it was compacted. On a terminal it goes through
$PAGER, else less.
` + sessionHelp + `

All records of the file are shown in their order, those before a compaction and
those of abandoned branches too; what stands there twice is shown once. Control
characters are shown, not sent to the terminal. "session-keeper cat" prints the
exact bytes.

Exit codes: 0; 1 failed; 2 wrong usage; 3 not found or ambiguous; 4 damaged in
the archive.`,
		Example: `  session-keeper show last
  session-keeper show 0192ab --around "retry budget"
  session-keeper show 0192ab --generation 2 --max-chars 20000`,
		Args:              oneArg("ID"),
		ValidArgsFunction: a.completeID(anySession, 1, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			if maxChars < 0 {
				return usagef("--max-chars is negative")
			}
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
			f, err := src.pick("")
			if err != nil {
				return err
			}
			facts := s.Facts
			if src.generation != nil {
				// The facts at hand may be those of a longer live file.
				if facts, err = d.facts(cmd.Context(), s, src.generation); err != nil {
					return damaged(f, err)
				}
			}
			if generation == "" && src.generation != nil {
				if err := a.hintLonger(cmd.Context(), d, s, src.generation); err != nil {
					return err
				}
			}
			r, err := f.open()
			if err != nil {
				return damaged(f, err)
			}
			defer r.Close()
			return a.page(func(w io.Writer) error {
				p := &page{a: a, w: w, left: maxChars, limited: maxChars > 0, around: strings.ToLower(around)}
				if err := p.head(s, src, facts); err != nil {
					return err
				}
				records := transcript.NewReader(r)
				var lost []transcript.Damage
				running := src.generation == nil && s.Is(sessions.Live)
				records.OnDamage = func(d transcript.Damage) {
					if running && d.Kind == transcript.TornTail {
						return // being written
					}
					lost = append(lost, d)
				}
				for records.Next() {
					if err := cmd.Context().Err(); err != nil {
						return err
					}
					if err := p.record(records.Record()); err != nil {
						return err
					}
				}
				if err := records.Err(); err != nil {
					return damaged(f, err)
				}
				for _, q := range p.queue.Waiting() {
					if err := p.say(entry{"you (queued, never sent)", "", q.Text}); err != nil {
						return err
					}
				}
				return p.foot(records.Format(), lost)
			})
		},
	}
	cmd.Flags().StringVar(&generation, "generation", "", "generation `N` of the archive: a number, an id, or \"latest\"")
	cmd.Flags().StringVar(&around, "around", "", "only what contains `TEXT` (in any case), with what stands around it")
	cmd.Flags().IntVar(&maxChars, "max-chars", 0, "stop after `N` characters; 0 for all")
	return cmd
}

// hintLonger says that an older generation holds more of the conversation than
// the one that is shown, or is shown for that reason.
func (a *app) hintLonger(ctx context.Context, d *desk, s *sessions.Session, shown *archive.Generation) error {
	h, err := d.store.History(ctx, s.ID)
	if err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	if shown.Hash != s.Kept.Hash && h.Latest() != nil {
		a.say("hint", fmt.Sprintf("this is generation %s: what is newer holds no message (--generation latest shows it)", generationName(h, shown)))
		return nil
	}
	longer, err := d.longerLineages(ctx, s, h, shown)
	if err != nil {
		return err
	}
	for _, l := range longer {
		a.say("hint", fmt.Sprintf("generation %s of %s holds more of the conversation, %s: --generation %s takes it", generationName(h, l.generation),
			l.generation.Taken.Local().Format("2006-01-02 15:04"), plural(int(l.messages), "message"), generationName(h, l.generation)))
	}
	return nil
}

// contextEntries is how many entries --around shows before and after a match.
const contextEntries = 2

// maxOneLine cuts what is told in one line, in cells.
const maxOneLine = 160

// An entry is one thing that is shown: what somebody said, or a line.
type entry struct {
	who  string // "" for a line without a heading
	when string
	text string
}

// page writes a session's records as text. It keeps no more than a few entries.
type page struct {
	a *app
	w io.Writer

	limited bool
	left    int // characters, if limited
	omitted int // entries, for the limit

	around string  // lower case
	before []entry // the latest entries that were not shown
	after  int     // entries still to show behind a match
	shown  int
	passed bool // entries were left out since the last one shown

	seen     map[uint64]struct{} // hashes of records
	repeated int                 // records that were there before

	queue   transcript.Queue
	speaker string // whose heading was written last
	calls   map[string]string
}

func (p *page) head(s *sessions.Session, src *source, f transcript.Facts) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", p.a.paint("1", oneLine(s.Title())))
	fmt.Fprintf(&b, "session %s\n", s.ID)
	if dir := s.Project(); dir != "" {
		fmt.Fprintf(&b, "in %s", oneLine(dir))
		if branch := sessions.BranchOf(f); branch != "" {
			fmt.Fprintf(&b, ", branch %s", oneLine(branch))
		}
		b.WriteByte('\n')
	}
	if from := s.From(); len(from) > 0 {
		const most = 3
		fmt.Fprintf(&b, "with records of session %s", strings.Join(from[:min(most, len(from))], ", "))
		if n := len(from) - most; n > 0 {
			fmt.Fprintf(&b, " and %d more", n)
		}
		b.WriteByte('\n')
	}
	if !f.First.IsZero() {
		fmt.Fprintf(&b, "%s to %s\n", f.First.Local().Format("2006-01-02 15:04"), f.Last.Local().Format("2006-01-02 15:04"))
	}
	fmt.Fprintf(&b, "%s, %s, %s\n", plural(int(f.Prompts), "prompt"), plural(int(f.Answers), "answer"), plural(int(f.ToolCalls), "tool call"))
	if g := src.generation; g != nil {
		fmt.Fprintf(&b, "generation %d of the archive, taken %s\n", g.Number, g.Taken.Local().Format("2006-01-02 15:04"))
	} else {
		fmt.Fprintf(&b, "live, state: %s\n", s.State)
	}
	_, err := p.put(b.String())
	return err
}

// repeats reports whether a record was there before: one that says the same under
// the same id, whatever its other fields are by now. Writers that overlap leave
// such. It costs some bytes of memory for each record.
func (p *page) repeats(r *transcript.Record) bool {
	if len(r.UUID.Raw()) <= len(`""`) {
		return false
	}
	var h maphash.Hash
	h.SetSeed(repeatSeed)
	for _, v := range []transcript.Value{r.UUID, r.Type, r.Subtype, r.Message, r.Attachment} {
		h.Write(v.Raw())
		h.WriteByte(0)
	}
	key := h.Sum64()
	if _, seen := p.seen[key]; seen {
		return true
	}
	if p.seen == nil {
		p.seen = map[uint64]struct{}{}
	}
	p.seen[key] = struct{}{}
	return false
}

var repeatSeed = maphash.MakeSeed()

// record shows one record, if a reader wants to see it.
func (p *page) record(r *transcript.Record) error {
	p.queue.See(r)
	if p.repeats(r) {
		p.repeated++
		return nil
	}
	when := ""
	if t := r.Time(); !t.IsZero() {
		when = t.Local().Format("2006-01-02 15:04:05")
	}
	agent := ""
	if r.IsSidechain.True() {
		agent = " (agent)"
	}
	switch r.View() {
	case transcript.ViewPrompt:
		return p.say(entry{"you" + agent, when, messageText(r)})
	case transcript.ViewQueued:
		// The note that is made when it is typed comes again, as a record of
		// its own or as an attachment; what never does is told at the end.
		if r.Type.Is("attachment") {
			return p.say(entry{"you (queued while Claude worked)", when, r.Prompt()})
		}
	case transcript.ViewAnswer:
		return p.answer(r, "claude"+agent, when)
	case transcript.ViewToolResult:
		return p.results(r)
	case transcript.ViewCommand:
		return p.say(entry{"", when, "> " + line(messageText(r))})
	case transcript.ViewInterruption:
		return p.say(entry{"", when, "(interrupted by the user)"})
	case transcript.ViewBoundary:
		return p.say(entry{"", when, "──────── compacted here ────────"})
	case transcript.ViewSummary:
		return p.say(entry{"summary of what was compacted", when, messageText(r)})
	}
	return nil
}

// messageText is what a user record says.
func messageText(r *transcript.Record) string {
	m := r.ReadMessage()
	var parts []string
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			parts = append(parts, b.Text)
		case "image", "document":
			parts = append(parts, fmt.Sprintf("[%s %s]", b.Type, b.MediaType))
		}
	}
	return strings.Join(parts, "\n")
}

func (p *page) answer(r *transcript.Record, who, when string) error {
	m := r.ReadMessage()
	for _, b := range m.Content {
		var err error
		switch b.Type {
		case "text":
			err = p.say(entry{who, when, b.Text})
		case "tool_use", "server_tool_use", "mcp_tool_use":
			if p.calls == nil {
				p.calls = map[string]string{}
			}
			p.calls[b.ID] = b.Name
			err = p.say(entry{"", when, line("  * " + b.Name + callText(b.Input))})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// results shows failed tool calls; what went well is told by the answer.
func (p *page) results(r *transcript.Record) error {
	m := r.ReadMessage()
	for _, b := range m.Content {
		if b.Type != "tool_result" {
			continue
		}
		name := p.calls[b.ToolUseID]
		delete(p.calls, b.ToolUseID)
		if !b.IsError {
			continue
		}
		var text []string
		for _, c := range b.Content {
			text = append(text, c.Text)
		}
		if err := p.say(entry{"", "", line("  ! " + name + " failed: " + strings.Join(text, " "))}); err != nil {
			return err
		}
	}
	return nil
}

// line makes one short line of a text.
func line(s string) string {
	indent := len(s) - len(strings.TrimLeft(s, " "))
	return s[:indent] + fit(oneLine(s[indent:]), maxOneLine)
}

// say shows an entry, subject to --around.
func (p *page) say(e entry) error {
	if p.around == "" {
		return p.show(e)
	}
	if strings.Contains(strings.ToLower(e.text), p.around) {
		if p.passed && p.shown > 0 {
			if _, err := p.put("\n        …\n"); err != nil {
				return err
			}
			p.speaker = ""
		}
		p.passed = false
		for _, b := range p.before {
			if err := p.show(b); err != nil {
				return err
			}
		}
		p.before, p.after = nil, contextEntries
		return p.show(e)
	}
	if p.after > 0 {
		p.after--
		return p.show(e)
	}
	p.before = append(p.before, e)
	if len(p.before) > contextEntries {
		p.before, p.passed = p.before[1:], true
	}
	return nil
}

func (p *page) show(e entry) error {
	text := strings.TrimRight(plainText(e.text), "\n ")
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if p.limited && p.left == 0 {
		p.omitted++
		return nil
	}
	p.shown++
	var b strings.Builder
	switch {
	case e.who == "":
		b.WriteString(p.a.paint("2", text) + "\n")
		if !strings.HasPrefix(text, " ") {
			p.speaker = ""
		}
	case e.who == p.speaker && strings.HasPrefix(e.who, "claude"):
		b.WriteString(text + "\n")
	default:
		p.speaker = e.who
		heading := e.who
		if e.when != "" {
			heading += ", " + e.when
		}
		b.WriteString("\n" + p.a.paint("1;36", "── "+heading) + "\n" + text + "\n")
	}
	whole, err := p.put(b.String())
	if !whole {
		p.omitted++
	}
	return err
}

// put writes s as far as the limit lets it, and tells whether that was all.
func (p *page) put(s string) (whole bool, err error) {
	whole = true
	if p.limited {
		n := utf8.RuneCountInString(s)
		if n > p.left {
			s, whole = string([]rune(s)[:p.left]), false
			n = p.left
		}
		p.left -= n
	}
	_, err = io.WriteString(p.w, s)
	return whole, err
}

func (p *page) foot(format transcript.Format, lost []transcript.Damage) error {
	var b strings.Builder
	if format != transcript.FormatLines && format != transcript.FormatEmpty {
		fmt.Fprintf(&b, "\nthis file is no transcript of one JSON record a line: %s\n", format)
	}
	if p.around != "" && p.shown == 0 {
		fmt.Fprintf(&b, "\nnothing contains %q\n", shorten(oneLine(p.around)))
	}
	if p.omitted > 0 {
		fmt.Fprintf(&b, "\n… cut here by --max-chars; %s not shown in full\n", plural(p.omitted, "entry"))
	}
	if p.repeated > 0 {
		fmt.Fprintf(&b, "\n%s in the file more than once, shown once\n", plural(p.repeated, "record"))
	}
	if len(lost) > 0 {
		kinds := map[transcript.Kind]int{}
		var seen []transcript.Kind
		for _, d := range lost {
			if kinds[d.Kind] == 0 {
				seen = append(seen, d.Kind)
			}
			kinds[d.Kind]++
		}
		var parts []string
		for _, k := range seen {
			part := k.String()
			if len(seen) > 1 {
				part = fmt.Sprintf("%s (%d)", k, kinds[k])
			}
			parts = append(parts, part)
		}
		fmt.Fprintf(&b, "\n%s: %s; the first in line %d, at byte %d\n", plural(len(lost), "damaged part"), strings.Join(parts, ", "), lost[0].Line, lost[0].Offset)
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(p.w, p.a.paint("33", strings.TrimRight(b.String(), "\n"))+"\n")
	return err
}
