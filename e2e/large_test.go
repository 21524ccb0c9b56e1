//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// largeSize is what the large transcript is grown to, in bytes.
const largeSize = 200_000_000

// TestLargeTranscriptOutlivesTheHook ends a session of 200 MB. The hook has no
// timeout of its own, so the client ends it and all its descendants after 1.5 s
// (observed on 2.1.332); a wrapper sees to it that this happens while the
// worker is at work. The archive must hold every byte all the same.
func TestLargeTranscriptOutlivesTheHook(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	session := l.print("-p", "prompt-one")
	l.grow(l.transcript(session), largeSize)

	// The wrapper starts the hook 1.3 s late and then lingers. When the client's
	// SIGTERM comes, it notes what the spool holds.
	noted := filepath.Join(l.root, "at-the-kill")
	wrapper := filepath.Join(l.root, "wrapper.sh")
	script := fmt.Sprintf(`#!/bin/sh
trap 'ls -R "%s" >"%s"; exit 1' TERM
sleep 1.3
%s
sleep 20 &
wait
`, l.spool(), noted, l.hookCommand())
	l.must(os.WriteFile(wrapper, []byte(script), 0o700))
	l.writeJSON(l.settings(), hooks("SessionEnd", wrapper))

	l.print("-p", "--resume", session, "prompt-two")
	if requests := l.mock.sent("prompt-two"); len(requests) != 1 || !holds(requests[0], "prompt-one") {
		t.Fatalf("the client does not resume the grown transcript: %d requests", len(requests))
	}
	if spooled := l.read(noted); !bytes.Contains(spooled, []byte(session)) {
		t.Fatalf("the client did not end the hook while the worker was at work, so this test shows nothing: %s", spooled)
	}
	want := l.waitStored(session)
	if len(want) < largeSize || !bytes.Contains(end(want, 1<<20), []byte("prompt-two")) {
		t.Errorf("the transcript has %d bytes and may lack the last prompt", len(want))
	}
	l.waitIdle()
	l.keeper("verify")
}

func end(data []byte, n int) []byte { return data[max(0, len(data)-n):] }

// grow appends records of a type that the client does not know, and therefore
// passes over, until the file has size bytes.
func (l *lab) grow(path string, size int64) {
	l.t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	l.must(err)
	info, err := file.Stat()
	l.must(err)
	out := bufio.NewWriterSize(file, 1<<20)
	for n, i := info.Size(), 0; n < size; i++ {
		text := strings.Repeat(fmt.Sprintf("%x ", uint64(i+1)*0x9e3779b97f4a7c15), 6000)
		written, err := fmt.Fprintf(out, "{\"type\":\"padding\",\"number\":%d,\"text\":%q}\n", i, text)
		l.must(err)
		n += int64(written)
	}
	l.must(out.Flush())
	l.must(file.Close())
}
