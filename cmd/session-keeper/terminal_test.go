package main

import (
	"strings"
	"testing"
)

// EX-01: control bytes are shown, not sent.
func TestOneLineNeutralises(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain title", "plain title"},
		{"日本語 👩‍💻", "日本語 👩‍💻"},
		{"a\x1b[31mred\x1b[0m", "a␛[31mred␛[0m"},
		{"a\x1b]0;owned\x07b", "a␛]0;owned␇b"},
		{"two\nlines\tand\r\nmore", "two lines and more"},
		{"c1 \u009b31m", "c1 <U+009B>31m"},
		{"abc\u202etxt.exe", "abc<U+202E>txt.exe"},
		{"a\u2066b\u2069", "a<U+2066>b<U+2069>"},
		{"zero\u200bwidth", "zero<U+200B>width"},
		{"tag\U000e0041", "tag<U+E0041>"},
		{"bad \xff byte", "bad \ufffd byte"},
		{"del\x7f", "del␡"},
		{"nul\x00", "nul␀"},
	} {
		if got := oneLine(c.in); got != c.want {
			t.Errorf("oneLine(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestPlainTextKeepsLines(t *testing.T) {
	if got, want := plainText("a\r\nb\tc\rd\x1b[2J"), "a\nb\tc␍d␛[2J"; got != want {
		t.Errorf("plainText = %q, want %q", got, want)
	}
}

func FuzzOneLine(f *testing.F) {
	f.Add("a\x1b[31m\u202e\n日本")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range oneLine(s) {
			if controls(r) {
				t.Fatalf("oneLine(%q) lets %U through", s, r)
			}
		}
		if strings.ContainsRune(plainText(s), 0x1b) {
			t.Fatalf("plainText(%q) lets an escape through", s)
		}
	})
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		in    string
		cells int
		want  string
	}{
		{"hello", 5, "hello"},
		{"hello", 4, "hel…"},
		{"hello", 0, ""},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"}, // two cells each: the second does not fit beside the ellipsis
		{"👩‍💻👩‍💻", 3, "👩‍💻…"},
	} {
		got := fit(c.in, c.cells)
		if got != c.want {
			t.Errorf("fit(%q, %d) = %q, want %q", c.in, c.cells, got, c.want)
		}
		if width(got) > c.cells {
			t.Errorf("fit(%q, %d) takes %d cells", c.in, c.cells, width(got))
		}
	}
}

func TestByteSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 9949: "9.9 kB", 12345: "12 kB", 999_499: "999 kB", 999_999: "1.0 MB", 6_100_000_000: "6.1 GB"} {
		if got := byteSize(n); got != want {
			t.Errorf("byteSize(%d) = %q, want %q", n, got, want)
		}
	}
}
