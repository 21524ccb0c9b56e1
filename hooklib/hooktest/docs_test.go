package hooktest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/session-keeper/session-keeper/hooklib"
)

// documented returns the blocks of a kind in the guide to writing hooks.
func documented(t *testing.T, kind string) (blocks []string) {
	t.Helper()
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "hooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	for rest := string(guide); ; {
		_, after, found := strings.Cut(rest, "\n```"+kind+"\n")
		block, after, closed := strings.Cut(after, "\n```\n")
		if !found || !closed {
			return blocks
		}
		blocks, rest = append(blocks, block+"\n"), after
	}
}

// The hook in the guide, and its test, do what the guide says.
func TestDocumentedHook(t *testing.T) {
	blocks := documented(t, "go")
	if len(blocks) != 2 {
		t.Fatalf("%d programs in the guide", len(blocks))
	}
	if n := strings.Count(blocks[0], "\n"); n >= 40 {
		t.Errorf("the hook has %d lines", n)
	}
	dir := filepath.Join("testdata", "guard")
	for i, name := range []string{"main.go", "main_test.go"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		// The guide leaves out what a test file begins with.
		if i == 0 && string(text) != blocks[0] || !strings.HasSuffix(string(text), blocks[i]) {
			t.Errorf("%s is not what the guide shows:\n%s", name, blocks[i])
		}
	}

	s := New(t)
	p := Program{Path: Build(t, "./testdata/guard")}
	for _, tt := range []struct {
		payload []byte
		want    string
	}{
		{s.Payload(hooklib.NameSessionStart), `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"Files named *.pb.go are generated from *.proto files."}}` + "\n"},
		{s.Payload(hooklib.NamePreToolUse), ""},
		{s.Payload(hooklib.NamePreToolUse, Set("tool_input", map[string]string{"file_path": "/a/b.pb.go"})),
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"This file is generated: change the .proto file."}}` + "\n"},
		{s.Payload(hooklib.NamePreToolUse, Set("tool_input", "none")), ""},
		{s.Payload(hooklib.NameSessionEnd), ""},
	} {
		r := s.Run(t, p, tt.payload)
		r.Check(t)
		if string(r.Stdout) != tt.want || len(r.Stderr) > 0 || r.ExitCode != 0 {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", tt.payload, r.ExitCode, r.Stdout, r.Stderr)
		}
	}

	cmd := exec.Command("go", "test", "./testdata/guard")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the test in the guide: %v\n%s", err, out)
	}
}

// The guide names each event with the fields of its output.
func TestDocumentedOutputs(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "hooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(guide), "| event | its output |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			t.Fatalf("row %q", line)
		}
		for name := range strings.SplitSeq(cells[1], ",") {
			rows[strings.TrimSpace(name)] = cells[2]
		}
	}
	for _, name := range hooklib.Names() {
		row, ok := rows[name]
		if !ok {
			t.Errorf("%s is not in the table", name)
			continue
		}
		for _, field := range outputFields(name) {
			if !strings.Contains(row, field) {
				t.Errorf("%s: %s is not in the table", name, field)
			}
		}
	}
}
