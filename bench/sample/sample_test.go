package sample

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func text(t *testing.T) *Text {
	t.Helper()
	dir := t.TempDir()
	source := "package a\n" + strings.Repeat("// A comment that is long enough to be taken as prose.\nvar x = 1\n", 40)
	for _, name := range []string{"a.go", "b.go"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(source+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := ReadText(dir)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSameSeedSameBytes(t *testing.T) {
	words := text(t)
	write := func(seed uint64) []byte {
		var out bytes.Buffer
		s := New(words, seed, "/src/app")
		for _, size := range []int64{200_000, 30_000} {
			before := out.Len()
			if err := s.Write(&out, size); err != nil {
				t.Fatal(err)
			}
			if n := int64(out.Len() - before); n < size {
				t.Errorf("seed %d: %d bytes, want at least %d", seed, n, size)
			}
		}
		return out.Bytes()
	}
	if !bytes.Equal(write(1), write(1)) {
		t.Error("the same seed gave other bytes")
	}
	if bytes.Equal(write(1), write(2)) {
		t.Error("another seed gave the same bytes")
	}
}

func TestRecordsAreAChain(t *testing.T) {
	var out bytes.Buffer
	s := New(text(t), 3, "/src/app")
	for range 2 {
		if err := s.Write(&out, 100_000); err != nil {
			t.Fatal(err)
		}
	}
	parent, links := "", 0
	for line := range bytes.Lines(out.Bytes()) {
		var r struct {
			Type, UUID, SessionID string
			ParentUUID            *string
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%v in %.200s", err, line)
		}
		if r.SessionID != s.ID {
			t.Fatalf("session %q in %.200s", r.SessionID, line)
		}
		if r.UUID == "" {
			continue
		}
		if links++; links > 1 && (r.ParentUUID == nil || *r.ParentUUID != parent) {
			t.Fatalf("record %d does not hang on the one before", links)
		}
		parent = r.UUID
	}
	if links < 10 {
		t.Errorf("%d records in the chain", links)
	}
}

func TestReadTextWithoutSource(t *testing.T) {
	if _, err := ReadText(t.TempDir()); err == nil {
		t.Error("no error for a folder without Go files")
	}
}
