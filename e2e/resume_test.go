//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRestoredSessionResumesLikeTheOriginal is the main job: a session ends, its
// files are deleted, one command brings them back, and what the client then
// sends is byte for byte what it would have sent had nothing been deleted.
func TestRestoredSessionResumesLikeTheOriginal(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.install()
	session := l.print("-p", "prompt-one "+toolPrompt+"seq 1 60000", "--allowedTools", "Bash")
	l.print("-p", "--resume", session, "prompt-two")
	l.waitStored(session)
	l.waitIdle()
	before := l.bundle(session)
	if len(before) < 2 {
		t.Fatalf("the session has no side files, so this test would not see them restored: %v", keys(before))
	}

	// The control: a copy of this home, in its place, resumes.
	original, control := filepath.Join(l.root, "original"), filepath.Join(l.root, "control")
	l.must(os.Rename(l.home, original))
	l.copyTree(original, l.home)
	l.print("-p", "--resume", session, "prompt-three")
	l.must(os.Rename(l.home, control))
	l.must(os.Rename(original, l.home))

	l.deleteSession(session)
	if out := l.run(l.project("app"), l.client, nil, "-p", "--resume", session, "prompt-lost"); out.code == 0 {
		t.Fatalf("the client still resumes the deleted session: %s", out.stdout)
	}
	l.keeper("restore", session)
	after := l.bundle(session)
	for path, want := range before {
		got, ok := after[path]
		if !ok {
			t.Errorf("%s was not restored", path)
			continue
		}
		if got.data != want.data {
			t.Errorf("%s: restored with other bytes (%d, was %d)", path, len(got.data), len(want.data))
		}
		// The client makes some files readable for all; what we make is not. SM-06
		if mode := want.mode & 0o700; got.mode != mode {
			t.Errorf("%s: restored with mode %v, want %v", path, got.mode, mode)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			t.Errorf("%s was not there before", path)
		}
	}
	l.print("-p", "--resume", session, "prompt-three")

	requests := l.mock.sent("prompt-three")
	if len(requests) != 2 {
		t.Fatalf("%d requests for two resumes", len(requests))
	}
	compareRequests(t, requests[0], requests[1])
	if len(requests[0].Messages) < 7 {
		t.Errorf("the resumed conversation has %d messages: the history is missing", len(requests[0].Messages))
	}
	for _, text := range []string{"prompt-one", "prompt-two", "mock calls a tool", "tool_result"} {
		if !holds(requests[1], text) {
			t.Errorf("the resumed conversation lacks %q", text)
		}
	}
	// And the resumed session is archived in its turn.
	l.waitStored(session)
}

// compareRequests wants the same messages, byte for byte, the same system
// prompt and the same tools.
func compareRequests(t *testing.T, want, got request) {
	t.Helper()
	if len(got.Messages) != len(want.Messages) {
		t.Errorf("%d messages sent, the original sends %d", len(got.Messages), len(want.Messages))
	}
	for i := range min(len(got.Messages), len(want.Messages)) {
		if !bytes.Equal(got.Messages[i], want.Messages[i]) {
			t.Errorf("message %d differs:\n got %.2000s\nwant %.2000s", i, got.Messages[i], want.Messages[i])
		}
	}
	if !bytes.Equal(got.System, want.System) {
		t.Errorf("the system prompt differs:\n got %.2000s\nwant %.2000s", got.System, want.System)
	}
	if got.Model != want.Model {
		t.Errorf("model %q, the original uses %q", got.Model, want.Model)
	}
	if g, w := toolNames(got), toolNames(want); g != w {
		t.Errorf("tools %s, the original offers %s", g, w)
	}
}

func toolNames(r request) string {
	var names []string
	for _, tool := range r.Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

func holds(r request, text string) bool {
	data, err := json.Marshal(r.Messages)
	return err == nil && bytes.Contains(data, []byte(text))
}

type content struct {
	data string
	mode fs.FileMode
}

// bundle reads the files of a session: the transcript and all that lies in the
// session's folder.
func (l *lab) bundle(session string) map[string]content {
	l.t.Helper()
	files := map[string]content{}
	transcript := l.transcript(session)
	project := filepath.Dir(transcript)
	add := func(path string) {
		info, err := os.Stat(path)
		l.must(err)
		rel, err := filepath.Rel(project, path)
		l.must(err)
		files[rel] = content{string(l.read(path)), info.Mode()}
	}
	add(transcript)
	side := strings.TrimSuffix(transcript, ".jsonl")
	if _, err := os.Stat(side); err != nil {
		return files
	}
	l.must(filepath.WalkDir(side, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			add(path)
		}
		return err
	}))
	return files
}

func keys(files map[string]content) []string {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	return names
}

// TestContinueAfterRestore restores an old session. "claude --continue" goes by
// the files' times (observed on 2.1.332) and must still mean the newest one.
func TestContinueAfterRestore(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.install()
	old := l.print("-p", "prompt-old")
	l.waitStored(old)
	recent := l.print("-p", "prompt-recent")
	l.waitStored(recent)
	l.waitIdle()
	l.deleteSession(old)
	l.keeper("restore", old)

	if got := l.print("-p", "--continue", "prompt-more"); got != recent {
		t.Errorf("--continue went on with %s, want the newest session %s", got, recent)
	}
	requests := l.mock.sent("prompt-more")
	if len(requests) != 1 || !holds(requests[0], "prompt-recent") || holds(requests[0], "prompt-old") {
		t.Errorf("--continue did not send the newest conversation: %d requests", len(requests))
	}
	// The restored one is there all the same, for those who name it.
	l.print("-p", "--resume", old, "prompt-again")
	if requests := l.mock.sent("prompt-again"); len(requests) != 1 || !holds(requests[0], "prompt-old") {
		t.Errorf("--resume did not send the restored conversation: %d requests", len(requests))
	}
}

// TestRestoredSessionSurvivesCleanUp restores a session that is older than the
// client keeps sessions, and lets the client clean up. A session that was put
// back by hand, with the times it had, shows that the clean-up took place.
func TestRestoredSessionSurvivesCleanUp(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const age = 40 * 24 * time.Hour // the client keeps 30 days
	session := l.print("-p", "prompt-kept "+toolPrompt+"seq 1 60000", "--allowedTools", "Bash")
	byHand := l.print("-p", "prompt-by-hand")
	for _, id := range []string{session, byHand} {
		for rel := range l.bundle(id) {
			path := filepath.Join(filepath.Dir(l.transcript(id)), rel)
			when := time.Now().Add(-age)
			l.must(os.Chtimes(path, when, when))
		}
	}
	l.keeper("archive", "--all")
	before := l.bundle(session)
	l.deleteSession(session)
	l.keeper("restore", session)
	control := l.transcript(byHand)
	l.must(os.MkdirAll(l.project("elsewhere"), 0o700))

	l.printIn(l.project("elsewhere"), nil, "-p", slowPrompt+" prompt-held")

	if _, err := os.Stat(control); !os.IsNotExist(err) {
		t.Fatalf("the client did not clean up, so this test shows nothing (%v)", err)
	}
	after := l.bundle(session)
	for path, want := range before {
		if got, ok := after[path]; !ok {
			t.Errorf("the client's clean-up took %s", path)
		} else if got.data != want.data {
			t.Errorf("%s changed", path)
		}
	}
	l.print("-p", "--resume", session, "prompt-after")
	if requests := l.mock.sent("prompt-after"); len(requests) != 1 || !holds(requests[0], "prompt-kept") {
		t.Errorf("the session does not resume after the clean-up: %d requests", len(requests))
	}
}

// TestLongPathAndOtherConfigFolder works in a directory whose path is too long
// for the client's folder names, so that they end in a hash, and with a client
// folder elsewhere. The whole projects folder goes; the session must come back
// where --continue, which looks in one folder only, finds it.
func TestLongPathAndOtherConfigFolder(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.moveConfig(filepath.Join(l.root, "claude's own folder"))
	l.install()
	dir := l.project(filepath.Join("größe "+strings.Repeat("x", 120), strings.Repeat("y.z_", 25)))
	l.must(os.MkdirAll(dir, 0o700))
	session := l.printIn(dir, nil, "-p", "prompt-one")
	want := l.waitStored(session)
	l.waitIdle()
	where := l.transcript(session)
	if name := filepath.Base(filepath.Dir(where)); len(name) <= 200 {
		t.Fatalf("the folder's name has %d bytes, so this test shows nothing", len(name))
	}
	l.must(os.RemoveAll(filepath.Join(l.config, "projects")))

	l.keeper("restore", session)
	if got := l.transcript(session); got != where {
		t.Errorf("restored as %s, was %s", got, where)
	}
	if !bytes.Equal(l.read(where), want) {
		t.Errorf("restored with other bytes")
	}
	if got := l.printIn(dir, nil, "-p", "--continue", "prompt-two"); got != session {
		t.Errorf("--continue began session %s", got)
	}
	if requests := l.mock.sent("prompt-two"); len(requests) != 1 || !holds(requests[0], "prompt-one") {
		t.Errorf("the conversation does not go on: %d requests", len(requests))
	}
}
