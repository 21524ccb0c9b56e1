package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/session-keeper/session-keeper/internal/handoff"
	"github.com/session-keeper/session-keeper/internal/install"
)

// A scope is where a settings file of the client has its say. Later ones
// override earlier ones; hooks of all of them run.
type scope string

const (
	scopeUser    scope = "user"
	scopeProject scope = "project"
	scopeLocal   scope = "local"
	scopeManaged scope = "managed"
)

// clientFile is one settings file of the client.
type clientFile struct {
	scope    scope
	file     string
	settings *install.Settings // nil if there is none, or it cannot be read
	err      error
}

// clientSettings reads the settings files that hold for a session started in
// the current directory, in the order of precedence, weakest first.
func (w *World) clientSettings() []clientFile {
	var files []clientFile
	add := func(s scope, file string) {
		if file == "" || slices.ContainsFunc(files, func(f clientFile) bool { return f.file == file }) {
			return
		}
		settings, err := install.Read(file)
		files = append(files, clientFile{scope: s, file: file, settings: settings, err: err})
	}
	if dir := w.clientDir(); dir != "" {
		add(scopeUser, filepath.Join(dir, install.SettingsName))
	}
	for _, f := range ProjectFiles(w.Env.Dir) {
		s := scopeProject
		if strings.HasSuffix(f, ".local.json") {
			s = scopeLocal
		}
		add(s, f)
	}
	add(scopeManaged, w.Managed)
	return files
}

// clientDir is the client's config folder in use; "" if it is not known.
func (w *World) clientDir() string {
	if w.Settings == nil || len(w.Settings.ClientDirs) == 0 {
		return ""
	}
	return w.Settings.ClientDirs[0]
}

// ProjectFiles names the settings files that a project may have for the
// client: its shared ones and the user's own.
func ProjectFiles(dir string) []string {
	if dir == "" {
		return nil
	}
	return []string{filepath.Join(dir, ".claude", install.SettingsName), filepath.Join(dir, ".claude", install.LocalSettingsName)}
}

// wired is one place from which a program of ours is run.
type wired struct {
	install.Hook
	scope  scope
	plugin string // the plugin's folder, "" for settings
}

// sessionEnd lists everything that runs at the end of a session, ours and
// others'.
func (w *World) sessionEnd() (ours, others []wired) {
	sort := func(h wired) {
		if h.Event != "SessionEnd" {
			return
		}
		if h.Ours() {
			ours = append(ours, h)
		} else {
			others = append(others, h)
		}
	}
	for _, f := range w.clientSettings() {
		if f.settings == nil {
			continue
		}
		for _, h := range f.settings.Hooks() {
			sort(wired{Hook: h, scope: f.scope})
		}
	}
	for _, p := range w.plugins() {
		for _, h := range p.hooks {
			sort(wired{Hook: h, plugin: p.dir})
		}
	}
	return ours, others
}

// plugin is an installed plugin of the client with hooks.
type plugin struct {
	dir   string
	hooks []install.Hook
}

// maxPlugins bounds how many plugin folders are looked at.
const maxPlugins = 500

// plugins finds the hooks of installed plugins: those that the client's list
// names (observed on 2.1.332). A plugin that is off in the settings is left
// out.
func (w *World) plugins() []plugin {
	dir := w.clientDir()
	if dir == "" {
		return nil
	}
	var list struct {
		Plugins map[string]json.RawMessage `json:"plugins"`
	}
	data, err := os.ReadFile(filepath.Join(dir, "plugins", "installed_plugins.json"))
	if err != nil || json.Unmarshal(data, &list) != nil {
		return nil
	}
	enabled := map[string]bool{}
	for _, f := range w.clientSettings() {
		if f.settings == nil {
			continue
		}
		raw, _ := f.settings.Value("enabledPlugins")
		var m map[string]any
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		for name, v := range m {
			on, isBool := v.(bool)
			enabled[name] = !isBool || on
		}
	}
	var found []plugin
	names := make([]string, 0, len(list.Plugins))
	for name := range list.Plugins {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names[:min(len(names), maxPlugins)] {
		if !enabled[name] {
			continue
		}
		for _, root := range installPaths(list.Plugins[name]) {
			s, err := install.Read(filepath.Join(root, "hooks", "hooks.json"))
			if err != nil || s == nil {
				continue // the client leaves out such a plugin as well
			}
			found = append(found, plugin{dir: root, hooks: s.Hooks()})
		}
	}
	return found
}

// installPaths takes "installPath" out of an entry, which is an object or a
// list of them, depending on the client's version.
func installPaths(raw json.RawMessage) []string {
	type entry struct {
		InstallPath string `json:"installPath"`
	}
	var one entry
	var many []entry
	if json.Unmarshal(raw, &many) != nil {
		if json.Unmarshal(raw, &one) != nil {
			return nil
		}
		many = []entry{one}
	}
	var paths []string
	for _, e := range many {
		if filepath.IsAbs(e.InstallPath) && !slices.Contains(paths, e.InstallPath) {
			paths = append(paths, e.InstallPath)
		}
	}
	return paths
}

// checkWiring looks whether the client runs our hook at the end of a session,
// exactly once, and whether what it runs is there and is this version.
func checkWiring(ctx context.Context, w *World) []Finding {
	var found []Finding
	files := w.clientSettings()
	notLoaded := map[string]bool{}
	for _, f := range files {
		switch {
		case f.err != nil:
			found = append(found, problem("settings-unreadable", "correct the file, then "+fixInstall,
				"%v; Claude Code ignores the whole file, hooks included", f.err).at(f.file, 0))
		case f.settings != nil && f.settings.Loose() > 0:
			line := f.settings.Loose()
			notLoaded[f.file] = true
			found = append(found, problem("settings-not-strict", fmt.Sprintf("remove comments and trailing commas from line %d on in %s", line, f.file),
				"%s, line %d, is not strict JSON; Claude Code ignores the whole file, hooks included", w.short(f.file), line).at(f.file, line))
		}
	}
	for _, f := range files {
		if f.settings == nil || notLoaded[f.file] {
			continue
		}
		if wrong := w.checkTypes(f); len(wrong) > 0 {
			notLoaded[f.file] = true
			found = append(found, wrong...)
		}
	}
	found = append(found, checkDisabled(files)...)
	if w.clientDir() == "" {
		return append(found, problem("no-client-folder", "set HOME or CLAUDE_CONFIG_DIR", "the client's config folder is not known"))
	}
	ours, _ := w.sessionEnd()
	if len(ours) == 0 {
		return append(found, problem("not-wired", fixInstall, "no SessionEnd hook of ours in %s: sessions are not archived when they end",
			w.short(filepath.Join(w.clientDir(), install.SettingsName))))
	}
	for _, h := range ours {
		if notLoaded[h.File] {
			continue
		}
		place := "settings"
		switch {
		case h.plugin != "":
			place = "plugin " + w.short(h.plugin)
		case h.scope != scopeUser:
			place = string(h.scope) + " settings"
		}
		f := ok("wired", "SessionEnd runs %s (%s, line %d)", h.Display(), w.short(h.File), h.Line).at(h.File, h.Line)
		if h.scope == scopeProject || h.scope == scopeLocal {
			f = note("wired-project", "", "the project's own settings run our hook as well: %s (%s, line %d)", h.Display(), w.short(h.File), h.Line).at(h.File, h.Line)
		}
		found = append(found, f)
		found = append(found, w.checkEntry(h, place)...)
		found = append(found, w.checkRuns(ctx, h)...)
	}
	found = append(found, checkTwice(ours)...)
	for _, h := range w.otherEvents() {
		if notLoaded[h.File] {
			continue
		}
		found = append(found, ok("wired", "%s runs %s (%s, line %d)", h.Event, h.Display(), w.short(h.File), h.Line).at(h.File, h.Line))
		found = append(found, w.checkRuns(ctx, h)...)
	}
	return found
}

// otherEvents lists what runs of ours in the settings at other events than the
// end of a session.
func (w *World) otherEvents() []wired {
	var ours []wired
	for _, f := range w.clientSettings() {
		if f.settings == nil {
			continue
		}
		for _, h := range f.settings.Hooks() {
			if h.Ours() && h.Event != "SessionEnd" {
				ours = append(ours, wired{Hook: h, scope: f.scope})
			}
		}
	}
	return ours
}

// checkEntry looks for words in an entry that keep it from running.
func (w *World) checkEntry(h wired, place string) []Finding {
	var found []Finding
	if h.If != "" {
		found = append(found, problem("wired-if", fmt.Sprintf("remove \"if\" from line %d on in %s", h.Line, h.File),
			`the hook in %s has an "if": on SessionEnd the client then never runs it`, place).at(h.File, h.Line))
	}
	if h.Matcher != "" && h.Matcher != "*" {
		found = append(found, note("wired-matcher", "", "the hook in %s runs only where a session ends with %q", place, h.Matcher).at(h.File, h.Line))
	}
	if h.Async {
		found = append(found, note("wired-async", "", `the hook in %s is "async": 2.1.332 lets it finish, other versions may not`, place).at(h.File, h.Line))
	}
	return found
}

// checkTwice looks for entries that make the hook run more than once. The
// client runs the same command of several settings files once, but a plugin's
// copy in addition.
func checkTwice(ours []wired) []Finding {
	distinct := map[string]bool{}
	var places []string
	for _, h := range ours {
		key := h.plugin + "\x00" + h.Display()
		if distinct[key] && h.plugin == "" && !sameFile(ours, h) {
			continue
		}
		distinct[key] = true
		where := h.File
		if h.Line > 0 {
			where += ":" + strconv.Itoa(h.Line)
		}
		places = append(places, where)
	}
	if len(places) < 2 {
		return nil
	}
	fix := fixInstall
	if slices.ContainsFunc(ours, func(h wired) bool { return h.plugin != "" }) {
		fix = "keep either the plugin or the entry in the settings; the one in the settings gets more time (session-keeper uninstall removes it)"
	}
	return []Finding{note("wired-twice", fix, "the hook is wired %d times and runs each time, which wastes time but harms nothing: %s", len(places), strings.Join(places, ", "))}
}

// sameFile reports whether h's file holds the same command twice.
func sameFile(ours []wired, h wired) bool {
	n := 0
	for _, o := range ours {
		if o.File == h.File && o.Display() == h.Display() {
			n++
		}
	}
	return n > 1
}

// checkRuns looks whether the program of an entry is there, may be run, and
// is of this version.
func (w *World) checkRuns(ctx context.Context, h wired) []Finding {
	path := h.Binary
	if h.plugin != "" {
		path = strings.NewReplacer("${CLAUDE_PLUGIN_ROOT}", h.plugin, "$CLAUDE_PLUGIN_ROOT", h.plugin).Replace(path)
	}
	if w.Env.Home != "" {
		path = strings.NewReplacer("${HOME}", w.Env.Home, "$HOME", w.Env.Home).Replace(path)
		if rest, tilde := strings.CutPrefix(path, "~/"); tilde {
			path = filepath.Join(w.Env.Home, rest)
		}
	}
	if strings.Contains(path, "$") || !filepath.IsAbs(path) {
		return []Finding{note("hook-not-checked", "", "%s is not an absolute path, so it was not tried", h.Binary).at(h.File, h.Line)}
	}
	fix := fixInstall
	switch {
	case h.plugin != "":
		fix = "install the plugin again"
	case h.scope != scopeUser, !h.Plain:
		// What install does not touch.
		fix = fmt.Sprintf("correct the command in line %d of %s", h.Line, h.File)
	}
	if found := w.checkProgram(ctx, h, "hook", path, fix); found != nil {
		return found
	}
	return w.checkProgram(ctx, h, "worker", handoff.WorkerOf(path), fix)
}

// checkProgram looks whether a program, the hook's or the one that it starts,
// is there, may be run, and is of this version.
func (w *World) checkProgram(ctx context.Context, h wired, what, path, fix string) []Finding {
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Finding{problem(what+"-missing", fix, "%s does not exist", path).at(h.File, h.Line)}
	case err != nil:
		return []Finding{problem(what+"-missing", fix, "%v", err).at(h.File, h.Line)}
	case fi.IsDir():
		return []Finding{problem(what+"-missing", fix, "%s is a folder", path).at(h.File, h.Line)}
	case w.Env.GOOS != "windows" && fi.Mode()&0o111 == 0:
		return []Finding{problem(what+"-not-executable", "chmod +x "+install.Quote(path), "%s may not be executed", path).at(h.File, h.Line)}
	}
	out, err := w.Run(ctx, path, "-version")
	if err != nil {
		return []Finding{problem(what+"-fails", fix, "%s -version fails: %v %s", path, err, firstLine(out)).at(h.File, h.Line)}
	}
	_, version, _ := strings.Cut(firstLine(out), " ")
	if version != w.Version {
		return []Finding{note(what+"-version", fix, "%s is version %s, this program is %s", path, version, w.Version).at(h.File, h.Line)}
	}
	return nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	const maxShown = 200
	return line[:min(len(line), maxShown)]
}

// checkDisabled looks for the switches that keep hooks of the settings from
// running. The strongest file that says anything about it wins.
func checkDisabled(files []clientFile) []Finding {
	var off *clientFile
	line := 0
	for _, f := range files {
		if f.settings == nil {
			continue
		}
		raw, at := f.settings.Value("disableAllHooks")
		switch string(raw) {
		case "true":
			off, line = &f, at
		case "false":
			off = nil
		}
	}
	var found []Finding
	if off != nil {
		found = append(found, problem("hooks-disabled", `remove "disableAllHooks" there`, "%s switches off all hooks", off.file).at(off.file, line))
	}
	for _, f := range files {
		if f.scope != scopeManaged || f.settings == nil {
			continue
		}
		for _, name := range []string{"allowManagedHooksOnly", "strictPluginOnlyCustomization"} {
			if raw, at := f.settings.Value(name); string(raw) == "true" || name == "strictPluginOnlyCustomization" && strings.Contains(string(raw), `"hooks"`) {
				found = append(found, problem("hooks-managed", "ask the administrator to add the hook to the managed settings, or install it as a plugin",
					"the administrator's settings keep hooks of the user's settings from running (%s)", name).at(f.file, at))
			}
		}
	}
	return found
}

// Budget rules of the client for SessionEnd hooks (observed on 2.1.332):
// without a timeout 1.5 s, with one that, to at most 60 s; the variable
// replaces both numbers; a plugin's timeout does not count.
const (
	defaultBudget    = 1.5
	maxBudget        = 60
	budgetVariable   = "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS"
	enoughForHandOff = 1.0 // seconds; a hand-off takes milliseconds
)

// budget gives the seconds that a SessionEnd hook has. timeout is its own in
// seconds, 0 for none; env is the variable in milliseconds, 0 for none.
func budget(timeout, env float64, plugin bool) float64 {
	limit := defaultBudget
	if env > 0 {
		limit = env / 1000
	}
	if plugin || timeout <= 0 {
		return limit
	}
	if env <= 0 {
		limit = maxBudget
	}
	return min(timeout, limit)
}

// checkBudget tells how long the client lets our hook run, and finds timeouts
// that were meant as milliseconds.
func checkBudget(_ context.Context, w *World) []Finding {
	var found []Finding
	env, from := 0.0, ""
	read := func(value, where string) {
		if value == "" {
			return
		}
		ms, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || ms <= 0 {
			found = append(found, note("budget-variable", "give milliseconds as a number, or unset it", "%s=%.64q in %s is no number of milliseconds", budgetVariable, value, where))
			return
		}
		env, from = ms, where
	}
	read(w.Env.Getenv(budgetVariable), "the environment")
	for _, f := range w.clientSettings() {
		if f.settings != nil {
			read(f.settings.Env()[budgetVariable], f.file)
		}
	}
	ours, others := w.sessionEnd()
	for _, h := range slices.Concat(ours, others) {
		if seconds, err := strconv.ParseFloat(h.Timeout, 64); h.Timeout != "" && (err != nil || seconds > maxBudget || seconds <= 0) {
			fix := "write the timeout in seconds"
			if h.Ours() && h.plugin == "" && h.scope == scopeUser {
				fix = fixInstall
			}
			found = append(found, note("timeout-unit", fix, "timeout %s of %s: the unit is seconds, and SessionEnd takes at most %d", h.Timeout, h.Display(), maxBudget).at(h.File, h.Line))
		}
	}
	for _, h := range ours {
		seconds, _ := strconv.ParseFloat(h.Timeout, 64)
		b := budget(seconds, env, h.plugin != "")
		why := "Claude Code's default"
		switch {
		case h.plugin != "" && env <= 0:
			why = "the default: a timeout in a plugin does not raise it"
		case env > 0 && b == env/1000:
			why = budgetVariable + " in " + from
		case seconds > 0:
			why = "the hook's timeout"
			if b < seconds {
				why = "the most that a timeout can give"
			}
		}
		f := ok("budget", "at a session's end the hook has %s s (%s)", strconv.FormatFloat(b, 'f', -1, 64), why)
		if b < enoughForHandOff {
			f.Severity = Note
			f.Fix = "raise it to 60 s: " + fixInstall
			f.Code = "budget-short"
		}
		found = append(found, f.at(h.File, h.Line))
	}
	return found
}

// checkOtherHooks lists what else runs at the end of a session. On 2.1.332
// each hook has its own time; older clients let all of them share it.
func checkOtherHooks(_ context.Context, w *World) []Finding {
	_, others := w.sessionEnd()
	var found []Finding
	for _, h := range others {
		what := h.Display()
		if what == "" {
			what = "a hook of type " + h.Type
		}
		found = append(found, note("other-hook", "", "another SessionEnd hook: %s (older versions of Claude Code let all of them share 1.5 s; what is cut off is caught up later)", what).at(h.File, h.Line))
	}
	return found
}
