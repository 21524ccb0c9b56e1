package briefing

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Unit is how length is measured.
type Unit string

// The units. The client counts UTF-16 code units (observed on 2.1.332).
const (
	UTF16 Unit = "utf-16"
	Runes Unit = "runes"
	Bytes Unit = "bytes"
)

// Length is how long a text is, in each measure.
type Length struct{ Bytes, Runes, UTF16 int }

// Measure gives the length of s, which is valid UTF-8.
func Measure(s string) Length {
	l := Length{Bytes: len(s)}
	for _, r := range s {
		l.Runes++
		l.UTF16++
		if r > 0xFFFF {
			l.UTF16++
		}
	}
	return l
}

func (l Length) plus(m Length) Length {
	return Length{l.Bytes + m.Bytes, l.Runes + m.Runes, l.UTF16 + m.UTF16}
}

const (
	// DefaultBudget is what a session gets at most, unless told otherwise, in
	// UTF-16 units.
	DefaultBudget = 6_000
	// MaxBudget is what the client takes from one hook, in UTF-16 units. Of a
	// text that is one longer it shows the model 2 KB (observed on 2.1.332).
	MaxBudget = 10_000
)

// Budget bounds the whole output, header and fences with it.
type Budget struct {
	Limit int  // below 0 is as 0
	Unit  Unit // "" is UTF16
}

// allows tells whether l is within the budget, and within what the client takes.
func (b Budget) allows(l Length) bool {
	n := l.UTF16
	switch b.Unit {
	case Runes:
		n = l.Runes
	case Bytes:
		n = l.Bytes
	}
	return n <= max(b.Limit, 0) && l.UTF16 <= MaxBudget
}

// Clean makes text fit to be quoted to a model: what a person would not see in
// it, the model does not get unseen. The result is valid UTF-8.
//
//   - Line ends of every kind (CRLF, CR, VT, FF, NEL, U+2028, U+2029) become
//     "\n".
//   - Control characters, escapes of terminals among them, marks that change
//     the direction of text, characters without width, tag characters, fillers
//     and loose variation selectors become "[hidden U+202E]"; several in a row
//     one such remark with their number.
//   - Kept are tabs, joiners inside words of other scripts and of emoji, and
//     one variation selector after a character that can have one.
//   - A "<" that begins a tag of the client's own, such as system-reminder,
//     becomes "&lt;".
//   - More than 16 backticks in a row become 16.
func Clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if isPlain(s) {
		return s
	}
	var out strings.Builder
	out.Grow(len(s) + 16)
	var before rune // the last one written; 0 at the start and after a remark
	ticks := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		next := i + size
		switch {
		case isLineEnd(r):
			if r == '\r' && strings.HasPrefix(s[next:], "\n") {
				next++
			}
			r = '\n'
			out.WriteByte('\n')
		case isHidden(before, r, s[next:]):
			count := 1
			for next < len(s) {
				more, size := utf8.DecodeRuneInString(s[next:])
				if isLineEnd(more) || !isHidden(0, more, "") {
					break
				}
				count++
				next += size
			}
			if count == 1 {
				fmt.Fprintf(&out, "[hidden %U]", r)
			} else {
				fmt.Fprintf(&out, "[hidden %U and %d more]", r, count-1)
			}
			r = 0
		case r == '<' && isClientTag(s[next:]):
			out.WriteString("&lt;")
		case r == '`' && ticks >= maxTicks:
		default:
			out.WriteRune(r)
		}
		if r == '`' {
			ticks++
		} else {
			ticks = 0
		}
		before, i = r, next
	}
	return out.String()
}

// maxTicks bounds runs of backticks, since a fence is longer than each of them.
const maxTicks = 16

// isPlain tells whether s is ASCII that Clean has nothing to do with.
func isPlain(s string) bool {
	ticks := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f || c == '<' {
			return false
		}
		if c != '`' {
			ticks = 0
		} else if ticks++; ticks > maxTicks {
			return false
		}
	}
	return true
}

func isLineEnd(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

// isHidden tells whether r, after before and ahead of rest, shows nothing by
// itself. before is 0 at the start of a text.
func isHidden(before, r rune, rest string) bool {
	switch {
	case r == '\t':
		return false
	case r < 0x7f:
		return r < ' '
	case r < 0xa0:
		return true
	case r == 0x200c || r == 0x200d: // joiners: between two characters of a script or two emoji
		after, _ := utf8.DecodeRuneInString(rest)
		return !isJoined(before) || !isJoined(after)
	case r == 0xfe0e || r == 0xfe0f: // as text, as emoji
		return before <= ' ' || unicode.IsSpace(before) || isSelector(before) || unicode.Is(unicode.Cf, before) || isHidden(0, before, "")
	case isSelector(r): // variants of ideographs
		return !unicode.Is(unicode.Han, before)
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r): // number signs, which are seen
		return false
	case unicode.Is(unicode.Cf, r), r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	switch r {
	case 0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2065, 0x3164, 0xffa0, // fillers and the like
		0xfff0, 0xfff1, 0xfff2, 0xfff3, 0xfff4, 0xfff5, 0xfff6, 0xfff7, 0xfff8:
		return true
	}
	return false
}

// isJoined tells whether joiners have a meaning beside r.
func isJoined(r rune) bool {
	if r < 0x80 || r == utf8.RuneError || r == 0x200c || r == 0x200d {
		return false
	}
	if r == 0xfe0f { // ❤️ before a joiner
		return true
	}
	return unicode.IsLetter(r) || unicode.IsMark(r) && !isSelector(r) || unicode.IsSymbol(r)
}

func isSelector(r rune) bool {
	return r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef || r >= 0x180b && r <= 0x180f
}

// clientTags are the beginnings of the names of tags in which the client wraps
// what it tells the model by itself (observed on 2.1.332).
var clientTags = []string{"system-reminder", "persisted-output", "command-", "local-command-", "user-prompt-submit-hook", "task-notification"}

// isClientTag tells whether rest goes on as a tag of the client's, open or closed.
func isClientTag(rest string) bool {
	rest = strings.TrimLeft(rest, " \t/")
	for _, tag := range clientTags {
		if len(rest) >= len(tag) && strings.EqualFold(rest[:len(tag)], tag) {
			return true
		}
	}
	return false
}

// line makes s one clean line of at most so many UTF-16 units.
func line(s string, most int) string {
	s = strings.Join(strings.Fields(Clean(s)), " ")
	if s = strings.ReplaceAll(s, "`", "'"); Measure(s).UTF16 <= most {
		return s
	}
	end := graphemes(s, func(l Length) bool { return l.UTF16 < most }) // one for the ellipsis
	return s[:end] + "…"
}
