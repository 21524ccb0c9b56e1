package digest

import (
	"sort"
	"strings"

	"github.com/session-keeper/session-keeper/transcript"
)

const (
	maxPrompts    = 64    // requests that are kept besides the first
	maxPromptSize = 6_000 // units kept of each: more than is ever shown
	maxSaid       = 4_000 // units kept of what the assistant said
	maxQueued     = 4_000 // bytes, about as many as transcript.Queue keeps
	maxAnswer     = 500   // units kept of the answer to a request
)

// A request is something that the user asked for.
type request struct {
	text    string // quotable
	answer  string // one line of what the assistant said last about it, quotable
	line    int64
	command bool // a slash command or a shell line
	minor   bool // a command that is about the client, not about the work
	stopped bool // the user interrupted the work on it
}

// A gathering is what is kept of a transcript.
type gathering struct {
	chain *chain
	queue transcript.Queue

	first    *request   // the very first one, once it is no longer among recent
	recent   []*request // the last ones, oldest first
	requests int        // all
	asked    int        // of them those about the work
	left     int        // requests on branches that were left
	answered bool       // the assistant said or did something since the last request

	said     []string // last texts of the assistant, oldest first, quotable
	message  string   // id of the last live message of the assistant
	decided  []decision
	board    board
	plan     plan
	files    files
	commands commands
	calls    map[string]*call // without a result so far
	order    int              // of calls
}

// A decision is an answer of the user's inside the work: to a question, or a
// refusal of a tool.
type decision struct {
	about string // quotable
	words string // quotable, "" for a refusal without words
	no    bool
}

func newGathering(c *chain) *gathering {
	return &gathering{chain: c, calls: make(map[string]*call), commands: commands{seed: c.seed}}
}

func (g *gathering) add(r *transcript.Record) {
	switch {
	case r.Type.Is("assistant"):
		g.assistant(r)
	case r.Type.Is("user"):
		g.user(r)
	case r.Type.Is("attachment"), r.Type.Is("queue-operation"):
		if r.View() != transcript.ViewQueued || r.IsSidechain.True() {
			return
		}
		g.queue.See(r)
		if !r.Type.Is("attachment") {
			return // told when it is delivered, or at the end
		}
		if tells, left := g.chain.tells(r); tells {
			g.ask(&request{text: quoteRequest(r.Prompt()), line: r.Line})
		} else if left {
			g.left++
		}
	}
}

func (g *gathering) user(r *transcript.Record) {
	view := r.View()
	if view == transcript.ViewToolResult {
		// Its call decides whether it is of interest.
		if !r.IsSidechain.True() {
			g.results(r)
		}
		return
	}
	if view == transcript.ViewPrompt && !r.IsSidechain.True() {
		g.queue.See(r)
	}
	tells, left := g.chain.tells(r)
	if !tells {
		if left && view == transcript.ViewPrompt {
			g.left++
		}
		return
	}
	switch view {
	case transcript.ViewPrompt:
		clear(g.calls)
		m := r.ReadMessage()
		if text := quoteRequest(promptText(&m)); text != "" {
			g.ask(&request{text: text, line: r.Line})
		}
	case transcript.ViewCommand:
		m := r.ReadMessage()
		if text, minor := commandText(m.Text()); text != "" {
			g.ask(&request{text: quoteRequest(text), line: r.Line, command: true, minor: minor})
		}
	case transcript.ViewInterruption:
		g.interrupt()
	}
}

const interruption = "[Request interrupted by user"

// interrupt takes note that the user stopped the work on the last request.
func (g *gathering) interrupt() {
	if n := len(g.recent); n > 0 {
		g.recent[n-1].stopped = true
	}
	clear(g.calls)
}

// quoteRequest makes the text of a request quotable.
func quoteRequest(s string) string {
	s = without(s, "<system-reminder>", "</system-reminder>")
	return shorten(strings.TrimSpace(quotable(strings.TrimSpace(s))), maxPromptSize)
}

// asides are what the client puts beside the user's words.
var asides = []string{"<system-reminder>", "<ide_", "<local-command-caveat>"}

// promptText gives what the user typed, with a remark for what was pasted.
func promptText(m *transcript.Message) string {
	var parts []string
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			if text := strings.TrimSpace(b.Text); text != "" && !beginsWith(text, asides) {
				parts = append(parts, text)
			}
		case "image":
			parts = append(parts, "[image]")
		case "document":
			parts = append(parts, "[document]")
		}
	}
	return strings.Join(parts, "\n")
}

func beginsWith(s string, starts []string) bool {
	for _, start := range starts {
		if strings.HasPrefix(s, start) {
			return true
		}
	}
	return false
}

// housekeeping are commands that say nothing about the work.
var housekeeping = map[string]bool{
	"/clear": true, "/exit": true, "/quit": true, "/model": true, "/config": true, "/login": true, "/logout": true,
	"/context": true, "/cost": true, "/usage": true, "/status": true, "/help": true, "/hooks": true, "/mcp": true,
	"/permissions": true, "/resume": true, "/theme": true, "/vim": true, "/doctor": true, "/export": true, "/ide": true,
	"/agents": true, "/memory": true, "/statusline": true, "/rename": true, "/effort": true, "/fast": true, "/plugin": true,
	"/rewind": true, "/branch": true, "/tasks": true, "/todos": true, "/terminal-setup": true, "/bashes": true,
	"/output-style": true, "/release-notes": true, "/reload-plugins": true, "/compact": true, "/plan": true, "/skills": true,
}

// commandText gives a command as the user typed it, from the client's wrapping,
// and tells whether it is about the client alone.
func commandText(s string) (text string, minor bool) {
	if line := inside(s, "bash-input"); line != "" {
		return "! " + line, true
	}
	if line := inside(s, "user-memory-input"); line != "" {
		return "# " + line, false
	}
	name := inside(s, "command-name")
	if name == "" {
		name = inside(s, "command-message")
	}
	if name == "" {
		return "", false
	}
	if !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	args := inside(s, "command-args")
	if housekeeping[name] {
		if name != "/compact" || args == "" {
			return "", false
		}
		minor = true
	}
	return strings.TrimSpace(name + " " + args), minor
}

func inside(s, tag string) string {
	_, rest, ok := strings.Cut(s, "<"+tag+">")
	if !ok {
		return ""
	}
	// Its own end is the last one: the user may have typed another.
	end := strings.LastIndex(rest, "</"+tag+">")
	if end < 0 {
		return ""
	}
	return strings.TrimSpace(rest[:end])
}

func (g *gathering) ask(q *request) {
	if q.text == "" {
		return
	}
	g.requests++
	if !q.minor {
		g.asked++
		g.answered = false
	}
	g.recent = append(g.recent, q)
	if len(g.recent) > maxPrompts {
		if g.first == nil {
			g.first = g.recent[0]
		}
		g.recent = append(g.recent[:0], g.recent[1:]...)
	}
}

// finish puts prompts in their place that were typed while the model worked and
// never came again.
func (g *gathering) finish() {
	newest := int64(0)
	if n := len(g.recent); n > 0 {
		newest = g.recent[n-1].line
	}
	for _, q := range g.queue.Waiting() {
		if n := strings.LastIndexAny(q.Text, " \n\t"); len(q.Text) > maxQueued && n > 0 {
			q.Text = q.Text[:n] // it is cut: half a key would not be known as one
		}
		text := quoteRequest(q.Text)
		if text == "" {
			continue
		}
		g.requests++
		g.asked++
		if q.Line > newest {
			g.answered = false
		}
		if n := len(g.recent); n >= maxPrompts && q.Line < g.recent[0].line {
			continue // counted, as all that are older than those
		}
		g.recent = append(g.recent, &request{text: text, line: q.Line})
	}
	sort.SliceStable(g.recent, func(i, j int) bool { return g.recent[i].line < g.recent[j].line })
}

// latest gives the last request that is about the work, and those before it.
func (g *gathering) latest() (last *request, earlier []*request) {
	earlier = g.recent
	if g.first != nil {
		earlier = append([]*request{g.first}, earlier...)
	}
	for i := len(earlier) - 1; i >= 0; i-- {
		if !earlier[i].minor {
			rest := append([]*request(nil), earlier[:i]...)
			return earlier[i], append(rest, earlier[i+1:]...)
		}
	}
	return nil, earlier
}

func (g *gathering) assistant(r *transcript.Record) {
	if r.IsSidechain.True() || r.IsAPIErrorMessage.True() {
		return
	}
	tells, left := g.chain.tells(r)
	if !tells && !left {
		return
	}
	m := r.ReadMessage()
	if m.Model == transcript.Synthetic {
		return
	}
	// Of a message with several calls the last ones are no ancestors of what
	// follows if their results came first.
	if !tells && (m.ID == "" || m.ID != g.message) {
		return
	}
	if tells {
		g.message = m.ID
	}
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			g.say(b.Text)
		case "tool_use":
			g.answered = true
			g.call(b)
		}
	}
}

// say takes note of what the assistant says, without code: that is what files
// hold.
func (g *gathering) say(text string) {
	text = strings.TrimSpace(without(text, "<system-reminder>", "</system-reminder>"))
	if text == "" {
		return
	}
	g.answered = true
	text = quotable(withoutCode(text))
	g.said = append(g.said, shorten(text, maxSaid))
	if len(g.said) > 2 {
		g.said = append(g.said[:0], g.said[1:]...)
	}
	if n := len(g.recent); n > 0 {
		g.recent[n-1].answer = oneLine(gist(text), maxAnswer)
	}
}

// gist gives the first paragraph of an answer that is no heading.
func gist(text string) string {
	for _, p := range strings.Split(text, "\n\n") {
		p = strings.TrimSpace(p)
		if p != "" && !strings.HasPrefix(p, "#") && p != codeRemark {
			return p
		}
	}
	return strings.TrimSpace(strings.TrimLeft(text, "# "))
}

const codeRemark = "[code]"

// withoutCode puts a remark in the place of fenced code.
func withoutCode(text string) string {
	if !strings.Contains(text, "```") && !strings.Contains(text, "~~~") {
		return text
	}
	var out []string
	open := ""
	for _, line := range strings.Split(text, "\n") {
		bare := strings.TrimLeft(line, " \t>")
		switch {
		case open != "":
			if strings.HasPrefix(bare, open) && strings.Trim(bare, open[:1]+" \t\r") == "" {
				open = ""
			}
		case strings.HasPrefix(bare, "```"), strings.HasPrefix(bare, "~~~"):
			open = bare[:len(bare)-len(strings.TrimLeft(bare, bare[:1]))]
			out = append(out, codeRemark)
		default:
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// results takes what tools gave back.
func (g *gathering) results(r *transcript.Record) {
	if len(g.calls) == 0 {
		return
	}
	m := r.ReadMessage()
	for _, b := range m.Content {
		if b.Type == "text" && strings.HasPrefix(b.Text, interruption) {
			g.interrupt()
			return
		}
		c := g.calls[b.ToolUseID]
		if b.ToolUseID == "" || c == nil {
			continue
		}
		delete(g.calls, b.ToolUseID)
		g.finishCall(c, outcome(b), r.ToolUseResult)
	}
}
