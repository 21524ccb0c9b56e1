package transcript

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep arrays and objects may be nested, the limit of
// encoding/json, so that what is accepted here can be decoded elsewhere too.
const maxDepth = 10_000

// A fault says why a JSON text could not be read to its end.
type fault uint8

const (
	faultNone      fault = iota
	faultEnd             // the text ends inside a value, but outside a string
	faultEndString       // the text ends inside a string
	faultControl         // a raw control character stands in a string
	faultSyntax          // anything else
	faultDeep            // nested deeper than maxDepth
)

// A lexer checks JSON texts in full, but decodes nothing: what it finds are spans.
// It exists because a record's top-level fields are wanted at the speed at which
// bytes can be looked at, and because encoding/json would match keys without
// regard to case and put U+FFFD for lone surrogates.
type lexer struct {
	b     []byte
	check bool // look for bytes that are no UTF-8
	bad   bool // and there are some
}

// space returns the index of the first byte from i on that is no JSON white space.
func (l *lexer) space(i int) int {
	b := l.b
	for i < len(b) {
		switch b[i] {
		case ' ', '\t', '\r', '\n':
			i++
		default:
			return i
		}
	}
	return i
}

const (
	each01 = 0x0101010101010101
	each80 = 0x8080808080808080
)

// stops sets the high bit of bytes in w that are a quote, a backslash or a control
// character. The lowest bit set is exact; a borrow may set wrong ones above it.
func stops(w uint64) uint64 {
	q := w ^ each01*'"'
	s := w ^ each01*'\\'
	q = (q - each01) &^ q
	s = (s - each01) &^ s
	c := (w - each01*0x20) &^ w
	return (q | s | c) & each80
}

// shortEscape marks what may follow a backslash, u and its digits left out.
var shortEscape = [256]bool{
	'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true,
}

// str reads a string from the byte behind its opening quote, eight bytes at a
// time, and returns the index behind the closing quote.
func (l *lexer) str(i int) (int, fault) {
	b := l.b
	from := i
	var high uint64
	for {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			if m := stops(w); m != 0 {
				n := bits.TrailingZeros64(m) >> 3
				high |= w & (m&-m - 1)
				i += n
				goto stop
			}
			high |= w
			i += 8
		}
		for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= 0x20 {
			high |= uint64(b[i])
			i++
		}
		if i == len(b) {
			return i, faultEndString
		}
	stop:
		switch b[i] {
		case '"':
			if high&each80 != 0 && l.check && !utf8.Valid(b[from:i]) {
				l.bad = true
			}
			return i + 1, faultNone
		case '\\':
			if i+1 == len(b) {
				return i + 1, faultEndString
			}
			switch c := b[i+1]; {
			case shortEscape[c]:
				i += 2
			case c == 'u':
				for j := i + 2; j < i+6; j++ {
					if j == len(b) {
						return j, faultEndString
					}
					if unhex(b[j]) < 0 {
						return j, faultSyntax
					}
				}
				i += 6
			default:
				return i, faultSyntax
			}
		default:
			return i, faultControl
		}
	}
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// number reads a number and returns the index behind it.
func (l *lexer) number(i int) (int, fault) {
	b := l.b
	digits := func() bool {
		from := i
		for i < len(b) && '0' <= b[i] && b[i] <= '9' {
			i++
		}
		return i > from
	}
	bad := func() (int, fault) {
		if i == len(b) {
			return i, faultEnd
		}
		return i, faultSyntax
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return bad()
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return bad()
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return bad()
		}
	}
	return i, faultNone
}

func (l *lexer) literal(i int, word string) (int, fault) {
	for k := range len(word) {
		if i+k == len(l.b) {
			return i + k, faultEnd
		}
		if l.b[i+k] != word[k] {
			return i + k, faultSyntax
		}
	}
	return i + len(word), faultNone
}

// scalar reads a string, number or literal whose first byte stands at i.
func (l *lexer) scalar(i int) (int, fault) {
	switch c := l.b[i]; {
	case c == '"':
		return l.str(i + 1)
	case c == '-' || '0' <= c && c <= '9':
		return l.number(i)
	case c == 't':
		return l.literal(i, "true")
	case c == 'f':
		return l.literal(i, "false")
	case c == 'n':
		return l.literal(i, "null")
	}
	return i, faultSyntax
}

// value reads the value that begins at i, white space before it allowed, and
// returns the index behind it; depth is how deep it lies already. With a fault the
// index tells where it was met.
func (l *lexer) value(i, depth int) (int, fault) {
	b := l.b
	// One bit per open bracket: set for an object.
	var few [4]uint64
	open := few[:]
	n := 0
	push := func(bit uint64) bool {
		if n+depth >= maxDepth {
			return false
		}
		w := n >> 6
		if w == len(open) {
			open = append(open, 0)
		}
		open[w] = open[w]&^(1<<(n&63)) | bit<<(n&63)
		n++
		return true
	}
	var f fault
	for {
		// A value.
		i = l.space(i)
		if i == len(b) {
			return i, faultEnd
		}
		key := false
		switch b[i] {
		case '{':
			if !push(1) {
				return i, faultDeep
			}
			if i = l.space(i + 1); i < len(b) && b[i] == '}' {
				i++
				n--
			} else {
				key = true
			}
		case '[':
			if !push(0) {
				return i, faultDeep
			}
			if i = l.space(i + 1); i < len(b) && b[i] == ']' {
				i++
				n--
			} else {
				continue
			}
		default:
			if i, f = l.scalar(i); f != faultNone {
				return i, f
			}
		}
		// What follows it.
		for !key {
			if n == 0 {
				return i, faultNone
			}
			if i = l.space(i); i == len(b) {
				return i, faultEnd
			}
			object := open[(n-1)>>6]>>((n-1)&63)&1 != 0
			switch c := b[i]; {
			case c == ',':
				i++
				key = object
			case c == '}' && object || c == ']' && !object:
				i++
				n--
				continue
			default:
				return i, faultSyntax
			}
			break
		}
		if key {
			if i, f = l.key(i); f != faultNone {
				return i, f
			}
		}
	}
}

// key reads a member's name and colon, white space before each allowed.
func (l *lexer) key(i int) (int, fault) {
	if i = l.space(i); i == len(l.b) {
		return i, faultEnd
	}
	if l.b[i] != '"' {
		return i, faultSyntax
	}
	i, f := l.str(i + 1)
	if f != faultNone {
		return i, f
	}
	return l.colon(i)
}

func (l *lexer) colon(i int) (int, fault) {
	if i = l.space(i); i == len(l.b) {
		return i, faultEnd
	}
	if l.b[i] != ':' {
		return i, faultSyntax
	}
	return i + 1, faultNone
}

// object reads the object whose brace stands at i and gives each member to set: the
// name decoded, the value's text without white space around it. Members before a
// fault have been given.
func (l *lexer) object(i, depth int, set func(name, value []byte)) (int, fault) {
	b := l.b
	if i = l.space(i + 1); i < len(b) && b[i] == '}' {
		return i + 1, faultNone
	}
	var f fault
	for {
		if i = l.space(i); i == len(b) {
			return i, faultEnd
		}
		if b[i] != '"' {
			return i, faultSyntax
		}
		from := i + 1
		if i, f = l.str(from); f != faultNone {
			return i, f
		}
		name := b[from : i-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name = unescape(nil, name, len(name))
		}
		if i, f = l.colon(i); f != faultNone {
			return i, f
		}
		if from = l.space(i); from == len(b) {
			return from, faultEnd
		}
		if b[from] == '{' || b[from] == '[' {
			i, f = l.value(from, depth+1)
		} else {
			i, f = l.scalar(from)
		}
		if f != faultNone {
			return i, f
		}
		set(name, b[from:i:i])
		if i = l.space(i); i == len(b) {
			return i, faultEnd
		}
		switch b[i] {
		case ',':
			i++
		case '}':
			return i + 1, faultNone
		default:
			return i, faultSyntax
		}
	}
}

// members gives each member of an object's text to set. The text must be whole, as
// the text of a value that was read before is; anything else gives nothing more.
func members(text []byte, set func(name, value []byte)) {
	l := lexer{b: text}
	if i := l.space(0); i < len(text) && text[i] == '{' {
		l.object(i, 0, set)
	}
}

// blocks reads each element of an array's text: an object's members go to set, which
// reset readies for them, and its text to visit; other values go to visit alone.
func blocks(text []byte, reset func(), set func(name, value []byte), visit func(value []byte) bool) {
	l := lexer{b: text}
	i := l.space(0)
	if i == len(text) || text[i] != '[' {
		return
	}
	for i++; ; i++ {
		if i = l.space(i); i == len(text) {
			return
		}
		end, f := i, faultNone
		if reset(); text[i] == '{' {
			end, f = l.object(i, 0, set)
		} else {
			end, f = l.value(i, 0)
		}
		if f != faultNone || !visit(text[i:end:end]) {
			return
		}
		if i = l.space(end); i == len(text) || text[i] != ',' {
			return
		}
	}
}

// unescape appends the decoded form of a string's inside to dst, at most max bytes
// of it and whole characters only. Lone surrogates and bytes that are no UTF-8
// become U+FFFD, as they do in the client.
func unescape(dst, raw []byte, max int) []byte {
	max += len(dst)
	put := func(r rune) bool {
		if len(dst)+utf8.RuneLen(r) > max {
			return false
		}
		dst = utf8.AppendRune(dst, r)
		return true
	}
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			if c < utf8.RuneSelf {
				if len(dst) == max {
					return dst
				}
				dst = append(dst, c)
				i++
				continue
			}
			r, n := decodeRune(raw[i:])
			if !put(r) {
				return dst
			}
			i += n
			continue
		}
		if i+1 == len(raw) {
			return dst
		}
		r := rune(raw[i+1])
		i += 2
		switch r {
		case 'b':
			r = '\b'
		case 'f':
			r = '\f'
		case 'n':
			r = '\n'
		case 'r':
			r = '\r'
		case 't':
			r = '\t'
		case 'u':
			if r = unit(raw, i); r < 0 {
				return dst
			}
			i += 4
			if utf16.IsSurrogate(r) {
				low := rune(-1)
				if i+2 <= len(raw) && raw[i] == '\\' && raw[i+1] == 'u' {
					low = unit(raw, i+2)
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
		}
		if !put(r) {
			return dst
		}
	}
	return dst
}

// decodeRune is utf8.DecodeRune, but of bytes that are no UTF-8 it takes as many for
// one U+FFFD as the client does: a character that is cut off counts once, not once
// for each byte (observed on 2.1.332; it is the rule of the WHATWG's decoders).
func decodeRune(b []byte) (rune, int) {
	r, n := utf8.DecodeRune(b)
	if r != utf8.RuneError || n != 1 {
		return r, n
	}
	// The second byte's range depends on the first, further ones are 80 to BF.
	low, high := byte(0x80), byte(0xBF)
	var want int
	switch c := b[0]; {
	case 0xC2 <= c && c <= 0xDF:
		want = 2
	case 0xE0 <= c && c <= 0xEF:
		want = 3
	case 0xF0 <= c && c <= 0xF4:
		want = 4
	}
	switch b[0] {
	case 0xE0:
		low = 0xA0
	case 0xED:
		high = 0x9F
	case 0xF0:
		low = 0x90
	case 0xF4:
		high = 0x8F
	}
	for n < want && n < len(b) && low <= b[n] && b[n] <= high {
		n++
		low, high = 0x80, 0xBF
	}
	return utf8.RuneError, n
}

// unit reads the four hexadecimal digits at i, -1 if they are not there.
func unit(raw []byte, i int) rune {
	if i+4 > len(raw) {
		return -1
	}
	var r rune
	for _, c := range raw[i : i+4] {
		d := unhex(c)
		if d < 0 {
			return -1
		}
		r = r<<4 | rune(d)
	}
	return r
}
