package briefing

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The forms of TOML that nearly all front matter is written in are read here:
// a session waits while a hundred of these are read, and the TOML library takes
// most of that time. Whatever is not plainly one of the forms is left to the
// library, errors first of all. A fuzz target holds the two against each other.

// dateOnly is the location by which the library marks a date without a time.
var dateOnly = time.FixedZone("date-local", 0)

// simpleTOML reads front matter of lines like
//
//	key = "text without escapes"
//	key = ["text", "text"]
//	key = -12
//	key = true
//	key = 2027-01-31
//
// with remarks and blank lines. It is false for anything else.
func simpleTOML(front string) (map[string]any, bool) {
	if !utf8.ValidString(front) {
		return nil, false
	}
	values := map[string]any{}
	for line := range strings.Lines(front) {
		if whole, ok := strings.CutSuffix(line, "\r\n"); ok {
			line = whole
		} else {
			line = strings.TrimSuffix(line, "\n")
		}
		for i := 0; i < len(line); i++ {
			if line[i] < ' ' && line[i] != '\t' || line[i] == 0x7f {
				return nil, false
			}
		}
		if line = strings.Trim(line, " \t"); line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		key = strings.TrimRight(key, " \t")
		if !ok || !isBareKey(key) {
			return nil, false
		}
		if _, twice := values[key]; twice {
			return nil, false
		}
		value = strings.TrimLeft(value, " \t")
		parsed, rest, ok := simpleValue(value)
		if rest = strings.TrimLeft(rest, " \t"); !ok || rest != "" && rest[0] != '#' {
			return nil, false
		}
		values[key] = parsed
	}
	return values, true
}

func isBareKey(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return s != ""
}

// simpleValue reads one value and gives what follows it.
func simpleValue(s string) (value any, rest string, ok bool) {
	switch {
	case s == "":
		return nil, "", false
	case s[0] == '"':
		return simpleString(s)
	case s[0] == '[':
		list := []any{}
		for s = strings.TrimLeft(s[1:], " \t"); ; s = strings.TrimLeft(s[1:], " \t") {
			if strings.HasPrefix(s, "]") {
				return list, s[1:], true
			}
			item, after, ok := simpleString(s)
			if !ok {
				return nil, "", false
			}
			list = append(list, item)
			switch s = strings.TrimLeft(after, " \t"); {
			case strings.HasPrefix(s, "]"):
				return list, s[1:], true
			case !strings.HasPrefix(s, ","):
				return nil, "", false
			}
		}
	}
	end := strings.IndexAny(s, " \t#")
	if end < 0 {
		end = len(s)
	}
	word, rest := s[:end], s[end:]
	switch word {
	case "true":
		return true, rest, true
	case "false":
		return false, rest, true
	}
	digits := strings.TrimPrefix(word, "-")
	if len(digits) > 0 && len(digits) <= 9 && (digits[0] != '0' || word == "0") {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil && digits[0] >= '0' && digits[0] <= '9' {
			return n, rest, true
		}
	}
	if day, err := time.ParseInLocation(time.DateOnly, word, dateOnly); err == nil {
		return day, rest, true // a time after a blank is no remark, and so for the library
	}
	return nil, "", false
}

// simpleString reads a string without escapes.
func simpleString(s string) (value any, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		return nil, "", false
	}
	end := strings.IndexAny(s[1:], "\"\\") + 1
	if end == 0 || s[end] == '\\' || strings.HasPrefix(s, `"""`) {
		return nil, "", false
	}
	return s[1:end], s[end+1:], true
}
