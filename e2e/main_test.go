//go:build unix

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// scratch holds what all tests of this package share; TestMain removes it.
var scratch string

func TestMain(m *testing.M) {
	var err error
	scratch, err = os.MkdirTemp("", "session-keeper-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e: make a folder:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(scratch); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: remove the folder:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

var buildOnce = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "programs folder") // a space, as in many home folders
	for _, name := range []string{"session-keeper", "session-end-archive"} {
		cmd := exec.Command("go", "build", "-o", filepath.Join(dir, name), "../cmd/"+name)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	return dir, nil
})

// programs builds our programs once and gives the folder they lie in.
func programs(t *testing.T) string {
	t.Helper()
	dir, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
