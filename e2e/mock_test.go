//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// mock stands in for the Messages API on the loopback interface. A reply quotes
// the prompt it answers and nothing else that varies, so that two runs over the
// same history get the same history back.
//
// A prompt that holds "USE_TOOL command" is answered with a call of the Bash
// tool first; a prompt that holds "SLOW_REPLY" is answered after slowReply.
type mock struct {
	URL string

	mu       sync.Mutex
	requests []request
	tools    int
}

// request is one call of /v1/messages, as the client sent it.
type request struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Messages []json.RawMessage `json:"messages"`
	System   json.RawMessage   `json:"system"`
	Tools    []struct {
		Name string `json:"name"`
	} `json:"tools"`
}

// slowReply holds a run beyond the moment at which the client starts its
// clean-up, 8 s after the start in print mode (observed on 2.1.332).
const slowReply = 12 * time.Second

const (
	slowPrompt = "SLOW_REPLY"
	toolPrompt = "USE_TOOL "
)

func startMock(t *testing.T) *mock {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen for the mock API: %v", err)
	}
	m := &mock{URL: "http://" + listener.Addr().String()}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", m.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]int{"input_tokens": 120})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, struct{}{}) })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("close the mock API: %v", err)
		}
		if err := <-done; err != http.ErrServerClosed {
			t.Errorf("mock API: %v", err)
		}
	})
	return m
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	// The client may have gone: there is nobody to tell.
	_ = json.NewEncoder(w).Encode(v)
}

func (m *mock) messages(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var req request
	if err := json.Unmarshal(body, &req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.requests = append(m.requests, req)
	n := len(m.requests)
	m.mu.Unlock()

	if strings.Contains(lastUserText(req.Messages), slowPrompt) {
		select {
		case <-time.After(slowReply):
		case <-r.Context().Done():
			return
		}
	}
	answer := m.answer(req, n)
	if !req.Stream {
		writeJSON(w, answer)
		return
	}
	stream(w, answer)
}

// sent gives the requests whose last message of the user holds prompt.
func (m *mock) sent(prompt string) []request {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []request
	for _, r := range m.requests {
		if strings.Contains(lastUserText(r.Messages), prompt) {
			found = append(found, r)
		}
	}
	return found
}

type block struct {
	Type  string         `json:"type"`
	Text  string         `json:"text,omitempty"`
	ID    string         `json:"id,omitempty"`
	Name  string         `json:"name,omitempty"`
	Input map[string]any `json:"input,omitempty"`
}

type message struct {
	ID           string         `json:"id"`
	Type         string         `json:"type"`
	Role         string         `json:"role"`
	Model        string         `json:"model"`
	Content      []block        `json:"content"`
	StopReason   *string        `json:"stop_reason"`
	StopSequence *string        `json:"stop_sequence"`
	Usage        map[string]int `json:"usage"`
}

var (
	toolCall   = regexp.MustCompile(toolPrompt + `([^"\\\n]+)`)
	promptWord = regexp.MustCompile(`prompt-[a-z0-9-]+`)
)

func (m *mock) answer(req request, n int) message {
	stop := "end_turn"
	text := lastUserText(req.Messages)
	content := []block{{Type: "text", Text: "mock reply to " + strings.Join(promptWord.FindAllString(text, -1), " ")}}
	call := toolCall.FindStringSubmatch(text)
	if call != nil && !lastHolds(req.Messages, `"tool_result"`) && offersTool(req, "Bash") {
		m.mu.Lock()
		m.tools++
		id := fmt.Sprintf("toolu_mock%04d", m.tools)
		m.mu.Unlock()
		content = []block{
			{Type: "text", Text: "mock calls a tool"},
			{Type: "tool_use", ID: id, Name: "Bash", Input: map[string]any{"command": strings.TrimSpace(call[1]), "description": "run it"}},
		}
		stop = "tool_use"
	}
	return message{
		ID: fmt.Sprintf("msg_mock%06d", n), Type: "message", Role: "assistant", Model: req.Model,
		Content: content, StopReason: &stop,
		Usage: map[string]int{"input_tokens": 120, "output_tokens": 12, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0},
	}
}

func offersTool(req request, name string) bool {
	for _, tool := range req.Tools {
		if tool.Name == name {
			return true
		}
	}
	return false
}

// stream sends a message as the server-sent events of the Messages API.
func stream(w http.ResponseWriter, answer message) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(event string, data map[string]any) {
		data["type"] = event
		line, err := json.Marshal(data)
		if err != nil {
			panic(err) // plain maps and structs always marshal
		}
		// The client may have gone: the server notices by itself.
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, line)
	}
	start := answer
	start.Content, start.StopReason = []block{}, nil
	send("message_start", map[string]any{"message": start})
	for i, b := range answer.Content {
		if b.Type == "text" {
			send("content_block_start", map[string]any{"index": i, "content_block": map[string]any{"type": "text", "text": ""}})
			send("content_block_delta", map[string]any{"index": i, "delta": map[string]any{"type": "text_delta", "text": b.Text}})
		} else {
			input, err := json.Marshal(b.Input)
			if err != nil {
				panic(err)
			}
			send("content_block_start", map[string]any{"index": i, "content_block": map[string]any{"type": "tool_use", "id": b.ID, "name": b.Name, "input": map[string]any{}}})
			send("content_block_delta", map[string]any{"index": i, "delta": map[string]any{"type": "input_json_delta", "partial_json": string(input)}})
		}
		send("content_block_stop", map[string]any{"index": i})
	}
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": answer.StopReason, "stop_sequence": nil}, "usage": map[string]int{"output_tokens": 12}})
	send("message_stop", map[string]any{})
}

// lastUserText gives the text of the last message with role user. Messages of
// other roles, which the client uses for reminders, may follow it.
func lastUserText(messages []json.RawMessage) string {
	for i := len(messages) - 1; i >= 0; i-- {
		var m struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(messages[i], &m) != nil || m.Role != "user" {
			continue
		}
		var text string
		if json.Unmarshal(m.Content, &text) == nil {
			return text
		}
		var blocks []block
		if json.Unmarshal(m.Content, &blocks) != nil {
			continue
		}
		var texts []string
		for _, b := range blocks {
			texts = append(texts, b.Text)
		}
		return strings.Join(texts, "\n")
	}
	return ""
}

// lastHolds says whether one of the last two messages holds text: the result of
// a tool stands in the last one, or before a reminder.
func lastHolds(messages []json.RawMessage, text string) bool {
	for _, m := range messages[max(0, len(messages)-2):] {
		if strings.Contains(string(m), text) {
			return true
		}
	}
	return false
}
