package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The worker may write into the sample's folders while they are removed.
func TestRemoveUsed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sample")
	log := filepath.Join(dir, "state", "log")
	written := make(chan error, 1)
	if err := os.MkdirAll(log, 0o700); err != nil {
		t.Fatal(err)
	}
	go func() {
		for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if err := os.MkdirAll(log, 0o700); err != nil && !os.IsNotExist(err) {
				written <- err
				return
			}
			// Fails whenever the folder went in between.
			_ = os.WriteFile(filepath.Join(log, "worker.jsonl"), []byte("{}\n"), 0o600)
		}
		written <- nil
	}()
	if err := removeUsed(dir); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}
