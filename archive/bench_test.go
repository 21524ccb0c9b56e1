package archive

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// benchText is about as compressible as a transcript.
func benchText(n int) []byte {
	unit := append(records(1, 3<<20), noise(1, 600<<10)...)
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		b.Write(records(uint64(i), 1000))
		b.Write(unit)
	}
	return b.Bytes()[:n]
}

// Budget: 1.3 times what zstd -3 takes for the same file, two cores.
func BenchmarkFirst(b *testing.B) {
	for _, c := range []struct {
		name    string
		size    int
		workers int
	}{{"100KB", 100 << 10, 1}, {"1MB", 1 << 20, 1}, {"100MB", 100 << 20, 2}, {"100MB-one-worker", 100 << 20, 1}} {
		b.Run(c.name, func(b *testing.B) {
			src := filepath.Join(b.TempDir(), "src")
			must(b, os.WriteFile(src, benchText(c.size), 0o600))
			b.SetBytes(int64(c.size))
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				s, err := Create(filepath.Join(b.TempDir(), "store"))
				must(b, err)
				b.StartTimer()
				_, err = s.Archive(context.Background(), Snapshot{SessionID: sessionA, Reason: SessionEnd,
					Sources: []Source{{Transcript, "x", src}}}, Options{Workers: c.workers})
				must(b, err)
			}
		})
	}
}

// Budget: the new bytes, plus one pass over the old ones; a quick check has no
// such pass.
func BenchmarkGrow50KB(b *testing.B) {
	for _, c := range []struct {
		name  string
		check Check
	}{{"full", Full}, {"quick", Quick}} {
		b.Run(c.name, func(b *testing.B) {
			r := newRig(b)
			r.file("transcript/x", benchText(100<<20))
			snap := r.snapshot(sessionA)
			snap.Check = c.check
			o := r.options()
			_, err := r.store.Archive(context.Background(), snap, o)
			must(b, err)
			o.Workers = 1
			seed := uint64(0)
			for b.Loop() {
				b.StopTimer()
				seed++
				r.add("transcript/x", records(seed, 50<<10))
				b.StartTimer()
				res, err := r.store.Archive(context.Background(), snap, o)
				must(b, err)
				if !res.Created || res.Diverged {
					b.Fatalf("%+v", res)
				}
			}
		})
	}
}

func BenchmarkNothingNew(b *testing.B) {
	r := newRig(b)
	r.file("transcript/x", benchText(10<<20))
	r.now = rested()
	snap, o := r.snapshot(sessionA), r.options()
	for b.Loop() {
		_, err := r.store.Archive(context.Background(), snap, o)
		must(b, err)
	}
}

func BenchmarkRead100MB(b *testing.B) {
	r := newRig(b)
	r.file("transcript/x", benchText(100<<20))
	res, err := r.store.Archive(context.Background(), r.snapshot(sessionA), r.options())
	must(b, err)
	b.SetBytes(100 << 20)
	for b.Loop() {
		rc, err := r.store.OpenFile(res.Generation, res.Generation.Files[0])
		must(b, err)
		_, err = io.Copy(io.Discard, rc)
		must(b, err)
	}
}
