package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/internal/install"
	"github.com/session-keeper/session-keeper/transcript"
)

const (
	// hookPatience bounds the hook itself, as the client does by default.
	hookPatience = 1500 * time.Millisecond
	// archivePatience is how long the worker may take for the sample.
	archivePatience = 30 * time.Second
	// archivePoll is the pause between two looks at the archive.
	archivePoll = 20 * time.Millisecond
)

func newSelfTestCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "self-test",
		Short: "See the main job work: archive a sample, lose it, restore it",
		Long: `See the main job work, with or without Claude Code on this machine.

A made-up session is archived by the very command that is wired in
settings.json, run as Claude Code runs it, then deleted and restored, and its
files are compared byte for byte. All of that happens in a temporary home of
its own: your sessions, your archive and your settings are not touched.

At last, Claude Code's own settings are looked at: a hook that does its work is
of no use in a file that Claude Code does not load.

Exit codes: 0 it works; 1 it does not; 2 wrong usage; 4 the hook does its work,
but Claude Code will not run it.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.selfTest(cmd.Context())
		},
	}
}

func (a *app) selfTest(ctx context.Context) (err error) {
	h, err := a.wiredHook()
	if err != nil {
		return err
	}
	// A command that the user arranged may set variables of its own, and then
	// the sample would end up in the user's archive.
	if !h.Plain {
		a.say("warning", "the hook is wired in a way of your own, which is not run here; the hook itself is")
		h.Exec, h.Command, h.Args = false, install.ShellCommand(h.Binary), nil
	}
	if err := a.printf("Wired at SessionEnd: %s\n", h.Display()); err != nil {
		return err
	}
	t, err := a.trySample(ctx, h)
	if err != nil {
		return err
	}
	if err := a.printf("The hook returned after %d ms\nThe sample session is in the archive\n", t.took.Milliseconds()); err != nil {
		return err
	}
	done := fmt.Sprintf("Deleted and restored, %s equal byte for byte", plural(len(t.files), "file"))
	s, err := a.settings()
	if err != nil {
		return err
	}
	if blocked := a.blocked(ctx, s); len(blocked) > 0 {
		return errors.Join(a.printf("%s\n", done), blockedError("the hook does its work, but sessions will not be archived", blocked))
	}
	return a.printf("%s: it works\n", done)
}

// trySample has a hook archive a sample session in a temporary home, loses it,
// and restores it.
func (a *app) trySample(ctx context.Context, h install.Hook) (t *sample, err error) {
	dir, err := os.MkdirTemp(a.getenv("TMPDIR"), "session-keeper-self-test-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, removeUsed(dir)) }()
	// The client names its folders by real paths.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	t = newSample(a, dir, h)
	if err := t.write(); err != nil {
		return nil, fmt.Errorf("write the sample: %w", err)
	}
	if t.took, err = t.runHook(ctx); err != nil {
		return nil, fail(exitFailed, err, "session-keeper doctor looks further")
	}
	if err := t.awaitArchive(ctx); err != nil {
		return nil, fail(exitFailed, err, "session-keeper doctor looks further")
	}
	if err := os.RemoveAll(filepath.Join(t.configDir, "projects")); err != nil {
		return nil, err
	}
	if err := t.restore(ctx); err != nil {
		return nil, err
	}
	return t, t.compare()
}

// removeUsed removes a folder in which the hook's worker may still be at work:
// the session is in the archive before the worker is done with its spool and its
// log. What it makes meanwhile keeps a removal from succeeding, or comes after it.
func removeUsed(dir string) error {
	const (
		patience = 10 * time.Second
		pause    = 50 * time.Millisecond
	)
	for start := time.Now(); ; time.Sleep(pause) {
		err := os.RemoveAll(dir)
		if err == nil {
			time.Sleep(pause)
			if _, err = os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			err = errors.Join(fmt.Errorf("%s came back after it was removed", dir), err)
		}
		if time.Since(start) > patience {
			return fmt.Errorf("remove the sample: %w", err)
		}
	}
}

// wiredHook finds the entry that is wired at SessionEnd.
func (a *app) wiredHook() (install.Hook, error) {
	s, err := a.settings()
	if err != nil {
		return install.Hook{}, err
	}
	file, err := userSettings(s)
	if err != nil {
		return install.Hook{}, err
	}
	settings, err := install.Read(file)
	if err != nil {
		return install.Hook{}, err
	}
	if settings != nil {
		for _, h := range settings.Hooks() {
			if h.Ours() && h.Event == "SessionEnd" {
				return h, nil
			}
		}
	}
	return install.Hook{}, fail(exitFailed, fmt.Errorf("no SessionEnd hook of ours in %s", file), "session-keeper install")
}

// sample is a made-up session in a home of its own.
type sample struct {
	app       *app
	hook      install.Hook
	home      string
	project   string
	configDir string
	store     string
	id        string
	files     map[string][]byte // by path below the config folder
	path      string            // of the transcript
	took      time.Duration     // by the hook
}

func newSample(a *app, dir string, h install.Hook) *sample {
	t := &sample{
		app: a, hook: h,
		home:      filepath.Join(dir, "home"),
		project:   filepath.Join(dir, "home", "a project"),
		configDir: filepath.Join(dir, "home", ".claude"),
		store:     filepath.Join(dir, "archive"),
		id:        sampleID(a.now()),
	}
	folder := filepath.Join("projects", transcript.FolderName(t.project))
	t.path = filepath.Join(t.configDir, folder, t.id+".jsonl")
	t.files = map[string][]byte{
		filepath.Join(folder, t.id+".jsonl"):                           t.records(),
		filepath.Join(folder, t.id, "tool-results", "toolu_01.txt"):    []byte("a result that was too long for the conversation\r\n\x00\xff"),
		filepath.Join(folder, t.id, "subagents", "agent-a1.jsonl"):     []byte(`{"type":"user","isSidechain":true,"sessionId":"` + t.id + `"}` + "\n"),
		filepath.Join(folder, t.id, "subagents", "agent-a1.meta.json"): []byte(`{"agentType":"Explore"}`),
	}
	return t
}

// sampleID is a valid session id (a UUID, version 4) that shows where it comes
// from and differs from run to run.
func sampleID(now time.Time) string {
	n := uint64(now.UnixNano())
	return fmt.Sprintf("5e1f7e57-%04x-4%03x-8%03x-%012x", uint16(n>>48), n>>36&0xfff, n>>24&0xfff, n&0xffffffffffff)
}

// records is a short conversation as the client writes it, and a last line
// that is cut off, as a crash leaves it.
func (t *sample) records() []byte {
	now := t.app.now().UTC()
	prompt, answer := sampleID(now.Add(1)), sampleID(now.Add(2))
	base := map[string]any{"sessionId": t.id, "cwd": t.project, "version": "2.1.332", "isSidechain": false, "userType": "external", "entrypoint": "cli"}
	record := func(more map[string]any) []byte {
		all := map[string]any{}
		for k, v := range base {
			all[k] = v
		}
		for k, v := range more {
			all[k] = v
		}
		line, err := json.Marshal(all)
		if err != nil {
			panic(err) // of strings and maps alone
		}
		return append(line, '\n')
	}
	var b bytes.Buffer
	b.Write(record(map[string]any{
		"type": "user", "uuid": prompt, "parentUuid": nil, "timestamp": now.Format("2006-01-02T15:04:05.000Z"),
		"message": map[string]any{"role": "user", "content": "Is this kept? \U0001F4DA é"},
	}))
	b.Write(record(map[string]any{
		"type": "assistant", "uuid": answer, "parentUuid": prompt, "timestamp": now.Format("2006-01-02T15:04:05.000Z"),
		"message": map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": []any{map[string]any{"type": "text", "text": "Byte for byte."}}},
	}))
	b.WriteString(`{"type":"last-prompt","leafUuid":"` + answer + `","sessionId":"` + t.id + `"}` + "\n")
	b.WriteString(`{"type":"user","uuid":"cut o`)
	return b.Bytes()
}

func (t *sample) write() error {
	if err := os.MkdirAll(t.project, 0o700); err != nil {
		return err
	}
	for name, data := range t.files {
		path := filepath.Join(t.configDir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// env is the environment of the sample's home: nothing of the user's but what
// programs need to run at all.
func (t *sample) env() []string {
	env := []string{
		"HOME=" + t.home,
		"CLAUDE_CONFIG_DIR=" + t.configDir,
		"CLAUDE_PROJECT_DIR=" + t.project,
		"SESSION_KEEPER_HOME=" + t.store,
		"XDG_CONFIG_HOME=" + filepath.Join(t.home, ".config"),
		"XDG_DATA_HOME=" + filepath.Join(t.home, ".local", "share"),
		"XDG_STATE_HOME=" + filepath.Join(t.home, ".local", "state"),
		"XDG_CACHE_HOME=" + filepath.Join(t.home, ".cache"),
		"APPDATA=" + filepath.Join(t.home, "AppData", "Roaming"),
		"LOCALAPPDATA=" + filepath.Join(t.home, "AppData", "Local"),
		"USERPROFILE=" + t.home,
		"NO_COLOR=1",
	}
	for _, name := range []string{"PATH", "TMPDIR", "TMP", "TEMP", "SYSTEMROOT", "LANG", "LC_ALL", "GOCOVERDIR"} {
		if v := t.app.getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// runHook runs the wired command as the client does: by sh -c, the event on
// standard input, in the project's directory.
func (t *sample) runHook(ctx context.Context) (time.Duration, error) {
	fields := map[string]any{"session_id": t.id, "transcript_path": t.path, "cwd": t.project, "hook_event_name": t.hook.Event}
	if t.hook.Event == "SessionEnd" {
		fields["reason"] = "prompt_input_exit"
	}
	event, err := json.Marshal(fields)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, archivePatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", t.hook.Command)
	if t.hook.Exec {
		cmd = exec.CommandContext(ctx, t.hook.Command, t.hook.Args...)
	}
	cmd.Dir, cmd.Env = t.project, t.env()
	cmd.Stdin = bytes.NewReader(event)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err = cmd.Run()
	took := time.Since(start)
	switch {
	case err != nil:
		return took, fmt.Errorf("the hook failed (%w): %s", err, strings.TrimSpace(stderr.String()))
	case stdout.Len() > 0:
		return took, fmt.Errorf("the hook printed %q, where nothing is expected", shorten(stdout.String()))
	case took > hookPatience:
		return took, fmt.Errorf("the hook took %v; Claude Code gives it %v where no timeout is set", took.Round(time.Millisecond), hookPatience)
	}
	return took, nil
}

// awaitArchive waits until the worker has stored the sample.
func (t *sample) awaitArchive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, archivePatience)
	defer cancel()
	tick := time.NewTicker(archivePoll)
	defer tick.Stop()
	var last error
	for {
		var complete bool
		if complete, last = t.archived(ctx); complete {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if last == nil {
				last = errors.New("not all of its files are there")
			}
			return fmt.Errorf("the sample session did not come into the archive within %v: %w", archivePatience, last)
		}
	}
}

func (t *sample) archived(ctx context.Context) (bool, error) {
	store, err := archive.Open(t.store)
	if err != nil {
		return false, err
	}
	g, err := store.Latest(ctx, t.id)
	if err != nil || g == nil {
		return false, err
	}
	return len(g.Files) >= len(t.files), nil
}

// restore runs this program on the sample's home.
func (t *sample) restore(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, archivePatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "restore", t.id)
	cmd.Dir, cmd.Env = t.project, t.env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("restore failed (%w): %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// compare checks that every file is back, byte for byte.
func (t *sample) compare() error {
	for name, want := range t.files {
		f, err := os.Open(filepath.Join(t.configDir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s was not restored", name)
		}
		if err != nil {
			return err
		}
		got, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s came back with other bytes", name)
		}
	}
	return nil
}
