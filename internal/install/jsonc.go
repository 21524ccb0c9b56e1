package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// utf8BOM may stand before the text; it is kept and never added.
const utf8BOM = "\xef\xbb\xbf"

// maxSettingsBytes bounds what is read as a settings file. The parser
// recurses, so this bounds its stack too.
const maxSettingsBytes = 4 << 20

// maxDepth bounds the nesting of a settings file.
const maxDepth = 1000

const whitespace = " \t\r\n"

// document is a parsed settings file. Edits are cuts and insertions in its
// text; whatever they do not touch stays as it was, byte for byte.
type document struct {
	bom  string
	text string
	root hujson.Value
}

// errEmpty reports a file without any content.
var errEmpty = errors.New("is empty")

// parse reads JSON with comments and trailing commas. The root must be an
// object. Nothing but a parsed document is ever written back.
func parse(data []byte) (*document, error) {
	if len(data) > maxSettingsBytes {
		return nil, fmt.Errorf("is larger than %d MiB", maxSettingsBytes>>20)
	}
	if encoding := wideEncoding(data); encoding != "" {
		return nil, fmt.Errorf("is encoded as %s, not UTF-8", encoding)
	}
	d := &document{text: string(data)}
	if rest, ok := strings.CutPrefix(d.text, utf8BOM); ok {
		d.bom, d.text = utf8BOM, rest
	}
	if strings.Trim(d.text, whitespace) == "" {
		return nil, errEmpty
	}
	if tooDeep(d.text) {
		return nil, fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	root, err := hujson.Parse([]byte(d.text))
	if err != nil {
		// The parser wants a line's end after a comment, a file's end will do.
		if again, err2 := hujson.Parse([]byte(d.text + "\n")); err2 == nil {
			root, err = again, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("is not valid JSON: %s", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		return nil, fmt.Errorf("holds %s where settings are an object", kindName(root.Value.Kind()))
	}
	d.root = root
	return d, nil
}

// wideEncoding names UTF-16 and UTF-32, with or without a byte order mark; ""
// is anything else. Text that starts with an ASCII character has its zero
// bytes at the first places.
func wideEncoding(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe, 0, 0}), bytes.HasPrefix(data, []byte{0, 0, 0xfe, 0xff}):
		return "UTF-32"
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		return "UTF-16LE"
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return "UTF-16BE"
	case len(data) >= 2 && data[0] != 0 && data[1] == 0:
		return "UTF-16LE"
	case len(data) >= 2 && data[0] == 0 && data[1] != 0:
		return "UTF-16BE"
	}
	return ""
}

// tooDeep counts open brackets outside of strings and comments.
func tooDeep(text string) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '/':
			switch {
			case strings.HasPrefix(text[i:], "//"):
				n := strings.IndexByte(text[i:], '\n')
				if n < 0 {
					return false
				}
				i += n
			case strings.HasPrefix(text[i:], "/*"):
				n := strings.Index(text[i+2:], "*/")
				if n < 0 {
					return false
				}
				i += n + 3
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

func kindName(k hujson.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "an array"
	case '{':
		return "an object"
	}
	return "something unknown"
}

func (d *document) bytes() []byte { return []byte(d.bom + d.text) }

// line gives the line number of an offset, from 1.
func (d *document) line(offset int) int { return strings.Count(d.text[:offset], "\n") + 1 }

// member finds a member by its exact name. Of equal names the last one counts,
// as in JavaScript.
func member(v hujson.Value, name string) (m hujson.ObjectMember, index int) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		return m, -1
	}
	for i := len(obj.Members) - 1; i >= 0; i-- {
		if literal, ok := obj.Members[i].Name.Value.(hujson.Literal); ok && literal.String() == name {
			return obj.Members[i], i
		}
	}
	return m, -1
}

// element is one member or array element as its container sees it.
type element struct {
	before     hujson.Extra // before its first byte
	start, end int          // its bytes, name included, comma not
	after      hujson.Extra // before the comma; nil on a last one without a comma
}

// container is an object or array with the places of its parts.
type container struct {
	start    int // of the opening bracket
	close    int // of the closing bracket
	elements []element
	tail     hujson.Extra // between the last comma or value and the closing bracket
}

func contents(v hujson.Value) container {
	c := container{start: v.StartOffset, close: v.EndOffset - 1}
	switch val := v.Value.(type) {
	case *hujson.Object:
		c.tail = val.AfterExtra
		for _, m := range val.Members {
			c.elements = append(c.elements, element{m.Name.BeforeExtra, m.Name.StartOffset, m.Value.EndOffset, m.Value.AfterExtra})
		}
	case *hujson.Array:
		c.tail = val.AfterExtra
		for _, e := range val.Elements {
			c.elements = append(c.elements, element{e.BeforeExtra, e.StartOffset, e.EndOffset, e.AfterExtra})
		}
	}
	return c
}

// style is how a file is laid out, as far as it can be seen.
type style struct {
	newline string
	unit    string // one level of indentation
	colon   string // ":" or ": "
	inline  bool   // the whole file is one line
}

func (d *document) style() style {
	s := style{newline: "\n", unit: "  ", colon: ": "}
	if i := strings.IndexByte(d.text, '\n'); i > 0 && d.text[i-1] == '\r' {
		s.newline = "\r\n"
	}
	root := contents(d.root)
	if len(root.elements) == 0 {
		return s
	}
	obj := d.root.Value.(*hujson.Object)
	if len(obj.Members[0].Value.BeforeExtra) == 0 {
		s.colon = ":"
	}
	s.inline = !strings.Contains(d.text[root.start:root.close], "\n")
	for _, e := range root.elements {
		if indent, ok := lastLineIndent(e.before); ok && indent != "" {
			s.unit = indent
			break
		}
	}
	if !s.inline {
		s.colon = ": "
	}
	return s
}

// lastLineIndent is the blank text between the last newline and the element,
// if the element is the first on its line.
func lastLineIndent(before hujson.Extra) (indent string, ok bool) {
	i := bytes.LastIndexByte(before, '\n')
	if i < 0 || len(bytes.Trim(before[i+1:], " \t\r")) > 0 {
		return "", false
	}
	return string(before[i+1:]), true
}

// lineIndent is the indentation of the line that an offset lies on.
func (d *document) lineIndent(offset int) string {
	line := d.text[strings.LastIndexByte(d.text[:offset], '\n')+1:]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// node is a JSON value to be written: object, array, string or int.
type (
	field struct {
		name  string
		value any
	}
	object []field
	array  []any
)

// render writes v. In a multi-line layout, lines after the first begin with
// indent and deeper ones with one unit more.
func (s style) render(b *strings.Builder, v any, indent string, inline bool) {
	open := func(bracket byte, n int, each func(i int, indent string), end byte) {
		b.WriteByte(bracket)
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			switch {
			case !inline:
				b.WriteString(s.newline + indent + s.unit)
			case i > 0 && s.colon == ": ":
				b.WriteByte(' ')
			}
			each(i, indent+s.unit)
		}
		if !inline && n > 0 {
			b.WriteString(s.newline + indent)
		}
		b.WriteByte(end)
	}
	switch v := v.(type) {
	case object:
		open('{', len(v), func(i int, indent string) {
			b.WriteString(quoteJSON(v[i].name) + s.colon)
			s.render(b, v[i].value, indent, inline)
		}, '}')
	case array:
		open('[', len(v), func(i int, indent string) { s.render(b, v[i], indent, inline) }, ']')
	case string:
		b.WriteString(quoteJSON(v))
	case int:
		fmt.Fprint(b, v)
	}
}

func quoteJSON(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// append puts a new last element into the container v: a member called name,
// or with name "" an array element. It gives the new text and what had to be
// added between the element and the closing bracket of an empty container,
// which remove needs to give back the exact text.
//
// The text goes right behind the last byte that is not blank, so that the
// blank run before the element is always its own, and goes with it.
func (d *document) append(v hujson.Value, name string, value any) (text, tail string) {
	s := d.style()
	c := contents(v)
	at := c.close - len(c.tail) + len(strings.TrimRight(string(c.tail), whitespace))
	blank := d.text[at:c.close] // stays behind the new element
	inline := s.inline
	indent := d.lineIndent(c.start) + s.unit
	lead := s.newline + indent
	var comma, after string
	commaAt := at
	if n := len(c.elements); n > 0 {
		last := c.elements[n-1]
		inline = !bytes.ContainsRune(last.before, '\n') && !bytes.ContainsRune(c.tail, '\n') && !strings.Contains(d.text[last.start:last.end], "\n")
		if own, ok := lastLineIndent(last.before); ok {
			indent = own
			lead = s.newline + indent
		}
		if last.after != nil {
			after = "," // the file's trailing comma stays one
		} else {
			comma, commaAt = ",", last.end
		}
	}
	if inline {
		lead = ""
		if len(c.elements) > 0 && s.colon == ": " {
			lead = " "
		}
	} else if len(c.elements) == 0 && !strings.Contains(blank, "\n") {
		tail = s.newline + d.lineIndent(c.start)
	}
	var b strings.Builder
	b.WriteString(d.text[:commaAt] + comma + d.text[commaAt:at] + lead)
	if name != "" {
		b.WriteString(quoteJSON(name) + s.colon)
	}
	s.render(&b, value, indent, inline)
	b.WriteString(after + tail + d.text[at:])
	return b.String(), tail
}

// remove cuts element i out of the container v, with the blank run before it
// and the comma that it no longer needs. tail is what append put behind an
// only element; nil means that it is not known, and then nothing but comments
// stays in an emptied container.
func (d *document) remove(v hujson.Value, i int, tail *string) string {
	c := contents(v)
	e := c.elements[i]
	start := e.start - (len(e.before) - len(strings.TrimRight(string(e.before), whitespace)))
	end := e.end
	commaAt := -1
	last := i == len(c.elements)-1
	switch {
	case !last || e.after != nil:
		commaAt = e.end + len(e.after)
	case i > 0:
		commaAt = c.elements[i-1].end + len(c.elements[i-1].after)
	}
	if len(c.elements) == 1 && commaAt < 0 {
		rest := d.text[end:c.close]
		switch {
		case tail != nil && strings.HasPrefix(rest, *tail):
			end += len(*tail)
		case tail == nil && strings.Trim(d.text[c.start+1:start]+rest, whitespace) == "":
			start, end = c.start+1, c.close
		}
	}
	before, after := d.text[:start], d.text[end:]
	switch {
	case commaAt >= end:
		after = d.text[end:commaAt] + d.text[commaAt+1:]
	case commaAt >= 0:
		before = d.text[:commaAt] + d.text[commaAt+1:start]
	}
	// A line comment must keep the newline that ends it.
	if endsInLineComment(string(e.before[:len(e.before)-(e.start-start)])) && !strings.HasPrefix(strings.TrimLeft(after, " \t\r"), "\n") {
		before += d.style().newline
	}
	return before + after
}

// endsInLineComment reports whether blank-trimmed extra text ends inside of a
// "//" comment.
func endsInLineComment(extra string) bool {
	for i := 0; i < len(extra); {
		switch {
		case strings.HasPrefix(extra[i:], "//"):
			n := strings.IndexByte(extra[i:], '\n')
			if n < 0 {
				return true
			}
			i += n + 1
		case strings.HasPrefix(extra[i:], "/*"):
			n := strings.Index(extra[i+2:], "*/")
			if n < 0 {
				return false
			}
			i += n + 4
		default:
			i++
		}
	}
	return false
}

// replace puts text in the place of the value v.
func (d *document) replace(v hujson.Value, text string) string {
	return d.text[:v.StartOffset] + text + d.text[v.EndOffset:]
}
