package transcript

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Text that other readers stumble over is read as the client reads it, and its bytes
// stay what they are. UN-05: among a hundred lines none is dropped.
func TestReaderHardText(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"UN-01 half of an emoji", `x\ud83d… errored`, "x\ufffd… errored"},
		{"UN-03 in a preview", `<persisted-output>\nAvatar \ud83c\n...`, "<persisted-output>\nAvatar \ufffd\n..."},
		{"UN-04 in upper case", `\uD83D.`, "\ufffd."},
		{"UN-04 behind an escaped backslash it is text", `\\ud83d \\\ud83d`, `\ud83d \` + "\ufffd"},
		{"UN-05 a whole pair", `\ud83d\ude00`, "😀"},
		{"UN-06 a pair in the wrong order", `\udc00\ud800`, "\ufffd\ufffd"},
		{"UN-06 two first halves, then a pair", `\ud83d\ud83d\ude00`, "\ufffd😀"},
		{"UN-07 a byte of Latin-1", `area 5 m\udcb2`, "area 5 m\ufffd"},
		{"UN-09 separators", "a\u2028b\u2029c\u0085d", "a\u2028b\u2029c\u0085d"},
		{"UN-09 escaped ones", `a\r\u2028\u000b\fb`, "a\r\u2028\v\fb"},
		{"DL-07 an escaped NUL", `a\u0000b`, "a\x00b"},
		{"JF-01 keys in a text", `{\"type\":\"assistant\",\"uuid\":\"z\"}`, `{"type":"assistant","uuid":"z"}`},
	} {
		result := `{"type":"user","uuid":"hard","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"` + c.in + `"}]}]}}`
		var lines []string
		for i := range 100 {
			lines = append(lines, says(fmt.Sprint(i), "easy"))
		}
		lines[50] = result
		in := []byte(strings.Join(lines, "\n") + "\n")
		if out := outline(t, in); len(out) != 100 || out[50] != "hard" {
			t.Errorf("%s: %d records and findings, %q", c.name, len(out), out[50])
		}
		r := NewReader(bytes.NewReader(in))
		for r.Next() && r.Record().Line < 51 {
		}
		rec := r.Record()
		if string(rec.Raw) != result || rec.Line != 51 {
			t.Errorf("%s: line %d is %q", c.name, rec.Line, rec.Raw)
		}
		m := rec.ReadMessage()
		if len(m.Content) != 1 || len(m.Content[0].Content) != 1 || m.Content[0].Content[0].Text != c.want {
			t.Errorf("%s: %+v, want %q", c.name, m.Content, c.want)
		}
	}
}

// LL-01, LL-04, SA-03: records of any length are read whole, also from the end.
func TestLongRecords(t *testing.T) {
	for _, size := range []int{64<<10 + 1, 10<<20 + 1, 70 << 20} {
		before := message(1) + says("b", "before") + "\n"
		open := `{"type":"user","uuid":"long","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"`
		shut := `"}]},"timestamp":"2026-11-30T09:00:00Z"}` + "\n"
		long := &longFile{start: before + open, fill: '0', n: int64(size), end: shut}
		f := facts2(t, io.MultiReader(io.NewSectionReader(long, 0, long.size()), strings.NewReader(says("a", "after"))))
		if f.Records != 4 || f.Types["user"] != 4 || f.Prompts != 3 || f.Damaged != nil || f.Last.Day() != 30 ||
			f.Bytes != long.size()+int64(len(says("a", "after"))) {
			t.Errorf("%d bytes: %+v", size, f)
		}
		tail, err := ReadTail(long, long.size())
		if err != nil || tail.Last.Day() != 30 {
			t.Errorf("the end of a record of %d bytes: %+v, %v", size, tail, err)
		}
	}
}

// A longFile has the same byte many times in its middle.
type longFile struct {
	start, end string
	fill       byte
	n          int64
	read       int64 // bytes that were asked for
}

// filler has what ReadAt copies.
var filler = map[byte][]byte{'0': bytes.Repeat([]byte("0"), 64<<10), '\n': bytes.Repeat([]byte("\n"), 64<<10)}

func (f *longFile) size() int64 { return int64(len(f.start)) + f.n + int64(len(f.end)) }

func (f *longFile) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		at := off + int64(n) - int64(len(f.start))
		switch {
		case at < 0:
			n += copy(p[n:], f.start[len(f.start)+int(at):])
		case at < f.n:
			n += copy(p[n:], filler[f.fill][:min(int64(len(filler[f.fill])), f.n-at)])
		case at < f.n+int64(len(f.end)):
			n += copy(p[n:], f.end[at-f.n:])
		default:
			f.read += int64(n)
			return n, io.EOF
		}
	}
	f.read += int64(n)
	return n, nil
}

// LL-06: what a hook asks of another session costs the same whatever its size, and
// the list of all sessions reads none of them.
func TestHugeFilesCostLittle(t *testing.T) {
	const huge = 4 << 30
	start := `{"type":"user","cwd":"/w","entrypoint":"cli","message":{"content":"hello"}}` + "\n"
	f := &longFile{start: start, fill: '\n', n: huge, end: message(9)}
	h, err := ReadHead(io.NewSectionReader(f, 0, f.size()), 1<<20)
	if err != nil || h.FirstPrompt != "hello" || h.Bytes > 2*baseBuffer || f.read > 2*baseBuffer {
		t.Errorf("head: %+v, %v, %d bytes read", h, err, f.read)
	}
	f.read = 0
	tail, err := ReadTail(f, f.size())
	if err != nil || tail.Last.Day() != 9 || f.read > 2*firstWindow {
		t.Errorf("tail: %+v, %v, %d bytes read", tail, err, f.read)
	}

	config := configDir(t)
	for i := range 3 {
		path := transcriptPath(config, "-p", fmt.Sprintf("%08d-0000-4000-8000-000000000000", i))
		write(t, path, start)
		if err := os.Truncate(path, 64<<20); err != nil {
			t.Fatal(err)
		}
	}
	before := allocated()
	all, _, err := (&Locator{ConfigDirs: []string{config}}).Sessions(context.Background())
	if err != nil || len(all) != 3 || all[0].Size != 64<<20 {
		t.Fatal(all, err)
	}
	if got := allocated() - before; got > 1<<20 {
		t.Errorf("the list took %d bytes", got)
	}
}

// LL-09, LL-12: a pass is linear in the records, a chain as well as siblings, few
// giant and very many tiny progress records, compactions between them. (A square of
// their number would not come to an end.)
func TestFactsAreLinear(t *testing.T) {
	const n = 50_000
	var b bytes.Buffer
	b.WriteString(says("root", "begin") + "\n")
	for i := range n {
		fmt.Fprintf(&b, `{"type":"progress","uuid":"p%d","parentUuid":"root","data":{"type":"bash_progress"}}`+"\n", i)
		if i%(n/5) == 0 {
			fmt.Fprintf(&b, `{"type":"progress","uuid":"g%d","data":{"x":"%s"}}`+"\n", i, strings.Repeat("y", 1<<20))
			fmt.Fprintf(&b, `{"type":"system","subtype":"compact_boundary","uuid":"c%d"}`+"\n", i)
		}
	}
	for i := range n {
		fmt.Fprintf(&b, `{"type":"assistant","uuid":"a%d","parentUuid":"a%d","message":{"id":"m%d","model":"x","content":[{"type":"tool_use","id":"t%d"}]}}`+"\n", i, i-1, i, i)
		fmt.Fprintf(&b, `{"type":"summary","summary":"s","leafUuid":"gone%d"}`+"\n", i)
	}
	f := facts2(t, &b)
	if f.Prompts != 1 || f.Answers != n || f.ToolCalls != n || f.Compactions != 5 || f.Types["progress"] != n+5 || f.Title != "begin" {
		t.Errorf("%+v", f)
	}
}

// DL-04: a cut line in the middle of 7,000 hides nothing of what follows.
func TestCutLineInTheMiddle(t *testing.T) {
	for _, cut := range []string{
		`{"parentUuid":"u","type":"attachment","uuid":"x","attachment":{"type":"file","content":"abc`,
		`{"parentUuid":"u","type":"attachment","uuid":"x","attachment":{"type":"file",`,
		`{"type":"file-history-snapshot","messageId":"m","snapshot":{"trackedFileBackups":{"a":{`,
	} {
		var lines []string
		for i := range 7000 {
			at := time.Date(2026, 11, 1, 0, 0, i, 0, time.UTC).Format(time.RFC3339)
			lines = append(lines, strings.Replace(says(fmt.Sprint("u", i), "q"), `"uuid"`, `"timestamp":"`+at+`","uuid"`, 1))
		}
		lines[3500] = cut
		f := facts(t, lines...)
		if f.Prompts != 6999 || f.Damaged[Torn] != 1 || len(f.Damage) != 1 || f.Damage[0].Line != 3501 || f.Damage[0].Length != int64(len(cut)) ||
			!f.Last.Equal(time.Date(2026, 11, 1, 0, 0, 6999, 0, time.UTC)) {
			t.Errorf("%.40s: %d prompts, last %v, damage %v", cut, f.Prompts, f.Last, f.Damage)
		}
	}
}

// CO-01, ID-02: two processes that write into one file. Both branches count, also
// where their records run into each other.
func TestTwoWriters(t *testing.T) {
	child := func(uuid, parent string) string {
		return strings.Replace(says(uuid, uuid), `"uuid"`, fmt.Sprintf(`"isSidechain":false,"parentUuid":%q,"uuid"`, parent), 1)
	}
	a1, b1, a2, b2 := child("a1", "root"), child("b1", "root"), child("a2", "a1"), child("b2", "b1")
	leaf := func(uuid string) string { return fmt.Sprintf(`{"type":"last-prompt","leafUuid":%q}`, uuid) }
	for name, in := range map[string]string{
		"in turn":     strings.Join([]string{says("root", "begin"), a1, b1, a2, b2, leaf("a2"), leaf("b2")}, "\n"),
		"on one line": says("root", "begin") + "\n" + a1 + b1 + "\n\n" + a2 + "\n" + leaf("a2") + b2 + "\n" + leaf("b2"),
	} {
		f := facts(t, in)
		if f.Prompts != 5 || f.Types["last-prompt"] != 2 || f.Records != 7 || f.Sidechain || f.FirstPrompt != "begin" {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// ID-01: a file may hold another session's records, or nothing else. Its name is
// what it is found by.
func TestContinuationFiles(t *testing.T) {
	config := configDir(t)
	of := func(id, text string) string {
		return strings.Replace(says(text, text), `"uuid"`, fmt.Sprintf(`"sessionId":%q,"slug":"brave-fox","uuid"`, id), 1) + "\n"
	}
	write(t, transcriptPath(config, "-p", idB), of(idA, "one")+of(idA, "two")+of(idB, "three"))
	write(t, transcriptPath(config, "-p", idC), of(idA, "four"))
	l := &Locator{ConfigDirs: []string{config}}
	if b, err := l.Locate(idA, transcriptPath(config, "-p", idB)); err == nil {
		t.Errorf("found by what stands in it: %+v", b)
	}
	for id, want := range map[string][]string{idB: {idA, idB}, idC: {idA}} {
		b, err := l.Locate(id, "")
		if err != nil || b.SessionID != id || b.Transcript != transcriptPath(config, "-p", id) {
			t.Fatal(b, err)
		}
		f, _, err := b.Open()
		if err != nil {
			t.Fatal(err)
		}
		got := facts2(t, f)
		f.Close()
		if !slices.Equal(got.SessionIDs, want) {
			t.Errorf("%s names %q, want %q", id, got.SessionIDs, want)
		}
	}
}

// OS-05: backups that the client removed leave gaps in the snapshots. Nobody misses
// them.
func TestSnapshotGaps(t *testing.T) {
	config := configDir(t)
	line := `{"type":"file-history-snapshot","messageId":"u","snapshot":{"messageId":"u","trackedFileBackups":{` +
		`"a.go":{"backupFileName":"0123456789abcdef@v1","version":1},"b.go":{"backupFileName":"fedcba9876543210@v2","version":2},"c.go":{"backupFileName":null,"version":1}}}}`
	text := says("u", "q") + "\n" + line + "\n"
	write(t, transcriptPath(config, "-p", idA), text)
	write(t, filepath.Join(config, "file-history", idA, "fedcba9876543210@v2"), "x")
	b, err := (&Locator{ConfigDirs: []string{config}}).Locate(idA, "")
	if err != nil {
		t.Fatal(err)
	}
	files, skipped, err := b.Files()
	if err != nil || len(skipped) != 0 || rels(files) != "transcript:"+idA+".jsonl file-history:fedcba9876543210@v2" {
		t.Errorf("%v, %s, %+v", err, rels(files), skipped)
	}
	if f := facts(t, text); f.Damaged != nil || f.Types["file-history-snapshot"] != 1 {
		t.Errorf("%+v", f)
	}
}

// US-04: the blocks of a message that is spread over records and over midnight are
// all counted, the message once, its usage as it was last.
func TestMessageOverMidnight(t *testing.T) {
	at := func(record, time string) string {
		return strings.Replace(record, `"uuid"`, `"timestamp":"`+time+`","uuid"`, 1)
	}
	tool := func(id string) string { return `{"type":"tool_use","id":"` + id + `","name":"Read","input":{}}` }
	f := facts(t,
		at(reply("1", "m", "x", `{"type":"thinking","thinking":"t"}`, `"output_tokens":2`), "2026-11-30T23:59:58Z"),
		at(reply("2", "m", "x", tool("t1"), `"output_tokens":2`), "2026-11-30T23:59:59Z"),
		at(reply("3", "m", "x", tool("t2"), `"output_tokens":2`), "2026-12-01T00:00:00Z"),
		at(reply("4", "m", "x", tool("t2")+","+tool("t3"), `"output_tokens":90`), "2026-12-01T00:00:01Z"),
		at(reply("5", "m", "x", strings.Replace(tool("t4"), "tool_use", `tool\u005fuse`, 1), `"output_tokens":90`), "2026-12-01T00:00:02Z"), // US-06
	)
	if f.Answers != 1 || f.ToolCalls != 4 || f.Usage != (Usage{Output: 90}) || f.First.Day() != 30 || f.Last.Day() != 1 {
		t.Errorf("%+v", f)
	}
}

// SA-04: an agent's file may begin with an answer whose parent is elsewhere.
func TestAgentFileWithoutPrompt(t *testing.T) {
	for _, parent := range []string{`null`, `"gone"`} {
		answer := strings.Replace(reply("a", "m", "x", block, `"output_tokens":3`), `"uuid"`, `"isSidechain":true,"agentId":"a02b21e","parentUuid":`+parent+`,"uuid"`, 1)
		f := facts(t, answer)
		if !f.Agent() || f.Empty || f.Damaged != nil || f.Prompts != 0 || f.Answers != 0 || f.Usage.Output != 3 || f.Title != "(session)" {
			t.Errorf("parent %s: %+v", parent, f)
		}
	}
}

// SA-01, LI-05: an agent's file belongs to the session that its records name, also
// if that stands behind a task longer than what is looked at otherwise.
func TestAgentFileWithLongTask(t *testing.T) {
	config := configDir(t)
	write(t, transcriptPath(config, "-p", idA), message(1))
	for name, id := range map[string]string{"agent-ours.jsonl": idA, "agent-theirs.jsonl": idB} {
		write(t, filepath.Join(config, "projects", "-p", name),
			`{"type":"user","isSidechain":true,"message":{"content":"`+strings.Repeat("x", headBytes)+`"},"sessionId":"`+id+`"}`+"\n")
	}
	b, err := (&Locator{ConfigDirs: []string{config}}).Locate(idA, "")
	if err != nil {
		t.Fatal(err)
	}
	files, skipped, err := b.Files()
	if err != nil || len(skipped) != 0 || rels(files) != "transcript:"+idA+".jsonl agents:agent-ours.jsonl" {
		t.Errorf("%v, %s, %v", err, rels(files), skipped)
	}
}

// LI-10: which client wrote a session is told, whatever it was.
func TestEntrypoints(t *testing.T) {
	for _, name := range []string{"cli", "sdk-cli", "sdk-ts", "sdk-py", "claude-desktop", "claude-vscode", "a new one"} {
		f := facts(t, `{"type":"mode"}`, strings.Replace(says("u", "x"), `"uuid"`, fmt.Sprintf(`"entrypoint":%q,"uuid"`, name), 1),
			strings.Replace(says("v", "y"), `"uuid"`, `"entrypoint":"other","uuid"`, 1))
		if f.Entrypoint != name || f.Agent() || f.Empty || f.Prompts != 2 {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// JF-02, DL-07: of every sample the records are the file's own bytes.
func TestSamplesAreKept(t *testing.T) {
	n := 0
	for _, pattern := range []string{"../testdata/vectors/resume/*.jsonl", "../testdata/transcripts/*.jsonl"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			in, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if out := outline(t, in); len(out) == 0 {
				t.Errorf("%s: nothing in it", path)
			}
			if !bytes.Equal(join(scanAll(t, bytes.NewReader(in))), in) {
				t.Errorf("%s: its lines are not the file", path)
			}
			n++
		}
	}
	if n < 50 {
		t.Errorf("%d samples", n)
	}
}
