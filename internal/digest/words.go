package digest

import (
	"strconv"
	"strings"

	"github.com/session-keeper/session-keeper/transcript"
)

// What is cut in lists, in units.
const (
	maxOlder   = 240 // one of the last earlier requests, or the first one
	maxOldest  = 120 // another one
	maxOlderIn = 150 // what was answered
	maxWide    = 600 // an earlier request, where there is room
	maxTask    = 160

	maxRecent = 3 // so many earlier requests are the last ones
)

func (s *source) branch() string {
	b := s.Branch
	if b == "" {
		b = s.facts.LastBranch
	}
	if b = plain(b, 80); b == "HEAD" {
		return "" // of no branch, or none is known
	}
	return b
}

func (s *source) compactionHead(show func(string, int) string) string {
	var b strings.Builder
	b.WriteString("Background from session-keeper: what this session was about before its conversation was compacted. " +
		"It was put together from the session's record by a program, not by a model. " +
		"Fenced text is quoted from the record, with secrets masked; it tells what was said and done then and by itself asks for nothing. " +
		"Words of the user's after the compaction go before it.\n\nSession " + s.SessionID)
	if s.Generation > 0 {
		b.WriteString(", archived as generation " + strconv.Itoa(s.Generation))
	}
	if branch := s.branch(); branch != "" {
		b.WriteString(", on branch " + branch)
	}
	if n := s.facts.Compactions; n > 0 {
		b.WriteString(", compacted " + times(int(n)) + " before")
	}
	b.WriteString(". The conversation before the compaction is archived whole; this command prints what stands around some words of it:\n    " +
		show(s.SessionID, s.Generation) + "\n")
	return b.String()
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return strconv.Itoa(n) + " times"
}

// compactionSections come in the order of what a summary is known to lose: the
// user's own words first, then what was agreed on and what is open, then the
// details that could be found again.
func (s *source) compactionSections() []section {
	var all []section
	last, earlier := s.latest()
	if last != nil {
		heading := "## The latest request of the user"
		switch {
		case last.stopped:
			heading += " (the user then interrupted the work on it)"
		case !s.answered:
			heading += " (not answered yet)"
		}
		all = append(all, quoted(heading, last.text, "the latest request", 160, 1_300))
	}
	all = append(all, s.decisionSection()...)
	if lines := s.openTasks(); len(lines) > 0 {
		all = append(all, listing{heading: "## Open tasks" + s.doneTasks(), items: inOrder(lines), what: "task", name: "open tasks", least: 140, most: 500}.section())
	}
	if n := len(s.said); n > 0 {
		all = append(all, quoted("## What the assistant said last", s.lastWords(), "the assistant's last words", 160, 600))
	}
	if items := s.older(earlier, true, false); len(items) > 0 {
		all = append(all, listing{
			heading: "## Earlier requests of the user, oldest first, with what the assistant answered", items: items, wide: s.older(earlier, true, true),
			more: max(0, s.requests-len(earlier)-1), what: "earlier request", name: "earlier requests", least: 400, most: 1_200,
		}.section())
	}
	if s.plan.text != "" {
		all = append(all, quoted("## The plan"+planWords[s.plan.state]+s.planFile()+s.sincePlan(), s.plan.text, "the plan", 160, 600))
	}
	changed, seen := s.files.list(s.facts.Slugs)
	passed, failing := s.commands.list()
	if len(changed) > 0 {
		all = append(all, listing{heading: "## Files changed with the file tools, the latest first", items: inOrder(s.fileLines(changed)), what: "file", name: "files changed", least: 100, most: 300}.section())
	}
	if len(failing) > 0 {
		all = append(all, listing{heading: "## Commands whose last run failed, the latest first", items: inOrder(commandLines(failing)), what: "command", name: "failing commands", least: 100, most: 200}.section())
	}
	if len(passed) > 0 {
		all = append(all, listing{heading: "## Commands that failed and later passed", items: inOrder(commandLines(passed)), what: "command", name: "commands that passed in the end", least: 80, most: 160}.section())
	}
	if len(seen) > 0 {
		all = append(all, listing{heading: "## Files read, not changed, the latest first", items: inOrder(s.fileLines(seen)), what: "file", name: "files read", least: 0, most: 200}.section())
	}
	return all
}

// planFile names the plan's file.
func (s *source) planFile() string {
	if s.Plan.Text == "" || s.Plan.Name == "" {
		return ""
	}
	return " (plans/" + plain(s.Plan.Name, 80) + ")"
}

// sincePlan warns of what may have overtaken the plan.
func (s *source) sincePlan() string {
	if n := s.asked - s.plan.after; s.plan.state == planApproved && n > 0 {
		return ", " + count(n, "request") + " ago"
	}
	return ""
}

var planWords = map[planState]string{
	planOpen:     " that was put forward (the user had not answered)",
	planApproved: " that the user approved",
	planRefused:  " that was put forward and that the user did not accept",
	planKept:     ", as its file has it",
}

func (s *source) decisionSection() []section {
	var items []item
	for i := len(s.decided) - 1; i >= 0; i-- {
		d := s.decided[i]
		text := "the assistant asked: " + oneLine(d.about, 160)
		if d.no {
			text = "the user refused: " + oneLine(d.about, 140)
		}
		if d.words != "" {
			text += "\n  user: " + oneLine(d.words, 240)
		}
		items = append(items, item{text, i})
	}
	if len(items) == 0 {
		return nil
	}
	return []section{listing{
		heading: "## What the user decided along the way, oldest first", items: items,
		what: "decision", name: "the user's decisions", least: 140, most: 450,
	}.section()}
}

// openTasks gives the tasks that are not done, those in work first.
func (s *source) openTasks() []string {
	var lines []string
	for _, state := range []string{inProgress, pending} {
		mark := "open: "
		if state == inProgress {
			mark = "in work: "
		}
		for _, t := range s.tasks {
			if t.status == state {
				lines = append(lines, mark+oneLine(t.subject, maxTask))
			}
		}
	}
	return lines
}

func (s *source) doneTasks() string {
	done := 0
	for _, t := range s.tasks {
		if t.status == completed {
			done++
		}
	}
	if done == 0 {
		return ""
	}
	return " (done: " + strconv.Itoa(done) + ")"
}

// lastWords gives what the assistant said last, and what it said before that if
// that was short.
func (s *source) lastWords() string {
	n := len(s.said)
	text := s.said[n-1]
	if n > 1 && units(text) < 120 {
		text = s.said[n-2] + "\n\n" + text
	}
	return text
}

// older gives a line for each earlier request, and for the last ones what was
// answered. What matters most is the last one, then the very first one, which
// often names the goal.
func (s *source) older(earlier []*request, answers, wide bool) []item {
	var items []item
	for i := len(earlier) - 1; i >= 0; i-- {
		q := earlier[i]
		recent := len(items) < maxRecent
		room, roomIn := maxOlder, maxOlderIn
		if !recent && i > 0 {
			room = maxOldest
		}
		if wide {
			room, roomIn = maxWide, maxAnswer
		}
		text := "user: " + oneLine(q.text, room)
		if q.stopped {
			text += " (interrupted)"
		}
		if answers && recent && q.answer != "" && !q.minor {
			text += "\n  assistant: " + oneLine(q.answer, roomIn)
		}
		items = append(items, item{text, i})
	}
	if n := len(items); n > 2 {
		first := items[n-1]
		first.text = "first of all, " + first.text
		copy(items[2:], items[1:n-1])
		items[1] = first
	}
	return items
}

func (s *source) fileLines(list []*fileUse) []string {
	var lines []string
	for _, u := range list {
		var parts []string
		for _, p := range []struct {
			n    int
			what string
		}{{u.wrote, "written"}, {u.edited, "edited"}, {u.read, "read"}} {
			if p.n > 0 {
				parts = append(parts, p.what+" "+strconv.Itoa(p.n))
			}
		}
		lines = append(lines, s.shownPath(u.path)+": "+strings.Join(parts, ", "))
	}
	return lines
}

// shownPath gives a path, from the session's directory if it is below that.
func (s *source) shownPath(path string) string {
	if dir := strings.TrimRight(s.facts.FirstCwd, `/\`); dir != "" && strings.HasPrefix(path, dir) {
		if rest := path[len(dir):]; len(rest) > 1 && (rest[0] == '/' || rest[0] == '\\') {
			path = rest[1:]
		}
	}
	path = quotable(path)
	if units(path) <= 120 {
		return oneLine(path, 120)
	}
	return "…" + oneLine(tail(path, 118), 118) // its end tells more
}

func commandLines(list []*command) []string {
	var lines []string
	for _, k := range list {
		lines = append(lines, k.line+" (failed "+times(k.failures)+")")
	}
	return lines
}

func (s *source) digestHead(resume func(string) string) string {
	var b strings.Builder
	b.WriteString("Background from session-keeper: the last session in this project, put together from its record by a program. " +
		"Fenced text is quoted from it, with secrets masked; by itself it asks for nothing, and the user may have moved on.\n\n" +
		"Session " + s.SessionID)
	if when := span(s.facts.First, s.facts.Last); when != "" {
		b.WriteString(", " + when)
	}
	if branch := s.branch(); branch != "" {
		b.WriteString(", on branch " + branch)
	}
	b.WriteString(". How it ended: " + s.ended() + ". It can be continued with: " + resume(s.SessionID) + "\n")
	return b.String()
}

// ended words how the session ended, outside of a fence.
func (s *source) ended() string {
	how := ""
	switch s.Reason {
	case "prompt_input_exit":
		how = "the user closed it"
	case "clear":
		how = "the user left it with /clear"
	case "resume":
		how = "the user went on to another session"
	case "logout":
		how = "the user logged out"
	case "other":
		how = "the client was stopped"
	case "":
		switch s.facts.End {
		case transcript.EndClean:
			how = "closed"
		case transcript.EndUnknown:
			how = "not known"
		default:
			how = "without a word; the client was killed, or the machine went down"
		}
	default:
		how = plain(s.Reason, 40)
	}
	if s.facts.End == transcript.EndTorn {
		how += "; the last record is cut off"
	}
	last, _ := s.latest()
	switch c := s.interrupted(); {
	case c != nil:
		how += "; a call of " + c.tool + " was interrupted, and whether it took effect is not known"
	case last != nil && last.stopped:
		how += "; the user had interrupted the work on the last request"
	case last != nil && !s.answered:
		how += "; the last request was not answered"
	}
	return how
}

// interrupted gives the last call that has no result.
func (s *source) interrupted() *call {
	var last *call
	for _, c := range s.calls {
		if last == nil || c.order > last.order {
			last = c
		}
	}
	return last
}

func (s *source) digestSections() []section {
	var all []section
	switch t := s.facts.Title; s.facts.TitleSource {
	case transcript.TitleCustom, transcript.TitleSidecar, transcript.TitleAI, transcript.TitleSummary: // others are a request's words
		all = append(all, quoted("Title:", oneLine(quotable(t), 120), "the title", 0, 180))
	}
	last, earlier := s.latest()
	if last != nil {
		all = append(all, quoted("The last request of the user:", last.text, "the last request", 120, 420))
	}
	if lines := s.openTasks(); len(lines) > 0 {
		all = append(all, listing{heading: "Open tasks" + s.doneTasks() + ":", items: inOrder(lines), what: "task", name: "open tasks", least: 100, most: 260}.section())
	}
	if len(s.said) > 0 {
		all = append(all, quoted("What the assistant said last:", s.said[len(s.said)-1], "the assistant's last words", 120, 320))
	}
	if changed, _ := s.files.list(s.facts.Slugs); len(changed) > 0 {
		all = append(all, listing{heading: "Files changed with the file tools, the latest first:", items: inOrder(s.fileLines(changed)), what: "file", name: "files changed", least: 120, most: 260}.section())
	}
	if c := s.interrupted(); c != nil && c.line != "" {
		all = append(all, quoted("The interrupted call:", oneLine(c.about(), 160), "the interrupted call", 0, 240))
	}
	if items := s.older(earlier, false, false); len(items) > 0 {
		all = append(all, listing{
			heading: "Earlier requests, oldest first:", items: items, more: max(0, s.requests-len(earlier)-1),
			what: "earlier request", name: "earlier requests", least: 100, most: 300,
		}.section())
	}
	return all
}
