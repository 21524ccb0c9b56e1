//go:build unix

package hooklib

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// streams returns the kinds of standard input that a client gives, each with
// the end to write to. The read ends are as a new process finds them: in
// blocking mode and unknown to the runtime's poller. "polled" is the kind that
// the runtime can set deadlines for.
func streams(t *testing.T) map[string][2]*os.File {
	t.Helper()
	var pipe [2]int
	if err := syscall.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	sock, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][2]*os.File{
		"pipe":   {os.NewFile(uintptr(pipe[0]), "pipe"), os.NewFile(uintptr(pipe[1]), "pipe")},
		"socket": {os.NewFile(uintptr(sock[0]), "socket"), os.NewFile(uintptr(sock[1]), "socket")},
		"polled": {pr, pw},
	}
	t.Cleanup(func() {
		for _, s := range all {
			s[0].Close()
			s[1].Close()
		}
	})
	return all
}

// SE-09: the other end stays open after the event.
func TestReadEventDoesNotWaitForTheEnd(t *testing.T) {
	before := runtime.NumGoroutine()
	for name, s := range streams(t) {
		if _, err := s[1].WriteString(sampleEnd); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		event, err := ReadEvent(s[0], start.Add(time.Minute))
		if err != nil || event.Base().SessionID != sampleID {
			t.Errorf("%s: %v, %v", name, event, err)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

func TestReadEventDeadline(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, tt := range []struct {
		name, in string
		want     error
	}{
		{"no data", "", ErrNoEvent},
		{"white space", "\n", ErrNoEvent},
		{"half an event", sampleEnd[:40], ErrTimeout},
	} {
		for name, s := range streams(t) {
			if _, err := s[1].WriteString(tt.in); err != nil {
				t.Fatal(err)
			}
			const wait = 50 * time.Millisecond
			start := time.Now()
			_, err := ReadEvent(s[0], start.Add(wait))
			if !errors.Is(err, tt.want) {
				t.Errorf("%s, %s: error %v, want %v", name, tt.name, err, tt.want)
			}
			if took := time.Since(start); took < wait/2 || took > 10*time.Second {
				t.Errorf("%s, %s: took %v", name, tt.name, took)
			}
			// A deadline that is past already must not read for ever either.
			if _, err := ReadEvent(s[0], start.Add(-time.Hour)); err == nil {
				t.Errorf("%s, %s: no error after the deadline", name, tt.name)
			}
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

func TestReadEventInPieces(t *testing.T) {
	for name, s := range streams(t) {
		done := make(chan error, 1)
		go func() {
			for _, piece := range []string{sampleEnd[:10], sampleEnd[10:100], sampleEnd[100:]} {
				time.Sleep(5 * time.Millisecond)
				if _, err := s[1].WriteString(piece); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		event, err := ReadEvent(s[0], time.Now().Add(time.Minute))
		if err != nil || event.Base().SessionID != sampleID {
			t.Errorf("%s: %v, %v", name, event, err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadEventClosed(t *testing.T) {
	for name, s := range streams(t) {
		if err := s[1].Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadEvent(s[0], time.Now().Add(time.Minute)); !errors.Is(err, ErrNoEvent) {
			t.Errorf("%s: error %v, want %v", name, err, ErrNoEvent)
		}
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadEvent(f, time.Now().Add(time.Minute)); !errors.Is(err, ErrNoEvent) {
		t.Errorf("%s: error %v, want %v", os.DevNull, err, ErrNoEvent)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadEvent(f, time.Now().Add(time.Minute)); err == nil {
		t.Error("no error for a closed file")
	}
	var none *os.File
	if _, err := ReadEvent(none, time.Now().Add(time.Minute)); !errors.Is(err, ErrNoEvent) {
		t.Errorf("nil file: error %v, want %v", err, ErrNoEvent)
	}
}

// /dev/zero never ends and is no event.
func TestReadEventEndlessFile(t *testing.T) {
	f, err := os.Open("/dev/zero")
	if err != nil {
		t.Skip("no /dev/zero on this system")
	}
	defer f.Close()
	if _, err := ReadEvent(f, time.Now().Add(time.Minute)); !errors.Is(err, ErrNotObject) {
		t.Errorf("error %v, want %v", err, ErrNotObject)
	}
}
