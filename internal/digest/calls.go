package digest

import (
	"encoding/json"
	"hash/maphash"
	"sort"
	"strconv"
	"strings"

	"github.com/session-keeper/session-keeper/transcript"
)

// What is kept. A session that does more is told without the rest of it.
const (
	maxPaths     = 5_000
	maxCommands  = 2_000
	maxTasks     = 500
	maxDecisions = 40
	maxPending   = 1_000
	maxSubject   = 300   // units
	maxPlan      = 6_000 // units
	maxShown     = 160   // units of a command
)

// A call is a use of a tool that is of interest.
type call struct {
	tool  string
	order int
	path  string
	line  string // of a command: its first line, quotable
	whole string // of a command
	back  bool   // it runs in the background
	tasks []task
	task  task
	text  string // of a plan
}

// about names the call in a line.
func (c *call) about() string {
	switch {
	case c.line != "":
		return c.tool + ": " + c.line
	case c.path != "":
		return c.tool + ": " + oneLine(quotable(c.path), maxShown)
	}
	return c.tool
}

// call takes note of a use of a tool. What it did is known from its result.
func (g *gathering) call(b transcript.Block) {
	if b.ID == "" || len(g.calls) >= maxPending {
		return
	}
	g.order++
	c := &call{tool: toolName(b.Name), order: g.order}
	in := func(name string) string { return b.Input.Member(name).String() }
	switch b.Name {
	case "Read", "Write", "Edit", "MultiEdit":
		c.path = in("file_path")
	case "NotebookRead", "NotebookEdit":
		c.path = in("notebook_path")
	case "Bash", "PowerShell":
		c.whole = strings.TrimSpace(in("command"))
		c.back = b.Input.Member("run_in_background").True()
		c.line = shownCommand(c.whole)
	case "TodoWrite":
		c.tasks = readTodos(b.Input.Member("todos").Raw())
	case "TaskCreate":
		c.task = task{subject: subject(in("subject")), status: statusOf(in("status"))}
	case "TaskUpdate":
		c.task = task{id: in("taskId"), subject: subject(in("subject"))}
		if s := in("status"); s != "" {
			c.task.status = statusOf(s)
		}
	case "ExitPlanMode", "exit_plan_mode":
		c.text = in("plan")
		g.plan = plan{text: planText(c.text)}
	}
	g.calls[b.ID] = c
}

// toolName gives a name that can stand outside of a fence.
func toolName(name string) string {
	if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return "a tool"
	}
	return name
}

// shownCommand gives the first line of a command. The others may be what goes
// into a file.
func shownCommand(whole string) string {
	first, rest, more := strings.Cut(quotable(whole), "\n")
	first = oneLine(first, maxShown)
	if more && strings.TrimSpace(rest) != "" && !strings.HasSuffix(first, "…") {
		first += " …"
	}
	return first
}

// An ending is how a call came out.
type ending uint8

const (
	worked ending = iota
	failed
	notRun // refused by a rule, wrongly called, cancelled
	refused
)

type result struct {
	ending
	words string // the user's, of a refusal
}

const (
	refusal      = "The user doesn't want to proceed with this tool use."
	refusalWords = "the user said:\n"
	approval     = "## Approved Plan:\n"
)

// outcome tells from a result how its call came out (texts as observed on
// 2.1.332 and known from older clients).
func outcome(b transcript.Block) result {
	if !b.IsError {
		return result{ending: worked}
	}
	text := ""
	for _, in := range b.Content {
		if in.Type == "text" {
			text = strings.TrimSpace(in.Text)
			break
		}
	}
	switch {
	case strings.HasPrefix(text, refusal):
		_, words, _ := strings.Cut(text, refusalWords)
		return result{refused, words}
	case beginsWith(text, []string{
		"<tool_use_error>", "Permission to use ", interruption, "Cancelled: ", "Error: No such tool available",
		"[Tool call interrupted", "Permission for this action", "This command requires approval", "The user doesn't want to take this action",
	}):
		return result{ending: notRun}
	}
	return result{ending: failed}
}

// asking are the client's own tools. The refusal of another one may be worded by
// whoever made it.
var asking = map[string]bool{
	"Bash": true, "PowerShell": true, "Read": true, "Write": true, "Edit": true, "MultiEdit": true, "NotebookEdit": true,
	"ExitPlanMode": true, "WebFetch": true, "WebSearch": true, "Task": true, "Agent": true,
}

func (g *gathering) finishCall(c *call, res result, details transcript.Value) {
	if res.ending == refused && asking[c.tool] {
		d := decision{about: c.about(), no: true}
		if c.tool == "ExitPlanMode" {
			d.about = "the plan"
			g.plan.state = planRefused
		}
		d.words = oneLine(quoteRequest(res.words), 600)
		g.decide(d)
		return
	}
	if c.whole != "" && !c.back {
		g.commands.ran(c, res.ending)
	}
	if res.ending != worked {
		return
	}
	switch c.tool {
	case "Read", "NotebookRead":
		g.files.use(c, 1, 0, 0)
	case "Write":
		g.files.use(c, 0, 1, 0)
	case "Edit", "MultiEdit", "NotebookEdit":
		g.files.use(c, 0, 0, 1)
	case "TodoWrite":
		g.board.set(c.tasks)
	case "TaskCreate":
		c.task.id = details.Member("task").Member("id").String()
		g.board.create(c.task)
	case "TaskUpdate":
		g.board.update(c.task)
	case "ExitPlanMode", "exit_plan_mode":
		if text := details.Member("plan").String(); text != "" {
			c.text = text
		}
		g.plan = plan{planText(c.text), planApproved, g.asked}
	case "AskUserQuestion":
		for _, qa := range readAnswers(details.Member("answers").Raw()) {
			g.decide(qa)
		}
	}
}

func (g *gathering) decide(d decision) {
	g.decided = append(g.decided, d)
	if len(g.decided) > maxDecisions {
		g.decided = append(g.decided[:0], g.decided[1:]...)
	}
}

// readAnswers reads an object of questions and answers, in its order.
func readAnswers(raw []byte) []decision {
	var all []decision
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for dec.More() {
		question, err := dec.Token()
		if err != nil {
			return all
		}
		var answer any
		if err := dec.Decode(&answer); err != nil {
			return all
		}
		q, _ := question.(string)
		a, ok := answer.(string)
		if !ok {
			parts, _ := answer.([]any)
			for i, p := range parts {
				if s, ok := p.(string); ok && i > 0 {
					a += ", " + s
				} else {
					a += s
				}
			}
		}
		if q != "" && a != "" {
			all = append(all, decision{about: oneLine(quotable(q), 300), words: oneLine(quoteRequest(a), 600)})
		}
	}
	return all
}

// A plan is what plan mode left.
type plan struct {
	text  string // quotable
	state planState
	after int // how many requests about the work there were when it was answered
}

type planState uint8

const (
	planOpen planState = iota // the user has not answered
	planApproved
	planRefused
	planKept // nothing is known but the file
)

func planText(s string) string {
	return shorten(strings.TrimSpace(quotable(strings.TrimSpace(s))), maxPlan)
}

// Status of a task, as the client words it.
const (
	pending    = "pending"
	inProgress = "in_progress"
	completed  = "completed"
	deleted    = "deleted"
)

// statusOf takes an unknown status for pending: it is not known to be done.
func statusOf(s string) string {
	switch s {
	case inProgress, completed, deleted:
		return s
	case "cancelled", "canceled":
		return deleted
	}
	return pending
}

type task struct {
	id, subject, status string
}

func subject(s string) string {
	return oneLine(quotable(strings.TrimSpace(s)), maxSubject)
}

// readTodos reads a list of older clients, from a call or from a file.
func readTodos(raw []byte) []task {
	var list []struct {
		Content, Status string
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var all []task
	for _, t := range list {
		if s := subject(t.Content); s != "" && len(all) < maxTasks {
			all = append(all, task{subject: s, status: statusOf(t.Status)})
		}
	}
	return all
}

// A board holds the tasks that calls have left.
type board struct {
	tasks []task
	made  int
}

func (b *board) set(tasks []task) { b.tasks = tasks }

func (b *board) create(t task) {
	b.made++
	if t.id == "" {
		t.id = strconv.Itoa(b.made) // the client counts from 1
	}
	if t.subject != "" && len(b.tasks) < maxTasks {
		b.tasks = append(b.tasks, t)
	}
}

func (b *board) update(t task) {
	for i := range b.tasks {
		if b.tasks[i].id != t.id || t.id == "" {
			continue
		}
		if t.subject != "" {
			b.tasks[i].subject = t.subject
		}
		if t.status != "" {
			b.tasks[i].status = t.status
		}
	}
}

// readTaskFiles reads the files of a session's tasks folder, one task each, or a
// list of an older client's. ok is false if there is none that can be read.
func readTaskFiles(list []TextFile) (all []task, ok bool) {
	for _, f := range list {
		if todos := readTodos([]byte(f.Text)); todos != nil {
			all, ok = append(all, todos...), true
			continue
		}
		var t struct {
			ID              any
			Subject, Status string
		}
		if json.Unmarshal([]byte(f.Text), &t) != nil || t.Subject == "" {
			continue
		}
		ok = true
		id, isText := t.ID.(string)
		if !isText {
			id, _, _ = strings.Cut(f.Name, ".")
		}
		if len(all) < maxTasks {
			all = append(all, task{id: id, subject: subject(t.Subject), status: statusOf(t.Status)})
		}
	}
	sort.SliceStable(all, func(i, j int) bool {
		a, errA := strconv.Atoi(all[i].id)
		b, errB := strconv.Atoi(all[j].id)
		if errA == nil && errB == nil {
			return a < b
		}
		return (errA == nil) && errB != nil
	})
	return all, ok
}

// files counts what was done to each file.
type files struct {
	uses map[string]*fileUse
}

type fileUse struct {
	path                string
	read, wrote, edited int
	last                int // order of the last call
}

func (f *fileUse) changed() bool { return f.wrote+f.edited > 0 }

func (f *files) use(c *call, read, wrote, edited int) {
	if c.path == "" {
		return
	}
	if f.uses == nil {
		f.uses = make(map[string]*fileUse)
	}
	u := f.uses[c.path]
	if u == nil {
		if len(f.uses) >= maxPaths {
			return
		}
		u = &fileUse{path: c.path}
		f.uses[c.path] = u
	}
	u.read, u.wrote, u.edited = u.read+read, u.wrote+wrote, u.edited+edited
	u.last = c.order
}

// list gives those that were changed and those that were only read, the last one
// used first, without the session's plans.
func (f *files) list(slugs []string) (changed, read []*fileUse) {
	for _, u := range f.uses {
		if isPlan(u.path, slugs) {
			continue
		}
		if u.changed() {
			changed = append(changed, u)
		} else {
			read = append(read, u)
		}
	}
	for _, l := range [][]*fileUse{changed, read} {
		sort.Slice(l, func(i, j int) bool { return l[i].last > l[j].last })
	}
	return changed, read
}

// isPlan tells whether the path is a plan of the session's.
func isPlan(path string, slugs []string) bool {
	path = strings.ReplaceAll(path, `\`, "/")
	for _, s := range slugs {
		if strings.HasSuffix(path, "/plans/"+s+".md") {
			return true
		}
	}
	return false
}

// commands keeps which commands failed.
type commands struct {
	seed maphash.Seed
	all  map[uint64]*command // by the hash of the whole command
}

type command struct {
	line     string
	failures int
	last     int // order of the last run
	ok       bool
}

func (c *commands) ran(by *call, e ending) {
	if e == notRun || e == refused {
		return
	}
	if c.all == nil {
		c.all = make(map[uint64]*command)
	}
	key := maphash.String(c.seed, by.whole)
	k := c.all[key]
	if k == nil {
		if e == worked || len(c.all) >= maxCommands {
			return // what never failed is of no interest
		}
		k = &command{line: by.line}
		c.all[key] = k
	}
	k.last, k.ok = by.order, e == worked
	if e == failed {
		k.failures++
	}
}

// list gives the commands that failed and passed later, and those whose last run
// failed, the last one run first.
func (c *commands) list() (passed, failing []*command) {
	for _, k := range c.all {
		if k.ok {
			passed = append(passed, k)
		} else {
			failing = append(failing, k)
		}
	}
	for _, l := range [][]*command{passed, failing} {
		sort.Slice(l, func(i, j int) bool { return l[i].last > l[j].last })
	}
	return passed, failing
}
