package transcript

import (
	"bytes"
	"errors"
	"io"
	"time"
)

const (
	firstWindow = 64 << 10  // bytes of the first look at a file's end
	maxPast     = 32 << 20  // bytes of a record that are read behind the limit of a head
	maxWindow   = 256 << 20 // bytes of the last one: more than any record that was reported
)

// A Head is what the first bytes of a transcript tell: enough for a hook, which has
// no time for the rest.
type Head struct {
	SessionID, Cwd, Branch, Entrypoint, Version, Slug string // the first of each
	FirstPrompt                                       string // as in Facts
	Bytes                                             int64  // read
	Whole                                             bool   // the file ended within the limit
}

// ReadHead reads until it knows the working directory, the entrypoint and the first
// prompt, at most limit bytes. The client writes the directory behind the message: if
// it is not known by then, a record that the limit cuts off is read to its end, as
// long as a request to the API may be. Of one that is longer the fields before the
// cut count.
func ReadHead(r io.Reader, limit int64) (Head, error) {
	var h Head
	head := headReader{r: r, limit: limit, more: func() bool { return h.Cwd == "" }}
	s := NewScanner(&head)
	first := func(to *string, v Value) {
		if *to == "" {
			*to = v.String()
		}
	}
	for (h.Cwd == "" || h.Entrypoint == "" || h.FirstPrompt == "") && s.Scan() {
		raw := s.Line().Raw
		if s.Line().Number == 1 {
			raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
		}
		f, err := ParseFields(raw)
		if bad := (*SyntaxError)(nil); errors.As(err, &bad) && bad.Kind != Torn && bad.Kind != Glued && bad.Kind != Trailing {
			continue
		}
		first(&h.SessionID, f.SessionID)
		first(&h.Cwd, f.Cwd)
		first(&h.Branch, f.GitBranch)
		first(&h.Entrypoint, f.Entrypoint)
		first(&h.Version, f.Version)
		first(&h.Slug, f.Slug)
		if h.FirstPrompt == "" && f.Type.Is("user") && !f.IsSidechain.True() {
			if v, text := f.userView(); v == ViewPrompt {
				h.FirstPrompt, _ = cutPrompt(text)
			}
		}
	}
	h.Bytes = head.read
	h.Whole = head.whole
	return h, s.Err()
}

// A headReader gives the first bytes of a transcript, and if they end inside a line
// and more says so, the rest of that line.
type headReader struct {
	r     io.Reader
	limit int64
	more  func() bool
	read  int64 // given so far
	ended bool  // the last byte given ends a line, or nothing follows
	whole bool  // the file ended
}

func (h *headReader) Read(p []byte) (int, error) {
	left, beyond := h.limit-h.read, false
	if left <= 0 {
		if left, beyond = h.limit+maxPast-h.read, true; left <= 0 || h.ended || !h.more() {
			return 0, io.EOF
		}
	}
	n, err := h.r.Read(p[:min(int64(len(p)), left)])
	if i := bytes.IndexByte(p[:n], '\n'); beyond && i >= 0 {
		n, err = i+1, nil
	}
	if n > 0 {
		h.ended = p[n-1] == '\n'
	}
	h.read += int64(n)
	h.whole = err == io.EOF
	return n, err
}

// A Tail is what the last bytes of a transcript tell.
type Tail struct {
	Last  time.Time // of the last message that has a time, zero if there is none
	Cwd   string    // of the last record that has one
	Slugs []string  // in the part that was read
}

// ReadTail reads a transcript of the given size from its end, more and more of it
// until it meets a message with a time: a single record may be longer than any fixed
// window. Of damaged lines it takes what a Reader takes.
func ReadTail(r io.ReaderAt, size int64) (Tail, error) {
	for window := int64(firstWindow); ; window *= 4 {
		from := max(0, size-window)
		rd := NewReader(io.NewSectionReader(r, from, size-from))
		if from > 0 {
			rd.s.Scan() // a record's rest
		}
		var t Tail
		for rd.Next() {
			f := rd.Record()
			t.Slugs = addName(t.Slugs, f.Slug)
			if f.Cwd.IsText() {
				t.Cwd = f.Cwd.String()
			}
			if f.Type.Is("user") || f.Type.Is("assistant") {
				if at := f.Time(); !at.IsZero() {
					t.Last = at
				}
			}
		}
		if err := rd.Err(); err != nil || !t.Last.IsZero() || from == 0 || window >= maxWindow {
			return t, err
		}
	}
}
