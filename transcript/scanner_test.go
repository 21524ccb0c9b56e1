package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// scanAll returns all lines, copied.
func scanAll(t testing.TB, r io.Reader) []Line {
	t.Helper()
	var lines []Line
	s := NewScanner(r)
	for s.Scan() {
		l := s.Line()
		l.Raw = bytes.Clone(l.Raw)
		lines = append(lines, l)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// join is the inverse of splitting.
func join(lines []Line) []byte {
	var b []byte
	for _, l := range lines {
		b = append(b, l.Raw...)
		if l.Terminated {
			b = append(b, '\n')
		}
	}
	return b
}

func TestScannerLines(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"\n", []string{""}},
		{"a", []string{"a"}},
		{"a\n", []string{"a"}},
		{"a\n\nb", []string{"a", "", "b"}},
		{"a\r\nb\r\n", []string{"a\r", "b\r"}},
		// UN-09, UN-10: only 0x0A ends a line.
		{"a\u2028b\u2029c\u0085d\ve\ff\rg\nh", []string{"a\u2028b\u2029c\u0085d\ve\ff\rg", "h"}},
		{"\x00\x00\n\xff\xfe\n", []string{"\x00\x00", "\xff\xfe"}},
	} {
		for name, r := range map[string]io.Reader{
			"whole":  strings.NewReader(c.in),
			"bytes":  iotest.OneByteReader(strings.NewReader(c.in)),
			"at EOF": iotest.DataErrReader(strings.NewReader(c.in)),
		} {
			lines := scanAll(t, r)
			var got []string
			var offset int64
			for i, l := range lines {
				got = append(got, string(l.Raw))
				if l.Number != int64(i+1) || l.Offset != offset || l.Length != int64(len(l.Raw)) {
					t.Errorf("%q, %s: line %d says number %d, offset %d, length %d", c.in, name, i+1, l.Number, l.Offset, l.Length)
				}
				offset += l.Length + 1
			}
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
				t.Errorf("%q, %s: got %q, want %q", c.in, name, got, c.want)
			}
			if string(join(lines)) != c.in {
				t.Errorf("%q, %s: joined to %q", c.in, name, join(lines))
			}
		}
	}
}

// Lines about as long as the buffer, or as its multiples. UN-11, LL-01, LL-04.
func TestScannerLongLines(t *testing.T) {
	for _, base := range []int{baseBuffer, 2 * baseBuffer, 16 * baseBuffer} {
		for d := -2; d <= 2; d++ {
			in := []byte(strings.Repeat("x", base+d) + "\r\nshort\n" + strings.Repeat("y", base+d))
			lines := scanAll(t, bytes.NewReader(in))
			if len(lines) != 3 || !bytes.Equal(join(lines), in) {
				t.Errorf("a line of %d bytes: got %d lines", base+d, len(lines))
			}
		}
	}
}

func TestScannerReadError(t *testing.T) {
	broken := errors.New("disk on fire")
	s := NewScanner(io.MultiReader(strings.NewReader("a\nb\nunfin"), iotest.ErrReader(broken)))
	n := 0
	for s.Scan() {
		n++
	}
	if n != 2 || !errors.Is(s.Err(), broken) {
		t.Errorf("got %d lines and error %v, want the 2 whole ones and the reader's error", n, s.Err())
	}
	s = NewScanner(stuck{})
	if s.Scan() || !errors.Is(s.Err(), io.ErrNoProgress) {
		t.Errorf("a reader that gives nothing: error %v", s.Err())
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// FL-05: what is unfinished now is read again later, from its start.
func TestScannerResume(t *testing.T) {
	file := "one\ntwo\nthr"
	s := NewScanner(strings.NewReader(file))
	if s.Resume() != 0 {
		t.Errorf("before the first line: %d", s.Resume())
	}
	for s.Scan() {
	}
	if s.Resume() != int64(len("one\ntwo\n")) {
		t.Fatalf("resume at %d, want behind the last whole line", s.Resume())
	}
	file += "ee\nfour\n"
	s = NewScannerAt(strings.NewReader(file[s.Resume():]), s.Resume(), 3)
	var got []string
	for s.Scan() {
		l := s.Line()
		got = append(got, fmt.Sprintf("%d %d %s", l.Number, l.Offset, l.Raw))
	}
	if want := "[3 8 three 4 14 four]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestScannerLimit(t *testing.T) {
	for _, limit := range []int{2, 5, baseBuffer - 1, baseBuffer, 2*baseBuffer - 1, 3 * baseBuffer} {
		for d := -1; d <= 3*baseBuffer; d += baseBuffer + 1 {
			long := strings.Repeat("z", limit+d)
			for _, tail := range []string{"\n", "\nab\n", ""} {
				in := "q\n" + long + tail
				s := NewScanner(iotest.HalfReader(strings.NewReader(in)))
				s.SetLimit(limit)
				var lines []Line
				for s.Scan() {
					l := s.Line()
					l.Raw = bytes.Clone(l.Raw)
					lines = append(lines, l)
				}
				l := lines[1]
				if l.Length != int64(len(long)) || len(l.Raw) != min(limit, len(long)) || l.Offset != 2 || l.Terminated != (tail != "") {
					t.Fatalf("limit %d, %d bytes: length %d, kept %d, offset %d", limit, len(long), l.Length, len(l.Raw), l.Offset)
				}
				if tail == "\nab\n" && (len(lines) != 3 || lines[2].Offset != int64(len(in)-3) || string(lines[2].Raw) != "ab"[:min(2, limit)]) {
					t.Fatalf("limit %d, %d bytes: the line behind is %+v", limit, len(long), lines[2:])
				}
			}
		}
	}
}

// LL-05, LL-10: memory follows the longest line, and comes down again.
func TestScannerMemory(t *testing.T) {
	const long = 8 << 20
	small := bytes.Repeat([]byte("{\"type\":\"progress\"}\n"), 50_000)
	before := allocated()
	s := NewScanner(io.LimitReader(&repeat{b: small}, 40<<20))
	for s.Scan() {
	}
	if got := allocated() - before; got > 4*baseBuffer {
		t.Errorf("40 MB of short lines took %d bytes", got)
	}

	before = allocated()
	s = NewScanner(io.MultiReader(io.LimitReader(zeroReader{}, long), strings.NewReader("\n"),
		io.LimitReader(&repeat{b: small}, 4*long)))
	most := 0
	for s.Scan() {
		most = max(most, len(s.buf))
	}
	if most > 2*long+baseBuffer {
		t.Errorf("a line of %d bytes made a buffer of %d", long, most)
	}
	if len(s.buf) != baseBuffer {
		t.Errorf("the buffer is still %d bytes long after four times as many bytes of short lines", len(s.buf))
	}
	if got := allocated() - before; got > 6*long {
		t.Errorf("allocated %d bytes for a longest line of %d", got, long)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// repeat gives the same bytes again and again.
type repeat struct {
	b  []byte
	at int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := copy(p, r.b[r.at:])
	r.at = (r.at + n) % len(r.b)
	return n, nil
}

// The lines joined with 0x0A are the bytes, however they come in.
func FuzzScanner(f *testing.F) {
	f.Add([]byte("a\nb"), uint8(0))
	f.Add([]byte("\n\n\r\n\x00"), uint8(3))
	f.Add([]byte("{\"type\":\"user\"}\n{\"type\""), uint8(1))
	f.Fuzz(func(t *testing.T, in []byte, chunk uint8) {
		var r io.Reader = bytes.NewReader(in)
		if chunk > 0 {
			r = &chunked{r, int(chunk)}
		}
		lines := scanAll(t, r)
		if !bytes.Equal(join(lines), in) {
			t.Fatalf("%q joined to %q", in, join(lines))
		}
		for i, l := range lines {
			if bytes.IndexByte(l.Raw, '\n') >= 0 || !l.Terminated && i != len(lines)-1 {
				t.Fatalf("line %d of %q is %q", i+1, in, l.Raw)
			}
			if got := in[l.Offset : l.Offset+l.Length]; !bytes.Equal(got, l.Raw) {
				t.Fatalf("line %d of %q does not stand at its offset %d", i+1, in, l.Offset)
			}
		}
	})
}

type chunked struct {
	r io.Reader
	n int
}

func (c *chunked) Read(p []byte) (int, error) { return c.r.Read(p[:min(c.n, len(p))]) }
