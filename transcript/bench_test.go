package transcript

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// generate makes a transcript of about size bytes whose records look like real ones:
// prompts, answers in several records, tool calls with results of many sizes that
// are written twice, bookkeeping. It is the same for the same size.
func generate(size int) []byte {
	rnd := rand.New(rand.NewSource(1))
	words := strings.Fields("the of handler error return retry budget func stream buffer offset value test when " +
		"segment hash manifest client session while index \\\"quoted\\\" \\t path/to/file.go:42 {x} [y]")
	rare := strings.Fields("über naïve 日本 🙂 \\u00e9t\\u00e9")
	text := func(n int) string {
		var b strings.Builder
		for b.Len() < n {
			if rnd.Intn(50) == 0 {
				b.WriteString(rare[rnd.Intn(len(rare))])
			} else {
				b.WriteString(words[rnd.Intn(len(words))])
			}
			if rnd.Intn(9) == 0 {
				b.WriteString("\\n")
			} else {
				b.WriteByte(' ')
			}
		}
		return b.String()
	}
	start := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	parent, n := "null", 0
	var out bytes.Buffer
	record := func(kind, rest string) {
		n++
		uuid := fmt.Sprintf(`"%08x-0000-4000-8000-000000000000"`, n)
		fmt.Fprintf(&out, `{"parentUuid":%s,"isSidechain":false,"userType":"external","cwd":"/home/alice/app","sessionId":"00000000-0000-4000-8000-000000000001","version":"2.1.332","gitBranch":"main","type":"%s",%s,"uuid":%s,"timestamp":"%s"}`+"\n",
			parent, kind, rest, uuid, start.Add(time.Duration(n)*time.Second).Format("2006-01-02T15:04:05.000Z"))
		parent = uuid
	}
	for turn := 0; out.Len() < size; turn++ {
		record("user", `"message":{"role":"user","content":"`+text(200)+`"}`)
		for call := range 1 + rnd.Intn(6) {
			answer := func(block string) {
				record("assistant", fmt.Sprintf(`"message":{"model":"claude-opus-5-5","id":"msg_%d_%d","type":"message","role":"assistant","content":[%s],"stop_reason":"tool_use","usage":{"input_tokens":4,"cache_creation_input_tokens":1200,"cache_read_input_tokens":34000,"output_tokens":%d,"service_tier":"standard"}},"requestId":"req_%d"`,
					turn, call, block, 10+call, n))
			}
			answer(`{"type":"text","text":"` + text(400) + `"}`)
			answer(fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d_%d","name":"Read","input":{"file_path":"/home/alice/app/x.go","content":"%s"}}`, turn, call, text(rnd.Intn(2000))))
			result := text(1 << (5 + rnd.Intn(13)))
			record("user", fmt.Sprintf(`"message":{"role":"user","content":[{"tool_use_id":"toolu_%d_%d","type":"tool_result","content":"%s"}]},"toolUseResult":{"stdout":"%s"}`, turn, call, result, result))
		}
		record("system", `"subtype":"turn_duration","durationMs":1234`)
		fmt.Fprintf(&out, `{"type":"last-prompt","lastPrompt":"x","leafUuid":%s,"sessionId":"00000000-0000-4000-8000-000000000001"}`+"\n", parent)
	}
	return out.Bytes()
}

const benchBytes = 64 << 20

// The budget is 400 MB/s for a transcript's top-level fields.
func BenchmarkScan(b *testing.B) {
	in := generate(benchBytes)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		s := NewScanner(bytes.NewReader(in))
		n := 0
		for s.Scan() {
			n++
		}
		if n == 0 || s.Err() != nil {
			b.Fatal(s.Err())
		}
	}
}

func BenchmarkFields(b *testing.B) {
	in := generate(benchBytes)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(bytes.NewReader(in))
		n := 0
		for r.Next() {
			if r.Record().Type.Is("user") {
				n++
			}
		}
		if n == 0 || r.Err() != nil {
			b.Fatal(r.Err())
		}
	}
}

func BenchmarkFieldsBigLines(b *testing.B) {
	line := `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"` +
		strings.Repeat(`a line of output, sixty bytes long, as programs write them.\n`, 200_000) + `"}]}}` + "\n"
	in := []byte(strings.Repeat(line, 5))
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		r := NewReader(bytes.NewReader(in))
		for r.Next() {
		}
		if r.Err() != nil || r.s.number != 5 {
			b.Fatal(r.Err())
		}
	}
}

func BenchmarkFacts(b *testing.B) {
	in := generate(benchBytes)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadFacts(context.Background(), bytes.NewReader(in), ""); err != nil {
			b.Fatal(err)
		}
	}
}

// manyFolders makes a config folder with n project folders of ten sessions each.
func manyFolders(b *testing.B, n int) string {
	b.Helper()
	config := configDir(b)
	for i := range n {
		dir := filepath.Join(config, "projects", fmt.Sprintf("-home-alice-p%d", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		for k := range 10 {
			id := fmt.Sprintf("%08x-%04x-4000-8000-000000000000", i, k)
			if err := os.WriteFile(filepath.Join(dir, id+".jsonl"), nil, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	return config
}

// One look at each of 5,000 folders, whatever they hold.
func BenchmarkLocateByID(b *testing.B) {
	config := manyFolders(b, 5000)
	for b.Loop() {
		l := &Locator{ConfigDirs: []string{config}}
		if _, err := l.Locate("00001387-0009-4000-8000-000000000000", ""); err != nil {
			b.Fatal(err)
		}
	}
}

// All 50,000 sessions, then the files of each of a hundred.
func BenchmarkSessions(b *testing.B) {
	config := manyFolders(b, 5000)
	for b.Loop() {
		l := &Locator{ConfigDirs: []string{config}}
		all, _, err := l.Sessions(context.Background())
		if err != nil || len(all) != 50_000 {
			b.Fatal(len(all), err)
		}
		for _, s := range all[:100] {
			if _, _, err := s.Files(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// Where the event's path is right nothing else is looked at.
func BenchmarkLocateByPath(b *testing.B) {
	config := manyFolders(b, 100)
	l := &Locator{ConfigDirs: []string{config}}
	const id = "00000007-0009-4000-8000-000000000000"
	for b.Loop() {
		if _, err := l.Locate(id, transcriptPath(config, "-home-alice-p7", id)); err != nil {
			b.Fatal(err)
		}
	}
}
