package transcript

import "strings"

// Synthetic is the model of answers that the client wrote itself, after an API error
// or to close a turn. It is never the session's model.
const Synthetic = "<synthetic>"

// Usage is what the API counted, in tokens.
type Usage struct {
	Input, Output, CacheWrite, CacheRead int64
}

func (u *Usage) read(v Value) {
	members(v.raw, func(name, value []byte) {
		var field *int64
		switch string(name) {
		case "input_tokens":
			field = &u.Input
		case "output_tokens":
			field = &u.Output
		case "cache_creation_input_tokens":
			field = &u.CacheWrite
		case "cache_read_input_tokens":
			field = &u.CacheRead
		default:
			return // iterations repeat the totals
		}
		if n, ok := (Value{value}).Int(); ok && n >= 0 {
			*field = n
		}
	})
}

// A Block is one content block of a message.
type Block struct {
	Type      string  // text, thinking, tool_use, tool_result, image, or whatever it says
	Text      string  // of text and thinking
	ID, Name  string  // of a tool call
	Input     Value   // of a tool call, as it stands
	ToolUseID string  // of a tool result: the call that it answers
	IsError   bool    // of a tool result
	Content   []Block // of a tool result; a plain string is one text block
	MediaType string  // of an image or document
	Raw       Value   // the block as it stands
}

// A Message is the API message in a user or assistant record.
type Message struct {
	Role, ID, Model, StopReason string
	Content                     []Block // a plain string is one text block
	Plain                       bool    // the content is a plain string
	Usage                       Usage
	HasUsage                    bool
}

// ReadMessage decodes the record's message. What is absent or of an unexpected type
// is left zero: records without a message, with null, number or object content occur.
func (f *Fields) ReadMessage() Message {
	p := f.message()
	m := Message{
		Role: p.role.String(), ID: p.id.String(), Model: p.model.String(), StopReason: p.stopReason.String(),
		Plain: p.content.IsText(),
	}
	m.Content = readBlocks(p.content)
	if len(p.usage.raw) > 0 && p.usage.raw[0] == '{' {
		m.HasUsage = true
		m.Usage.read(p.usage)
	}
	return m
}

// Text returns the text blocks joined with blank lines.
func (m *Message) Text() string {
	var parts []string
	for _, b := range m.Content {
		if b.Type == "text" && b.Text != "" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n\n")
}

// messageParts are a message's members, undecoded.
type messageParts struct {
	role, id, model, stopReason, content, usage Value
}

func (f *Fields) message() messageParts {
	var p messageParts
	members(f.Message.raw, func(name, value []byte) {
		v := Value{value}
		switch string(name) {
		case "role":
			p.role = v
		case "id":
			p.id = v
		case "model":
			p.model = v
		case "stop_reason":
			p.stopReason = v
		case "content":
			p.content = v
		case "usage":
			p.usage = v
		}
	})
	return p
}

// blockParts are a content block's members, undecoded.
type blockParts struct {
	kind, text, thinking, id, name, input, toolUseID, isError, content, source Value
}

func (p *blockParts) reset() { *p = blockParts{} }

// each reads the blocks of an array one after the other into p.
func (p *blockParts) each(array Value, visit func(raw []byte) bool) {
	blocks(array.raw, p.reset, p.set, visit)
}

func (p *blockParts) set(name, value []byte) {
	v := Value{value}
	switch string(name) {
	case "type":
		p.kind = v
	case "text":
		p.text = v
	case "thinking":
		p.thinking = v
	case "id":
		p.id = v
	case "name":
		p.name = v
	case "input":
		p.input = v
	case "tool_use_id":
		p.toolUseID = v
	case "is_error":
		p.isError = v
	case "content":
		p.content = v
	case "source":
		p.source = v
	}
}

// readBlocks decodes content: a string, or an array of blocks.
func readBlocks(content Value) []Block {
	if text, ok := content.Text(); ok {
		return []Block{{Type: "text", Text: text, Raw: content}}
	}
	var all []Block
	var p, in blockParts
	p.each(content, func(raw []byte) bool {
		b := Block{Raw: Value{raw}}
		if raw[0] != '{' {
			// No block, but nothing that stands here is to vanish.
			b.Text = b.Raw.String()
			all = append(all, b)
			return true
		}
		b.Type, b.Text = p.kind.String(), p.text.String()
		switch b.Type {
		case "thinking":
			b.Text = p.thinking.String()
		case "tool_use", "server_tool_use", "mcp_tool_use":
			b.ID, b.Name, b.Input = p.id.String(), p.name.String(), p.input
		case "image", "document":
			b.MediaType = p.source.Member("media_type").String()
		}
		if p.toolUseID.Present() {
			b.ToolUseID, b.IsError = p.toolUseID.String(), p.isError.True()
			// Results do not nest: no block inside one has content of its own.
			if text, ok := p.content.Text(); ok {
				b.Content = []Block{{Type: "text", Text: text, Raw: p.content}}
			} else {
				in.each(p.content, func(raw []byte) bool {
					b.Content = append(b.Content, Block{
						Type: in.kind.String(), Text: in.text.String(), Raw: Value{raw},
						MediaType: in.source.Member("media_type").String(),
					})
					return true
				})
			}
		}
		all = append(all, b)
		return true
	})
	return all
}
