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

// A real session in which the user went back before a request and asked anew, and
// that was killed with a call under way and a request waiting. It was treated as
// realSession was.
func TestGoldenRewound(t *testing.T) {
	in := input(readFile(t, "rewound", "transcript.jsonl"))
	in.SessionID = "dcbed4b1-f5ef-4555-91f3-060639659f9f"
	text, notes := lastSession(t, in)
	golden(t, "rewound/last-session.txt", text)
	if notes.Requests != 4 || notes.Left != 1 {
		t.Errorf("%d requests and %d left, want 4 and 1", notes.Requests, notes.Left)
	}
	text = compaction(t, in)
	golden(t, "rewound/compaction.txt", text)
	lacks(t, text, "mistake", "Answer to B")
}

// A session with a bit of everything that a briefing may hold.
func TestGoldenSynthetic(t *testing.T) {
	s := newScript(t)
	s.raw(encode(t, object{"type": "custom-title", "customTitle": "Import of old orders"}))
	s.user("We move the old orders out of the spreadsheet into the new database. Never touch the table invoices, accounting owns it.\n\nThe export is at s3://shop-old/orders.csv, 40,000 rows.")
	s.tool("Read", object{"file_path": "/home/dev/app/import/orders.go"}, false)
	s.tool("Read", object{"file_path": "/home/dev/app/schema.sql"}, false)
	s.say("The importer reads row by row; 40,000 rows would take an hour. I suggest COPY in batches of 500.\n\n```sql\nCOPY orders FROM STDIN;\n```")
	s.user("ok, COPY. The database is postgres://import:Tr0ub4dor@db.internal:5432/shop and keep that out of the repository")
	s.tool("Write", object{"file_path": "/home/dev/app/import/copy.go", "content": "CANARY"}, false)
	s.tool("Edit", object{"file_path": "/home/dev/app/import/orders.go", "new_string": "CANARY"}, false)
	s.tool("Bash", object{"command": "go test ./import"}, true)
	s.tool("Edit", object{"file_path": "/home/dev/app/import/copy.go", "new_string": "CANARY"}, false)
	s.tool("Bash", object{"command": "go test ./import"}, false)
	s.say("The importer copies in batches of 500 and takes 20 s for a sample of 5,000 rows. The connection string comes from DATABASE_URL.")
	s.result(s.call("AskUserQuestion", object{}), "CANARY", false, object{"answers": object{"What about orders without a customer?": "skip them, list their numbers in skipped.csv"}})
	s.tool("TodoWrite", object{"todos": []any{
		object{"content": "COPY in batches", "status": "completed"},
		object{"content": "Skip orders without a customer and list them", "status": "in_progress"},
		object{"content": "Dry run against the copy of production", "status": "pending"},
	}}, false)
	cut := s.add("system", object{"subtype": "turn_duration"})
	s.add("system", object{"subtype": "compact_boundary", "parentUuid": nil, "logicalParentUuid": cut})
	s.add("user", object{"isCompactSummary": true, "message": object{"role": "user", "content": "CANARY"}})
	s.user("<command-name>/review</command-name>\n<command-args>import/</command-args>")
	s.say("Two findings: `copy.go` ignores the error of Close, and the batch size is written down twice.")
	s.user([]any{object{"type": "image", "source": object{"type": "base64", "media_type": "image/png", "data": "CANARY"}},
		text("that is what the report looks like now. Fix both findings, then `skipped.csv`:\n```\nnumber,reason\n4711,no customer\n```\nDates in it as 2026-11-30, not 30.11.")})
	s.tool("Edit", object{"file_path": "/home/dev/app/import/copy.go", "new_string": "CANARY"}, false)
	s.result(s.call("Bash", object{"command": "psql $DATABASE_URL -c 'TRUNCATE orders'"}), refusal+" "+refusalWords+"not on the shared database!", true, "Error")
	s.say("Close is checked now, and the batch size is a constant. I will not empty the shared table; the test gets a schema of its own.\n\nNext: write skipped.csv from the importer, with dates as 2026-11-30, then the dry run.")
	s.tool("Bash", object{"command": "go vet ./..."}, true)
	s.call("Bash", object{"command": "go test ./import -run Skipped"})
	in := s.input()
	in.Generation = 3
	text := compaction(t, in)
	golden(t, "synthetic/compaction.txt", text)
	lacks(t, text, "CANARY", "Tr0ub4dor")
	text, _ = lastSession(t, in)
	golden(t, "synthetic/last-session.txt", text)
	lacks(t, text, "CANARY", "Tr0ub4dor")
}
