package briefing

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// cut gives the longest good beginning of s that allows permits: to the end of
// a paragraph if that leaves at least half of what is possible, else to the end
// of a line, of a word, of a character as a person sees it. It is empty if not
// even one character fits.
func cut(s string, allows func(Length) bool) string {
	end := graphemes(s, allows)
	if end == len(s) {
		return s
	}
	room := s[:end]
	if strings.HasPrefix(s[end:], "\n") {
		return strings.TrimRight(room, " \t\n")
	}
	for _, border := range []string{"\n\n", "\n", " "} {
		if at := strings.LastIndex(room, border); at >= end/2 && at > 0 {
			return strings.TrimRight(room[:at], " \t\n")
		}
	}
	return strings.TrimRight(room, " \t\n")
}

// graphemes gives the end of the longest beginning of s that allows permits
// and that ends between two characters as a person sees them. allows permits
// the shorter where it permits the longer.
func graphemes(s string, allows func(Length) bool) int {
	var l Length
	end := 0
	for end < len(s) {
		r, size := utf8.DecodeRuneInString(s[end:])
		grown := l.plus(Length{Bytes: size, Runes: 1, UTF16: utf16Len(r)})
		if !allows(grown) {
			break
		}
		l = grown
		end += size
	}
	for end > 0 && !isBorder(s, end) {
		_, size := utf8.DecodeLastRuneInString(s[:end])
		end -= size
	}
	return end
}

func utf16Len(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// isBorder tells whether s may be cut at i. It knows what Unicode's text
// segmentation (UAX 29) says about characters of several code points, and
// rather calls two characters one than one character two.
func isBorder(s string, i int) bool {
	if i <= 0 || i >= len(s) {
		return true
	}
	after, _ := utf8.DecodeRuneInString(s[i:])
	before, size := utf8.DecodeLastRuneInString(s[:i])
	switch {
	case before == '\r' && after == '\n':
		return false
	case before < 0x80 && after < 0x80:
		return true
	case extends(after), before == 0x200d, unicode.Is(unicode.Prepended_Concatenation_Mark, before):
		return false
	case isRegional(before) && isRegional(after):
		pairs := 0
		for j := i; j > 0; pairs++ {
			r, size := utf8.DecodeLastRuneInString(s[:j])
			if !isRegional(r) {
				break
			}
			j -= size
		}
		return pairs%2 == 0
	case isHangul(before) && isJamo(after), isJamo(before) && isHangul(after):
		return false
	case isVirama(before) && unicode.IsLetter(after):
		return false // a conjunct of an Indic script
	}
	// A virama may have other marks between it and the letter.
	for at := i; unicode.IsLetter(after) && unicode.IsMark(before); {
		if isVirama(before) {
			return false
		}
		at -= size
		before, size = utf8.DecodeLastRuneInString(s[:at])
	}
	return true
}

// extends tells whether r belongs to the character before it.
func extends(r rune) bool {
	return unicode.IsMark(r) || r == 0x200c || r == 0x200d ||
		r >= 0x1f3fb && r <= 0x1f3ff || // skin
		r >= 0xe0020 && r <= 0xe007f || // tags of flags
		r == 0xff9e || r == 0xff9f || r == 0x0e33 || r == 0x0eb3
}

func isRegional(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// isJamo tells whether r is a part of a Hangul syllable.
func isJamo(r rune) bool {
	return r >= 0x1100 && r <= 0x11ff || r >= 0xa960 && r <= 0xa97f || r >= 0xd7b0 && r <= 0xd7ff
}

// isHangul tells whether r is a Hangul syllable or a part of one.
func isHangul(r rune) bool { return isJamo(r) || r >= 0xac00 && r <= 0xd7a3 }

// isVirama tells whether r joins the letters around it.
func isVirama(r rune) bool {
	switch r {
	case 0x094d, 0x09cd, 0x0a4d, 0x0acd, 0x0b4d, 0x0bcd, 0x0c4d, 0x0ccd, 0x0d4d, 0x0dca, 0x1039, 0x17d2, 0x1a60, 0x1b44, 0xaaf6, 0x10a3f, 0x11133, 0x113d0, 0x1193e, 0x11a47, 0x11a99, 0x11f42:
		return true
	}
	return false
}
