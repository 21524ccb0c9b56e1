//go:build unix

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/session-keeper/session-keeper/archive"
)

// A compaction loses nothing: what stood before it is a generation of its own,
// with what the user told the summary to hold to. The client's summary is made
// with what the settings add to its instructions, and with nothing else of ours.
func TestCompaction(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.install()
	config := filepath.Join(l.home, ".config", "session-keeper", "config.toml")
	l.must(os.MkdirAll(filepath.Dir(config), 0o700))
	l.must(os.WriteFile(config, []byte("[compact]\ninstructions = \"Name all lighthouses.\"\n"), 0o600))

	term := l.interactive(nil)
	term.enter("prompt-one")
	term.waitFor("mock reply to prompt-one")
	session := l.newSession(nil)
	term.enter("/compact keep the hooks")
	l.wait(archiveTimeout, "a generation from before the compaction", func() bool {
		_, generation := l.generation(session)
		return generation != nil && generation.Reason == archive.PreCompact
	})
	_, generation := l.generation(session)
	if len(generation.Events) != 1 {
		t.Fatalf("events: %+v", generation.Events)
	}
	event := generation.Events[0]
	if event.Name != "PreCompact" || event.Reason != "manual" || event.Instructions != "keep the hooks" || event.Size == 0 {
		t.Errorf("event: %+v", event)
	}
	kept := l.stored(session)
	if int64(len(kept)) < event.Size || !bytes.Contains(kept[:event.Size], []byte("mock reply to prompt-one")) ||
		bytes.Contains(kept[:event.Size], []byte("compact_boundary")) {
		t.Errorf("of the %d bytes archived the first %d are not the conversation before the compaction", len(kept), event.Size)
	}

	l.wait(archiveTimeout, "the compaction", func() bool {
		return bytes.Contains(l.read(l.transcript(session)), []byte("compact_boundary"))
	})
	if !bytes.HasPrefix(l.read(l.transcript(session)), kept[:event.Size]) {
		t.Error("the client rewrote what was there before the compaction")
	}
	asked := l.mock.sent("keep the hooks")
	if len(asked) == 0 {
		t.Fatal("the client asked for no summary")
	}
	text := lastUserText(asked[0].Messages)
	if !strings.Contains(text, "Name all lighthouses.") || strings.Contains(text, "session-keeper") {
		t.Errorf("the summary was asked for with: %.2000s", text[max(0, len(text)-2000):])
	}
	term.enter("/exit")
	term.waitExit()
	l.waitStored(session)
}
