package keeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/archive/spool"
	"github.com/session-keeper/session-keeper/hooklib"
	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/optout"
	"github.com/session-keeper/session-keeper/transcript"
)

const (
	info    = hooklib.Info
	warn    = hooklib.Warn
	failure = hooklib.Error
)

const (
	// inlineBudget is how long after its start a hook may still work on the
	// archive itself, inlineStart until when it may begin to: a disk that made
	// the hand-off slow makes the rest slow as well.
	inlineBudget = 100 * time.Millisecond
	inlineStart  = 40 * time.Millisecond
	// inlineBytes bounds the transcript that a hook works on itself.
	inlineBytes = 1 << 20
	// staleAge is how much older than an event a transcript may be before
	// that is strange. The client buffers for well under a second.
	staleAge = 10 * time.Minute
	// listBudget is how long side files are looked for, within the time that
	// the spool takes to pin them.
	listBudget = 10 * time.Millisecond
	// silentFailure is how long a store may fail to open before hooks, which do
	// not need it, tell the user.
	silentFailure = 24 * time.Hour
	// maxHeadBytes bounds what is read of a transcript to learn where it ran.
	// The system prompt of some 60 KB may come first (observed on 2.1.332).
	maxHeadBytes = 1 << 20
)

// occasion is an event in the archive's words.
type occasion struct {
	reason archive.Reason
	event  spool.Event
	ends   bool // the session is over in the client
}

// occasionOf returns what an event means here; ok is false for an event of
// another kind.
func occasionOf(event hooklib.Event, now time.Time) (o occasion, ok bool) {
	common := event.Base()
	o.event = spool.Event{
		Name:     common.Name,
		PromptID: common.PromptID,
		Agent:    common.AgentID,
		Time:     now.UTC(),
		Cwd:      common.Cwd,
	}
	switch e := event.(type) {
	case *hooklib.SessionEnd:
		// Inside a subagent nothing ends but that.
		o.reason, o.event.Reason, o.ends = archive.SessionEnd, cut(e.Reason), common.AgentID == ""
	case *hooklib.Stop:
		o.reason = archive.Stop
	case *hooklib.StopFailure:
		o.reason, o.event.Reason = archive.Stop, cut(e.Failure)
	case *hooklib.SubagentStop:
		// Session and path are the parent's, also for the compaction's
		// summariser with its empty type: the parent is what is archived.
		o.reason = archive.Stop
	default:
		return o, false
	}
	return o, true
}

// cut bounds a word from an event. Known ones have up to 30 bytes.
func cut(s string) string {
	const most = 64 // bytes
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// HandleEvent hands the session that an event names to the archive. It is the
// handler of the hook at the end of a session, and of a turn. Whatever is wrong
// with event or session is logged; an error is for the user, who can mend it.
func HandleEvent(ctx context.Context, c *hooklib.Call) error {
	o, ok := occasionOf(c.Event, time.Now())
	if !ok {
		c.Log.Log(info, "no event for this hook", "event", cut(c.Event.Base().Name))
		return nil
	}
	session := c.Event.Base().SessionID
	if session == "" {
		session = c.Env.SessionID // where another type than a string came
	}
	if !transcript.ValidSessionID(session) {
		c.Log.Log(warn, "no valid session id", "event", o.event.Name, "id", fmt.Sprintf("%q", cut(session)))
		return nil
	}
	return handleSession(ctx, c, session, o)
}

// HandleNoEvent hands the session that the hook's environment names to the
// archive, because no usable event came: on a machine that is too busy it may
// come too late. The client sets the variable for each of its hooks (observed
// on 2.1.332). What happened to the session is not known, only that it is worth
// a look; one that is archived as it is costs nothing.
func HandleNoEvent(ctx context.Context, c *hooklib.Call) (handled bool, err error) {
	session := c.Env.SessionID
	if !transcript.ValidSessionID(session) {
		return false, nil
	}
	return true, handleSession(ctx, c, session, occasion{
		reason: archive.CatchUp,
		event:  spool.Event{Time: time.Now().UTC()},
	})
}

func handleSession(ctx context.Context, c *hooklib.Call, session string, o occasion) error {
	env := config.SystemEnv()
	settings, err := config.Load(env)
	if err != nil {
		if optout.IsOff(env.Getenv) {
			return markOff(c, env, session)
		}
		return &hooklib.Failure{
			Err:  fmt.Errorf("settings: %w", err),
			Hint: "until this is mended no session is archived, because it cannot be told which ones are to be left out; then run: session-keeper archive --all",
		}
	}
	k := New(settings, c.Log)
	if k.Binary, err = os.Executable(); err != nil {
		c.Log.Log(warn, "own path", "error", err)
	}
	return k.handle(ctx, c, session, o)
}

// markOff keeps the word of SESSION_KEEPER=off although the settings cannot be
// read.
func markOff(c *hooklib.Call, env config.Env, session string) error {
	paths, err := config.PathsFor(env)
	if err == nil {
		err = optout.MarkOut(paths.State, session, optout.Off, time.Now())
	}
	if err != nil {
		c.Log.Log(warn, "mark", "error", err)
	}
	return nil
}

func (k *Keeper) handle(ctx context.Context, c *hooklib.Call, session string, o occasion) error {
	var path, cwd string
	if c.Event != nil {
		path, cwd = c.Event.Base().TranscriptPath, c.Event.Base().Cwd
	}
	dirs := []string{c.Env.ProjectDir, cwd}
	if skip, err := k.keepOut(session, o, dirs); skip || err != nil {
		return err
	}
	bundle, err := k.Locator().Locate(session, path)
	if err != nil {
		k.logNotLocated(session, path, o, err)
		return nil
	}
	if optout.HasExcludes(k.Settings) {
		// Where it began is what a person would exclude it by.
		if head := k.headCwd(bundle.Transcript); head != "" {
			if skip, err := k.keepOut(session, o, []string{head}); skip || err != nil {
				return err
			}
		}
	}
	if c.Env.ProjectDir != "" {
		cwd = c.Env.ProjectDir
	}

	dir, receipt, err := k.handOff(ctx, bundle, o, cwd)
	if err != nil {
		return err
	}
	k.remember(bundle.ConfigDir)
	k.Log.Log(info, "handed off",
		"event", o.event.Name, "reason", o.event.Reason, "session", session,
		"transcript", bundle.Transcript, "found", bundle.Found.String(), "size", receipt.Size,
		"pinned", receipt.Pinned, "side", receipt.Side, "side_skipped", receipt.SideSkipped,
		"spool", dir, "took", c.Elapsed())
	if isStale(c, o, bundle, k.Now()) {
		k.Log.Log(warn, "the client seems to have stopped writing this transcript", "session", session,
			"transcript", bundle.Transcript, "written", bundle.ModTime)
	}
	for _, other := range bundle.Others {
		k.Log.Log(warn, "the same session lies elsewhere too", "session", session, "other", other)
	}

	if !o.ends || !k.workInline(ctx, c, dir, session, receipt) || k.isSweepDue() {
		k.startWorker(dir)
	}
	if o.ends {
		return k.longFailure()
	}
	return nil
}

// isStale tells whether a transcript is older than it can be after what the
// event tells of: there was a prompt, and the client writes after each turn and
// at its end. After clear and resume its last lines follow the event (observed
// on 2.1.332). A client inside another writes no transcript when it is
// interactive (documented), which is as it should be.
func isStale(c *hooklib.Call, o occasion, b transcript.Bundle, now time.Time) bool {
	if c.Env.Child || b.Husk() || o.event.PromptID == "" || o.event.Reason == "clear" || o.event.Reason == "resume" {
		return false
	}
	return now.Sub(b.ModTime) > staleAge
}

// keepOut tells whether the session must not be archived, and marks it so that
// it stays out.
func (k *Keeper) keepOut(session string, o occasion, dirs []string) (skip bool, err error) {
	now := k.Now()
	decision, err := optout.Check(k.Settings, session, dirs, now)
	if err != nil {
		return false, &hooklib.Failure{
			Err:  fmt.Errorf("what to leave out: %w", err),
			Hint: "until this is mended no session is archived; then run: session-keeper archive --all",
		}
	}
	if !decision.Skip {
		return false, nil
	}
	switch decision.Reason {
	case optout.Forgotten:
		// No word of it may come back, not even its id.
		k.Log.Log(info, "kept out", "event", o.event.Name, "why", string(decision.Reason))
		return true, nil
	case optout.Off, optout.Paused, optout.Excluded:
		if err := optout.MarkOut(k.Settings.Paths.State, session, decision.Reason, now); err != nil {
			k.Log.Log(warn, "mark", "error", err)
		}
	}
	k.Log.Log(info, "kept out", "event", o.event.Name, "session", session, "why", string(decision.Reason), "detail", decision.Detail)
	return true, nil
}

// logNotLocated tells why nothing is archived. Events without a transcript are
// daily business: a client that was left without a prompt, one that keeps no
// transcripts, an id that it made up.
func (k *Keeper) logNotLocated(session, hint string, o occasion, err error) {
	level, message := info, "no transcript"
	pairs := []any{"event", o.event.Name, "reason", o.event.Reason, "session", session, "transcript", hint, "error", err}
	if _, statErr := os.Lstat(hint); hint != "" && statErr == nil {
		level, message = warn, "a transcript that is not under a known config folder of the client"
		pairs = append(pairs, "hint", "session-keeper archive "+hint)
	}
	k.Log.Log(level, message, pairs...)
}

// headCwd returns the directory that the first records of a transcript name,
// or "".
func (k *Keeper) headCwd(path string) string {
	if path == "" {
		return ""
	}
	f, _, err := transcript.OpenRegular(path)
	if err != nil {
		k.Log.Log(warn, "head of the transcript", "transcript", path, "error", err)
		return ""
	}
	defer f.Close()
	head, err := transcript.ReadHead(f, maxHeadBytes)
	if err != nil {
		k.Log.Log(warn, "head of the transcript", "transcript", path, "error", err)
	}
	return head.Cwd
}

// handOff puts the session into the first spool that takes it.
func (k *Keeper) handOff(ctx context.Context, b transcript.Bundle, o occasion, cwd string) (dir string, receipt spool.Receipt, err error) {
	request := spool.Request{
		StoreRoot:  k.Settings.Paths.Store,
		SessionID:  b.SessionID,
		Transcript: b.Transcript,
		Reason:     string(o.reason),
		Event:      o.event,
		ConfigDir:  b.ConfigDir,
		Folder:     b.Folder,
		Cwd:        cwd,
		Side:       sideFiles(ctx, b),
	}
	file := b.Transcript
	if file == "" {
		file = b.ProjectDir
	}
	var errs []error
	for _, dir := range k.spoolsFor(file, b.ConfigDir) {
		receipt, err := spool.HandOff(ctx, dir, request)
		if err == nil {
			if dir != config.DefaultSpool(k.Settings.Paths.State) { // that one is always looked into
				if err := config.RememberSpool(k.Settings.Paths.State, dir); err != nil {
					k.Log.Log(warn, "remember spool", "spool", dir, "error", err)
				}
			}
			return dir, receipt, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", dir, err))
		k.Log.Log(warn, "hand-off", "spool", dir, "session", b.SessionID, "pinned", receipt.Pinned, "error", err)
		if _, statErr := os.Lstat(file); errors.Is(statErr, fs.ErrNotExist) {
			// Gone between finding and linking: nothing is left to fail at.
			return "", receipt, nil
		}
	}
	return "", receipt, &hooklib.Failure{
		Err:  fmt.Errorf("session %s could not be handed to the archive: %w", b.SessionID, errors.Join(errs...)),
		Hint: "make one of these folders writable, or set XDG_STATE_HOME to one that is; session-keeper doctor tells more",
	}
}

// sideFiles yields the files beside the transcript, the newest first. None of
// them is opened, and of very many not all are looked at: a hook has no time
// for it. Whatever goes wrong here, the worker lists again, and tells.
func sideFiles(ctx context.Context, b transcript.Bundle) func(func(spool.File) bool) {
	return func(yield func(spool.File) bool) {
		ctx, cancel := context.WithTimeout(ctx, listBudget)
		defer cancel()
		files, _, err := b.ListFiles(ctx, transcript.FilesOptions{NoReads: true})
		if err != nil && ctx.Err() == nil {
			return
		}
		slices.SortStableFunc(files, func(a, b transcript.File) int { return b.ModTime.Compare(a.ModTime) })
		for _, f := range files {
			if f.Family == transcript.FamilyTranscript {
				continue
			}
			if !yield(spool.File{Family: f.Family, Rel: f.Rel, Path: f.Path}) {
				return
			}
		}
	}
}

// remember notes a config folder, so that later runs with another environment
// find its sessions and its spool.
func (k *Keeper) remember(clientDir string) {
	if clientDir == "" {
		return
	}
	if err := config.RememberClientDir(k.Settings.Paths.State, clientDir); err != nil {
		k.Log.Log(warn, "remember config folder", "folder", clientDir, "error", err)
	}
}

// workInline archives the session in this process if that is wanted, and tells
// whether nothing is left to do in the spool.
func (k *Keeper) workInline(ctx context.Context, c *hooklib.Call, dir, session string, receipt spool.Receipt) bool {
	switch k.Settings.Archive.Inline {
	case config.InlineNever:
		return false
	case config.InlineAuto:
		state, known, err := k.StoreState()
		if err != nil || !known || !state.Local || state.Error != "" || state.Opened.IsZero() {
			return false
		}
		if receipt.Size > inlineBytes || !receipt.Pinned || c.Elapsed() > inlineStart || c.Interrupted() {
			return false
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, c.Start.Add(inlineBudget))
		defer cancel()
	}
	w := k.newWorker()
	w.hook = true
	stats, err := spool.Drain(interruptible{ctx, c}, dir, w.drainOptions(session))
	switch {
	case errors.Is(err, spool.ErrBusy):
		// Who drains it may have looked for the last time already.
		return false
	case err != nil:
		k.Log.Log(warn, "work inline", "session", session, "error", err, "took", c.Elapsed())
		return false
	}
	return stats.Done > 0 && stats.Left == 0
}

// isSweepDue tells whether a worker is wanted although this event leaves
// nothing to do. What cannot be told is the worker's to find out.
func (k *Keeper) isSweepDue() bool {
	state, known, err := k.StoreState()
	return err != nil || !known || k.sweepDue(state)
}

// interruptible is done when the process was asked to end, without a goroutine
// that waits for it: whoever works step by step asks Err between the steps.
type interruptible struct {
	context.Context
	call *hooklib.Call
}

func (i interruptible) Err() error {
	if err := i.Context.Err(); err != nil {
		return err
	}
	if i.call.Interrupted() {
		return context.Canceled
	}
	return nil
}

// startWorker starts the worker that outlives this process, unless one waits
// for its turn already. If it cannot be started, the next event's is.
func (k *Keeper) startWorker(dir string) {
	if dir == "" || k.Binary == "" {
		return
	}
	err := spool.Start(dir, k.Binary, "-"+WorkerFlag, dir)
	if err != nil && !errors.Is(err, spool.ErrBusy) {
		k.Log.Log(warn, "start worker", "spool", dir, "error", err)
	}
}

// longFailure tells the user of a store that has failed to open for so long
// that he cannot have seen it in the log. The sessions are safe in the spool.
func (k *Keeper) longFailure() error {
	state, known, err := k.StoreState()
	if err != nil || !known || state.Error == "" || k.Now().Sub(state.Failed) < silentFailure {
		return nil
	}
	return &hooklib.Failure{
		Err:  fmt.Errorf("the archive %s has not opened since %s: %s", state.Root, state.Failed.Local().Format(time.DateTime), state.Error),
		Hint: "sessions wait in the spool meanwhile; session-keeper doctor tells more",
	}
}
