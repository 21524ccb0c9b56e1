package install

import (
	"strings"
)

// HookBinaries are the programs that make a hook entry ours.
var HookBinaries = []string{"session-end-archive", "session-start-inject", "pre-compact-snapshot"}

// shellSuffix follows the binary in a shell-form command. A Go program that
// crashes exits 2, which some events read as "block"; this turns it into 1.
const shellSuffix = " || exit 1"

// ShellCommand is the command string as it is wired on systems with a POSIX
// shell: the quoted path, and the guard against exit code 2.
func ShellCommand(binary string) string { return Quote(binary) + shellSuffix }

// Quote quotes s as one word for sh.
func Quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// shellWord is one word of a command line. Operators are words of their own.
type shellWord struct {
	text     string // with quotes and backslashes taken off
	raw      string // as written
	operator bool
}

// shellWords splits a command line as sh would, as far as is needed to see
// which programs it names: quotes, backslashes, comments and operators; no
// expansions. An unclosed quote runs to the end.
func shellWords(line string) []shellWord {
	var (
		words []shellWord
		text  strings.Builder
		start = -1 // of the current word in line; -1 between words
	)
	flush := func(end int) {
		if start >= 0 {
			words = append(words, shellWord{text: text.String(), raw: line[start:end]})
		}
		text.Reset()
		start = -1
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == ' ' || c == '\t' || c == '\r':
			flush(i)
			continue
		case strings.IndexByte("\n;&|()<>", c) >= 0:
			flush(i)
			end := i + 1
			for end < len(line) && line[end] == c && c != '(' && c != ')' {
				end++
			}
			words = append(words, shellWord{text: line[i:end], raw: line[i:end], operator: true})
			i = end - 1
			continue
		case c == '#' && start < 0:
			for i < len(line) && line[i] != '\n' {
				i++
			}
			i--
			continue
		}
		if start < 0 {
			start = i
		}
		switch c {
		case '\'':
			end := strings.IndexByte(line[i+1:], '\'')
			if end < 0 {
				text.WriteString(line[i+1:])
				i = len(line)
				break
			}
			text.WriteString(line[i+1 : i+1+end])
			i += end + 1
		case '"':
			for i++; i < len(line) && line[i] != '"'; i++ {
				if line[i] == '\\' && i+1 < len(line) && strings.IndexByte("$`\"\\\n", line[i+1]) >= 0 {
					i++
				}
				text.WriteByte(line[i])
			}
		case '\\':
			if i+1 < len(line) {
				i++
				text.WriteByte(line[i])
			}
		default:
			text.WriteByte(c)
		}
	}
	flush(len(line))
	return words
}

// hookBinary reports whether word is a path to, or the name of, one of our
// hook binaries, and gives the bare name.
func hookBinary(word string) (name string, ok bool) {
	// A sentence that ends in a path is no path.
	if strings.ContainsAny(word, " \t\n") && !strings.ContainsAny(word[:1], `/\~$.`) && !(len(word) > 1 && word[1] == ':') {
		return "", false
	}
	base := word
	if i := strings.LastIndexAny(base, `/\`); i >= 0 {
		base = base[i+1:]
	}
	if len(base) > 4 && strings.EqualFold(base[len(base)-4:], ".exe") {
		base = base[:len(base)-4]
	}
	for _, b := range HookBinaries {
		if base == b {
			return b, true
		}
	}
	return "", false
}

// maxNesting bounds how deep "sh -c 'sh -c …'" is looked into.
const maxNesting = 4

// findBinary looks for one of our hook binaries among the words of a command
// line, also inside the argument of a "-c".
func findBinary(line string, depth int) (path, name string, ok bool) {
	words := shellWords(line)
	for i, w := range words {
		if w.operator {
			continue
		}
		if i > 0 && depth < maxNesting && isCommandFlag(words[i-1].text) {
			if path, name, ok := findBinary(w.text, depth+1); ok {
				return path, name, true
			}
		}
		if name, ok := hookBinary(w.text); ok {
			return w.text, name, true
		}
		// Unquoted backslashes of a Windows path do not survive sh, but that
		// is how people write them.
		if name, ok := hookBinary(w.raw); ok && !strings.ContainsAny(w.raw, `'"`) {
			return w.raw, name, true
		}
	}
	return "", "", false
}

// isCommandFlag matches -c and its company: -lc, -ec, /c.
func isCommandFlag(word string) bool {
	if strings.EqualFold(word, "/c") || strings.EqualFold(word, "-command") {
		return true
	}
	return len(word) >= 2 && len(word) <= 5 && word[0] == '-' && word[1] != '-' && strings.HasSuffix(word, "c")
}

// recognise tells what a handler's command is to us. binary is the path as
// written; "" means that the command is none of ours. plain means that it is
// the bare binary in one of the forms that an installer writes: any quoting,
// with or without the exit guard, shell or exec form. What is not plain was
// arranged by the user.
func recognise(command string, args []string, exec bool) (binary, name string, plain bool) {
	if exec {
		if name, ok := hookBinary(command); ok {
			return command, name, len(args) == 0
		}
		for i, arg := range args {
			if i > 0 && isCommandFlag(args[i-1]) {
				if path, name, ok := findBinary(arg, 1); ok {
					return path, name, false
				}
			}
			if name, ok := hookBinary(arg); ok {
				return arg, name, false
			}
		}
		return "", "", false
	}
	binary, name, ok := findBinary(command, 0)
	if !ok {
		return "", "", false
	}
	words := shellWords(command)
	if len(words) == 0 || words[0].operator || (words[0].text != binary && words[0].raw != binary) {
		return binary, name, false
	}
	var rest []string
	for _, w := range words[1:] {
		rest = append(rest, w.text)
	}
	switch strings.Join(rest, " ") {
	case "", "|| exit 1":
		return binary, name, true
	}
	return binary, name, false
}
