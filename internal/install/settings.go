// Package install wires the hooks into Claude Code's settings and out again.
//
// A settings file is edited as text. Outside of our own entries every byte
// stays as it was: comments, trailing commas, order, indentation, line ends, a
// byte order mark. A file that does not parse, or is no object, is never
// written. Removing gives back the exact text from before if nothing else
// changed, and otherwise takes out what is ours and leaves the rest alone.
//
// What it does not do: it never edits project or managed settings, it only
// names what it finds there.
package install

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// Timeouts of a SessionEnd hook, in seconds. A timeout in a settings file
// raises the client's budget of 1.5 s, to at most 60 s (observed on 2.1.332).
const (
	wiredTimeout = 60
	maxTimeout   = 60
)

// Hook is one hook entry of a settings file.
type Hook struct {
	File    string
	Line    int // in File, from 1
	Event   string
	Matcher string // of its group; "" matches all
	Type    string // "command" or another
	Command string
	Args    []string
	Exec    bool // has args: run without a shell

	Timeout string // as written; "" if there is none
	If      string // a condition; on events that are not about tools it never holds
	Async   bool

	Binary string // the path of our program, as written; "" if the entry is none of ours
	Name   string // the bare name of our program
	Plain  bool   // ours, in a form that an installer writes

	group, index int // place in the event's array and in the group's
	value        hujson.Value
}

// Ours reports whether the entry runs one of our programs.
func (h Hook) Ours() bool { return h.Binary != "" }

// Display is the command as one line for people.
func (h Hook) Display() string {
	if !h.Exec {
		return h.Command
	}
	words := []string{Quote(h.Command)}
	for _, arg := range h.Args {
		words = append(words, Quote(arg))
	}
	return strings.Join(words, " ")
}

// limited reports whether a matcher keeps the hook from some of the events.
func (h Hook) limited() bool { return h.Matcher != "" && h.Matcher != "*" }

// custom reports whether the user arranged this entry of ours.
func (h Hook) custom() bool { return h.Ours() && (!h.Plain || h.limited()) }

// hooks lists all hook entries in the order of the file. Entries of unknown
// shape are left out: they are none of ours.
func (d *document) hooks() []Hook {
	var found []Hook
	hooks, i := member(d.root, "hooks")
	if i < 0 {
		return nil
	}
	events, ok := hooks.Value.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	for i, m := range events.Members {
		name, ok := m.Name.Value.(hujson.Literal)
		if !ok {
			continue
		}
		event := name.String()
		if _, last := member(hooks.Value, event); last != i {
			continue // a later member of the same name hides this one
		}
		groups, ok := m.Value.Value.(*hujson.Array)
		if !ok {
			continue
		}
		for g, group := range groups.Elements {
			list, at := member(group, "hooks")
			if at < 0 {
				continue
			}
			handlers, ok := list.Value.Value.(*hujson.Array)
			if !ok {
				continue
			}
			matcher, _ := text(group, "matcher")
			for n, handler := range handlers.Elements {
				if _, ok := handler.Value.(*hujson.Object); !ok {
					continue
				}
				h := Hook{Event: event, Matcher: matcher, Line: d.line(handler.StartOffset), group: g, index: n, value: handler}
				h.Type, _ = text(handler, "type")
				h.Command, _ = text(handler, "command")
				h.If, _ = text(handler, "if")
				h.Args, h.Exec = texts(handler, "args")
				if t, at := member(handler, "timeout"); at >= 0 {
					h.Timeout = string(t.Value.Pack())
					h.Timeout = strings.Trim(h.Timeout, whitespace)
				}
				if async, at := member(handler, "async"); at >= 0 {
					literal, ok := async.Value.Value.(hujson.Literal)
					h.Async = ok && literal.Kind() == 't'
				}
				if h.Type == "command" || h.Type == "" {
					h.Binary, h.Name, h.Plain = recognise(h.Command, h.Args, h.Exec)
				}
				found = append(found, h)
			}
		}
	}
	return found
}

func text(v hujson.Value, name string) (string, bool) {
	m, i := member(v, name)
	if i < 0 {
		return "", false
	}
	literal, ok := m.Value.Value.(hujson.Literal)
	if !ok || literal.Kind() != '"' {
		return "", false
	}
	return literal.String(), true
}

func texts(v hujson.Value, name string) (list []string, present bool) {
	m, i := member(v, name)
	if i < 0 {
		return nil, false
	}
	array, ok := m.Value.Value.(*hujson.Array)
	if !ok {
		return nil, false
	}
	for _, e := range array.Elements {
		if literal, ok := e.Value.(hujson.Literal); ok && literal.Kind() == '"' {
			list = append(list, literal.String())
		}
	}
	return list, true
}

// ours lists the entries of one event that are ours, or of all events with "".
func (d *document) ours(event string) []Hook {
	var found []Hook
	for _, h := range d.hooks() {
		if h.Ours() && (event == "" || h.Event == event) {
			found = append(found, h)
		}
	}
	return found
}

// Inserted remembers one thing that was put into a settings file.
type Inserted struct {
	// Tail is the blank text added between it and the closing bracket of a
	// container that was empty.
	Tail string `json:"tail,omitempty"`
}

// Record remembers what was created in a settings file, so that removing can
// tell an empty array of the user's from one of ours, and give back the exact
// text. Without one everything that removing empties goes.
type Record struct {
	// Created is true when there was no file, or one without content, whose
	// text is Before.
	Created bool   `json:"created,omitempty"`
	Missing bool   `json:"missing,omitempty"`
	Before  string `json:"before,omitempty"`

	Hooks  *Inserted           `json:"hooks,omitempty"`  // the "hooks" object
	Events map[string]Inserted `json:"events,omitempty"` // an event's array
	Groups map[string]Inserted `json:"groups,omitempty"` // a group in an array of the user's
}

// wiring is what an install wants to be in a settings file.
type wiring struct {
	command string
	args    []string // exec form if not nil
	events  []string
}

func (w wiring) handler() object {
	h := object{{"type", "command"}, {"command", w.command}}
	if w.args != nil {
		list := array{}
		for _, arg := range w.args {
			list = append(list, arg)
		}
		h = append(h, field{"args", list})
	}
	return append(h, field{"timeout", wiredTimeout})
}

// add puts our entries into the settings text data; nil is a missing file. It
// returns data itself if nothing needs to change.
func add(data []byte, wirings ...wiring) ([]byte, *Record, error) {
	rec := &Record{}
	before := data
	if data == nil {
		rec.Created, rec.Missing = true, true
		data = []byte("{}\n")
	}
	d, err := parse(data)
	if errors.Is(err, errEmpty) {
		rec.Created, rec.Before = true, string(data)
		d, err = parse([]byte("{}\n"))
	}
	if err != nil {
		return nil, nil, err
	}
	if err := d.ambiguous(); err != nil {
		return nil, nil, err
	}
	old := d
	for _, w := range wirings {
		if d, err = w.heal(d); err != nil {
			return nil, nil, err
		}
		for _, event := range w.events {
			if len(d.ours(event)) > 0 {
				continue
			}
			if d, err = w.insert(d, event, rec); err != nil {
				return nil, nil, err
			}
		}
	}
	if d.text == old.text {
		return before, nil, nil
	}
	if err := sameForeign(old, d); err != nil {
		return nil, nil, err
	}
	return d.bytes(), rec, nil
}

// insert adds a group of ours to an event, and makes what is missing on the
// way there.
func (w wiring) insert(d *document, event string, rec *Record) (*document, error) {
	group := object{{"hooks", array{w.handler()}}}
	hooks, i := member(d.root, "hooks")
	if i < 0 {
		text, tail := d.append(d.root, "hooks", object{{event, array{group}}})
		rec.Hooks = &Inserted{Tail: tail}
		rec.created(event, "")
		return d.with(text)
	}
	if hooks.Value.Value.Kind() != '{' {
		return nil, fmt.Errorf(`has %s as its "hooks" in line %d, where an object is expected`, kindName(hooks.Value.Value.Kind()), d.line(hooks.Value.StartOffset))
	}
	groups, i := member(hooks.Value, event)
	if i < 0 {
		text, tail := d.append(hooks.Value, event, array{group})
		rec.created(event, tail)
		return d.with(text)
	}
	if groups.Value.Value.Kind() != '[' {
		return nil, fmt.Errorf("has %s as its %s hooks in line %d, where an array is expected", kindName(groups.Value.Value.Kind()), event, d.line(groups.Value.StartOffset))
	}
	text, tail := d.append(groups.Value, "", group)
	if rec.Groups == nil {
		rec.Groups = map[string]Inserted{}
	}
	rec.Groups[event] = Inserted{Tail: tail}
	return d.with(text)
}

func (r *Record) created(event, tail string) {
	if r.Events == nil {
		r.Events = map[string]Inserted{}
	}
	r.Events[event] = Inserted{Tail: tail}
}

// with parses an edited text.
func (d *document) with(text string) (*document, error) {
	next, err := parse([]byte(d.bom + text))
	if err != nil {
		return nil, fmt.Errorf("would no longer be readable after the edit: it %w", err)
	}
	return next, nil
}

// heal leaves one entry of ours per event where there are several, and brings
// one that an older or other installation wrote up to date. What the user
// arranged wins over ours and is not touched.
func (w wiring) heal(d *document) (*document, error) {
	for {
		text, changed := w.healOne(d)
		if !changed {
			return d, nil
		}
		next, err := d.with(text)
		if err != nil {
			return nil, err
		}
		d = next
	}
}

func (w wiring) healOne(d *document) (text string, changed bool) {
	type key struct{ event, name string }
	custom := map[key]bool{}
	kept := map[key]Hook{}
	all := d.ours("")
	for _, h := range all {
		k := key{h.Event, h.Name}
		if h.custom() {
			custom[k] = true
		} else if have, ok := kept[k]; !ok || !w.matches(have) && w.matches(h) {
			kept[k] = h
		}
	}
	for _, h := range all {
		k := key{h.Event, h.Name}
		if !h.custom() && (custom[k] || kept[k].value.StartOffset != h.value.StartOffset) {
			return d.removeHook(h, &Record{}), true
		}
	}
	for _, h := range all {
		if !h.custom() && w.describes(h) {
			if text := w.update(d, h); text != d.text {
				return text, true
			}
		}
	}
	return "", false
}

// describes reports whether w is about the program that h runs.
func (w wiring) describes(h Hook) bool {
	_, name, _ := recognise(w.command, w.args, w.args != nil)
	return name == h.Name
}

func (w wiring) matches(h Hook) bool {
	return h.Command == w.command && h.Exec == (w.args != nil) && len(h.Args) == len(w.args)
}

// update makes one change that brings an entry of ours up to date; the text
// comes back as it was if there is none to make. A timeout that the user chose
// and that the client honours stays.
func (w wiring) update(d *document, h Hook) string {
	if m, i := member(h.value, "type"); i < 0 || h.Type != "command" {
		if i < 0 {
			text, _ := d.append(h.value, "type", "command")
			return text
		}
		return d.replace(m.Value, quoteJSON("command"))
	}
	if h.Command != w.command || h.Exec != (w.args != nil) {
		return w.rewrite(d, h)
	}
	m, i := member(h.value, "timeout")
	if i < 0 {
		text, _ := d.append(h.value, "timeout", wiredTimeout)
		return text
	}
	if seconds, ok := h.seconds(); !ok || seconds <= 0 || seconds > maxTimeout {
		return d.replace(m.Value, strconv.Itoa(wiredTimeout))
	}
	return d.text
}

// rewrite changes command and args in one step: between the two the entry
// would not be recognisable.
func (w wiring) rewrite(d *document, h Hook) string {
	m, _ := member(h.value, "command")
	next, err := d.with(d.replace(m.Value, quoteJSON(w.command)))
	if err != nil {
		return d.text
	}
	for _, n := range next.hooks() {
		if n.Event != h.Event || n.group != h.group || n.index != h.index {
			continue
		}
		_, at := member(n.value, "args")
		switch {
		case at >= 0 && w.args == nil:
			return next.remove(n.value, at, nil)
		case at < 0 && w.args != nil:
			text, _ := next.append(n.value, "args", array{})
			return text
		}
	}
	return next.text
}

// seconds is the timeout; false if there is none or it is no number.
func (h Hook) seconds() (float64, bool) {
	n, err := strconv.ParseFloat(h.Timeout, 64)
	return n, err == nil
}

// strip takes all our entries out of the settings text data. remove is true
// when the file did not exist before our entries and holds nothing else.
func strip(data []byte, rec *Record) (result []byte, remove bool, err error) {
	d, err := parse(data)
	if errors.Is(err, errEmpty) {
		return data, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if len(d.ours("")) == 0 {
		return data, false, nil
	}
	if err := d.ambiguous(); err != nil {
		return nil, false, err
	}
	old := d
	for {
		ours := d.ours("")
		if len(ours) == 0 {
			break
		}
		if d, err = d.with(d.removeHook(ours[0], rec)); err != nil {
			return nil, false, err
		}
	}
	if err := sameForeign(old, d); err != nil {
		return nil, false, err
	}
	if rec != nil && rec.Created && d.bom == "" && strings.Trim(d.text, whitespace) == "{}" {
		if rec.Missing {
			return nil, true, nil
		}
		return []byte(rec.Before), false, nil
	}
	return d.bytes(), false, nil
}

// removeHook cuts one entry, and each container around it that this empties
// and that was made for it. A nil record takes every emptied one for ours.
func (d *document) removeHook(h Hook, rec *Record) string {
	hooks, hooksAt := member(d.root, "hooks")
	event, eventAt := member(hooks.Value, h.Event)
	groups := contents(event.Value)
	group := event.Value.Value.(*hujson.Array).Elements[h.group]
	handlers, _ := member(group, "hooks")
	if len(contents(handlers.Value).elements) > 1 || !onlyHooks(group) {
		return d.remove(handlers.Value, h.index, nil)
	}
	tail := func(in map[string]Inserted) *string {
		if rec == nil {
			return nil
		}
		i, ok := in[h.Event]
		if !ok {
			return nil
		}
		return &i.Tail
	}
	var groupTail, eventTail *string
	eventOurs := rec == nil
	if rec != nil {
		groupTail, eventTail = tail(rec.Groups), tail(rec.Events)
		eventOurs = eventTail != nil
		// The tail came with the first event; it goes with the last one.
		for _, i := range rec.Events {
			if eventOurs && i.Tail != "" {
				eventTail = &i.Tail
			}
		}
	}
	if len(groups.elements) > 1 || !eventOurs {
		return d.remove(event.Value, h.group, groupTail)
	}
	if len(contents(hooks.Value).elements) > 1 || (rec != nil && rec.Hooks == nil) {
		return d.remove(hooks.Value, eventAt, eventTail)
	}
	var hooksTail *string
	if rec != nil {
		hooksTail = &rec.Hooks.Tail
	}
	return d.remove(d.root, hooksAt, hooksTail)
}

// onlyHooks reports whether a group says nothing but what to run and when.
func onlyHooks(group hujson.Value) bool {
	for _, m := range group.Value.(*hujson.Object).Members {
		switch name, _ := m.Name.Value.(hujson.Literal); name.String() {
		case "hooks", "matcher":
		default:
			return false
		}
	}
	return true
}

// sameForeign checks that two documents say the same but for our entries. It
// is the last guard before anything is written.
func sameForeign(a, b *document) error {
	x, err := a.foreign()
	if err != nil {
		return err
	}
	y, err := b.foreign()
	if err != nil {
		return err
	}
	if x != y {
		return errors.New("could not be edited without touching other settings; nothing was written")
	}
	return nil
}

// ambiguous refuses a file that says twice what is to be edited. The client
// takes the last one; cutting it would bring the first one to life.
func (d *document) ambiguous() error {
	check := func(v hujson.Value, name string) error {
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			return nil
		}
		seen := map[string]int{}
		for _, m := range obj.Members {
			literal, _ := m.Name.Value.(hujson.Literal)
			key, line := literal.String(), d.line(m.Name.StartOffset)
			if first, twice := seen[key]; twice && (name == "" || key == name) {
				return fmt.Errorf("has %.64q twice, in lines %d and %d", key, first, line)
			}
			seen[key] = line
		}
		return nil
	}
	if err := check(d.root, "hooks"); err != nil {
		return err
	}
	hooks, _ := member(d.root, "hooks")
	return check(hooks.Value, "")
}

// foreign is a canonical text of everything that is not ours. Containers that
// hold only ours, or nothing, count as ours.
func (d *document) foreign() (string, error) {
	for {
		ours := d.ours("")
		if len(ours) == 0 {
			break
		}
		next, err := d.with(d.removeHook(ours[0], nil))
		if err != nil {
			return "", err
		}
		d = next
	}
	v := d.root.Clone()
	v.Minimize()
	return pruneEmptyHooks(&v), nil
}

// pruneEmptyHooks drops empty event arrays and an empty hooks object, which
// may come and go with our entries, and gives the minimal text.
func pruneEmptyHooks(v *hujson.Value) string {
	root := v.Value.(*hujson.Object)
	if _, i := member(*v, "hooks"); i >= 0 {
		if events, ok := root.Members[i].Value.Value.(*hujson.Object); ok {
			kept := events.Members[:0:0]
			for _, m := range events.Members {
				if groups, ok := m.Value.Value.(*hujson.Array); !ok || len(groups.Elements) > 0 {
					kept = append(kept, m)
				}
			}
			events.Members = kept
			if len(kept) == 0 {
				root.Members = append(root.Members[:i:i], root.Members[i+1:]...)
			}
		}
	}
	return string(v.Pack())
}
