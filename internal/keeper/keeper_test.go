//go:build unix

package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/archive/spool"
	"github.com/session-keeper/session-keeper/hooklib"
	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/durable"
	"github.com/session-keeper/session-keeper/internal/handoff"
	"github.com/session-keeper/session-keeper/internal/optout"
	"github.com/session-keeper/session-keeper/transcript"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a machine with a client and a keeper.
type world struct {
	*Keeper
	t      *testing.T
	client string // the client's config folder
	log    *bytes.Buffer
}

func newWorld(t *testing.T, vars map[string]string) *world {
	t.Helper()
	base := t.TempDir()
	env := config.Env{
		Getenv: func(name string) string { return vars[name] },
		Home:   filepath.Join(base, "home"),
		Dir:    base,
		GOOS:   "linux",
	}
	s, err := config.Load(env)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: filepath.Join(env.Home, ".claude"), log: &bytes.Buffer{}}
	w.Keeper = New(s, logger{w.log})
	w.Now = func() time.Time { return now }
	w.NoWorker = true // a test runs it itself
	return w
}

type logger struct{ w *bytes.Buffer }

func (l logger) Log(level hooklib.Level, message string, pairs ...any) {
	fmt.Fprint(l.w, level, " ", message)
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(l.w, " %v=%v", pairs[i], pairs[i+1])
	}
	fmt.Fprintln(l.w)
}

func id(n int) string { return fmt.Sprintf("%08x-4f0b-4d39-9a55-1f2a3b4c5d6e", n) }

func (w *world) write(path, text string, modTime time.Time) string {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chtimes(path, modTime, modTime); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) path(n int) string {
	return filepath.Join(w.client, "projects", "-w-proj", id(n)+".jsonl")
}

func text(n int) string {
	return fmt.Sprintf(`{"type":"user","cwd":"/w/proj%d","sessionId":%q,"message":{"role":"user","content":"words of %d"}}`+"\n", n, id(n), n)
}

// session writes a transcript that was last written to so long ago.
func (w *world) session(n int, age time.Duration) string {
	return w.write(w.path(n), text(n), now.Add(-age))
}

func (w *world) locate(n int) transcript.Bundle {
	w.t.Helper()
	b, err := w.Locator().Locate(id(n), "")
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

func (w *world) all(o AllOptions) Summary {
	w.t.Helper()
	sum, err := w.ArchiveAll(context.Background(), o)
	if err != nil {
		w.t.Fatalf("%v\n%s", err, w.log)
	}
	return sum
}

func (w *world) store() *archive.Store {
	w.t.Helper()
	store, err := archive.Open(w.Settings.Paths.Store)
	if err != nil {
		w.t.Fatal(err)
	}
	return store
}

// archived returns the bytes of a file in the latest generation, "" if there
// is no session.
func (w *world) archived(n int, family, path string) string {
	w.t.Helper()
	store := w.store()
	g, err := store.Latest(context.Background(), id(n))
	if errors.Is(err, archive.ErrNoSession) {
		return ""
	}
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range g.Files {
		if f.Family == family && f.Path == path {
			r, err := store.OpenFile(g, f)
			if err != nil {
				w.t.Fatal(err)
			}
			defer r.Close()
			data, err := io.ReadAll(r)
			if err != nil {
				w.t.Fatal(err)
			}
			return string(data)
		}
	}
	return ""
}

func (w *world) transcript(n int) string {
	w.t.Helper()
	return w.archived(n, transcript.FamilyTranscript, id(n)+".jsonl")
}

// event runs the handler as the hook does, but for the process.
func (w *world) event(n int, name string, start time.Time) error {
	w.t.Helper()
	raw, err := json.Marshal(map[string]any{"session_id": id(n), "transcript_path": w.path(n), "cwd": "/w/proj", "hook_event_name": name, "reason": "other"})
	if err != nil {
		w.t.Fatal(err)
	}
	event, err := hooklib.ParseEvent(raw)
	if err != nil {
		w.t.Fatal(err)
	}
	c := &hooklib.Call{Event: event, Start: start, Log: w.Log, Stdout: io.Discard, Stderr: io.Discard}
	return w.Handle(context.Background(), c)
}

func TestArchiveAll(t *testing.T) {
	w := newWorld(t, nil)
	const day = 24 * time.Hour
	w.session(1, 2*day)
	w.session(2, 29*day)                                                                                      // endangered
	w.session(3, 40*day)                                                                                      // overdue
	w.session(4, 10*day)                                                                                      // forgotten
	w.session(5, 11*day)                                                                                      // kept out
	w.session(6, 12*day)                                                                                      // excluded
	w.session(7, 13*day)                                                                                      // last active in a pause
	w.write(filepath.Join(w.client, "projects", "-w-proj", id(8), "subagents", "agent-a.jsonl"), "{}\n", now) // a husk
	w.session(9, 3*day)
	state := w.Settings.Paths.State
	w.Settings.Archive.Exclude = []string{"/w/proj6"}
	for _, err := range []error{
		optout.Forget(state, id(4), now),
		optout.MarkOut(state, id(5), optout.Off, now),
		optout.Pause(state, time.Time{}, now.Add(-14*day)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := optout.Unpause(state, now.Add(-12*day-time.Hour)); err != nil {
		t.Fatal(err)
	}

	var order []string
	var last AllProgress
	var read int64
	sum := w.all(AllOptions{
		Progress: func(p AllProgress) { order, last = append(order, p.Session), p },
		Bytes:    func(n int64) { read += n },
	})
	if sum.Archived != 5 || sum.Skipped != 4 || sum.Failed != 0 || sum.Unchanged != 0 || len(sum.SpoolErrors) > 0 {
		t.Errorf("%v, %v\n%s", sum, sum.SpoolErrors, w.log)
	}
	if i, j, k := slices.Index(order, id(3)), slices.Index(order, id(2)), slices.Index(order, id(1)); i != 0 || j <= i || k <= j {
		t.Errorf("order %q: not the oldest first", order)
	}
	if last.Done != 9 || last.Total != 9 || last.DoneBytes != last.TotalBytes || last.Session != "" || read == 0 {
		t.Errorf("progress %+v, %d bytes read", last, read)
	}
	why := map[string]optout.Reason{}
	for _, o := range sum.Outcomes {
		if o.Skipped != nil {
			why[o.SessionID] = o.Skipped.Reason
		}
	}
	for n, want := range map[int]optout.Reason{4: optout.Forgotten, 5: optout.KeptOut, 6: optout.Excluded, 7: optout.Paused} {
		if why[id(n)] != want || w.transcript(n) != "" {
			t.Errorf("session %d: %q, want %q", n, why[id(n)], want)
		}
	}
	for _, n := range []int{1, 2, 3, 9} {
		if got := w.transcript(n); got != text(n) {
			t.Errorf("session %d: %q", n, got)
		}
	}
	if got := w.archived(8, transcript.FamilySession, "subagents/agent-a.jsonl"); got != "{}\n" {
		t.Errorf("husk: %q", got)
	}
	g, err := w.store().Latest(context.Background(), id(1))
	if err != nil || g.Reason != archive.CatchUp || g.Project.Cwd != "/w/proj1" || g.Project.Folder != "-w-proj" {
		t.Errorf("generation %+v, %v", g, err)
	}

	// Again: nothing to do. Then one has grown.
	if sum := w.all(AllOptions{}); sum.Unchanged != 5 || sum.Archived != 0 || sum.NewBytes != 0 {
		t.Errorf("again: %v", sum)
	}
	w.write(w.path(1), text(1)+text(1), now)
	if sum := w.all(AllOptions{}); sum.Unchanged != 4 || sum.Archived != 1 || sum.NewBytes != int64(len(text(1))) {
		t.Errorf("after growth: %v, %d new bytes", sum, sum.NewBytes)
	}
}

// One bad session stops nothing.
func TestArchiveAllBadSession(t *testing.T) {
	w := newWorld(t, nil)
	w.session(1, time.Hour)
	w.session(2, 2*time.Hour)
	w.session(3, 3*time.Hour)
	w.all(AllOptions{})
	// Where the manifests of one session go there is a file.
	folder := filepath.Join(w.Settings.Paths.Store, "sessions", id(2))
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	w.write(folder, "not a folder", now)
	for n := range 3 {
		w.write(w.path(n+1), text(n+1)+"{}\n", now)
	}
	sum := w.all(AllOptions{})
	if sum.Archived != 2 || sum.Failed != 1 {
		t.Errorf("%v\n%s", sum, w.log)
	}
	for _, o := range sum.Outcomes {
		if (o.Err != nil) != (o.SessionID == id(2)) {
			t.Errorf("%s: %v", o.SessionID, o.Err)
		}
	}
	if !strings.Contains(w.log.String(), "error archive session="+id(2)) {
		t.Errorf("not in the log:\n%s", w.log)
	}
}

// It can be stopped, and what is about to be deleted is safe by then.
func TestArchiveAllStopped(t *testing.T) {
	w := newWorld(t, nil)
	const day = 24 * time.Hour
	for n := range 5 {
		w.session(n, time.Duration(35-n)*day)
	}
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	sum, err := w.ArchiveAll(ctx, AllOptions{Progress: func(AllProgress) {
		if calls++; calls == 3 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || sum.Archived < 2 || sum.Archived == 5 {
		t.Fatalf("%v, %v", sum, err)
	}
	// The client's clean-up comes.
	if err := os.RemoveAll(w.client); err != nil {
		t.Fatal(err)
	}
	if sum := w.all(AllOptions{}); len(sum.SpoolErrors) > 0 {
		t.Errorf("%v", sum.SpoolErrors)
	}
	for n := range 5 {
		if got := w.transcript(n); got != text(n) {
			t.Errorf("session %d: %q\n%s", n, got, w.log)
		}
	}
}

func TestArchiveAllRefused(t *testing.T) {
	w := newWorld(t, map[string]string{"SESSION_KEEPER": "off"})
	w.session(1, time.Hour)
	var skipped *SkippedError
	if _, err := w.ArchiveAll(context.Background(), AllOptions{}); !errors.As(err, &skipped) || skipped.Decision.Reason != optout.Off {
		t.Errorf("off: %v", err)
	}
	w = newWorld(t, nil)
	if err := optout.Pause(w.Settings.Paths.State, time.Time{}, now); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ArchiveAll(context.Background(), AllOptions{}); !errors.As(err, &skipped) || skipped.Decision.Reason != optout.Paused {
		t.Errorf("paused: %v", err)
	}
	w = newWorld(t, nil)
	w.Settings.Archive.Exclude = []string{"/a/["}
	if _, err := w.ArchiveAll(context.Background(), AllOptions{}); err == nil {
		t.Error("a bad glob is no error")
	}
	w = newWorld(t, nil)
	w.write(w.Settings.Paths.Store, "a file", now)
	if _, err := w.ArchiveAll(context.Background(), AllOptions{}); err == nil {
		t.Error("no store is no error")
	}
}

func TestArchiveSession(t *testing.T) {
	w := newWorld(t, nil)
	w.session(1, time.Hour)
	state := w.Settings.Paths.State
	// By hand neither a mark nor an exclude nor a pause holds it back.
	w.Settings.Archive.Exclude = []string{"/w"}
	if err := errors.Join(optout.MarkOut(state, id(1), optout.Off, now), optout.Pause(state, time.Time{}, now)); err != nil {
		t.Fatal(err)
	}
	result, err := w.ArchiveSession(context.Background(), w.locate(1), ArchiveOptions{})
	if err != nil || !result.Created || result.Generation.Reason != archive.Manual {
		t.Fatalf("%+v, %v", result, err)
	}
	if _, marked, err := optout.Marked(state, id(1)); marked || err != nil {
		t.Errorf("the mark was not lifted: %v", err)
	}

	if err := optout.Forget(state, id(1), now); err != nil {
		t.Fatal(err)
	}
	var skipped *SkippedError
	if _, err := w.ArchiveSession(context.Background(), w.locate(1), ArchiveOptions{}); !errors.As(err, &skipped) || skipped.Decision.Reason != optout.Forgotten {
		t.Errorf("forgotten: %v", err)
	}
}

// The store's own tombstone counts as well: another machine may have left it.
func TestArchiveForgottenInStore(t *testing.T) {
	w := newWorld(t, nil)
	w.session(1, time.Hour)
	store, err := w.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Forget(context.Background(), id(1), archive.ForgetOptions{}); err != nil && !errors.Is(err, archive.ErrNoSession) {
		t.Fatal(err)
	}
	var skipped *SkippedError
	if _, err := w.ArchiveSession(context.Background(), w.locate(1), ArchiveOptions{}); !errors.As(err, &skipped) {
		t.Errorf("%v", err)
	}
	if sum := w.all(AllOptions{}); sum.Skipped != 1 || sum.Archived != 0 {
		t.Errorf("%v", sum)
	}
	// A hook hands off, as it does not open the store; the worker lets it go.
	if err := w.event(1, "SessionEnd", now); err != nil {
		t.Fatal(err)
	}
	w.worker()
	w.spoolsAreEmpty()
}

func (w *world) worker() {
	w.t.Helper()
	if err := w.RunWorker(context.Background(), ""); err != nil {
		w.t.Fatalf("%v\n%s", err, w.log)
	}
}

func (w *world) spoolsAreEmpty() {
	w.t.Helper()
	dirs, err := w.Spools()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, dir := range dirs {
		sum, err := spool.Status(dir)
		if err != nil || len(sum.Waiting) > 0 {
			w.t.Errorf("%s: %+v, %v", dir, sum, err)
		}
	}
}

// After Forget no file of ours has a word of the session, and neither a hook
// nor catch-up brings one back.
func TestForget(t *testing.T) {
	w := newWorld(t, nil)
	w.session(1, time.Hour)
	w.session(2, time.Hour)
	w.Log = OpenLogAt(w.Settings.Paths.State)
	w.all(AllOptions{})
	for n := range 2 {
		w.write(w.path(n+1), text(n+1)+"{}\n", now)
		if err := w.event(n+1, "Stop", now); err != nil {
			t.Fatal(err)
		}
	}
	if !w.mentioned(id(1)) {
		t.Fatal("nothing to forget")
	}

	report, err := w.Forget(context.Background(), id(1))
	if err != nil || report.Store.Generations != 1 || report.LogLines == 0 {
		t.Errorf("%+v, %v", report, err)
	}
	again := func(when string) {
		t.Helper()
		for _, word := range []string{id(1), id(1)[:8], "words of 1"} {
			if w.mentioned(word) {
				t.Errorf("%s: %q is still there", when, word)
			}
		}
	}
	again("after Forget")
	if err := w.event(1, "SessionEnd", now); err != nil {
		t.Fatal(err)
	}
	w.worker()
	again("after a hook")
	w.all(AllOptions{})
	again("after catch-up")
	if report, err := w.Forget(context.Background(), id(1)); err != nil || report.LogLines != 0 {
		t.Errorf("a second time: %+v, %v", report, err)
	}
	if got := w.transcript(2); got != text(2)+"{}\n" {
		t.Errorf("the other session: %q", got)
	}
	if _, err := w.Forget(context.Background(), "../x"); !errors.Is(err, transcript.ErrInvalidID) {
		t.Errorf("bad id: %v", err)
	}
	// Never archived, no store: its tombstone holds all the same.
	w = newWorld(t, nil)
	w.session(1, time.Hour)
	if _, err := w.Forget(context.Background(), id(1)); err != nil {
		t.Error(err)
	}
	if sum := w.all(AllOptions{}); sum.Skipped != 1 {
		t.Errorf("%v", sum)
	}
}

// mentioned tells whether a file or a file's name in state or store has a word
// in it.
func (w *world) mentioned(word string) bool {
	w.t.Helper()
	found := false
	for _, dir := range []string{w.Settings.Paths.State, w.Settings.Paths.Store} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if strings.Contains(d.Name(), word) {
				w.t.Logf("%s is named so", path)
				found = true
			}
			if !d.Type().IsRegular() {
				return nil
			}
			data, err := os.ReadFile(path)
			if bytes.Contains(data, []byte(word)) {
				w.t.Logf("%s holds it", path)
				found = true
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.t.Fatal(err)
		}
	}
	return found
}

func TestStoreState(t *testing.T) {
	w := newWorld(t, nil)
	root := w.Settings.Paths.Store
	if _, known, err := w.StoreState(); known || err != nil {
		t.Errorf("known before anything: %v", err)
	}
	w.write(root, "a file", now)
	at := now
	w.Now = func() time.Time { return at }
	for range 3 {
		if _, err := w.OpenStore(); err == nil {
			t.Fatal("a file was opened as store")
		}
		at = at.Add(20 * time.Hour)
	}
	state, known, err := w.StoreState()
	if err != nil || !known || state.Error == "" || !state.Failed.Equal(now) || state.Root != root {
		t.Errorf("%+v, %v, %v: not failing since the first time", state, known, err)
	}
	if err := os.Remove(root); err != nil {
		t.Fatal(err)
	}
	if _, err := w.OpenStore(); err != nil {
		t.Fatal(err)
	}
	state, _, err = w.StoreState()
	if err != nil || state.Error != "" || !state.Failed.IsZero() || !state.Opened.Equal(at) || state.Kind == "" {
		t.Errorf("after it was mended: %+v, %v", state, err)
	}
	// A good state is not written again each time.
	path := w.StatePath(root)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	at = at.Add(time.Hour)
	if _, err := w.OpenStore(); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("written again: %v", err)
	}
	// A damaged note is not in the way.
	w.write(path, "{", now)
	if _, err := w.OpenStore(); err != nil {
		t.Error(err)
	}
	if _, known, err := w.StoreState(); !known || err != nil {
		t.Errorf("not mended: %v", err)
	}
}

// A store that needs a later version refuses; the session waits.
func TestWorkerUnsupportedStore(t *testing.T) {
	w := newWorld(t, nil)
	w.session(1, time.Hour)
	if _, err := w.OpenStore(); err != nil {
		t.Fatal(err)
	}
	format := filepath.Join(w.Settings.Paths.Store, "format")
	good, err := os.ReadFile(format)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(good, []byte(`"version": 1`)) {
		t.Fatalf("format: %s", good)
	}
	w.replace(format, bytes.Replace(good, []byte(`"version": 1`), []byte(`"version": 99`), 1))
	if err := w.event(1, "SessionEnd", now); err != nil {
		t.Fatal(err)
	}
	w.worker()
	sum, err := spool.Status(config.DefaultSpool(w.Settings.Paths.State))
	if err != nil || len(sum.Waiting) != 1 || !sum.Waiting[0].Parked || !sum.Waiting[0].Pinned {
		t.Errorf("%+v, %v\n%s", sum, err, w.log)
	}
	// A day later with a program that can.
	w.replace(format, good)
	w.Now = func() time.Time { return now.Add(25 * time.Hour) }
	w.worker()
	if w.transcript(1) != text(1) {
		t.Errorf("not archived\n%s", w.log)
	}
	w.spoolsAreEmpty()
}

func (w *world) replace(path string, data []byte) {
	w.t.Helper()
	if err := os.Remove(path); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// What a person says after the hand-off counts as well.
func TestWorkerAsksAgain(t *testing.T) {
	w := newWorld(t, nil)
	for n := range 4 {
		w.session(n, time.Hour)
		if err := w.event(n, "Stop", now); err != nil {
			t.Fatal(err)
		}
	}
	state := w.Settings.Paths.State
	if err := errors.Join(optout.Forget(state, id(0), now), optout.MarkOut(state, id(1), optout.Off, now)); err != nil {
		t.Fatal(err)
	}
	w.Settings.Archive.Exclude = []string{"/w/proj2"}
	w.worker()
	w.spoolsAreEmpty()
	for n := range 4 {
		if got := w.transcript(n) != ""; got != (n == 3) {
			t.Errorf("session %d archived: %v\n%s", n, got, w.log)
		}
	}
}

// Which check a session gets depends on what happened to it.
func TestSnapshot(t *testing.T) {
	w := newWorld(t, nil)
	w.session(1, time.Hour)
	at := func(names ...string) (events []spool.Event) {
		for _, name := range names {
			events = append(events, spool.Event{Name: name, Time: now})
		}
		return events
	}
	for _, tt := range []struct {
		work   spool.Work
		check  archive.Check
		reason archive.Reason
	}{
		{spool.Work{Reason: "stop", Events: at("Stop", "SubagentStop")}, archive.Quick, archive.Stop},
		{spool.Work{Reason: "stop", Events: at("SessionEnd", "Stop")}, archive.Full, archive.Stop},
		{spool.Work{Reason: "session-end", Events: at("SessionEnd")}, archive.Full, archive.SessionEnd},
		{spool.Work{}, archive.Full, archive.CatchUp},
	} {
		tt.work.SessionID = id(1)
		snap, err := w.newWorker().snapshot(context.Background(), tt.work)
		if err != nil || snap.Check != tt.check || snap.Reason != tt.reason || snap.Partial || snap.Project.Cwd != "/w/proj1" {
			t.Errorf("%+v: %+v, %v", tt.work, snap, err)
		}
	}

	// Gone, but for what is in the spool.
	pin := w.write(filepath.Join(t.TempDir(), "pin"), text(2), now)
	side := w.write(filepath.Join(t.TempDir(), "side"), "{}", now)
	snap, err := w.newWorker().snapshot(context.Background(), spool.Work{
		SessionID: id(2), Path: pin, Folder: "-w-proj", Side: []spool.Pin{{Family: "session", Rel: "a/b", Path: side}},
	})
	want := []archive.Source{
		{Family: "transcript", Path: id(2) + ".jsonl", File: pin},
		{Family: "session", Path: "a/b", File: side},
	}
	if err != nil || !snap.Partial || !slices.Equal(snap.Sources, want) || snap.Project.Cwd != "/w/proj2" || snap.Project.Folder != "-w-proj" {
		t.Errorf("%+v, %v", snap, err)
	}

	// There, and one side file in the spool only.
	snap, err = w.newWorker().snapshot(context.Background(), spool.Work{
		SessionID: id(1), Path: pin, Side: []spool.Pin{{Family: "session", Rel: "a/b", Path: side}},
	})
	want[0].Path = id(1) + ".jsonl"
	if err != nil || snap.Partial || !slices.Equal(snap.Sources, want) {
		t.Errorf("%+v, %v", snap, err)
	}
}

// A config folder that nobody knew is known once a session of it was archived.
func TestArchiveSessionRemembersFolder(t *testing.T) {
	w := newWorld(t, nil)
	other := filepath.Join(w.Settings.Env.Dir, "other")
	w.write(filepath.Join(other, "projects", "-x", id(2)+".jsonl"), text(2), now)
	if slices.Contains(w.Settings.ClientDirs, other) {
		t.Fatalf("known before: %q", w.Settings.ClientDirs)
	}
	b, err := (&transcript.Locator{ConfigDirs: []string{other}}).Locate(id(2), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.ArchiveSession(context.Background(), b, ArchiveOptions{}); err != nil {
		t.Fatal(err)
	}
	s, err := config.Load(w.Settings.Env)
	if err != nil || !slices.Contains(s.ClientDirs, b.ConfigDir) {
		t.Errorf("not remembered: %q, %v", s.ClientDirs, err)
	}
}

func TestWaitForAnswer(t *testing.T) {
	stop := []spool.Event{{Name: "Stop", Time: now}}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tt := range []struct {
		name   string
		events []spool.Event
		now    time.Time
		wait   bool
	}{
		{"just now", stop, now, true},
		{"a moment ago", stop, now.Add(stopLag - time.Millisecond), true},
		{"long ago", stop, now.Add(stopLag), false},
		{"the clock was set back", stop, now.Add(-time.Hour), false},
		{"an end", []spool.Event{{Name: "Stop", Time: now}, {Name: "SessionEnd", Time: now}}, now, false},
		{"a compaction's summariser", []spool.Event{{Name: "PreCompact", Time: now}, {Name: "SubagentStop", Time: now}}, now, true},
		{"a subagent", []spool.Event{{Name: "SubagentStop", Time: now}}, now, false},
		{"a compaction", []spool.Event{{Name: "PreCompact", Reason: "auto", Time: now}}, now, true},
		{"nothing", nil, now, false},
	} {
		// With a context that is done, waiting is an error.
		if err := waitForAnswer(ctx, tt.events, tt.now); (err != nil) != tt.wait {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if err := waitForAnswer(context.Background(), stop, now.Add(stopLag-time.Millisecond)); err != nil {
		t.Error(err)
	}
}

// The worker removes old logs and, once a day, leftovers.
func TestWorkerCleansUp(t *testing.T) {
	w := newWorld(t, nil)
	w.session(1, time.Hour)
	if err := w.event(1, "SessionEnd", now); err != nil {
		t.Fatal(err)
	}
	old := w.write(filepath.Join(handoff.LogDir(w.Settings.Paths.State), "prog-2025-01-01.jsonl"), "{}\n", now)
	w.worker()
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("old log: %v", err)
	}
	state, _, err := w.StoreState()
	if err != nil || !state.Swept.Equal(now) {
		t.Errorf("swept %v, %v\n%s", state.Swept, err, w.log)
	}
}

// Thousands of side files do not hold a hook; the worker stores them all.
func TestManySideFiles(t *testing.T) {
	w := newWorld(t, nil)
	w.session(1, time.Hour)
	const files = 3000
	dir := filepath.Join(w.client, "projects", "-w-proj", id(1), "tool-results")
	for n := range files {
		w.write(filepath.Join(dir, fmt.Sprintf("%04d.txt", n)), "result", now.Add(-time.Duration(n)*time.Second))
	}
	if err := w.event(1, "Stop", now.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.worker()
	g, err := w.store().Latest(context.Background(), id(1))
	if err != nil || len(g.Files) != files+1 {
		t.Errorf("%d files, %v", len(g.Files), err)
	}
	w.spoolsAreEmpty()
}

// Somebody who only looks at the spool has its lock for a moment.
func TestWorkerWaitsForTheLock(t *testing.T) {
	w := newWorld(t, nil)
	w.session(1, time.Hour)
	if err := w.event(1, "SessionEnd", now); err != nil {
		t.Fatal(err)
	}
	unlock, err := durable.TryLock(filepath.Join(config.DefaultSpool(w.Settings.Paths.State), "lock"), durable.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	unlocked := make(chan error, 1)
	time.AfterFunc(busyWaits[0]/2, func() { unlocked <- unlock() })
	w.worker()
	if err := <-unlocked; err != nil {
		t.Fatal(err)
	}
	if w.transcript(1) != text(1) {
		t.Errorf("not archived\n%s", w.log)
	}
}

// Of many workers that find a spool taken one waits for it, and the others end.
func TestOneWorkerWaits(t *testing.T) {
	w := newWorld(t, nil)
	dir := t.TempDir()
	lock := func(name string) func() {
		t.Helper()
		unlock, err := durable.TryLock(filepath.Join(dir, name), durable.Exclusive)
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := unlock(); err != nil {
				t.Error(err)
			}
		}
	}
	defer lock("lock")()
	another := lock("waiting")
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // whoever begins to wait is told so
	if _, err := w.newWorker().drainInTurn(ctx, dir); !errors.Is(err, spool.ErrBusy) {
		t.Errorf("beside another who waits: %v", err)
	}
	another()
	alone := w.newWorker()
	if _, err := alone.drainInTurn(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("alone: %v", err)
	}
	alone.endTurns()
	lock("waiting")() // who waited has given it back
}

// What is parked is tried again when a person archives all, although
// its day of rest is not over and its transcript is gone.
func TestArchiveAllTriesTheParked(t *testing.T) {
	w := newWorld(t, nil)
	w.session(1, time.Hour)
	root := w.Settings.Paths.Store
	w.write(root, "in the way", now)
	for i := range 5 {
		if i == 0 {
			if err := w.event(1, "SessionEnd", now); err != nil {
				t.Fatal(err)
			}
		}
		w.worker()
	}
	if sum, err := spool.Status(config.DefaultSpool(w.Settings.Paths.State)); err != nil || len(sum.Waiting) != 1 || !sum.Waiting[0].Parked {
		t.Fatalf("%+v, %v", sum, err)
	}
	if err := errors.Join(os.Remove(root), os.Remove(w.path(1))); err != nil {
		t.Fatal(err)
	}
	w.worker()
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("tried at once: %v", err)
	}
	w.all(AllOptions{})
	if w.transcript(1) != text(1) {
		t.Errorf("not archived\n%s", w.log)
	}
	w.spoolsAreEmpty()
}

// Leftovers are looked for once a day.
func TestSweepDue(t *testing.T) {
	w := newWorld(t, nil)
	w.session(1, time.Hour)
	w.all(AllOptions{})
	w.worker()
	state, known, err := w.StoreState()
	if err != nil || !known {
		t.Fatalf("%v, %v", known, err)
	}
	for _, tt := range []struct {
		after time.Duration
		want  bool
	}{{0, false}, {sweepInterval - time.Second, false}, {sweepInterval, true}, {-time.Hour, true}} {
		w.Now = func() time.Time { return now.Add(tt.after) }
		if got := w.sweepDue(state); got != tt.want {
			t.Errorf("after %v: %v", tt.after, got)
		}
	}
}

// A person who archives all gets what a worker is at, and fails at, too.
func TestArchiveAllWaitsForTheWorker(t *testing.T) {
	w := newWorld(t, nil)
	w.session(1, time.Hour)
	if err := w.event(1, "SessionEnd", now); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(w.path(1)); err != nil {
		t.Fatal(err)
	}
	dir := config.DefaultSpool(w.Settings.Paths.State)
	working := make(chan struct{})
	failed := make(chan error)
	go func() {
		_, err := spool.Drain(context.Background(), dir, spool.DrainOptions{Process: func(context.Context, spool.Work) (int64, error) {
			close(working)
			time.Sleep(2 * busyWaits[0])
			return 0, spool.ErrRefused
		}})
		failed <- err
	}()
	<-working
	sum := w.all(AllOptions{})
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	if w.transcript(1) != text(1) || len(sum.SpoolErrors) > 0 {
		t.Errorf("not archived: %v\n%s", sum.SpoolErrors, w.log)
	}
}
