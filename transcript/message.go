package transcript

import "errors"

// Usage is what the API counted for one message, in tokens.
type Usage struct {
	Input, Output, CacheWrite, CacheRead int64
}

// A Block is one content block of a message.
type Block struct {
	Type      string  // text, thinking, tool_use, tool_result, image, or what the record says
	Text      string  // of text and thinking
	ID        string  // of a tool call
	Name      string  // of the tool that is called
	Input     Value   // of a tool call, as it stands
	ToolUseID string  // of a tool result: the call it answers
	IsError   bool    // of a tool result
	Content   []Block // of a tool result; a plain string is one text block
	MediaType string  // of an image or document
	Raw       Value   // the block as it stands
}

// A Message is the API message inside a user or assistant record.
type Message struct {
	Role, ID, Model, StopReason string
	Content                     []Block // a plain string is one text block
	Plain                       bool    // content was a plain string
	Usage                       Usage
	HasUsage                    bool
}

// ReadMessage decodes the record's message.
func (f *Fields) ReadMessage() (Message, error) { return Message{}, errors.ErrUnsupported }

// A View says what a record is to a person who reads the conversation.
type View uint8

// Views.
const (
	ViewOther         View = iota // bookkeeping, unknown
	ViewPrompt                    // what the user typed
	ViewAnswer                    // text, thinking or tool calls of the model
	ViewToolResult                // what a tool gave back
	ViewCommand                   // a slash command
	ViewCommandOutput             // what a local command printed, and its caveat
	ViewInterruption              // the client's note that the user interrupted
	ViewSummary                   // a compaction's summary
	ViewMeta                      // put in by the client, not typed
	ViewQueued                    // a prompt typed while the model worked
	ViewBoundary                  // where a compaction cut
	ViewSystem                    // other notes of the client
)

// View tells what the record is to a reader.
func (r *Record) View() View { return ViewOther }
