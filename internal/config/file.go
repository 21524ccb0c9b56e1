package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// maxFileBytes bounds the settings file, so that a wrong path in
// XDG_CONFIG_HOME cannot hold a hook.
const maxFileBytes = 1 << 20

// maxInstructions bounds what is added to the instructions of each summary. They
// are a few sentences; the client takes more, and the model pays for it.
const maxInstructions = 10_000

// readFile merges the settings file over the defaults.
func (s *Settings) readFile(path string) error {
	text, err := readText(path)
	if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
		return nil
	}
	if err != nil {
		return &Error{File: path, Err: err}
	}

	file := struct {
		Archive *Archive `toml:"archive"`
		Client  *Client  `toml:"client"`
		Compact *Compact `toml:"compact"`
		Log     *Log     `toml:"log"`
	}{&s.Archive, &s.Client, &s.Compact, &s.Log}
	meta, err := toml.Decode(text, &file)
	if err != nil {
		var parse toml.ParseError
		if errors.As(err, &parse) {
			text := parse.Message
			if parse.LastKey != "" {
				text = parse.LastKey + ": " + text
			}
			return &Error{File: path, Line: parse.Position.Line, Err: errors.New(text)}
		}
		return wrongType(path, text, err)
	}

	lines := keyLines(text)
	for key := range s.Origin {
		if meta.IsDefined(strings.Split(key, ".")...) {
			s.Origin[key] = Origin(place(path, lines[key]))
		}
	}
	for _, key := range meta.Undecoded() {
		s.Warnings = append(s.Warnings, Warning{
			File: path,
			Line: lines[key.String()],
			Text: fmt.Sprintf("unknown key %q", shorten(key.String())),
		})
	}
	return s.check(path, lines)
}

// kinds are the TOML types of what the file may hold, in words for people.
var kinds = []struct{ key, kind, words string }{
	{"archive", "Hash", "a table"},
	{"archive.root", "String", "a string"},
	{"archive.exclude", "Array", "a list of strings"},
	{"archive.inline", "String", "a string"},
	{"compact.instructions", "String", "a string"},
	{"client", "Hash", "a table"},
	{"client.config_dirs", "Array", "a list of strings"},
	{"log", "Hash", "a table"},
	{"log.days", "Integer", "a whole number"},
}

// wrongType returns the error for a value of another type than it should
// have, which the TOML library tells without its place.
func wrongType(path, text string, err error) error {
	var values map[string]any
	meta, decodeErr := toml.Decode(text, &values)
	if decodeErr != nil {
		return &Error{File: path, Err: err}
	}
	lines := keyLines(text)
	for _, k := range kinds {
		key := strings.Split(k.key, ".")
		if meta.IsDefined(key...) && meta.Type(key...) != k.kind {
			return &Error{File: path, Line: lines[k.key], Err: fmt.Errorf("%s: must be %s", k.key, k.words)}
		}
	}
	return &Error{File: path, Err: err}
}

// check refuses values that mean nothing.
func (s *Settings) check(path string, lines map[string]int) error {
	refuse := func(key, format string, args ...any) error {
		return &Error{File: path, Line: lines[key], Err: fmt.Errorf(key+": "+format, args...)}
	}
	switch s.Archive.Inline {
	case InlineAuto, InlineAlways, InlineNever:
	default:
		return refuse("archive.inline", "%q is not one of auto, always, never", shorten(string(s.Archive.Inline)))
	}
	if s.Log.Days < 1 {
		return refuse("log.days", "%d is less than one day", s.Log.Days)
	}
	for _, glob := range s.Archive.Exclude {
		if strings.TrimSpace(glob) == "" {
			return refuse("archive.exclude", "an empty glob excludes nothing")
		}
	}
	switch text := s.Compact.Instructions; {
	case strings.HasPrefix(strings.TrimSpace(text), "{"):
		return refuse("compact.instructions", "must not begin with a curly bracket, which Claude Code takes for something else")
	case len(text) > maxInstructions:
		return refuse("compact.instructions", "longer than %d bytes", maxInstructions)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return refuse("compact.instructions", "not a text")
	}
	for i, dir := range s.Client.ConfigDirs {
		expanded, err := absolute(s.Env, dir)
		if err != nil {
			return refuse("client.config_dirs", "%w", err)
		}
		s.Client.ConfigDirs[i] = expanded
	}
	return nil
}

// readText reads a regular file, without a byte order mark.
func readText(path string) (string, error) {
	f, err := openNonBlocking(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return "", err
	}
	if len(data) > maxFileBytes {
		return "", fmt.Errorf("larger than %d MiB", maxFileBytes>>20)
	}
	return strings.TrimPrefix(string(data), "\uFEFF"), nil
}

// keyLines finds the line of each key. It is for messages only: a line inside
// a string over several lines may look like a key to it.
func keyLines(text string) map[string]int {
	lines := map[string]int{}
	table := ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			name, _, _ = strings.Cut(strings.TrimPrefix(name, "["), "]")
			table = strings.TrimSpace(name)
			note(lines, table, i+1)
		} else if key, _, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			key = strings.Trim(strings.TrimSpace(key), `"'`)
			if table != "" {
				key = table + "." + key
			}
			note(lines, key, i+1)
		}
	}
	return lines
}

func note(lines map[string]int, key string, line int) {
	if _, ok := lines[key]; !ok {
		lines[key] = line
	}
}

// lineOf returns the line in an origin, or 0.
func lineOf(o Origin) int {
	i := strings.LastIndexByte(string(o), ':')
	line, err := strconv.Atoi(string(o[i+1:]))
	if i < 0 || err != nil {
		return 0
	}
	return line
}

// isNotDir reports an error that says that a parent of a path is a file: then
// there is no settings file either.
func isNotDir(err error) bool {
	return errors.Is(err, syscall.ENOTDIR)
}
