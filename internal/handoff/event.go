package handoff

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/session-keeper/session-keeper/archive/spool"
	"github.com/session-keeper/session-keeper/hooklib"
	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/optout"
	"github.com/session-keeper/session-keeper/transcript"
)

const (
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

// HandedOff is the message of the log line for a session that is safe in a
// spool. Its field "took" is the time from the start of the hook.
const HandedOff = "handed off"

// The archive's words for why a generation was made. The archive itself is not
// linked here: a hook never opens it.
const (
	sessionEnd = "session-end"
	stop       = "stop"
	preCompact = "pre-compact"
	catchUp    = "catch-up"
)

// occasion is an event in the archive's words.
type occasion struct {
	reason string
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
		o.reason, o.event.Reason, o.ends = sessionEnd, cut(e.Reason), common.AgentID == ""
	case *hooklib.Stop:
		o.reason = stop
	case *hooklib.StopFailure:
		o.reason, o.event.Reason = stop, cut(e.Failure)
	case *hooklib.SubagentStop:
		// Session and path are the parent's, also for the compaction's
		// summariser with its empty type: the parent is what is archived.
		o.reason = stop
	case *hooklib.PreCompact:
		o.reason, o.event.Reason = preCompact, cut(e.Trigger)
		if e.CustomInstructions != nil {
			o.event.Instructions = *e.CustomInstructions
		}
	case *hooklib.PostCompact:
		o.reason, o.event.Reason = stop, cut(e.Trigger)
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
	switch c.Event.(type) {
	case *hooklib.PreCompact, *hooklib.PostCompact:
		logNoEvent(c) // there is a hook of its own for these
		return nil
	}
	return handleEvent(ctx, c)
}

func handleEvent(ctx context.Context, c *hooklib.Call) error {
	session, o, ok := wanted(c, time.Now())
	if !ok {
		return nil
	}
	return handleSession(ctx, c, session, o)
}

// Handle is HandleEvent under settings that are known already.
func (h *Handoff) Handle(ctx context.Context, c *hooklib.Call) error {
	session, o, ok := wanted(c, h.Now())
	if !ok {
		return nil
	}
	return h.handle(ctx, c, session, o)
}

// wanted returns the session that an event is about and what happened to it; ok
// is false if there is nothing to do for it, which is logged.
func wanted(c *hooklib.Call, now time.Time) (session string, o occasion, ok bool) {
	o, ok = occasionOf(c.Event, now)
	if !ok {
		logNoEvent(c)
		return "", o, false
	}
	session = c.Event.Base().SessionID
	if session == "" {
		session = c.Env.SessionID // where another type than a string came
	}
	if !transcript.ValidSessionID(session) {
		c.Log.Log(warn, "no valid session id", "event", o.event.Name, "id", fmt.Sprintf("%q", cut(session)))
		return "", o, false
	}
	return session, o, true
}

func logNoEvent(c *hooklib.Call) {
	c.Log.Log(info, "no event for this hook", "event", cut(c.Event.Base().Name))
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
		reason: catchUp,
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
	return New(settings, c.Log).handle(ctx, c, session, o)
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

func (h *Handoff) handle(ctx context.Context, c *hooklib.Call, session string, o occasion) error {
	var path, cwd string
	if c.Event != nil {
		path, cwd = c.Event.Base().TranscriptPath, c.Event.Base().Cwd
	}
	dirs := []string{c.Env.ProjectDir, cwd}
	if skip, err := h.keepOut(session, o, dirs); skip || err != nil {
		return err
	}
	bundle, err := h.Locator().Locate(session, path)
	if err != nil {
		h.logNotLocated(session, path, o, err)
		return nil
	}
	if optout.HasExcludes(h.Settings) {
		// Where it began is what a person would exclude it by.
		if head := h.HeadCwd(bundle.Transcript); head != "" {
			if skip, err := h.keepOut(session, o, []string{head}); skip || err != nil {
				return err
			}
		}
	}
	if c.Env.ProjectDir != "" {
		cwd = c.Env.ProjectDir
	}
	if o.reason == preCompact {
		o.event.Size = bundle.Size
	}

	dir, receipt, err := h.Leave(ctx, bundle, o.reason, o.event, cwd)
	if err != nil {
		return err
	}
	h.Remember(bundle.ConfigDir)
	h.Log.Log(info, HandedOff,
		"event", o.event.Name, "reason", o.event.Reason, "session", session,
		"transcript", bundle.Transcript, "found", bundle.Found.String(), "size", receipt.Size,
		"pinned", receipt.Pinned, "side", receipt.Side, "side_skipped", receipt.SideSkipped,
		"spool", dir, "took", c.Elapsed())
	if isStale(c, o, bundle, h.Now()) {
		h.Log.Log(warn, "the client seems to have stopped writing this transcript", "session", session,
			"transcript", bundle.Transcript, "written", bundle.ModTime)
	}
	for _, other := range bundle.Others {
		h.Log.Log(warn, "the same session lies elsewhere too", "session", session, "other", other)
	}

	if err := h.startWorker(dir); err != nil {
		return err
	}
	if o.ends {
		h.awaitWorker(c, dir, receipt)
		return h.longFailure()
	}
	return nil
}

// isStale tells whether a transcript is older than it can be after what the
// event tells of: there was a prompt, and the client writes after each turn and
// at its end. After clear and resume its last lines follow the event (observed
// on 2.1.332). A client inside another writes no transcript when it is
// interactive (documented), which is as it should be.
func isStale(c *hooklib.Call, o occasion, b transcript.Bundle, now time.Time) bool {
	if b.Husk() || o.event.PromptID == "" || o.event.Reason == "clear" || o.event.Reason == "resume" || now.Sub(b.ModTime) <= staleAge {
		return false
	}
	nested, _ := c.Env.Nested()
	return !nested
}

// keepOut tells whether the session must not be archived, and marks it so that
// it stays out.
func (h *Handoff) keepOut(session string, o occasion, dirs []string) (skip bool, err error) {
	now := h.Now()
	decision, err := optout.Check(h.Settings, session, dirs, now)
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
		h.Log.Log(info, "kept out", "event", o.event.Name, "why", string(decision.Reason))
		return true, nil
	case optout.Off, optout.Paused, optout.Excluded:
		if err := optout.MarkOut(h.Settings.Paths.State, session, decision.Reason, now); err != nil {
			h.Log.Log(warn, "mark", "error", err)
		}
	}
	h.Log.Log(info, "kept out", "event", o.event.Name, "session", session, "why", string(decision.Reason), "detail", decision.Detail)
	return true, nil
}

// logNotLocated tells why nothing is archived. Events without a transcript are
// daily business: a client that was left without a prompt, one that keeps no
// transcripts, an id that it made up.
func (h *Handoff) logNotLocated(session, hint string, o occasion, err error) {
	level, message := info, "no transcript"
	pairs := []any{"event", o.event.Name, "reason", o.event.Reason, "session", session, "transcript", hint, "error", err}
	if _, statErr := os.Lstat(hint); hint != "" && statErr == nil {
		level, message = warn, "a transcript that is not under a known config folder of the client"
		pairs = append(pairs, "hint", "session-keeper archive "+hint)
	}
	h.Log.Log(level, message, pairs...)
}

// HeadCwd returns the directory that the first records of a transcript name,
// or "".
func (h *Handoff) HeadCwd(path string) string {
	if path == "" {
		return ""
	}
	f, _, err := transcript.OpenRegular(path)
	if err != nil {
		h.Log.Log(warn, "head of the transcript", "transcript", path, "error", err)
		return ""
	}
	defer f.Close()
	head, err := transcript.ReadHead(f, maxHeadBytes)
	if err != nil {
		h.Log.Log(warn, "head of the transcript", "transcript", path, "error", err)
	}
	return head.Cwd
}

// Leave hands a session off: it puts it into the first spool that takes it.
// The error is a *hooklib.Failure. A transcript that vanishes meanwhile is none,
// and then there is no spool.
func (h *Handoff) Leave(ctx context.Context, b transcript.Bundle, reason string, e spool.Event, cwd string) (dir string, receipt spool.Receipt, err error) {
	request := spool.Request{
		StoreRoot:  h.Settings.Paths.Store,
		SessionID:  b.SessionID,
		Transcript: b.Transcript,
		Reason:     reason,
		Event:      e,
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
	for _, dir := range h.spoolsFor(file, b.ConfigDir) {
		receipt, err := spool.HandOff(ctx, dir, request)
		if err == nil {
			if dir != config.DefaultSpool(h.Settings.Paths.State) { // that one is always looked into
				if err := config.RememberSpool(h.Settings.Paths.State, dir); err != nil {
					h.Log.Log(warn, "remember spool", "spool", dir, "error", err)
				}
			}
			return dir, receipt, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", dir, err))
		h.Log.Log(warn, "hand-off", "spool", dir, "session", b.SessionID, "pinned", receipt.Pinned, "error", err)
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

// Remember notes a config folder, so that later runs with another environment
// find its sessions and its spool.
func (h *Handoff) Remember(clientDir string) {
	if clientDir == "" {
		return
	}
	if err := config.RememberClientDir(h.Settings.Paths.State, clientDir); err != nil {
		h.Log.Log(warn, "remember config folder", "folder", clientDir, "error", err)
	}
}

// longFailure tells the user of a store that has failed to open for so long
// that he cannot have seen it in the log. The sessions are safe in the spool.
func (h *Handoff) longFailure() error {
	state, known, err := h.StoreState()
	if err != nil || !known || state.Error == "" || h.Now().Sub(state.Failed) < silentFailure {
		return nil
	}
	return &hooklib.Failure{
		Err:  fmt.Errorf("the archive %s has not opened since %s: %s", state.Root, state.Failed.Local().Format(time.DateTime), state.Error),
		Hint: "sessions wait in the spool meanwhile; session-keeper doctor tells more",
	}
}
