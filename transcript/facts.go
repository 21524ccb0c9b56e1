package transcript

import (
	"context"
	"errors"
	"io"
	"time"
)

// TitleSource says where a session's title comes from.
type TitleSource string

// An End says how a transcript ends.
type End uint8

// Ends.
const (
	EndUnknown End = iota // written by a client that leaves no mark
	EndClean              // the client closed its books after the last message
	EndOpen               // it did not: killed, or still running
	EndTool               // a tool call has no result
	EndTorn               // the last record is cut off
)

// Facts are what one pass over a transcript tells.
type Facts struct {
	Title       string // one line, at most 200 characters
	TitleSource TitleSource
	FirstPrompt string // cut for display
	PromptCut   bool   // FirstPrompt is shorter than the prompt

	FirstCwd, LastCwd, RelocatedCwd string
	FirstBranch, LastBranch         string
	Version                         string // of the client that wrote last
	Entrypoint                      string // the first one found
	Models                          []string
	First, Last                     time.Time // of user and assistant records; zero if none

	Records     int64 // all, recovered ones included
	Lines       int64 // physical
	Bytes       int64
	Types       map[string]int64 // records by type
	Prompts     int64
	Queued      int64 // prompts that were queued and have no user record
	Answers     int64 // messages of the model, each once
	ToolCalls   int64
	Compactions int64
	Usage       Usage // each message once

	Format     Format
	Damaged    map[Kind]int64
	Damage     []Damage // the first ones
	Slugs      []string
	TeamName   string
	SessionIDs []string // named in records, in order of first appearance
	Sidechain  bool     // has messages, and all are sidechain ones
	Empty      bool     // has no message
	Compact    bool     // holds "type":"user" or "type":"assistant" without a space
	End        End
	LastType   string // type of the last record
}

// ReadFacts reads a transcript once and tells its facts.
func ReadFacts(ctx context.Context, r io.Reader, sidecarTitle string) (Facts, error) {
	return Facts{}, errors.ErrUnsupported
}

// A Head is what the first bytes of a transcript tell.
type Head struct {
	SessionID, Cwd, Entrypoint, Slug, Branch, FirstPrompt string
}

// ReadHead reads at most limit bytes.
func ReadHead(r io.Reader, limit int64) (Head, error) { return Head{}, errors.ErrUnsupported }
