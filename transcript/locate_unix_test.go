//go:build unix

package transcript

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TP-11: nothing waits for a FIFO, and no device or socket is read.
func TestSpecialFiles(t *testing.T) {
	config := configDir(t)
	good := transcriptPath(config, "-good", idA)
	write(t, good, message(1))
	fifo := transcriptPath(config, "-fifo", idA)
	write(t, filepath.Join(filepath.Dir(fifo), "x"), "")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	// A socket's path must be short.
	dir, err := os.MkdirTemp("", "sk")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := syscall.Mkfifo(filepath.Join(config, "projects", "-good", idA+".fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(config, "projects", "-good", idA, "x"), "")
	if err := syscall.Mkfifo(filepath.Join(config, "projects", "-good", idA, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(config, "projects", "-good", "agent-fifo.jsonl"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(config, "sessions", "x"), "")
	if err := syscall.Mkfifo(filepath.Join(config, "sessions", "7.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	go func() {
		defer close(done)
		for _, path := range []string{fifo, socket, "/dev/zero", "/dev/null", "/dev/tty", config} {
			if f, _, err := OpenRegular(path); err == nil {
				f.Close()
				t.Errorf("%s was opened", path)
			}
		}
		l := &Locator{ConfigDirs: []string{config}}
		b, err := l.Locate(idA, fifo)
		if err != nil || b.Transcript != good || len(b.Passed) == 0 {
			t.Errorf("%v, %+v", err, b)
			return
		}
		files, skipped, err := b.Files()
		if err != nil || rels(files) != "transcript:"+idA+".jsonl session:x" || len(skipped) != 2 {
			t.Errorf("%v, %s, %+v", err, rels(files), skipped)
		}
		if all, skipped := Processes(config, func(int) bool { return true }); len(all) != 0 || len(skipped) != 1 {
			t.Errorf("%v, %v", all, skipped)
		}
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("something waits")
	}
}

// A file of another user's is not read, whoever may.
func TestOthersFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to someone else")
	}
	config := configDir(t)
	path := transcriptPath(config, "-p", idA)
	write(t, path, message(1))
	write(t, filepath.Join(filepath.Dir(path), idA, "x"), "")
	if err := os.Chown(path, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenRegular(path); !errors.Is(err, ErrRefused) {
		t.Errorf("%v", err)
	}
	l := &Locator{ConfigDirs: []string{config}}
	b, err := l.Locate(idA, path)
	if err != nil || !b.Husk() {
		t.Errorf("%v, %+v", err, b)
	}
	if err := os.Chown(filepath.Join(filepath.Dir(path), idA, "x"), 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if files, skipped, err := b.Files(); err != nil || len(files) != 0 || len(skipped) != 1 {
		t.Errorf("%v, %v, %v", err, files, skipped)
	}
}
