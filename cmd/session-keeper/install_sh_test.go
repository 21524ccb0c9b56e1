package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// installer runs install.sh as a user of its own: a fresh home, nothing of the
// real environment but what Go needs to build without the network.
type installer struct {
	t    *testing.T
	home string
	path string
}

func newInstaller(t *testing.T) *installer {
	if runtime.GOOS == "windows" {
		t.Skip("install.sh is for systems with a POSIX shell")
	}
	return &installer{t: t, home: filepath.Join(t.TempDir(), "it's a home"), path: os.Getenv("PATH")}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func (in *installer) run(wantCode int, program string, args ...string) string {
	in.t.Helper()
	if err := os.MkdirAll(in.home, 0o700); err != nil {
		in.t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = []string{
		"HOME=" + in.home, "PATH=" + in.path, "TMPDIR=" + in.home,
		"GOCACHE=" + goEnv(in.t, "GOCACHE"), "GOMODCACHE=" + goEnv(in.t, "GOMODCACHE"), "GOFLAGS=-mod=readonly",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}
	out, err := cmd.CombinedOutput()
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		in.t.Fatal(err)
	}
	if code != wantCode {
		in.t.Fatalf("%s %q: exit code %d, want %d\n%s", program, args, code, wantCode, out)
	}
	return string(out)
}

func (in *installer) wants(out string, texts ...string) {
	in.t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			in.t.Errorf("no %q in\n%s", text, out)
		}
	}
}

const installScript = "../../install.sh"

// TestInstallScript installs from this checkout with nothing on the machine,
// sees the main job work, and takes it all away again.
func TestInstallScript(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the programs anew")
	}
	in := newInstaller(t)
	prefix := filepath.Join(in.home, "my prefix")
	bin := filepath.Join(prefix, "bin")
	settings := filepath.Join(in.home, ".claude", "settings.json")

	in.wants(in.run(0, installScript, "--prefix", prefix, "--dry-run"), "Would put them into "+bin)
	for _, path := range []string{prefix, filepath.Dir(settings), filepath.Join(in.home, ".local")} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a dry run left %s: %v", path, err)
		}
	}

	out := in.run(0, installScript, "--prefix", prefix)
	in.wants(out, "Installed "+bin+"/session-keeper", "Installed "+bin+"/session-end-archive",
		"Made ~/.claude/settings.json", "it works", bin+" is not on your PATH", "To undo all of this:", "install.sh --uninstall --prefix '")
	entries, err := os.ReadDir(bin)
	if err != nil || len(entries) != 4 {
		t.Errorf("%s holds %v, %v", bin, entries, err)
	}
	wired, err := os.ReadFile(settings)
	if err != nil || !strings.Contains(string(wired), `my prefix/bin/session-end-archive' || exit 1"`) {
		t.Errorf("settings: %s %v", wired, err)
	}
	in.run(0, filepath.Join(bin, "session-keeper"), "doctor")

	// Again, as an update: the settings stay as they are.
	in.path = bin + string(filepath.ListSeparator) + in.path
	out = in.run(0, installScript, "--prefix="+prefix)
	in.wants(out, "needs no change", "it works")
	if strings.Contains(out, "is not on your PATH") {
		t.Errorf("it is on the PATH:\n%s", out)
	}
	if again, err := os.ReadFile(settings); err != nil || string(again) != string(wired) {
		t.Errorf("settings changed: %s %v", again, err)
	}

	in.wants(in.run(0, installScript, "--uninstall", "--prefix", prefix, "--dry-run"), "Would remove "+bin+"/session-keeper")
	in.wants(in.run(0, installScript, "--uninstall", "--purge", "--prefix", prefix), "Removed ~/.claude/settings.json", "Removed "+bin+"/session-end-archive", "What stays:")
	for _, gone := range []string{filepath.Join(bin, "session-keeper"), filepath.Join(bin, "session-end-archive"), filepath.Join(bin, "session-keeper-worker"), filepath.Join(bin, "pre-compact-snapshot"), settings, filepath.Join(in.home, ".local", "state", "session-keeper")} {
		if _, err := os.Lstat(gone); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", gone, err)
		}
	}
	if _, err := os.Stat(filepath.Join(in.home, ".local", "share", "session-keeper", "format")); err != nil {
		t.Errorf("the archive did not stay: %v", err)
	}
	in.wants(in.run(1, installScript, "--uninstall", "--prefix", prefix), "there is no session-keeper in "+bin, "--uninstall --purge removes")
}

// TestInstallScriptLooseSettings has settings that Claude Code does not load,
// and then some that nobody can edit: it never says that all is well, and how to
// go on and back is said.
func TestInstallScriptLooseSettings(t *testing.T) { // IN-07, IN-08, IN-09
	if testing.Short() {
		t.Skip("builds the programs anew")
	}
	in := newInstaller(t)
	settings := filepath.Join(in.home, ".claude", "settings.json")
	write := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loose := "{\n  // mine\n  \"model\": \"opus\",\n}\n"
	write(loose)
	out := in.run(4, installScript)
	in.wants(out, "4 files equal byte for byte\n", "settings.json, line 2, is not strict JSON", "remove comments and trailing commas",
		"To undo all of this:", "install.sh: error: installed, but sessions are not archived until")
	if strings.Contains(out, "it works") || strings.Contains(out, "will be archived.") {
		t.Errorf("claims success:\n%s", out)
	}
	// Uninstalled, and then the rest: state goes, the archive and the file stay.
	in.run(0, installScript, "--uninstall")
	state := filepath.Join(in.home, ".local", "state", "session-keeper")
	if _, err := os.Stat(state); err != nil {
		t.Errorf("state is gone already: %v", err)
	}
	in.wants(in.run(0, installScript, "--uninstall", "--purge", "--dry-run"), "Would remove state")
	in.wants(in.run(0, installScript, "--uninstall", "--purge"), "building one for the purge", "Removed state", "What stays:")
	if _, err := os.Lstat(state); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("state is still there: %v", err)
	}
	if got, err := os.ReadFile(settings); err != nil || string(got) != loose {
		t.Errorf("settings are %q %v", got, err)
	}

	write("{ \"a\": 1 \"b\": 2 }")
	out = in.run(1, installScript)
	in.wants(out, "is not valid JSON", "the programs are in place, but the hook could not be wired", "run this again", "or remove the programs: rm -- '"+in.home[:3])
	if entries, err := os.ReadDir(filepath.Join(in.home, ".local", "bin")); err != nil || len(entries) != 4 {
		t.Errorf("programs: %v %v", entries, err)
	}
}

// TestInstallScriptRefuses covers what it says when it cannot go on.
func TestInstallScriptRefuses(t *testing.T) {
	in := newInstaller(t)
	in.wants(in.run(0, installScript, "--help"), "usage: ./install.sh")
	in.wants(in.run(2, installScript, "--prefx"), "unknown argument: --prefx", "usage:")
	in.wants(in.run(2, installScript, "--prefix"), "--prefix needs a folder")
	in.wants(in.run(2, installScript, "--purge"), "--purge goes with --uninstall")

	// A machine without Go, and one with an old Go.
	tools := t.TempDir()
	for _, tool := range []string{"sh", "dirname", "sed", "sort", "head"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(tools, tool)); err != nil {
			t.Fatal(err)
		}
	}
	in.path = tools
	in.wants(in.run(1, installScript), "error: Go is needed to build session-keeper, version 1.", "hint: install it")
	old := "#!/bin/sh\ncase $2 in GOVERSION) echo go1.9.7 ;; GOTOOLCHAIN) echo local ;; *) exit 1 ;; esac\n"
	if err := os.WriteFile(filepath.Join(tools, "go"), []byte(old), 0o755); err != nil {
		t.Fatal(err)
	}
	in.wants(in.run(1, installScript), "or newer is needed, this is 1.9.7")
	if entries, err := os.ReadDir(in.home); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
