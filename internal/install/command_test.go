package install

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// sh itself says how a line splits into words.
func TestShellWordsAsShDoes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("asks sh")
	}
	for _, line := range []string{
		`a b  c`, `'a b' c`, `"a b" c`, `a\ b c`, `"a\"b" 'c'\''d'`, `a"b c"d`, `''`, `"" x`, `"a\b" '\'`, "a\tb", `a#b #c`, `"$$"x`, `é 'ü x'`,
	} {
		line = strings.ReplaceAll(line, "$$", `\$`)
		out, err := exec.Command("sh", "-c", `printf '%s\n' `+line).Output()
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		want := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
		var got []string
		for _, w := range shellWords(line) {
			got = append(got, w.text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("shellWords(%q) = %q, sh says %q", line, got, want)
		}
	}
}

// PL-04, PL-07: whatever is in the path of the hook, sh runs it as it is wired,
// exit code 2 never gets through, and it is recognised as ours.
func TestWiredPathRuns(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("runs sh")
	}
	for _, dir := range []string{"a b", "c'd", `"`, "$HOME", "a&b;c|d", "`x`", "é 日本", "-n", "#", "(x)", "*", `back\slash`, "~"} {
		path := filepath.Join(t.TempDir(), dir, "session-end-archive")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\nprintf ran; exit 2\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		command := ShellCommand(path)
		out, err := exec.Command("sh", "-c", command).Output()
		var exit *exec.ExitError
		if string(out) != "ran" || !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("%s: printed %q, %v", command, out, err)
		}
		if found, name, ok := findBinary(command, 0); !ok || found != path || name != "session-end-archive" {
			t.Errorf("%s: recognised as %q %q %v", command, found, name, ok)
		}
	}
}

func TestRecognise(t *testing.T) {
	for _, test := range []struct {
		command string
		binary  string
		plain   bool
	}{
		{`/a/session-end-archive`, "/a/session-end-archive", true},
		{`'/a b/session-end-archive' || exit 1`, "/a b/session-end-archive", true},
		{`"/a/session-end-archive"||exit 1`, "/a/session-end-archive", true},
		{`/a\ b/session-end-archive`, "/a b/session-end-archive", true},
		{`  session-end-archive  `, "session-end-archive", true},
		{`"$HOME/.local/bin/session-end-archive"`, "$HOME/.local/bin/session-end-archive", true},
		{`/a/session-end-archive || true`, "/a/session-end-archive", false},
		{`/a/session-end-archive -x`, "/a/session-end-archive", false},
		{`cd / && /a/session-end-archive`, "/a/session-end-archive", false},
		{`X=1 /a/session-end-archive`, "/a/session-end-archive", false},
		{`tee log | /a/session-end-archive`, "/a/session-end-archive", false},
		{`bash -lc 'exec /a/session-end-archive'`, "/a/session-end-archive", false},
		{`sh -c "sh -c '/a/session-end-archive'"`, "/a/session-end-archive", false},
		{`/a/pre-compact-snapshot`, "/a/pre-compact-snapshot", true},
		{`/a/session-end-archive.sh`, "", false},
		{`/a/my-session-end-archive`, "", false},
		{`/session-end-archive/run`, "", false},
		{`logger "session-end-archive ran"`, "", false},
		{`logger "see /a/session-end-archive"`, "", false},
		{`true # session-end-archive`, "", false},
		{``, "", false},
		{`'unclosed`, "", false},
	} {
		binary, _, plain := recognise(test.command, nil, false)
		if binary != test.binary || plain != test.plain {
			t.Errorf("recognise(%q) = %q, %v; want %q, %v", test.command, binary, plain, test.binary, test.plain)
		}
	}
}

// FuzzRecognise: what an install wires is recognised as just that, whatever
// the path, and no command line makes the parser panic.
func FuzzRecognise(f *testing.F) {
	f.Add("/opt/it's here")
	f.Add(`C:\x "y"`)
	f.Add("a\\\n$(b) || `c`")
	f.Fuzz(func(t *testing.T, dir string) {
		shellWords(dir)
		path := "/" + dir + "/session-end-archive"
		binary, name, plain := recognise(ShellCommand(path), nil, false)
		if binary != path || name != "session-end-archive" || !plain {
			t.Errorf("recognise(%q) = %q, %q, %v", ShellCommand(path), binary, name, plain)
		}
	})
}
