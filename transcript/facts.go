package transcript

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxTitle       = 200     // characters, the client's own limit for a name
	maxPrompt      = 2 << 10 // bytes of the first prompt that are kept
	maxDamage      = 100     // damaged parts that are kept one by one
	maxNames       = 64      // of slugs, session ids, models
	maxTypes       = 256     // record types counted apart
	checkEvery     = 64      // records between two looks at the context
	untitled       = "(session)"
	otherType      = "(other)"
	withoutType    = "(none)"
	typeCostState  = "cost-state"
	firstCostState = "2.1.332" // oldest client that was seen to write cost-state
)

// A TitleSource says where a session's title comes from.
type TitleSource string

// Sources of a title, in the client's order of precedence.
const (
	TitleCustom      TitleSource = "custom-title"
	TitleSidecar     TitleSource = "custom-title.json"
	TitleAI          TitleSource = "ai-title"
	TitleSummary     TitleSource = "summary"
	TitleLastPrompt  TitleSource = "last-prompt"
	TitleFirstPrompt TitleSource = "first-prompt"
	TitleNone        TitleSource = ""
)

// An End says how a transcript ends.
type End uint8

// Ends.
const (
	EndUnknown End = iota // no message, or written by a client that leaves no mark
	EndClean              // the client closed its books behind the last message
	EndOpen               // it did not: it was killed, or still runs
	EndTool               // the last turn has a tool call without a result
	EndTorn               // the last record is cut off
)

// String names the end in a few words.
func (e End) String() string {
	switch e {
	case EndUnknown:
		return "unknown"
	case EndClean:
		return "clean"
	case EndOpen:
		return "no clean end"
	case EndTool:
		return "interrupted tool call"
	case EndTorn:
		return "cut-off last record"
	}
	return fmt.Sprintf("end %d", uint8(e))
}

// Facts are what one pass over a transcript tells about its session. They are read
// from what stands in the records, never from the names of folders, and they count
// all branches of the conversation.
type Facts struct {
	Title       string // one line of at most 200 characters; "(session)" where the client says so
	TitleSource TitleSource
	FirstPrompt string // the first that a person typed, as it stands, cut to 2 KiB
	PromptCut   bool   // FirstPrompt is shorter than what was typed

	FirstCwd, LastCwd       string
	RelocatedCwd            string // of the last relocated record: a worktree was entered
	FirstBranch, LastBranch string
	Version                 string // of the client that wrote last
	Entrypoint              string // the first one found: it decides whether the client's picker shows the session
	Models                  []string
	LastModel               string    // never Synthetic
	First, Last             time.Time // of messages, not of bookkeeping; zero if there are none

	Bytes       int64
	Lines       int64            // physical lines
	Records     int64            // records that could be read, recovered ones included
	Types       map[string]int64 // how many of each type
	Prompts     int64            // typed by a person; each once, however often it is in the file
	Queued      int64            // prompts typed while the model worked that have no user record
	Answers     int64            // messages of the model, each once
	ToolCalls   int64
	Compactions int64
	Usage       Usage // each message of the model once, with its highest numbers

	Format  Format
	Damaged map[Kind]int64 // damaged parts by kind, nil if there are none
	Damage  []Damage       // the first hundred of them

	Slugs      []string // name the session's plans
	TeamName   string
	SessionIDs []string // named in records, in order of appearance
	Sidechain  bool     // there are messages, all of them of subagents
	Empty      bool     // there is no message at all: nothing to resume
	Unspaced   bool     // a record says "type":"user" or "type":"assistant" without a space, which resuming from another folder needs
	LastType   string   // type of the last record
	End        End
}

// Agent reports whether the session is one of a subagent or of an agent team, which
// the client's picker hides.
func (f *Facts) Agent() bool { return f.Sidechain || f.TeamName != "" }

// ReadFacts reads a transcript to its end. sidecarTitle is the title that the side
// folder's custom-title.json gives, "" if none. With an error the facts are those of
// what was read before it. Damage is no error.
//
// Memory does not grow with the size of records; it grows by a few bytes for each
// message and tool call.
func ReadFacts(ctx context.Context, r io.Reader, sidecarTitle string) (Facts, error) {
	g := gatherer{
		seed:    maphash.MakeSeed(),
		seen:    make(map[uint64]struct{}),
		answers: make(map[uint64]answer),
		tools:   make(map[uint64]struct{}),
		pending: make(map[uint64]struct{}),
	}
	g.f.Types = make(map[string]int64)
	rd := NewReader(r)
	rd.OnDamage = func(d Damage) {
		if len(g.f.Damage) < maxDamage {
			g.f.Damage = append(g.f.Damage, d)
		}
	}
	err := ctx.Err()
	for n := 1; err == nil && rd.Next(); n++ {
		g.record(rd.Record())
		if n%checkEvery == 0 {
			err = ctx.Err()
		}
	}
	if err == nil {
		err = rd.Err()
	}
	g.finish(rd, sidecarTitle)
	return g.f, err
}

// A gatherer collects facts record by record.
type gatherer struct {
	f     Facts
	seed  maphash.Seed
	queue Queue

	cwd, branch, version, kind latest

	custom, ai, last string
	summaries        []summary
	uuids            []uint64            // of all records that have one
	seen             map[uint64]struct{} // uuids of prompts, boundaries, attachments
	answers          map[uint64]answer
	tools            map[uint64]struct{} // all tool calls
	pending          map[uint64]struct{} // calls of the last answer without a result
	pendingOf        uint64              // that answer

	main, side span
	prompt     bool // the first prompt was found
	image      bool // and has no text
	sidePrompt bool
	closed     bool // the books are closed behind the last message
	costs      bool // a cost-state record was seen
}

// latest is a string value that rarely changes from record to record.
type latest struct {
	raw  []byte
	text string
}

// set takes v if it is a string and reports whether it changed something.
func (l *latest) set(v Value) bool {
	if !v.IsText() || bytes.Equal(l.raw, v.raw) {
		return false
	}
	l.raw = append(l.raw[:0], v.raw...)
	l.text = v.String()
	return true
}

type summary struct {
	text string
	leaf uint64
}

type answer struct {
	usage Usage
	real  bool // of the main line and by a model
}

// span is a range of time.
type span struct {
	any         bool
	first, last time.Time
}

func (s *span) add(t time.Time) {
	if t.IsZero() {
		return
	}
	if s.first.IsZero() || t.Before(s.first) {
		s.first = t
	}
	if t.After(s.last) {
		s.last = t
	}
}

func (g *gatherer) hash(v Value) uint64 {
	if in := v.raw; v.IsText() && bytes.IndexByte(in, '\\') < 0 {
		return maphash.Bytes(g.seed, in[1:len(in)-1])
	}
	return maphash.String(g.seed, v.String())
}

// once reports whether a record with this uuid comes for the first time: the client
// writes some again, and a file may be its own copy. Without one it always does.
func (g *gatherer) once(uuid Value) bool {
	if !uuid.IsText() {
		return true
	}
	h := g.hash(uuid)
	if _, ok := g.seen[h]; ok {
		return false
	}
	g.seen[h] = struct{}{}
	return true
}

func (g *gatherer) record(r *Record) {
	f := &g.f
	f.Records++
	g.kind.set(r.Type)
	name := g.kind.text
	if !r.Type.IsText() {
		name = withoutType
	}
	f.LastType = name
	if _, ok := f.Types[name]; !ok && len(f.Types) >= maxTypes {
		name = otherType
	}
	f.Types[name]++

	f.SessionIDs = addName(f.SessionIDs, r.SessionID)
	f.Slugs = addName(f.Slugs, r.Slug)
	if f.TeamName == "" {
		f.TeamName = r.TeamName.String()
	}
	if f.Entrypoint == "" {
		f.Entrypoint = r.Entrypoint.String()
	}
	if g.cwd.set(r.Cwd) && f.FirstCwd == "" {
		f.FirstCwd = g.cwd.text
	}
	if g.branch.set(r.GitBranch) && f.FirstBranch == "" {
		f.FirstBranch = g.branch.text
	}
	g.version.set(r.Version)
	if r.UUID.IsText() {
		g.uuids = append(g.uuids, g.hash(r.UUID))
	}
	if !f.Unspaced {
		f.Unspaced = bytes.Contains(r.Raw, []byte(`"type":"user"`)) ||
			bytes.Contains(r.Raw, []byte(`"type":"assistant"`))
	}

	switch f.LastType {
	case "user":
		g.user(r)
	case "assistant":
		g.assistant(r)
	case "attachment":
		g.closed = false
		if v, text := r.view(); v == ViewQueued && !r.IsSidechain.True() && g.once(r.UUID) {
			g.queue.see(r, v, text)
		}
	case "queue-operation":
		g.closed = false
		if v, text := r.view(); v == ViewQueued {
			g.queue.see(r, v, text)
		}
	case "system":
		if r.Subtype.Is("compact_boundary") && !r.IsSidechain.True() && g.once(r.UUID) {
			f.Compactions++
		}
	case "custom-title":
		setText(&g.custom, r.CustomTitle)
	case "ai-title":
		setText(&g.ai, r.AITitle)
	case "last-prompt":
		setText(&g.last, r.LastPrompt)
	case "summary":
		if s := oneLine(r.Summary, maxTitle); s != "" && r.LeafUUID.IsText() {
			g.summaries = append(g.summaries, summary{s, g.hash(r.LeafUUID)})
			if len(g.summaries) > maxNames {
				g.summaries = g.summaries[1:]
			}
		}
	case "relocated":
		if r.RelocatedCwd.IsText() {
			f.RelocatedCwd = r.RelocatedCwd.String()
		}
	case typeCostState:
		g.closed, g.costs = true, true
	}
}

// setText takes a title unless it is blank: the client never writes an empty one.
func setText(to *string, v Value) {
	if s := oneLine(v, maxTitle); s != "" {
		*to = s
	}
}

// message takes note of a message and returns whether it is of the main line.
func (g *gatherer) message(r *Record) bool {
	s := &g.main
	main := !r.IsSidechain.True()
	if !main {
		s = &g.side
	}
	s.any = true
	s.add(timeOf(r.Timestamp))
	if main {
		g.closed = false
	}
	return main
}

func (g *gatherer) user(r *Record) {
	f := &g.f
	main := g.message(r)
	content := r.Message.Member("content")
	view, text, what := r.userViewOf(content)
	switch view {
	case ViewToolResult:
		if main {
			g.results(content, what)
		}
	case ViewInterruption:
		clear(g.pending)
	case ViewPrompt:
		if !main {
			if !g.prompt && !g.sidePrompt {
				g.sidePrompt = true
				f.FirstPrompt, f.PromptCut = cutPrompt(text)
			}
			return
		}
		clear(g.pending)
		g.queue.see(r, view, text)
		if !g.prompt {
			g.prompt = true
			f.FirstPrompt, f.PromptCut = cutPrompt(text)
			g.image = f.FirstPrompt == ""
		}
		if g.once(r.UUID) {
			f.Prompts++
		}
	}
}

// cutPrompt decodes no more than is shown.
func cutPrompt(text Value) (string, bool) {
	s, all := text.prefix(maxPrompt)
	return strings.TrimSpace(s), !all
}

// results takes the calls that a user record answers off the pending ones.
func (g *gatherer) results(content Value, what found) {
	if len(g.pending) == 0 {
		return
	}
	if what.results == 1 {
		delete(g.pending, g.hash(what.call))
		return
	}
	var p blockParts
	p.each(content, func([]byte) bool {
		if p.toolUseID.IsText() {
			delete(g.pending, g.hash(p.toolUseID))
		}
		return true
	})
}

func (g *gatherer) assistant(r *Record) {
	f := &g.f
	main := g.message(r)
	m := r.message()

	// One message comes as several records, one for each block, and again in copies:
	// each repeats the usage, the early ones with less of it.
	id := m.id
	if !id.IsText() {
		id = r.RequestID
	}
	if !id.IsText() {
		id = r.UUID
	}
	key := g.hash(id)
	if !id.IsText() {
		key += uint64(f.Records)
	}
	a := g.answers[key]
	synthetic := m.model.Is(Synthetic)
	if main && !synthetic {
		a.real = true
	}
	var u Usage
	u.read(m.usage)
	a.usage.Input = max(a.usage.Input, u.Input)
	a.usage.Output = max(a.usage.Output, u.Output)
	a.usage.CacheWrite = max(a.usage.CacheWrite, u.CacheWrite)
	a.usage.CacheRead = max(a.usage.CacheRead, u.CacheRead)
	g.answers[key] = a
	if !synthetic && m.model.IsText() && !m.model.Is("") {
		f.Models = addName(f.Models, m.model)
		if main && !m.model.Is(f.LastModel) {
			f.LastModel = m.model.String()
		}
	}
	if !main {
		return
	}
	if key != g.pendingOf {
		clear(g.pending)
		g.pendingOf = key
	}
	// Most messages have no call. The name of one may be written with escapes.
	if raw := m.content.raw; !bytes.Contains(raw, []byte("tool_use")) && !bytes.Contains(raw, []byte(`\u00`)) {
		return
	}
	var p blockParts
	p.each(m.content, func([]byte) bool {
		client := p.kind.Is("tool_use")
		if !client && !p.kind.Is("server_tool_use") && !p.kind.Is("mcp_tool_use") {
			return true
		}
		h := g.hash(p.id)
		if _, ok := g.tools[h]; !ok || !p.id.IsText() {
			f.ToolCalls++
			g.tools[h] = struct{}{}
			if client {
				g.pending[h] = struct{}{}
			}
		}
		return true
	})
}

func (g *gatherer) finish(rd *Reader, sidecar string) {
	f := &g.f
	f.Bytes = rd.s.next
	f.Lines, _ = rd.Lines()
	f.Format = rd.Format()
	for _, k := range Kinds() {
		if n := rd.Damaged(k); n > 0 {
			if f.Damaged == nil {
				f.Damaged = make(map[Kind]int64)
			}
			f.Damaged[k] = n
		}
	}
	f.LastCwd, f.LastBranch, f.Version = g.cwd.text, g.branch.text, g.version.text
	times := g.main
	if !times.any {
		times = g.side
	}
	f.First, f.Last = times.first, times.last
	f.Sidechain = g.side.any && !g.main.any
	f.Empty = !g.side.any && !g.main.any
	f.Queued = g.queue.Len()
	for _, a := range g.answers {
		if a.real {
			f.Answers++
		}
		f.Usage.Input += a.usage.Input
		f.Usage.Output += a.usage.Output
		f.Usage.CacheWrite += a.usage.CacheWrite
		f.Usage.CacheRead += a.usage.CacheRead
	}
	g.title(sidecar)
	switch {
	case f.Damaged[TornTail] > 0:
		f.End = EndTorn
	case len(g.pending) > 0:
		f.End = EndTool
	case !g.main.any:
		f.End = EndUnknown
	case g.closed:
		f.End = EndClean
	case g.costs || !olderThan(f.Version, firstCostState):
		f.End = EndOpen
	}
}

// title chooses the title in the client's order. A summary counts only if the record
// that it sums up is in this file: those of other sessions are written here too.
func (g *gatherer) title(sidecar string) {
	f := &g.f
	set := func(title string, from TitleSource) bool {
		if title == "" || f.Title != "" {
			return f.Title != ""
		}
		f.Title, f.TitleSource = title, from
		return true
	}
	if set(g.custom, TitleCustom) || set(cleanLine(sidecar, maxTitle), TitleSidecar) || set(g.ai, TitleAI) {
		return
	}
	for i := len(g.summaries) - 1; i >= 0; i-- {
		if slices.Contains(g.uuids, g.summaries[i].leaf) && set(g.summaries[i].text, TitleSummary) {
			return
		}
	}
	if viewOfText(g.last) == ViewPrompt && !startsWithTag(g.last) && set(g.last, TitleLastPrompt) {
		return
	}
	if f.FirstPrompt != "" && !startsWithTag(f.FirstPrompt) {
		set(cleanLine(f.FirstPrompt, maxTitle), TitleFirstPrompt)
	}
	if f.Title == "" {
		f.Title, f.TitleSource = untitled, TitleNone
	}
}

// startsWithTag reports whether the client would show "(session)" for this prompt.
func startsWithTag(s string) bool {
	s = strings.TrimSpace(s)
	return len(s) > 1 && s[0] == '<' && (s[1] == '/' || unicode.IsLetter(rune(s[1])))
}

// addName adds a string value to a list of distinct ones.
func addName(names []string, v Value) []string {
	if !v.IsText() || len(names) >= maxNames {
		return names
	}
	for _, n := range names {
		if v.Is(n) {
			return names
		}
	}
	if s := v.String(); s != "" {
		return append(names, s)
	}
	return names
}

// oneLine decodes what a title of max characters needs, as cleanLine leaves it.
func oneLine(v Value, max int) string {
	s, _ := v.prefix(8 * max)
	return cleanLine(s, max)
}

// cleanLine puts text on one line of at most max characters: white space and control
// characters become single spaces, so that no title can speak to a terminal.
func cleanLine(s string, max int) string {
	var b strings.Builder
	n, gap := 0, false
	for _, r := range s {
		if unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			gap = n > 0
			continue
		}
		if gap {
			b.WriteByte(' ')
			n++
			gap = false
		}
		if n >= max {
			out := b.String()
			_, last := utf8.DecodeLastRuneInString(out)
			return strings.TrimRight(out[:len(out)-last], " ") + "…"
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// timeOf reads a timestamp, the zero time if it is none.
func timeOf(v Value) time.Time {
	if !v.IsText() {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, v.String())
	if err != nil {
		return time.Time{}
	}
	return t
}

// Time returns the record's timestamp, the zero time if it has none or no valid one.
func (f *Fields) Time() time.Time { return timeOf(f.Timestamp) }

// olderThan compares versions number by number. One that cannot be read is old.
func olderThan(version, than string) bool {
	a, b := strings.Split(version, "."), strings.Split(than, ".")
	for i := range b {
		if i >= len(a) {
			return true
		}
		x, err := strconv.Atoi(a[i])
		if err != nil {
			return true
		}
		y, err := strconv.Atoi(b[i])
		if err != nil || x != y {
			return x < y
		}
	}
	return false
}
