package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// outline reads a transcript and describes what came out, in the order in which it
// came: records by their uuid or type, those that the client does not see with a
// star, and damage with its place.
func outline(t testing.TB, in []byte) []string {
	t.Helper()
	var out []string
	r := NewReader(bytes.NewReader(in))
	var last int64
	r.OnDamage = func(d Damage) {
		lost := ""
		if d.Lost {
			lost = " lost"
		}
		out = append(out, fmt.Sprintf("%d+%d line %d: %s%s", d.Offset, d.Length, d.Line, d.Kind, lost))
		if d.Offset < 0 || d.Offset+d.Length > int64(len(in)) {
			t.Fatalf("damage outside the file: %v", d)
		}
	}
	for r.Next() {
		rec := r.Record()
		name := rec.UUID.String()
		if name == "" {
			name = rec.Type.String()
		}
		if rec.Recovered {
			name += "*"
		}
		out = append(out, name)
		if got := in[rec.Offset : rec.Offset+int64(len(rec.Raw))]; !bytes.Equal(got, rec.Raw) {
			t.Fatalf("record at %d: %.60q stands there, not %.60q", rec.Offset, got, rec.Raw)
		}
		if n := int64(1 + bytes.Count(in[:rec.Offset], []byte("\n"))); n != rec.Line {
			t.Fatalf("record at %d says line %d, it is on line %d", rec.Offset, rec.Line, n)
		}
		if rec.Offset < last {
			t.Fatalf("record at %d comes after %d", rec.Offset, last)
		}
		last = rec.Offset + int64(len(rec.Raw))
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReaderDamage(t *testing.T) {
	const a, b, c = `{"type":"user","uuid":"a"}`, `{"type":"user","uuid":"b"}`, `{"type":"user","uuid":"c"}`
	const n = len(a)
	zeros := strings.Repeat("\x00", 512)
	for _, test := range []struct {
		name string
		in   string
		want []string
	}{
		{"sound", a + "\n" + b + "\n", []string{"a", "b"}},
		{"no final newline", a + "\n" + b, []string{"a", "b"}},
		{"CRLF", a + "\r\n" + b + "\r\n", []string{"a", "b"}},
		{"blank lines", "\n\n" + a + "\n \t\r\n" + b + "\n\n", []string{"a", "b"}},
		{"BOM", "\ufeff" + a + "\n" + b, []string{"a", "b"}},
		{"UN-10 lines are counted as sed does", "{\"type\":\"user\",\"uuid\":\"a\u2028\u2029\u0085b\"}\nnull\n" + b,
			[]string{"a\u2028\u2029\u0085b", "36+4 line 2: JSON value that is no object", "b"}},
		{"UN-09 separators", "{\"type\":\"user\",\"uuid\":\"a\u2028b\"}\n" + b, []string{"a\u2028b", "b"}},
		// DL-02
		{"NUL line", a + "\n" + zeros + "\n" + b + "\n", []string{"a", fmt.Sprintf("%d+512 line 2: line of NUL bytes", n+1), "b"}},
		{"NULs at the end", a + "\n" + zeros, []string{"a", fmt.Sprintf("%d+512 line 2: line of NUL bytes", n+1)}},
		// DL-03
		{"stub and record", `{"type":"pr-link","sessionId":"x","prNu` + a + "\n" + b,
			[]string{"0+39 line 1: cut-off record with another behind it lost", "a*", "b"}},
		// DL-04
		{"cut attachment", a + "\n" + `{"type":"attachment","uuid":"x","attachment":{"ty` + "\n" + b + "\n" + c,
			[]string{"a", "27+49 line 2: cut-off record lost", "b", "c"}},
		{"cut outside a string", a + "\n" + `{"type":"attachment","uuid":"x","attachment":{` + "\n" + b + "\n" + c,
			[]string{"a", "27+46 line 2: cut-off record lost", "b", "c"}},
		// DL-05
		{"cut tail", a + "\n" + `{"type":"user","uuid":"b`, []string{"a", "27+24 line 2: cut-off last line lost"}},
		{"cut tail outside a string", a + "\n" + `{"type":"user",`, []string{"a", "27+15 line 2: cut-off last line lost"}},
		{"cut after a brace", a + "\n{", []string{"a", "27+1 line 2: cut-off last line lost"}},
		// DL-06
		{"values", "null\n[]\n\"x\"\n42\ntrue\n" + a, []string{
			"0+4 line 1: JSON value that is no object", "5+2 line 2: JSON value that is no object",
			"8+3 line 3: JSON value that is no object", "12+2 line 4: JSON value that is no object",
			"15+4 line 5: JSON value that is no object", "a"}},
		// DL-07
		{"raw NUL in a string", a + "\n{\"uuid\":\"x\x00y\"}\n" + b, []string{"a", "27+14 line 2: raw control character in a string lost", "b"}},
		{"raw tab in a string", "{\"uuid\":\"x\ty\"}\n" + b, []string{"0+14 line 1: raw control character in a string lost", "b"}},
		{"bad UTF-8", "{\"type\":\"user\",\"uuid\":\"a\xff\xfe\"}\n" + b, []string{"0+28 line 1: bytes that are no UTF-8", "a\ufffd\ufffd", "b"}},
		// DL-09
		{"spliced in content", `{"type":"user","message":{"content":"abc` + a + "\n" + b,
			[]string{"0+40 line 1: cut-off record with another behind it lost", "a*", "b"}},
		{"spliced behind a colon", `{"type":"user","message":` + a + "\n" + b,
			[]string{"0+25 line 1: cut-off record with another behind it lost", "a*", "b"}},
		{"spliced twice", `{"type":"us` + `{"type":"assist` + a + b + "\n" + c, []string{
			"0+26 line 1: cut-off record with another behind it lost", "a*", "52+26 line 1: second record on a line lost", "b*", "c"}},
		{"spliced in an escape", `{"x":"\u12` + a, []string{"0+10 line 1: cut-off record with another behind it lost", "a*"}},
		{"spliced behind a backslash", `{"x":"\` + a, []string{"0+7 line 1: cut-off record with another behind it lost", "a*"}},
		{"two records", a + b + "\n" + c, []string{"a", "26+26 line 1: second record on a line lost", "b*", "c"}},
		{"three records", a + b + c, []string{"a", "26+26 line 1: second record on a line lost", "b*", "52+26 line 1: second record on a line lost", "c*"}},
		{"CR alone", a + "\r" + b, []string{"a", "27+26 line 1: second record on a line lost", "b*"}},
		{"NULs before", zeros + a + "\n" + b, []string{"0+512 line 1: NUL bytes beside a record lost", "a*", "b"}},
		{"NULs behind", a + zeros + "\n" + b, []string{"a", "26+512 line 1: NUL bytes beside a record", "b"}},
		{"record, then a cut one", a + `{"type":"us` + "\n" + b, []string{"a", "26+11 line 1: cut-off record lost", "b"}},
		{"garbage before", "xyz " + a + "\n" + b, []string{"0+4 line 1: bytes that are no JSON lost", "a*", "b"}},
		{"garbage behind", a + " xyz\n" + b, []string{"a", "27+3 line 1: bytes behind a record", "b"}},
		{"comma behind", a + ",\n" + b, []string{"a", "26+1 line 1: bytes behind a record", "b"}},
		{"BOM in the middle", a + "\n\ufeff" + b, []string{"a", "27+3 line 2: bytes that are no JSON lost", "b*"}},
		{"start is missing", `4-8","message":{"role":"user","type":"message","content":[{"type":"text"}]}}` + "\n" + b,
			[]string{"0+76 line 1: bytes that are no JSON lost", "b"}},
		{"what is inside a cut record is none", `{"type":"progress","data":{"messages":[` + a + "," + b + `,{"ty` + "\n" + c,
			[]string{"0+97 line 1: cut-off record lost", "c"}},
		// A pretty-printed record, as the client accepts it.
		{"several lines", a + "\n{\n  \"type\": \"user\",\n  \"uuid\": \"b\"\n}\n" + c,
			[]string{"a", "27+35 line 2: record over several lines", "b", "c"}},
		{"several lines, rest behind", "{\n\"uuid\": \"b\"} x\n" + c,
			[]string{"0+14 line 1: record over several lines", "b", "15+1 line 2: bytes behind a record", "c"}},
		{"several lines, another behind", "{\n\"uuid\": \"b\"}" + a + "\n" + c,
			[]string{"0+14 line 1: record over several lines", "b", "14+26 line 2: second record on a line lost", "a*", "c"}},
		{"several lines, never closed", "{\n  \"uuid\": \"b\"\n" + a + "\n" + c,
			[]string{"0+1 line 1: cut-off record lost", "4+11 line 2: bytes that are no JSON lost", "a", "c"}},
		{"a string over two lines", "{\"uuid\":\"x\ny\"}\n" + c,
			[]string{"0+10 line 1: cut-off record lost", "11+3 line 2: bytes that are no JSON lost", "c"}},
		{"too deep", strings.Repeat(`{"a":`, 10_001) + "\n" + a, []string{"0+50005 line 1: nesting over 10,000 levels lost", "a"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := outline(t, []byte(test.in)); !slices.Equal(got, test.want) {
				t.Errorf("%.200q:\n got %q\nwant %q", test.in, got, test.want)
			}
		})
	}
}

// DL-06: blank lines are counted.
func TestReaderCountsBlankLines(t *testing.T) {
	r := NewReader(strings.NewReader("\n\r\n{\"type\":\"user\"}\n \t\nnull\n\x00\n\n"))
	for r.Next() {
	}
	if all, blank := r.Lines(); all != 7 || blank != 4 || r.Damaged(NotObject) != 1 || r.Damaged(NULRun) != 1 {
		t.Errorf("%d of %d lines are blank", blank, all)
	}
}

// LL-01: a limit is for files that are no transcripts; it makes a finding, no more.
func TestReaderLimit(t *testing.T) {
	in := `{"type":"user","uuid":"a"}` + "\n" + `{"x":"` + strings.Repeat("y", 200) + `"}` + "\n" + `{"uuid":"b"}`
	r := NewReader(strings.NewReader(in))
	r.s.SetLimit(100)
	var got []string
	r.OnDamage = func(d Damage) { got = append(got, d.String()) }
	for r.Next() {
		got = append(got, r.Record().UUID.String())
	}
	want := []string{"a", "line 2, byte 27: line over the limit (208 bytes)", "b"}
	if !slices.Equal(got, want) || r.Damaged(TooLong) != 1 {
		t.Errorf("got %q, want %q", got, want)
	}
}

// OS-04: files of another kind are named.
func TestReaderFormat(t *testing.T) {
	utf16 := func(s string, bom string) string {
		for _, c := range []byte(s) {
			bom += string([]byte{c, 0})
		}
		return bom
	}
	const rec = `{"type":"user","uuid":"a"}`
	for _, c := range []struct {
		in   string
		want Format
	}{
		{"", FormatEmpty},
		{"\n \r\n", FormatEmpty},
		{rec, FormatLines},
		{"\ufeff" + rec, FormatLines},
		{"[]\n" + rec, FormatLines},
		{"5\n" + rec, FormatLines},
		{"\x00\x00\x00\x00\x00\n" + rec, FormatLines},
		{"[" + rec + "]", FormatArray},
		{"[\n  " + rec + "\n]\n", FormatArray},
		{" [ " + rec + ",", FormatArray},
		{"{\n  \"type\": \"user\"\n}\n{\n  \"type\": \"user\"\n}\n", FormatPretty},
		{rec + "\n{\n\"a\":1}\n", FormatLines},
		{"{\"cut\":\n" + rec, FormatLines},
		{utf16(rec, "\xff\xfe"), FormatUTF16},
		{utf16(rec, ""), FormatUTF16},
		{"\xfe\xff\x00{", FormatUTF16},
		{"\x00{\x00\"", FormatUTF16},
	} {
		r := NewReader(strings.NewReader(c.in))
		r.Next()
		if got := r.Format(); got != c.want {
			t.Errorf("%.40q: %v, want %v", c.in, got, c.want)
		}
	}
}

// Time is linear in the length of a line, however its brackets are nested, and of a
// file whose records never close.
func TestReaderIsLinear(t *testing.T) {
	for name, in := range map[string]string{
		"nested":        strings.Repeat(`{"type":"x","uuid":"u","a":`, 100_000),
		"closed inside": `{"a":[` + strings.Repeat(`{"type":"user","uuid":"a"},`, 100_000),
		"braces":        strings.Repeat(`{`, 2_000_000),
		"open lines":    strings.Repeat("{\"a\":\n", 200_000),
		"brace lines":   strings.Repeat("{\n", 200_000),
		"closing lines": strings.Repeat("{\n}\n", 200_000),
	} {
		r := NewReader(strings.NewReader(in))
		work := 0
		for r.Next() {
			work++
		}
		lines, _ := r.Lines()
		if r.Err() != nil || lines == 0 {
			t.Errorf("%s: %d lines, %v", name, lines, r.Err())
		}
	}
}

// The records that this package counts as seen by the client are those that the real
// client sent. The vectors hold what it did with each kind of damage.
func TestReaderSeesWhatTheClientSees(t *testing.T) {
	paths, err := filepath.Glob("../testdata/vectors/resume/2[6789]*.jsonl")
	if err != nil || len(paths) < 30 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		t.Run(name, func(t *testing.T) {
			var v struct {
				Messages []struct{ Content json.RawMessage }
			}
			readJSON(t, strings.TrimSuffix(path, "l"), &v)
			in, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			outline(t, in)
			var got []string
			r := NewReader(bytes.NewReader(in))
			for r.Next() {
				if rec := r.Record(); !rec.Recovered && (rec.Type.Is("user") || rec.Type.Is("assistant")) {
					m := rec.ReadMessage()
					got = append(got, m.Text())
				}
			}
			switch r.Format() {
			case FormatArray, FormatUTF16:
				if len(v.Messages) != 0 {
					t.Errorf("the client read it, we say it is %v", r.Format())
				}
				return
			}
			var want []string
			for _, m := range v.Messages {
				for _, b := range readBlocks(Value{m.Content}) {
					if b.Text != "No response requested." {
						want = append(want, strings.TrimRight(b.Text, "\n"))
					}
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, the client sent %q", got, want)
			}
		})
	}
}

func FuzzReader(f *testing.F) {
	paths, err := filepath.Glob("../testdata/vectors/resume/2[67]*.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("{\n}{\"type\":\"user\",\"uuid\":\"a\"}\x00x{\"a\":{\"type\":\"user\",\"uuid\":\"a\"}\n[\n{\n\"a\":[\n1]}"))
	// Every byte is in a record, in damage, or white space (a byte order mark at the
	// start): nothing vanishes. Records stand where they say.
	f.Fuzz(func(t *testing.T, in []byte) {
		covered := make([]bool, len(in))
		cover := func(from, length int64) {
			for i := from; i < from+length; i++ {
				covered[i] = true
			}
		}
		r := NewReader(bytes.NewReader(in))
		r.OnDamage = func(d Damage) { cover(d.Offset, d.Length) }
		for r.Next() {
			rec := r.Record()
			if !bytes.Equal(in[rec.Offset:rec.Offset+int64(len(rec.Raw))], rec.Raw) || !json.Valid(rec.Raw) || rec.Raw[0] != '{' {
				t.Fatalf("%q: record %q at %d", in, rec.Raw, rec.Offset)
			}
			cover(rec.Offset, int64(len(rec.Raw)))
			rec.View()
			rec.ReadMessage()
		}
		start := len(in) - len(bytes.TrimPrefix(in, []byte("\ufeff")))
		for i := start; i < len(in); i++ {
			if !covered[i] && !bytes.ContainsRune([]byte(" \t\r\n"), rune(in[i])) {
				t.Fatalf("%q: byte %d (%q) is in no record and no damage", in, i, in[i])
			}
		}
		if n, _ := r.Lines(); n != int64(len(scanAll(t, bytes.NewReader(in)))) {
			t.Fatalf("%q: %d lines", in, n)
		}
	})
}
