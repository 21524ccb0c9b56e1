package digest

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxTicks bounds runs of backticks in quoted text: each fence is longer.
	maxTicks = 8
	hidden   = "[hidden]"
)

// quotable makes text from a transcript fit to be quoted: nothing unseen is left
// in it, no tag of the client's, no secret of a common shape.
func quotable(s string) string { return mask(visible(s)) }

// visible gives s as a person sees it. Line ends of every kind become "\n"; what
// shows nothing by itself (control characters, marks of direction, characters
// without width, tag characters, fillers) becomes "[hidden]", a run of it once.
// A "<" that would open or close a tag of the client's is written "&lt;".
func visible(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	var out strings.Builder
	out.Grow(len(s))
	before := rune(0) // the last one kept
	ticks, hiding := 0, false
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		rest := s[i+size:]
		i += size
		switch r {
		case '\r':
			if strings.HasPrefix(rest, "\n") {
				continue
			}
			r = '\n'
		case '\v', '\f', 0x85, 0x2028, 0x2029:
			r = '\n'
		}
		if unseen(before, r, rest) {
			if !hiding {
				out.WriteString(hidden)
			}
			hiding, before, ticks = true, 0, 0
			continue
		}
		hiding, before = false, r
		if r != '`' {
			ticks = 0
		} else if ticks++; ticks > maxTicks {
			continue
		}
		if r == '<' && opensClientTag(rest) {
			out.WriteString("&lt;")
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

// unseen tells whether r, between before and rest, shows nothing by itself.
func unseen(before, r rune, rest string) bool {
	switch {
	case r == '\n' || r == '\t' || r >= ' ' && r < 0x7f:
		return false
	case r < 0xa0:
		return true
	case r == 0x200c || r == 0x200d:
		// Joiners have a meaning inside words of many scripts, and in emoji.
		after, _ := utf8.DecodeRuneInString(rest)
		return !joins(before) || !joins(after)
	case r == 0xfe0e || r == 0xfe0f:
		if before < 0x80 {
			return !strings.ContainsRune("#*0123456789", before)
		}
		return unicode.IsSpace(before) || before == 0x200c || before == 0x200d || before == 0xfe0e || before == 0xfe0f
	case r >= 0xfe00 && r <= 0xfe0d, r >= 0x180b && r <= 0x180f, r >= 0xe0000 && r <= 0xe0fff, unicode.Is(unicode.Cf, r):
		return true
	}
	switch r {
	case 0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2065, 0x3164, 0xffa0:
		return true
	}
	return r >= 0xfff0 && r <= 0xfff8
}

func joins(r rune) bool {
	if r < 0x80 || r == utf8.RuneError || r >= 0x180b && r <= 0x180f || r >= 0xfe00 && r <= 0xfe0e {
		return false
	}
	return r == 0xfe0f || unicode.IsLetter(r) || unicode.IsMark(r) && r < 0xe0000 || unicode.IsSymbol(r)
}

// clientTags are how names of tags begin in which the client wraps what it tells
// the model by itself (observed on 2.1.332), and those of older clients.
var clientTags = []string{
	"system-", "persisted-output", "command-", "local-command-", "user-prompt-submit-hook", "task-notification",
	"bash-", "user-memory-input", "teammate-message", "ide_", "session-start-hook", "tool_use_error", "function_", "antml",
}

func opensClientTag(rest string) bool {
	rest = strings.TrimLeft(rest, " \t/")
	for _, tag := range clientTags {
		if len(rest) >= len(tag) && strings.EqualFold(rest[:len(tag)], tag) {
			return true
		}
	}
	return false
}

// without takes out what stands between two tags, tags included. Without the
// second one nothing is taken: then it is text that speaks of the tag.
func without(s, from, to string) string {
	var out strings.Builder
	rest := s
	for {
		i := strings.Index(rest, from)
		if i < 0 {
			break
		}
		j := strings.Index(rest[i:], to)
		if j < 0 {
			break
		}
		out.WriteString(rest[:i])
		rest = rest[i+j+len(to):]
	}
	if len(rest) == len(s) {
		return s
	}
	out.WriteString(rest)
	return out.String()
}

// units counts UTF-16 code units, which is how the client measures.
func units(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// head gives the longest beginning of s within so many units that ends between
// two characters as a person sees them, and at a word's end if one is near.
func head(s string, room int) string {
	n, end := 0, len(s)
	for i, r := range s {
		n++
		if r > 0xffff {
			n++
		}
		if n > room {
			end = i
			break
		}
	}
	if end == len(s) {
		return s
	}
	for end > 0 && !between(s, end) {
		_, size := utf8.DecodeLastRuneInString(s[:end])
		end -= size
	}
	if !isBlank(s[end]) {
		if i := strings.LastIndexAny(s[:end], " \n\t"); i >= end*3/4 {
			end = i
		}
	}
	return strings.TrimRight(s[:end], " \n\t")
}

// tail is head from the other end.
func tail(s string, room int) string {
	start := len(s)
	for start > 0 {
		r, size := utf8.DecodeLastRuneInString(s[:start])
		if room--; r > 0xffff {
			room--
		}
		if room < 0 {
			break
		}
		start -= size
	}
	if start == 0 {
		return s
	}
	for start < len(s) && !between(s, start) {
		_, size := utf8.DecodeRuneInString(s[start:])
		start += size
	}
	if i := strings.IndexAny(s[start:], " \n\t"); i >= 0 && i < (len(s)-start)/4 {
		start += i
	}
	return strings.TrimLeft(s[start:], " \n\t")
}

// between tells whether s may be cut at i: no mark, joiner or tone is torn off
// its character, and no flag in two.
func between(s string, i int) bool {
	if i <= 0 || i >= len(s) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i:])
	switch {
	case unicode.IsMark(after), after == 0x200d, before == 0x200d, after >= 0x1f3fb && after <= 0x1f3ff:
		return false
	case after >= 0x1160 && after <= 0x11ff: // the rest of a Korean syllable
		return false
	case isFlag(before) && isFlag(after):
		n := 0
		for rest := s[:i]; ; n++ {
			r, size := utf8.DecodeLastRuneInString(rest)
			if !isFlag(r) {
				break
			}
			rest = rest[:len(rest)-size]
		}
		return n%2 == 0
	}
	return true
}

func isFlag(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// oneLine makes quotable text one line of at most so many units.
func oneLine(s string, room int) string {
	s = strings.Join(strings.Fields(s), " ")
	if units(s) <= room {
		return s
	}
	if room < 1 {
		return ""
	}
	return head(s, room-1) + "…"
}

// shorten cuts text in the middle: what a long request is about stands at its
// beginning or at its end.
func shorten(s string, room int) string {
	all := units(s)
	if all <= room {
		return s
	}
	const mark = 48 // what the remark takes at most
	if room < 2*mark {
		return oneLine(s, room)
	}
	first := head(s, (room-mark)*3/5)
	last := tail(s[len(first):], room-mark-units(first))
	return first + "\n[… " + count(all-units(first)-units(last), "character") + " left out …]\n" + last
}

// fence gives backticks that nothing in text can close.
func fence(text string) string {
	longest, run := 2, 0
	for i := 0; i < len(text); i++ {
		if text[i] != '`' {
			run = 0
		} else if run++; run > longest {
			longest = run
		}
	}
	return strings.Repeat("`", longest+1)
}

// fenced quotes text.
func fenced(text string) string {
	f := fence(text)
	return f + "text\n" + text + "\n" + f + "\n"
}

// plain gives a name that can stand outside a fence: nothing but letters,
// digits and a few signs of names.
func plain(s string, room int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./#@+", r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(s, "?"))
	return oneLine(s, room)
}
