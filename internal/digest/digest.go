package digest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/session-keeper/session-keeper/transcript"
)

// The limits of the texts, in UTF-16 units.
const (
	CompactionLimit  = 4_000
	LastSessionLimit = 1_500
)

// ErrSessionID is the error of an input without a session id that the client
// would find.
var ErrSessionID = errors.New("digest: not a session id")

// An Input is a session, as the caller has it. Nothing is opened or looked up
// besides.
type Input struct {
	Transcript io.ReaderAt
	Size       int64 // of it; what is appended meanwhile is not read
	SessionID  string

	Generation int    // of the archive that holds this state; 0 if not known yet
	Branch     string // "" for what the transcript says last
	Title      string // of the side folder's custom-title.json, "" if none

	// Reason is the SessionEnd event's, "" if there was none.
	Reason string
	// Child says that the client ran inside another one.
	Child bool

	Plan  TextFile   // the plan file as it is now, if there is one; Name is its base name
	Tasks []TextFile // the files of the tasks folder, or of todos; they go before the calls in the transcript
}

// A TextFile is a small file that the caller has read.
type TextFile struct{ Name, Text string }

// Options say how the texts are worded.
type Options struct {
	// Limit replaces the default one if it is not 0. Below 0 there is no text.
	Limit int
	// Show gives the command that prints a part of the archived conversation.
	// nil is ShowCommand. What it returns stands outside of fences.
	Show func(sessionID string, generation int) string
	// Resume gives the command that continues a session. nil is ResumeCommand.
	Resume func(sessionID string) string
}

// ShowCommand is the command that prints a part of an archived conversation.
func ShowCommand(sessionID string, generation int) string {
	s := "session-keeper show " + sessionID
	if generation > 0 {
		s += " --generation " + strconv.Itoa(generation)
	}
	return s + " --around TEXT --max-chars 4000"
}

// ResumeCommand is the client's command that continues a session.
func ResumeCommand(sessionID string) string { return "claude --resume " + sessionID }

// A Reason says why a session has no text.
type Reason string

// Reasons.
const (
	Wanted Reason = "" // it has one
	Empty  Reason = "nothing was asked"
	Script Reason = "print mode or SDK"
	Child  Reason = "ran inside another session"
	Agent  Reason = "a subagent's or a team's"
)

// NoDigest tells why a session has no last-session digest, Wanted if it has one:
// what a script, an agent or a nested client did is nothing that the next session
// of a person should begin with. child says that it ran inside another client,
// which a transcript does not tell.
func NoDigest(f *transcript.Facts, child bool) Reason {
	switch {
	case f.Agent():
		return Agent
	case child:
		return Child
	case strings.HasPrefix(f.Entrypoint, "sdk-"), f.Entrypoint == "mcp", f.Entrypoint == "claude-code-github-action":
		return Script
	case f.Empty, f.Prompts+f.Queued+f.Answers == 0:
		return Empty
	}
	return Wanted
}

// Notes tell about a text without quoting it.
type Notes struct {
	None        Reason // why there is no text
	Units       int    // its length in UTF-16 units
	Requests    int    // of the user's, on the branch that goes on
	Left        int    // of the user's, on branches that were left; they are not told
	Compactions int64  // before this one
	Damaged     int64  // damaged parts of the transcript, which were stepped over
	Cut         bool   // something was shortened or left out for lack of room
}

// source is all that the texts are made from.
type source struct {
	Input
	facts transcript.Facts
	*gathering
	tasks []task
}

// read reads the transcript.
func read(ctx context.Context, in Input) (*source, error) {
	if !transcript.ValidSessionID(in.SessionID) {
		return nil, ErrSessionID
	}
	if in.Transcript == nil || in.Size < 0 {
		return nil, errors.New("digest: no transcript")
	}
	whole := func() io.Reader { return io.NewSectionReader(in.Transcript, 0, in.Size) }
	s := &source{Input: in}
	var err error
	if s.facts, err = transcript.ReadFacts(ctx, whole(), in.Title); err != nil {
		return nil, fmt.Errorf("digest: read facts: %w", err)
	}
	c := newChain()
	if err := each(ctx, whole(), c.add); err != nil {
		return nil, fmt.Errorf("digest: read chain: %w", err)
	}
	c.resolve()
	s.gathering = newGathering(c)
	if err := each(ctx, whole(), s.add); err != nil {
		return nil, fmt.Errorf("digest: read conversation: %w", err)
	}
	s.finish()
	s.tasks = s.board.tasks
	if files, ok := readTaskFiles(in.Tasks); ok {
		s.tasks = files
	}
	if text := planText(in.Plan.Text); text != "" {
		s.plan.text = text
		if s.plan.state == planOpen {
			s.plan.state = planKept
		}
	}
	return s, nil
}

func (s *source) notes() Notes {
	n := Notes{Requests: s.requests, Left: s.left, Compactions: s.facts.Compactions}
	for _, d := range s.facts.Damaged {
		n.Damaged += d
	}
	return n
}

// Compaction words the briefing for a session whose conversation is being
// compacted, from its transcript as it was before that. The text is empty if
// there was nothing to tell.
func Compaction(ctx context.Context, in Input, opts Options) (string, Notes, error) {
	s, err := read(ctx, in)
	if err != nil {
		return "", Notes{}, err
	}
	n := s.notes()
	if s.requests == 0 && len(s.said) == 0 && len(s.tasks) == 0 && s.plan.text == "" {
		n.None = Empty
		return "", n, nil
	}
	show := ShowCommand
	if opts.Show != nil {
		show = opts.Show
	}
	text, cut := compose(limit(opts, CompactionLimit), s.compactionHead(show), s.compactionSections())
	n.Units, n.Cut = units(text), cut
	return text, n, nil
}

// LastSession words the digest of an ended session for the next one in its
// project. The text is empty, and the notes say why, if NoDigest gives a reason.
func LastSession(ctx context.Context, in Input, opts Options) (string, Notes, error) {
	s, err := read(ctx, in)
	if err != nil {
		return "", Notes{}, err
	}
	n := s.notes()
	if n.None = NoDigest(&s.facts, in.Child); n.None == Wanted && s.asked == 0 {
		n.None = Empty
	}
	if n.None != Wanted {
		return "", n, nil
	}
	resume := ResumeCommand
	if opts.Resume != nil {
		resume = opts.Resume
	}
	text, cut := compose(limit(opts, LastSessionLimit), s.digestHead(resume), s.digestSections())
	n.Units, n.Cut = units(text), cut
	return text, n, nil
}

func limit(o Options, normal int) int {
	if o.Limit != 0 {
		return o.Limit
	}
	return normal
}

const timeForm = "2006-01-02 15:04 UTC"

// span words a stretch of time, "" if it is not known.
func span(from, to time.Time) string {
	if from.IsZero() || to.IsZero() {
		return ""
	}
	a, b := from.UTC().Format(timeForm), to.UTC().Format(timeForm)
	if a == b {
		return a
	}
	if a[:11] == b[:11] {
		b = b[11:]
	}
	return strings.TrimSuffix(a, " UTC") + " to " + b
}

// count words a number of things.
func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return strconv.Itoa(n) + " " + of + "s"
}
