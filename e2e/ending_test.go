//go:build unix

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sessions lists the ids of the transcripts that the client has of a project.
func (l *lab) sessions() map[string]bool {
	l.t.Helper()
	paths, err := filepath.Glob(filepath.Join(l.config, "projects", "*", "*.jsonl"))
	l.must(err)
	ids := map[string]bool{}
	for _, path := range paths {
		ids[strings.TrimSuffix(filepath.Base(path), ".jsonl")] = true
	}
	return ids
}

// session gives the one session of this home that is not known yet.
func (l *lab) newSession(known map[string]bool) string {
	l.t.Helper()
	var fresh []string
	for id := range l.sessions() {
		if !known[id] {
			fresh = append(fresh, id)
		}
	}
	if len(fresh) != 1 {
		l.t.Fatalf("%d new sessions, want 1: %q", len(fresh), fresh)
	}
	return fresh[0]
}

func TestExitArchives(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.install()
	term := l.interactive(nil)
	term.enter("prompt-one")
	term.waitFor("mock reply to prompt-one")
	term.enter("/exit")
	term.waitExit()
	l.waitStored(l.newSession(nil))
}

// TestClearArchivesTheOldSession clears the conversation. The client goes on, in
// a new session; the old one is over and belongs in the archive.
func TestClearArchivesTheOldSession(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.install()
	term := l.interactive(nil)
	term.enter("prompt-one")
	term.waitFor("mock reply to prompt-one")
	old := l.newSession(nil)
	term.enter("/clear")
	l.wait(archiveTimeout, "the archive to hold the cleared session", func() bool {
		return bytes.Contains(l.stored(old), []byte("mock reply to prompt-one"))
	})

	term.enter("prompt-two")
	term.waitFor("mock reply to prompt-two")
	next := l.newSession(map[string]bool{old: true})
	if l.stored(next) != nil {
		t.Errorf("the new session is in the archive before it ended")
	}
	term.enter("/exit")
	term.waitExit()
	l.waitStored(next)

	// The client adds one line to the old file after the hook (observed on
	// 2.1.332): what the hook saw must be all that was there.
	live, kept := l.read(l.transcript(old)), l.stored(old)
	if !bytes.HasPrefix(live, kept) {
		t.Errorf("the archived session is not how the file began")
	}
	if rest := bytes.Count(live[len(kept):], []byte("\n")); rest > 1 {
		t.Errorf("the archive lacks %d lines of the cleared session", rest)
	}
	l.keeper("archive", old)
	if !bytes.Equal(l.stored(old), l.read(l.transcript(old))) {
		t.Errorf("archive did not take the line that was added after /clear")
	}
}

// TestKilledClient takes the client away without any hook.
func TestKilledClient(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.install()
	term := l.interactive(nil)
	term.enter("prompt-one")
	term.waitFor("mock reply to prompt-one")
	session := l.newSession(nil)
	l.wait(screenTimeout, "the client to write the answer", func() bool {
		return bytes.Contains(l.read(l.transcript(session)), []byte("mock reply to prompt-one"))
	})
	term.kill()
	if l.stored(session) != nil {
		t.Fatalf("the session is in the archive already, so this test shows nothing")
	}

	l.keeper("archive", "--all")
	want := l.read(l.transcript(session))
	if !bytes.Equal(l.stored(session), want) {
		t.Fatalf("archive --all did not take the session of the killed client")
	}
	l.deleteSession(session)
	l.keeper("restore", session)
	if !bytes.Equal(l.read(l.transcript(session)), want) {
		t.Errorf("restored with other bytes")
	}
	l.print("-p", "--resume", session, "prompt-two")
	if requests := l.mock.sent("prompt-two"); len(requests) != 1 || !holds(requests[0], "prompt-one") {
		t.Errorf("the session of the killed client does not resume: %d requests", len(requests))
	}
}

// hookCommand gives our hook as install wires it.
func (l *lab) hookCommand() string {
	return "'" + filepath.Join(l.bin, "session-end-archive") + "' || exit 1"
}

func hooks(event, command string) map[string]any {
	return map[string]any{"hooks": map[string]any{event: []any{
		map[string]any{"hooks": []any{map[string]any{"type": "command", "command": command}}},
	}}}
}

// TestStop wires the hook to Stop, by hand: the session is in the archive after
// every answer, while it goes on.
func TestStop(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.writeJSON(l.settings(), hooks("Stop", l.hookCommand()))
	term := l.interactive(nil)
	var session string
	for _, prompt := range []string{"prompt-one", "prompt-two", "prompt-three"} {
		term.enter(prompt)
		term.waitFor("mock reply to " + prompt)
		if session == "" {
			session = l.newSession(nil)
		}
		// The last answer may reach the file after the hook (observed on
		// 2.1.332), so the answer before is what must be there now.
		l.wait(archiveTimeout, "the archive to hold "+prompt, func() bool {
			return bytes.Contains(l.stored(session), []byte(`"`+prompt+`"`))
		})
	}
	kept := l.stored(session)
	for _, answer := range []string{"mock reply to prompt-one", "mock reply to prompt-two"} {
		if !bytes.Contains(kept, []byte(answer)) {
			t.Errorf("the archive lacks %q", answer)
		}
	}
	if !bytes.HasPrefix(l.read(l.transcript(session)), kept) {
		t.Errorf("the archived session is not how the file begins")
	}
	term.kill()
}

// TestOff keeps one run out, for good: neither the hook nor a catch-up takes it.
func TestOff(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.install()
	private := l.printIn(l.project("app"), []string{"SESSION_KEEPER=off"}, "-p", "prompt-private")
	public := l.print("-p", "prompt-public")
	l.waitStored(public)
	l.waitIdle()
	l.keeper("archive", "--all")
	if l.stored(private) != nil {
		t.Errorf("the session that SESSION_KEEPER=off kept out is in the archive")
	}
	if _, err := os.Stat(l.transcript(private)); err != nil {
		t.Errorf("the client's own file: %v", err)
	}
	// Asked for by name, it is taken.
	l.keeper("archive", private)
	if !bytes.Equal(l.stored(private), l.read(l.transcript(private))) {
		t.Errorf("archive ID did not take the session that was kept out")
	}
}
