package digest

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with a file, byte for byte.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, []byte(text)) {
		t.Errorf("%s: run with -update if this is as it should be:\n%s", name, text)
	}
}

func readFile(t testing.TB, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// realSession is one that client 2.1.332 wrote against a mock of the API, in plan
// mode at first, with three tasks, a refused command and a check that fails in
// the end. Long texts of the client's own (system prompt, tools, skills) were
// replaced by a mark; the words of the conversation and all calls and results are
// as the client wrote them.
func realSession(t testing.TB) Input {
	t.Helper()
	in := input(readFile(t, "real", "transcript.jsonl"))
	in.SessionID = "793c4ab6-cb8c-4693-a522-8973ff9e335f"
	in.Plan = TextFile{"fetch-sh-asks-the-gateway-transient-allen.md", readFile(t, "real", "plan.md")}
	for _, name := range []string{"1.json", "2.json", "3.json"} {
		in.Tasks = append(in.Tasks, TextFile{name, readFile(t, "real", "tasks", name)})
	}
	return in
}

func input(text string) Input {
	return Input{Transcript: bytes.NewReader([]byte(text)), Size: int64(len(text)), SessionID: "00000000-0000-4000-8000-000000000001"}
}

func TestGoldenReal(t *testing.T) {
	in := realSession(t)
	in.Generation = 4
	text, _, err := Compaction(context.Background(), in, Options{})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "real/compaction.txt", text)
	in.Reason = "prompt_input_exit"
	text, _, err = LastSession(context.Background(), in, Options{})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "real/last-session.txt", text)
}
