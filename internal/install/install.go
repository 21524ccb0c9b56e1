package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// DefaultEvents are the events that an install wires.
var DefaultEvents = []string{"SessionEnd", "PreCompact"}

// Events are those that our hooks understand.
var Events = []string{"SessionEnd", "Stop", "StopFailure", "SubagentStop", "PreCompact", "PostCompact"}

// Program returns the name of the hook that is for an event.
func Program(event string) string {
	switch event {
	case "PreCompact", "PostCompact":
		return "pre-compact-snapshot"
	}
	return "session-end-archive"
}

// Beside returns the path of another program in the folder of one of ours.
func Beside(program, name string) string {
	dir := program[:strings.LastIndexAny(program, `/\`)+1]
	if len(program) > 4 && strings.EqualFold(program[len(program)-4:], ".exe") {
		name += program[len(program)-4:]
	}
	return dir + name
}

// SettingsName is the name of the user's settings in the client's config
// folder.
const SettingsName = "settings.json"

// LocalSettingsName is the name of the user's own settings in a project's .claude
// folder; the shared ones there are called SettingsName.
const LocalSettingsName = "settings.local.json"

// Options say what to wire, and where.
type Options struct {
	File   string   // the settings file
	State  string   // our state folder, for the record and the backups
	Binary string   // absolute path of session-end-archive, with the others beside it; Install only
	Events []string // Install only; empty means DefaultEvents
	GOOS   string   // the system that the client runs on
	Now    time.Time
	DryRun bool // work everything out, write nothing
}

// Result is what was done, or with DryRun what would be.
type Result struct {
	File    string
	Target  string // the file behind symbolic links, if it is another one
	Changed bool
	Created bool   // there was no file
	Removed bool   // the file is gone again, as it was before
	Diff    string // unified; "" if nothing changes
	Backup  string // the copy of what was there before
	InPlace bool   // written in place because its folder takes no new file

	// Hooks are our entries as they were read back from the file, or with
	// DryRun as they would be.
	Hooks []Hook
}

// Install puts our entries into the settings file. What is there already in a
// form of the user's stays; see Hook.Plain. Nothing is written if there is
// nothing to change, or on any error.
func Install(o Options) (*Result, error) {
	if !filepath.IsAbs(o.Binary) && o.GOOS != "windows" {
		return nil, fmt.Errorf("path of the hook %q is not absolute", o.Binary)
	}
	if !utf8.ValidString(o.Binary) {
		return nil, fmt.Errorf("path of the hook %q is not UTF-8, which settings cannot hold", o.Binary)
	}
	wirings := o.wirings()
	var fresh *Record // what this run creates
	had := false      // entries of ours were there before
	e := o.edit(func(data []byte) ([]byte, bool, error) {
		result, rec, err := add(data, wirings...)
		if err != nil {
			return nil, false, err
		}
		fresh, had = rec, false
		if d, err := parse(data); err == nil {
			had = len(d.ours("")) > 0
		}
		return result, false, nil
	})
	e.commit = func() error {
		_, err := os.Stat(filepath.Dir(o.File))
		return o.remember(fresh, had, errors.Is(err, fs.ErrNotExist))
	}
	return o.run(e)
}

// wirings says which program is to run at which events.
func (o Options) wirings() []wiring {
	events := o.Events
	if len(events) == 0 {
		events = DefaultEvents
	}
	var all []wiring
	for _, event := range events {
		binary := o.Binary
		if name := Program(event); name != Program("SessionEnd") {
			binary = Beside(o.Binary, name)
		}
		w := wiring{command: ShellCommand(binary)}
		if o.GOOS == "windows" {
			// There is no sh to count on, so no shell is asked for.
			w.command, w.args = binary, []string{}
		}
		i := slices.IndexFunc(all, func(have wiring) bool { return have.command == w.command })
		if i < 0 {
			i = len(all)
			all = append(all, w)
		}
		all[i].events = append(all[i].events, event)
	}
	return all
}

// Uninstall takes all our entries out of the settings file.
func Uninstall(o Options) (*Result, error) {
	records, err := o.records()
	if err != nil {
		return nil, err
	}
	kept := records.Files[o.File]
	var rec *Record
	if kept != nil {
		rec = &kept.Record
	}
	res, err := o.run(o.edit(func(data []byte) ([]byte, bool, error) {
		if data == nil {
			return nil, false, nil
		}
		return strip(data, rec)
	}))
	if err != nil || o.DryRun || kept == nil {
		return res, err
	}
	if kept.Folder && res.Removed {
		// Only if it is empty: then it is as it was before us.
		if err := os.Remove(filepath.Dir(o.File)); err != nil && !errors.Is(err, fs.ErrNotExist) && !isNotEmpty(filepath.Dir(o.File)) {
			return res, err
		}
	}
	delete(records.Files, o.File)
	return res, o.save(records)
}

func isNotEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}

func (o Options) edit(work func([]byte) ([]byte, bool, error)) edit {
	return edit{path: o.File, backups: filepath.Join(o.State, "backups"), now: o.Now, work: work}
}

// run makes the edit and reports from what is then in the file.
func (o Options) run(e edit) (*Result, error) {
	var c change
	var err error
	if o.DryRun {
		c, _, err = e.plan()
	} else {
		c, err = e.apply()
	}
	if err != nil {
		return nil, fmt.Errorf("%s %w", o.File, err)
	}
	res := &Result{
		File: o.File, Changed: c.changed(), Created: c.before == nil && c.after != nil,
		Removed: c.before != nil && c.after == nil, Backup: c.backup, InPlace: c.inPlace,
	}
	if c.target != o.File {
		res.Target = c.target
	}
	if res.Changed {
		res.Diff = string(diff.Diff(o.File, c.before, o.File+" (new)", c.after))
	}
	content := c.after
	if !o.DryRun {
		if content, _, err = readSettings(c.target); err != nil {
			return nil, fmt.Errorf("%s %w", o.File, err)
		}
	}
	if content == nil {
		return res, nil
	}
	d, err := parse(content)
	if errors.Is(err, errEmpty) {
		return res, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s %w", o.File, err)
	}
	res.Hooks = d.ours("")
	for i := range res.Hooks {
		res.Hooks[i].File = o.File
	}
	return res, nil
}

// fileRecord is what is remembered about one settings file.
type fileRecord struct {
	Record
	Folder bool `json:"folder,omitempty"` // the file's folder was made too
}

// recordFile is the content of install.json in the state folder.
type recordFile struct {
	Files map[string]*fileRecord `json:"files"`
}

func (o Options) recordPath() string { return filepath.Join(o.State, "install.json") }

func (o Options) records() (*recordFile, error) {
	r := &recordFile{Files: map[string]*fileRecord{}}
	data, err := os.ReadFile(o.recordPath())
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("record of the installation %s: %w", o.recordPath(), err)
	}
	if r.Files == nil {
		r.Files = map[string]*fileRecord{}
	}
	return r, nil
}

// WiredAt is when the wiring was last changed by an install, zero if that is not
// known.
func WiredAt(state string) time.Time {
	fi, err := os.Stat(Options{State: state}.recordPath())
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime()
}

// Recorded lists the settings files that an install has changed and no
// uninstall has changed back, sorted.
func Recorded(state string) ([]string, error) {
	r, err := Options{State: state}.records()
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(r.Files)), nil
}

func (o Options) save(r *recordFile) error {
	if len(r.Files) == 0 {
		if err := durable.Remove(o.recordPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(o.State); err != nil {
		return err
	}
	return durable.ReplaceFile(o.recordPath(), append(data, '\n'))
}

// remember notes what is about to be created. If entries of ours were there
// before, what an earlier run created is still true; without a note from then
// there is none now either, and removing takes all it empties for ours.
func (o Options) remember(fresh *Record, had, folder bool) error {
	records, err := o.records()
	if err != nil {
		return err
	}
	if !had {
		records.Files[o.File] = &fileRecord{Record: *fresh, Folder: folder}
		return o.save(records)
	}
	kept := records.Files[o.File]
	if kept == nil {
		return nil
	}
	if kept.Hooks == nil {
		kept.Hooks = fresh.Hooks
	}
	for event, i := range fresh.Events {
		kept.created(event, i.Tail)
	}
	for event, i := range fresh.Groups {
		if kept.Groups == nil {
			kept.Groups = map[string]Inserted{}
		}
		kept.Groups[event] = i
	}
	return o.save(records)
}

// Settings is a read-only view of a settings file.
type Settings struct {
	File string
	doc  *document
}

// Read reads a settings file. A missing or an empty one is nil without an
// error.
func Read(file string) (*Settings, error) {
	data, _, err := readSettings(file)
	if err != nil || data == nil {
		return nil, wrap(file, err)
	}
	d, err := parse(data)
	if errors.Is(err, errEmpty) {
		return nil, nil
	}
	if err != nil {
		return nil, wrap(file, err)
	}
	return &Settings{File: file, doc: d}, nil
}

func wrap(file string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %w", file, err)
}

// Loose gives the line of the first comment or trailing comma, or of what else
// strict JSON does not allow; 0 if there is none. The client loads nothing of
// such a file, hooks included (observed on 2.1.332).
func (s *Settings) Loose() int {
	var syntax *json.SyntaxError
	if err := json.Unmarshal([]byte(s.doc.text), new(json.RawMessage)); !errors.As(err, &syntax) {
		return 0
	}
	at := max(int(syntax.Offset)-1, 0) // the offset counts the offending byte
	// After a trailing comma that is a bracket, perhaps some lines below.
	if before := strings.TrimRight(s.doc.text[:at], whitespace); strings.HasSuffix(before, ",") && s.doc.text[at] != '/' {
		at = len(before) - 1
	}
	return s.doc.line(at)
}

// Hooks lists all hook entries, ours and others'.
func (s *Settings) Hooks() []Hook {
	hooks := s.doc.hooks()
	for i := range hooks {
		hooks[i].File = s.File
	}
	return hooks
}

// Value gives a top-level value as JSON without comments, and its line. A
// missing one is nil.
func (s *Settings) Value(name string) (json.RawMessage, int) {
	m, i := member(s.doc.root, name)
	if i < 0 {
		return nil, 0
	}
	line := s.doc.line(m.Value.StartOffset)
	v := m.Value.Clone()
	v.Minimize()
	return json.RawMessage(strings.Trim(string(v.Pack()), whitespace)), line
}

// Env gives the variables that the settings add to the client's environment
// and to that of its hooks.
func (s *Settings) Env() map[string]string {
	raw, _ := s.Value("env")
	var env map[string]any
	if json.Unmarshal(raw, &env) != nil {
		return nil
	}
	out := map[string]string{}
	for name, value := range env {
		out[name] = fmt.Sprint(value)
	}
	return out
}
