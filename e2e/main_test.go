//go:build unix

package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
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
	flag.Parse()
	if _, missing := findClient(); missing != "" && !testing.Short() {
		tell("e2e: " + missing + "\n")
	}
	code := m.Run()
	if err := os.RemoveAll(scratch); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: remove the folder:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// tell tells a person at a terminal what "go test ./..." hides: it shows nothing
// of what passing packages print. Without a terminal there is nobody to tell.
// The package os is passed by, because go test does not keep results of a test
// that opens a device through it.
func tell(text string) {
	fd, err := syscall.Open("/dev/tty", syscall.O_WRONLY|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer syscall.Close(fd)
	_, _ = syscall.Write(fd, []byte(text)) // the terminal may be gone by now
}

var buildOnce = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "programs folder") // a space, as in many home folders
	for _, name := range []string{"session-keeper", "session-end-archive", "pre-compact-snapshot", "session-keeper-worker"} {
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

// TestMissingClientIsNamed keeps what a person is told of use where there is no
// client.
func TestMissingClientIsNamed(t *testing.T) {
	t.Setenv(clientVariable, "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	want := clientVariable + "="
	if testing.Short() {
		want = "-short"
	}
	if path, missing := findClient(); !strings.Contains(missing, "skipped") && want != "-short" || !strings.Contains(missing, want) {
		t.Errorf("found %q, told %q", path, missing)
	}
	t.Setenv(clientVariable, "/some/claude")
	if path, missing := findClient(); !testing.Short() && (path != "/some/claude" || missing != "") {
		t.Errorf("found %q, told %q", path, missing)
	}
}
