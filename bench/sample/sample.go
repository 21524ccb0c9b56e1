// Package sample makes transcripts for measurements, the same for the same seed.
//
// The records have the fields and the order that client 2.1.332 writes, and
// about its mix of sizes: a system prompt with tools in front, then turns of
// prompts, tool calls with their results, answers and bookkeeping. The text is
// cut from the source files of the Go installation at hand, so two runs with
// one Go version give the same bytes, and they compress about as real ones do.
package sample

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Text is where the words of a transcript come from.
type Text struct {
	names    []string
	files    []string
	comments []string
}

// maxSource bounds the bytes of source that are read, and with them the time to
// the first record.
const maxSource = 24 << 20

// ReadText reads the Go files below dir, in the order of their names.
func ReadText(dir string) (*Text, error) {
	text, total := &Text{}, 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if len(data) < 500 || len(data) > 200_000 {
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text.names = append(text.names, filepath.ToSlash(rel))
		text.files = append(text.files, string(data))
		for line := range strings.Lines(string(data)) {
			if words, ok := strings.CutPrefix(strings.TrimSpace(line), "// "); ok && len(words) > 30 {
				text.comments = append(text.comments, words)
			}
		}
		if total += len(data); total > maxSource {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the source text: %w", err)
	}
	if len(text.files) == 0 || len(text.comments) == 0 {
		return nil, errors.New("read the source text: no Go files in " + dir)
	}
	return text, nil
}

// A Session writes the records of one session.
type Session struct {
	ID string

	text   *Text
	random *rand.Rand
	out    *bufio.Writer
	size   int64
	err    error

	cwd    string
	parent *string // uuid of the last record of the chain
	now    time.Time
	turns  int
	open   []int // of text.files: what the session has read, and reads again
}

// New begins a session in the folder cwd. The seed decides every byte.
func New(text *Text, seed uint64, cwd string) *Session {
	s := &Session{
		text: text, random: rand.New(rand.NewPCG(seed, 0x5e55)), cwd: cwd,
		now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC).Add(time.Duration(seed%100_000) * time.Minute),
	}
	s.ID = s.uuid()
	for range 40 {
		s.open = append(s.open, s.random.IntN(len(text.files)))
	}
	return s
}

// Write writes records until at least size bytes have gone to w in this call.
// The first call begins with what the client writes at a session's start, later
// ones go on where the last one ended, as a resumed session does.
func (s *Session) Write(w io.Writer, size int64) error {
	s.out, s.size = bufio.NewWriterSize(w, 1<<20), 0
	if s.turns == 0 {
		s.begin()
	} else {
		s.put(record{{"type", "mode"}, {"mode", "normal"}, {"sessionId", s.ID}})
	}
	for s.size < size && s.err == nil {
		s.turn(size)
	}
	s.put(record{{"type", "cost-state"}, {"sessionId", s.ID}, {"totalCostUSD", s.random.Float64() * 10}, {"totalAPIDuration", s.random.IntN(1e6)}, {"hasUnknownModelCost", false}})
	if s.err == nil {
		s.err = s.out.Flush()
	}
	return s.err
}

// record is one line: fields in the order they are written in.
type record []field

type field struct {
	name  string
	value any
}

func (r record) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, f := range r {
		if i > 0 {
			out = append(out, ',')
		}
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		out = fmt.Appendf(out, "%q:", f.name)
		out = append(out, value...)
	}
	return append(out, '}'), nil
}

func (s *Session) put(r record) {
	if s.err != nil {
		return
	}
	line, err := r.MarshalJSON()
	if err != nil {
		s.err = err
		return
	}
	s.size += int64(len(line)) + 1
	if _, s.err = s.out.Write(append(line, '\n')); s.err != nil {
		s.err = fmt.Errorf("write the transcript: %w", s.err)
	}
}

// link writes a record that hangs on the one before.
func (s *Session) link(kind string, fields ...field) {
	s.now = s.now.Add(time.Duration(20+s.random.IntN(3000)) * time.Millisecond)
	id := s.uuid()
	r := record{{"parentUuid", s.parent}, {"isSidechain", false}, {"type", kind}}
	r = append(r, fields...)
	r = append(r, field{"uuid", id}, field{"timestamp", s.stamp()}, field{"userType", "external"}, field{"entrypoint", "cli"},
		field{"cwd", s.cwd}, field{"sessionId", s.ID}, field{"version", "2.1.332"}, field{"gitBranch", "main"})
	s.put(r)
	s.parent = &id
}

func (s *Session) begin() {
	s.put(record{{"type", "queue-operation"}, {"operation", "enqueue"}, {"timestamp", s.stamp()}, {"content", s.prose(2)}, {"sessionId", s.ID}})
	s.put(record{{"type", "mode"}, {"mode", "normal"}, {"sessionId", s.ID}})
	system := s.prose(150)
	var tools []record
	for i := range 12 {
		tools = append(tools, record{{"name", fmt.Sprintf("Tool%d", i)}, {"description", s.prose(12)}, {"input_schema", record{{"type", "object"}, {"properties", record{{"path", record{{"type", "string"}, {"description", s.prose(1)}}}}}}}})
	}
	s.link("attachment", field{"attachment", record{{"type", "prompt_snapshot"}, {"systemPrompt", []string{system}}, {"tools", tools}}})
	s.put(record{{"type", "api-request-shape"}, {"sessionId", s.ID}, {"shapeHash", s.hex(32)}, {"timestamp", s.stamp()}, {"shape", record{{"system", system}, {"tools", tools}}}})
}

func (s *Session) turn(limit int64) {
	s.turns++
	prompt := s.prose(1 + s.random.IntN(3))
	s.link("user", field{"promptId", s.uuid()}, field{"message", record{{"role", "user"}, {"content", prompt}}}, field{"permissionMode", "default"})
	for range 1 + s.random.IntN(16) {
		if s.size >= limit {
			break
		}
		s.step()
	}
	s.answer(record{{"type", "text"}, {"text", s.prose(2 + s.random.IntN(10))}}, "end_turn")
	s.link("system", field{"subtype", "turn_duration"}, field{"durationMs", s.random.IntN(100_000)}, field{"isMeta", false})
	s.put(record{{"type", "last-prompt"}, {"lastPrompt", prompt[:min(len(prompt), 80)]}, {"leafUuid", *s.parent}, {"sessionId", s.ID}})
	s.put(record{{"type", "file-history-snapshot"}, {"messageId", *s.parent}, {"snapshot", record{{"messageId", *s.parent}, {"trackedFileBackups", record{}}, {"timestamp", s.stamp()}}}, {"isSnapshotUpdate", false}, {"sessionId", s.ID}})
}

func (s *Session) answer(block record, stop string) {
	usage := record{{"input_tokens", s.random.IntN(20)}, {"cache_creation_input_tokens", s.random.IntN(4000)}, {"cache_read_input_tokens", s.random.IntN(150_000)}, {"output_tokens", s.random.IntN(900)}, {"service_tier", "standard"}}
	s.link("assistant", field{"message", record{{"id", "msg_" + s.hex(24)}, {"type", "message"}, {"role", "assistant"}, {"model", "model-1"}, {"content", []record{block}}, {"stop_reason", stop}, {"stop_sequence", nil}, {"usage", usage}}}, field{"requestId", "req_" + s.hex(24)})
}

// step writes a call of a tool and its result, which stands twice in its
// record: for the model and for the screen.
func (s *Session) step() {
	s.put(record{{"type", "api-request"}, {"sessionId", s.ID}, {"id", s.uuid()}, {"timestamp", s.stamp()}, {"params", record{{"model", "model-1"}, {"max_tokens", 64000}}}, {"base", s.uuid()}, {"keep", s.turns}, {"requestDigest", s.hex(32)}})
	if s.random.IntN(3) == 0 {
		s.answer(record{{"type", "thinking"}, {"thinking", ""}, {"signature", s.hex(300 + s.random.IntN(400))}}, "tool_use")
	}
	use := "toolu_" + s.hex(24)
	path, content, name, input := s.call()
	s.answer(record{{"type", "tool_use"}, {"id", use}, {"name", name}, {"input", input}}, "tool_use")
	call := *s.parent
	s.link("user", field{"message", record{{"role", "user"}, {"content", []record{{{"tool_use_id", use}, {"type", "tool_result"}, {"content", content}}}}}},
		field{"toolUseResult", record{{"type", "text"}, {"file", record{{"filePath", path}, {"content", content}, {"numLines", strings.Count(content, "\n")}}}}}, field{"sourceToolAssistantUUID", call})
}

func (s *Session) call() (path, content, name string, input record) {
	slot := s.random.IntN(len(s.open))
	if s.random.IntN(4) == 0 {
		s.open[slot] = s.random.IntN(len(s.text.files))
	}
	file := s.open[slot]
	path = s.cwd + "/" + s.text.names[file]
	source := s.text.files[file]
	switch s.random.IntN(10) {
	case 0, 1, 2, 3: // reads a file, or a part of it
		from := 0
		if s.random.IntN(3) > 0 {
			from = s.random.IntN(len(source))
		}
		part := source[from:min(len(source), from+800+s.random.IntN(24_000))]
		return path, numbered(part), "Read", record{{"file_path", path}}
	case 4, 5, 6: // runs a command
		return path, s.log(source), "Bash", record{{"command", "go test ./" + filepath.ToSlash(filepath.Dir(s.text.names[file])) + " | tail -40"}, {"description", s.prose(1)}}
	case 7, 8: // edits
		from := s.random.IntN(len(source))
		old := source[from:min(len(source), from+50+s.random.IntN(900))]
		return path, source[:min(len(source), 12_000)], "Edit", record{{"file_path", path}, {"old_string", old}, {"new_string", "// " + s.prose(1) + "\n" + old}}
	default: // looks at a picture
		return path, s.hex(2000 + s.random.IntN(20_000)), "Read", record{{"file_path", path + ".png"}}
	}
}

func numbered(text string) string {
	var b strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		n++
		fmt.Fprintf(&b, "%6d\t%s", n, line)
	}
	return b.String()
}

func (s *Session) log(source string) string {
	var b strings.Builder
	for range 2 + s.random.IntN(30) {
		from := s.random.IntN(len(source))
		line, _, _ := strings.Cut(source[from:], "\n")
		fmt.Fprintf(&b, "%s:%d: %s (%.3fs)\n", s.text.names[s.open[s.random.IntN(len(s.open))]], s.random.IntN(2000), line, s.random.Float64()*9)
	}
	return b.String()
}

func (s *Session) prose(lines int) string {
	var b strings.Builder
	for i := range lines {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s.text.comments[s.random.IntN(len(s.text.comments))])
	}
	return strings.ToValidUTF8(b.String(), "?")
}

func (s *Session) stamp() string { return s.now.Format("2006-01-02T15:04:05.000Z") }

func (s *Session) hex(n int) string {
	const digits = "0123456789abcdef"
	out := make([]byte, n)
	for i := range out {
		out[i] = digits[s.random.IntN(16)]
	}
	return string(out)
}

func (s *Session) uuid() string {
	h := s.hex(30)
	return h[:8] + "-" + h[8:12] + "-4" + h[12:15] + "-a" + h[15:18] + "-" + h[18:30]
}
