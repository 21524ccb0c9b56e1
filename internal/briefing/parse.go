package briefing

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"github.com/bmatcuk/doublestar/v4"

	"github.com/session-keeper/session-keeper/internal/config"
)

// mark is the line before and after the front matter.
const mark = "+++"

const (
	maxPatternBytes = 512 // of a glob
	maxPatterns     = 100 // in a list
)

// Parse reads a briefing. name is the file's name for messages, and the title
// if the file gives none. Errors are *config.Error; the file can then not be
// used. Warnings stop nothing: keys and sources that are not known, since a
// newer version may know them; a body that is empty or no valid UTF-8.
//
// The front matter ends at the next line of "+++", inside a string as well.
func Parse(name string, data []byte) (*Briefing, []config.Warning, error) {
	p := parser{file: name}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return nil, nil, p.fail(1+bytes.Count(data[:i], []byte{'\n'}), "a binary file: it holds a NUL")
	}
	text := strings.TrimPrefix(string(data), "\uFEFF")
	front, body, bodyLine, err := p.split(text)
	if err != nil {
		return nil, nil, err
	}
	b, err := p.front(front)
	if err != nil {
		return nil, nil, err
	}
	if b.Title == "" {
		b.Title = strings.TrimSuffix(name, extension)
	}
	if !utf8.ValidString(body) {
		p.warn(bodyLine+strings.Count(validPrefix(body), "\n"), "not valid UTF-8; replaced by U+FFFD")
		body = strings.ToValidUTF8(body, "\uFFFD")
	}
	b.Body = trimBlank(newlines(body))
	if b.Body == "" {
		p.warn(bodyLine, "there is no text after the front matter")
	}
	return b, p.warnings, nil
}

type parser struct {
	file     string
	lines    map[string]int
	warnings []config.Warning
}

func (p *parser) fail(line int, format string, args ...any) error {
	return &config.Error{File: p.file, Line: line, Err: fmt.Errorf(format, args...)}
}

func (p *parser) warn(line int, format string, args ...any) {
	p.warnings = append(p.warnings, config.Warning{File: p.file, Line: line, Text: fmt.Sprintf(format, args...)})
}

// split takes the front matter from the body, which begins on line bodyLine.
func (p *parser) split(text string) (front, body string, bodyLine int, err error) {
	first, rest, _ := strings.Cut(text, "\n")
	if !isMark(first) {
		return "", "", 0, p.fail(1, "no front matter: the first line must be %s", mark)
	}
	at := 0
	for n := 2; at < len(rest); n++ {
		line, _, more := strings.Cut(rest[at:], "\n")
		if isMark(line) {
			end := at + len(line)
			if more {
				end++
			}
			return rest[:at], rest[end:], n + 1, nil
		}
		at += len(line) + 1
	}
	return "", "", 0, p.fail(1, "the front matter has no end: no second line %s", mark)
}

func isMark(line string) bool { return strings.TrimRight(line, " \t\r") == mark }

// front reads the TOML, which begins on line 2 of the file.
func (p *parser) front(text string) (*Briefing, error) {
	values, ok := simpleTOML(text)
	if !ok {
		var err error
		if values, err = p.decode(text); err != nil {
			return nil, err
		}
	}
	p.lines = keyLines(text)

	b := &Briefing{}
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(p.lines[a], p.lines[b]), strings.Compare(a, b))
	})
	for _, key := range keys {
		if err := p.set(b, key, values[key]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// decode reads the TOML with the library.
func (p *parser) decode(text string) (map[string]any, error) {
	var values map[string]any
	if _, err := toml.Decode(text, &values); err != nil {
		var parse toml.ParseError
		if errors.As(err, &parse) {
			message := shorten(parse.Message, 200)
			if parse.LastKey != "" {
				message = shorten(parse.LastKey, 64) + ": " + message
			}
			return nil, p.fail(parse.Position.Line+1, "%s", message)
		}
		return nil, p.fail(0, "front matter: %s", shorten(err.Error(), 200))
	}
	return values, nil
}

// set takes one key of the front matter.
func (p *parser) set(b *Briefing, key string, value any) error {
	var ok bool
	must := ""
	switch key {
	case "title":
		b.Title, ok = value.(string)
		b.Title = strings.TrimSpace(b.Title)
		must = "a string"
	case "session_title":
		b.SessionTitle, ok = value.(string)
		must = "a string"
	case "sources":
		b.Sources, ok = stringList(value)
		must = "a list of strings"
		if ok && len(b.Sources) == 0 {
			return p.emptyList(key)
		}
		for _, source := range b.Sources {
			if !slices.Contains(Sources, source) {
				p.warn(p.lines[key], "unknown source %q; known are %s", shorten(source, 64), strings.Join(Sources, ", "))
			}
		}
	case "projects", "branches":
		var list []string
		list, ok = stringList(value)
		must = "a list of strings"
		if err := checkPatterns(list); err != nil {
			return p.fail(p.lines[key], "%s: %w", key, err)
		}
		if ok && len(list) == 0 {
			return p.emptyList(key)
		}
		if key == "projects" {
			b.Projects = list
		} else {
			b.Branches = list
		}
	case "priority":
		var n int64
		n, ok = value.(int64)
		if ok && (n > math.MaxInt32 || n < math.MinInt32) {
			return p.fail(p.lines[key], "priority: %d is out of range", n)
		}
		b.Priority = int(n)
		must = "a whole number"
	case "expires":
		b.Expires, ok = expiry(value)
		must = `a date, such as 2027-01-31, or a date and time`
	case "once":
		b.Once, ok = value.(bool)
		must = "true or false"
	case "print":
		b.Print, ok = value.(bool)
		must = "true or false"
	default:
		p.warn(p.lines[key], "unknown key %q", shorten(key, 64))
		return nil
	}
	if !ok {
		return p.fail(p.lines[key], "%s: must be %s", key, must)
	}
	return nil
}

// emptyList refuses a list without entries: it may be meant as none or as all.
func (p *parser) emptyList(key string) error {
	return p.fail(p.lines[key], "%s: the list is empty; leave the key out to mean all", key)
}

func stringList(value any) ([]string, bool) {
	values, ok := value.([]any)
	if !ok {
		return nil, false
	}
	list := make([]string, 0, len(values))
	for _, v := range values {
		s, ok := v.(string)
		if !ok {
			return nil, false
		}
		list = append(list, s)
	}
	return list, true
}

// checkPatterns refuses globs that cannot be read, and alternatives in braces,
// whose number can grow without bound; a list says the same.
func checkPatterns(list []string) error {
	if len(list) > maxPatterns {
		return fmt.Errorf("%d entries, at most %d are taken", len(list), maxPatterns)
	}
	for _, pattern := range list {
		switch {
		case strings.TrimSpace(pattern) == "":
			return errors.New("an empty entry matches nothing")
		case len(pattern) > maxPatternBytes:
			return fmt.Errorf("%q is longer than %d bytes", shorten(pattern, 64), maxPatternBytes)
		case hasBrace(pattern):
			return fmt.Errorf("%q: {a,b} is not known here; write one entry for each", shorten(pattern, 64))
		case !doublestar.ValidatePattern(pattern):
			return fmt.Errorf("%q is no valid glob", shorten(pattern, 64))
		}
	}
	return nil
}

func hasBrace(pattern string) bool {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '{':
			return true
		}
	}
	return false
}

// expiry takes a TOML date or one in a string, where people put it too.
func expiry(value any) (Expiry, bool) {
	switch v := value.(type) {
	case time.Time:
		// The library tells TOML's forms apart by the name of the location.
		clock := time.Date(v.Year(), v.Month(), v.Day(), v.Hour(), v.Minute(), v.Second(), v.Nanosecond(), time.UTC)
		switch v.Location().String() {
		case "time-local":
			return Expiry{}, false
		case "date-local":
			return Expiry{localDay, clock}, true
		case "datetime-local":
			return Expiry{localTime, clock}, true
		}
		return Expiry{instant, v}, true
	case string:
		for _, f := range []struct {
			layout string
			form   expiryForm
		}{
			{time.DateOnly, localDay},
			{time.RFC3339, instant},
			{"2006-01-02 15:04:05Z07:00", instant},
			{"2006-01-02T15:04:05", localTime},
			{time.DateTime, localTime},
			{"2006-01-02T15:04", localTime},
			{"2006-01-02 15:04", localTime},
		} {
			if t, err := time.Parse(f.layout, strings.TrimSpace(v)); err == nil {
				return Expiry{f.form, t}, true
			}
		}
	}
	return Expiry{}, false
}

// keyLines finds the line of each key in the file, for messages only.
func keyLines(front string) map[string]int {
	lines := map[string]int{}
	n := 1
	for line := range strings.Lines(front) {
		n++
		line = strings.TrimSpace(line)
		key, _, ok := strings.Cut(line, "=")
		if table, isTable := strings.CutPrefix(line, "["); isTable {
			key, _, ok = strings.Cut(strings.TrimPrefix(table, "["), "]")
		}
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		key = strings.TrimSpace(key)
		if strings.HasPrefix(key, `"`) || strings.HasPrefix(key, "'") {
			key = strings.Trim(key, `"'`)
		} else {
			key, _, _ = strings.Cut(key, ".") // a table without a head
			key = strings.TrimSpace(key)
		}
		if _, seen := lines[key]; !seen {
			lines[key] = n
		}
	}
	return lines
}

// Format writes a briefing as a file that [Parse] reads back as the same.
// Strings that are no valid UTF-8 are made so. The body must not be empty.
func Format(b *Briefing) []byte {
	var out bytes.Buffer
	out.WriteString(mark + "\n")
	text := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&out, "%s = %s\n", key, quote(value))
		}
	}
	list := func(key string, values []string) {
		if len(values) > 0 {
			quoted := make([]string, len(values))
			for i, v := range values {
				quoted[i] = quote(v)
			}
			fmt.Fprintf(&out, "%s = [%s]\n", key, strings.Join(quoted, ", "))
		}
	}
	text("title", b.Title)
	list("sources", b.Sources)
	list("projects", b.Projects)
	list("branches", b.Branches)
	if b.Priority != 0 {
		fmt.Fprintf(&out, "priority = %d\n", b.Priority)
	}
	if !b.Expires.IsZero() {
		fmt.Fprintf(&out, "expires = %s\n", b.Expires)
	}
	if b.Once {
		out.WriteString("once = true\n")
	}
	if b.Print {
		out.WriteString("print = true\n")
	}
	text("session_title", b.SessionTitle)
	out.WriteString(mark + "\n\n")
	out.WriteString(strings.ToValidUTF8(b.Body, "\uFFFD"))
	out.WriteString("\n")
	return out.Bytes()
}

// quote writes a TOML basic string on one line.
func quote(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&out, `\u%04X`, r)
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
	return out.String()
}

// newlines makes every line end a "\n".
func newlines(s string) string {
	if !strings.Contains(s, "\r") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

// trimBlank takes away blank lines before and white space after the text.
func trimBlank(s string) string {
	s = strings.TrimRight(s, " \t\n")
	for {
		line, rest, more := strings.Cut(s, "\n")
		if !more || strings.TrimSpace(line) != "" {
			return s
		}
		s = rest
	}
}

// validPrefix is what of s comes before the first byte that is no UTF-8.
func validPrefix(s string) string {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return s[:i]
		}
	}
	return s
}

// shorten bounds what of bad input is shown, whole characters only.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "… (" + strconv.Itoa(len(s)) + " bytes)"
}
