package archive

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// zstdBlocks returns the offsets at which the blocks of a frame end.
func zstdBlocks(t *testing.T, file []byte) []int {
	t.Helper()
	var h zstd.Header
	must(t, h.Decode(file))
	var out []int
	for n := h.HeaderSize; ; {
		head := binary.LittleEndian.Uint32(append(bytes.Clone(file[n:n+3]), 0))
		size := int(head >> 3)
		if head>>1&3 == 1 {
			size = 1
		}
		n += 3 + size
		out = append(out, n)
		if head&1 != 0 {
			return out
		}
	}
}

func encodeSegment(t testing.TB, raw []byte) []byte {
	t.Helper()
	e, err := newEncoder()
	must(t, err)
	return bytes.Clone(e.encode(raw))
}

// AR-01: a frame cut anywhere, at a block's border above all, is never taken
// for a shorter one.
func TestTruncatedSegmentIsDamaged(t *testing.T) {
	raw := append(records(1, 300<<10), noise(1, 300<<10)...)
	hash, file := hashOf(raw), encodeSegment(t, raw)
	if got, err := decodeSegment(hash, file, nil); err != nil || !bytes.Equal(got, raw) {
		t.Fatalf("whole: %d bytes, %v", len(got), err)
	}
	cuts := zstdBlocks(t, file)
	if len(cuts) < 4 {
		t.Fatalf("only %d blocks", len(cuts))
	}
	for n := 0; n < len(file); n += 997 {
		cuts = append(cuts, n)
	}
	for n := range 40 {
		cuts = append(cuts, n, len(file)-1-n)
	}
	for _, n := range cuts {
		if _, err := decodeSegment(hash, file[:n], nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("cut at %d of %d: %v", n, len(file), err)
		}
		// Also if what remains hashes to its own name: the frame is not whole.
		if d, err := zstd.NewReader(bytes.NewReader(file[:n])); err == nil {
			if part, err := io.ReadAll(d); err == nil && len(part) > 0 {
				if _, err := decodeSegment(hashOf(part), file[:n], nil); !errors.Is(err, ErrDamaged) {
					t.Errorf("cut at %d, named after its %d bytes: %v", n, len(part), err)
				}
			}
			d.Close()
		}
	}
}

// AR-03, AR-04, AR-05: what is no single frame of the right bytes is damaged,
// quickly, and other tools' frames of the right bytes are fine.
func TestStrangeSegments(t *testing.T) {
	raw := records(1, 200<<10)
	hash, file := hashOf(raw), encodeSegment(t, raw)
	flipped := func(n int) []byte {
		b := bytes.Clone(file)
		b[n] ^= 0x40
		return b
	}
	skippable := append([]byte{0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0}, "skip"...)
	enc := func(raw []byte, o ...zstd.EOption) []byte {
		e, err := zstd.NewWriter(nil, o...)
		must(t, err)
		defer e.Close()
		return e.EncodeAll(raw, nil)
	}
	stream := func(raw []byte, o ...zstd.EOption) []byte {
		var b bytes.Buffer
		e, err := zstd.NewWriter(&b, o...)
		must(t, err)
		_, err = e.Write(raw)
		must(t, errors.Join(err, e.Close()))
		return b.Bytes()
	}
	for _, c := range []struct {
		name string
		file []byte
		ok   bool
	}{
		{"ours", file, true},
		{"another level", enc(raw, zstd.WithEncoderLevel(zstd.SpeedBestCompression)), true},
		{"streamed, without a size", stream(raw, zstd.WithWindowSize(1<<20)), true},
		{"nothing", nil, false},
		{"NULs", make([]byte, 1000), false},
		{"text", []byte("not zstd at all"), false},
		{"a skippable frame", skippable, false},
		{"a skippable frame and ours", append(bytes.Clone(skippable), file...), false},
		{"ours and a skippable frame", append(bytes.Clone(file), skippable...), false},
		{"ours twice", append(bytes.Clone(file), file...), false},
		{"ours and a damaged one", append(bytes.Clone(file), flipped(len(file)/2)...), false},
		{"ours and garbage", append(bytes.Clone(file), 1, 2, 3), false},
		{"an empty frame", enc(nil, zstd.WithZeroFrames(true)), false},
		{"no checksum", enc(raw, zstd.WithEncoderCRC(false)), false},
		{"other bytes", enc(raw[1:]), false},
		{"the right bytes in two frames", append(enc(raw[:100]), enc(raw[100:])...), false},
		{"magic alone", file[:4], false},
		{"header alone", file[:8], false},
		{"a window above the limit", stream(raw, zstd.WithWindowSize(64<<20)), false},
		{"a bomb", enc(make([]byte, 64<<20)), false},
		{"a streamed bomb", stream(make([]byte, 64<<20), zstd.WithWindowSize(1<<20)), false},
	} {
		start := time.Now()
		got, err := decodeSegment(hash, c.file, nil)
		if c.ok && (err != nil || !bytes.Equal(got, raw)) || !c.ok && !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %d bytes, %v", c.name, len(got), err)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%s took %s", c.name, d)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%s: message of %d bytes", c.name, len(err.Error()))
		}
	}
	harmless, tried := 0, 0
	for n := range file {
		if n > 40 && n < len(file)-40 && n%101 != 0 {
			continue
		}
		// Some bits change nothing: how much memory to set aside, padding. Then
		// the bytes that come out are right.
		got, err := decodeSegment(hash, flipped(n), nil)
		if err == nil && !bytes.Equal(got, raw) || err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("a bit of byte %d of %d flipped: %d bytes, %v", n, len(file), len(got), err)
		}
		if err == nil {
			harmless++
		}
		tried++
	}
	if harmless > tried/20 {
		t.Errorf("%d of %d flipped bits were not noticed", harmless, tried)
	}
}

// AR-05: plain zstd reads our segments, and a segment that somebody packed
// tighter with it is read by us, or refused with the reason.
func TestPlainZstdReadsSegments(t *testing.T) {
	tool, err := exec.LookPath("zstd")
	if err != nil {
		t.Skip("zstd is not installed; install it and run: go test ./archive -run TestPlainZstd")
	}
	for _, n := range []int{1, 100, 1 << 10, 128 << 10, 128<<10 + 1, 1 << 20, maxSegment} {
		for _, raw := range [][]byte{records(1, n), noise(1, n), make([]byte, n)} {
			cmd := exec.Command(tool, "-dc")
			cmd.Stdin = bytes.NewReader(encodeSegment(t, raw))
			if out, err := cmd.Output(); err != nil || !bytes.Equal(out, raw) {
				t.Errorf("%d bytes: %d came back, %v", n, len(out), err)
			}
		}
	}
	raw := records(1, 2<<20)
	file := filepath.Join(t.TempDir(), "raw")
	must(t, os.WriteFile(file, raw, 0o600))
	for _, c := range []struct {
		args []string
		want string // in the error
	}{
		{[]string{"-19", "-c", file}, ""},
		{[]string{"-3", "--long=31", "-c", file}, ""}, // of a known size, so the window fits it
		{[]string{"-3", "--long=31", "-c"}, "window of 2147483648 bytes"},
		{[]string{"-3", "--no-check", "-c", file}, "no checksum"},
	} {
		cmd := exec.Command(tool, c.args...)
		cmd.Stdin = bytes.NewReader(raw)
		packed, err := cmd.Output()
		must(t, err)
		got, err := decodeSegment(hashOf(raw), packed, nil)
		if c.want == "" && (err != nil || !bytes.Equal(got, raw)) {
			t.Errorf("zstd %v: %d bytes, %v", c.args, len(got), err)
		}
		if c.want != "" && (!errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("zstd %v: %v, want %q", c.args, err, c.want)
		}
	}
}

// A damagedStore has two generations of two files.
func damagedStore(t *testing.T) (*rig, []piece) {
	r := newRig(t)
	name := "transcript/" + sessionA + ".jsonl"
	r.file(name, append(records(1, 9<<20), noise(1, 1<<20)...))
	r.file("session/a.txt", []byte("a"))
	r.archive()
	r.add(name, records(2, 50<<10))
	g := r.archive().Generation
	for _, f := range g.Files {
		if f.Family == Transcript {
			return r, f.pieces.all()
		}
	}
	t.Fatal("no transcript")
	return nil, nil
}

func (r *rig) segmentFile(hash string) string {
	return filepath.Join(r.store.Root(), filepath.FromSlash(segmentPath(hash)))
}

// AR-01, AR-03, AR-04: whatever happens to a segment's file, reading gives the right bytes or an
// error, after all that lies before the damage, and verify says what is wrong.
// What is plainly missing is stored again from the source.
func TestDamagedSegmentIsReported(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(t *testing.T, file string)
		mend bool // by the next Archive alone
	}{
		{"missing", func(t *testing.T, file string) { must(t, os.Remove(file)) }, true},
		{"empty", func(t *testing.T, file string) { must(t, os.WriteFile(file, nil, 0o600)) }, true},
		{"cut", func(t *testing.T, file string) { must(t, os.Truncate(file, 1000)) }, false},
		{"NULs", func(t *testing.T, file string) { must(t, os.WriteFile(file, make([]byte, 5000), 0o600)) }, false},
		{"flipped", func(t *testing.T, file string) {
			b, err := os.ReadFile(file)
			must(t, err)
			b[len(b)/2] ^= 1
			must(t, os.WriteFile(file, b, 0o600))
		}, false},
		{"a damaged frame behind it", func(t *testing.T, file string) {
			b, err := os.ReadFile(file)
			must(t, err)
			more := bytes.Clone(b)
			more[len(more)/2] ^= 1
			must(t, os.WriteFile(file, append(b, more...), 0o600))
		}, false},
		{"a folder", func(t *testing.T, file string) {
			must(t, os.Remove(file))
			must(t, os.Mkdir(file, 0o700))
		}, false},
		{"huge", func(t *testing.T, file string) { must(t, os.Truncate(file, 1<<30)) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, pieces := damagedStore(t)
			file := r.segmentFile(pieces[1].segment)
			c.harm(t, file)
			g := r.history().Latest()
			for _, f := range g.Files {
				rc, err := r.store.OpenFile(g, f)
				must(t, err)
				got, err := io.ReadAll(rc)
				must(t, rc.Close())
				if f.Family == Transcript {
					if !errors.Is(err, ErrDamaged) || int64(len(got)) != pieces[0].length {
						t.Errorf("%d bytes, %v", len(got), err)
					}
				} else if err != nil && !errors.Is(err, ErrDamaged) {
					t.Errorf("%s: %v", f.Path, err)
				}
			}
			rep, err := r.store.Verify(context.Background(), VerifyOptions{})
			must(t, err)
			found := false
			for _, p := range rep.Problems {
				found = found || p.Segment == pieces[1].segment && p.Session == sessionA && errors.Is(p.Err, ErrDamaged)
			}
			if rep.OK() || !found {
				t.Errorf("report %+v", rep)
			}
			if len(rep.Problems) > 6 {
				t.Errorf("%d problems for one segment", len(rep.Problems))
			}
			if c.mend {
				res, err := r.store.Archive(context.Background(), r.snapshot(sessionA), Options{})
				must(t, err)
				if len(res.Warnings) == 0 || !errors.Is(res.Warnings[0], ErrDamaged) {
					t.Errorf("warnings %v", res.Warnings)
				}
				// The older generations stay damaged; the newest is whole.
				if !res.Created || res.Diverged || res.NewBytes != 0 {
					t.Errorf("result %+v", res)
				}
				r.read(r.history().Latest())
			}
		})
	}
}

// A damaged segment is not relied on when its bytes come once more.
func TestDamagedSegmentIsReplaced(t *testing.T) {
	r := newRig(t)
	data := records(1, 50<<10)
	r.file("transcript/x", data)
	g := r.archive().Generation
	file := r.segmentFile(g.Files[0].pieces.all()[0].segment)
	for _, harm := range [][]byte{nil, make([]byte, 100), []byte("garbage")} {
		must(t, os.WriteFile(file, harm, 0o600))
		session := strings.Replace(sessionB, "7", string(rune('a'+len(harm)%6)), 1)
		_, err := r.store.Archive(context.Background(), r.snapshot(session), Options{})
		must(t, err)
		r.verify()
	}
}

func TestDamagedManifestIsReported(t *testing.T) {
	r := newRig(t)
	name := "transcript/" + sessionA + ".jsonl"
	all := []byte{}
	for i := range 5 {
		all = append(all, records(uint64(i), 40<<10)...)
		r.file(name, all)
		r.archive()
	}
	names := storeFiles(t, r.store.Root()+"/sessions/"+sessionA)
	file := filepath.Join(r.store.Root(), "sessions", sessionA, names[2])
	good, err := os.ReadFile(file)
	must(t, err)
	for _, c := range []struct {
		name string
		harm func()
	}{
		{"cut", func() { must(t, os.WriteFile(file, good[:len(good)/2], 0o600)) }},
		{"other bytes", func() { must(t, os.WriteFile(file, append([]byte(" "), good...), 0o600)) }},
		{"empty", func() { must(t, os.WriteFile(file, nil, 0o600)) }},
		{"missing", func() { must(t, os.Remove(file)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() { must(t, os.WriteFile(file, good, 0o600)) }()
			c.harm()
			h, err := r.store.History(context.Background(), sessionA)
			must(t, err)
			// Generations 3 to 5 have it for a base.
			if len(h.Generations) != 2 || len(h.Problems) < 2 {
				t.Errorf("%d generations, problems %+v", len(h.Generations), h.Problems)
			}
			for _, p := range h.Problems {
				if !errors.Is(p.Err, ErrDamaged) || p.Manifest == "" {
					t.Errorf("problem %+v", p)
				}
			}
			rep, err := r.store.Verify(context.Background(), VerifyOptions{})
			must(t, err)
			if rep.OK() {
				t.Error("verify found nothing")
			}
			g, err := r.store.Latest(context.Background(), sessionA)
			must(t, err)
			if g.Number != 2 {
				t.Errorf("latest is %d", g.Number)
			}
		})
	}
	// With the newest damaged, archiving goes on from the newest good one.
	file = filepath.Join(r.store.Root(), "sessions", sessionA, names[4])
	must(t, os.Truncate(file, 10))
	res, err := r.store.Archive(context.Background(), r.snapshot(sessionA), r.options())
	must(t, err)
	if !res.Created || res.Generation.Number != 5 || len(res.Warnings) != 1 {
		t.Errorf("result %+v", res)
	}
	sameFiles(t, "mended", r.read(res.Generation), map[string][]byte{name: all})
	if g, err := r.store.Latest(context.Background(), sessionA); err != nil || g.Hash != res.Generation.Hash {
		t.Errorf("latest %+v, %v", g, err)
	}
}

// A file whose pieces are fine but make other bytes than its hash says is not
// given out as whole.
func TestWrongFileHashIsDamaged(t *testing.T) {
	r := newRig(t)
	r.file("transcript/x", records(1, 1000))
	g := r.archive().Generation
	f := g.Files[0]
	for _, wrong := range []File{
		{Path: f.Path, Size: f.Size, SHA256: hashOf([]byte("other")), pieces: f.pieces},
		{Path: f.Path, Size: f.Size - 1, SHA256: f.SHA256, pieces: f.pieces},
		{Path: f.Path, Size: f.Size + 1, SHA256: f.SHA256, pieces: f.pieces},
		{Path: f.Path, Size: f.Size, SHA256: f.SHA256},
		{Path: f.Path, Size: f.Size, SHA256: f.SHA256, pieces: &pieceList{own: []piece{{f.pieces.own[0].segment, 1, f.Size}}}},
	} {
		rc, err := r.store.OpenFile(g, wrong)
		if err == nil {
			_, err = io.Copy(io.Discard, rc)
			rc.Close()
		}
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

// A segment that is not there at the first look, because another process is
// just putting it back, is no damage at the second.
func TestMissingSegmentIsLookedForTwice(t *testing.T) {
	r, pieces := damagedStore(t)
	file := r.segmentFile(pieces[0].segment)
	must(t, os.Rename(file, file+".away"))
	looks := 0
	testMissingHook = func(hash string) {
		looks++
		if hash == pieces[0].segment {
			must(t, os.Rename(file+".away", file))
		}
	}
	defer func() { testMissingHook = nil }()
	r.read(r.history().Latest())
	if looks != 1 {
		t.Errorf("%d second looks", looks)
	}
	testMissingHook = nil
	r.verify()
}
