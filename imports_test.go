package sessionkeeper_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

const module = "github.com/session-keeper/session-keeper"

// allowed says what each package of this module may import, of this module and
// of others. The standard library is free unless hookMustNotLink names it. A
// package without a row fails the test: its place has to be decided.
//
// The three public libraries (transcript, archive, hooklib) import none of each
// other. Each outside module has one home, named in homes.
var allowed = map[string][]string{
	"": {},

	"transcript":    {"github.com/google/uuid"},
	"archive":       {"github.com/google/uuid", "github.com/klauspost/compress/zstd", "internal/durable"},
	"archive/spool": {"github.com/google/uuid", "golang.org/x/sys/windows", "internal/durable"},
	"hooklib":       {"golang.org/x/sys/unix", "golang.org/x/sys/windows"},

	"hooklib/hooktest": {"hooklib"},

	"internal/durable":  {"golang.org/x/sys/unix", "golang.org/x/sys/windows"},
	"internal/config":   {"github.com/BurntSushi/toml", "internal/durable"},
	"internal/optout":   {"github.com/bmatcuk/doublestar/v4", "internal/config", "internal/durable"},
	"internal/logfile":  {"github.com/rs/zerolog", "hooklib", "internal/durable"},
	"internal/handoff":  {"archive/spool", "hooklib", "internal/config", "internal/durable", "internal/logfile", "internal/optout", "transcript"},
	"internal/keeper":   {"archive", "archive/spool", "hooklib", "internal/config", "internal/durable", "internal/handoff", "internal/logfile", "internal/optout", "transcript"},
	"internal/install":  {"github.com/tailscale/hujson", "github.com/rogpeppe/go-internal/diff", "internal/durable"},
	"internal/progress": {"github.com/schollz/progressbar/v3", "golang.org/x/term"},
	"internal/sessions": {"archive", "internal/config", "internal/durable", "internal/optout", "transcript"},
	"internal/doctor":   {"github.com/dustin/go-humanize", "archive", "archive/spool", "internal/config", "internal/durable", "internal/handoff", "internal/install", "internal/keeper", "internal/logfile", "internal/optout", "transcript"},
	"internal/restore":  {"archive", "internal/durable", "transcript"},
	"internal/briefing": {"github.com/BurntSushi/toml", "github.com/bmatcuk/doublestar/v4", "internal/config", "internal/durable"},
	"internal/digest":   {"transcript"},

	"cmd/session-end-archive":   {"hooklib", "internal/handoff"},
	"cmd/pre-compact-snapshot":  {"hooklib", "internal/handoff"},
	"cmd/session-keeper-worker": {"hooklib", "internal/config", "internal/handoff", "internal/keeper"},
	"cmd/session-keeper":        {"any"},

	"e2e":           {},
	"bench/hook":    {"bench/sample", "internal/durable", "github.com/dustin/go-humanize", "golang.org/x/sys/unix"},
	"bench/minimal": {},
	"bench/sample":  {},
}

// homes names the packages that may import an outside module, tests aside.
var homes = map[string][]string{
	"github.com/BurntSushi/toml":        {"internal/briefing", "internal/config"}, // front matter has keys and lines of its own
	"github.com/bmatcuk/doublestar/v4":  {"internal/briefing", "internal/optout"},
	"github.com/dustin/go-humanize":     {"cmd/session-keeper", "internal/doctor", "bench/hook"},
	"github.com/google/uuid":            {"transcript", "archive", "archive/spool"},
	"github.com/klauspost/compress":     {"archive"},
	"github.com/rogpeppe/go-internal":   {"internal/install"},
	"github.com/rs/zerolog":             {"internal/logfile"},
	"github.com/rivo/uniseg":            {"cmd/session-keeper"},
	"github.com/schollz/progressbar/v3": {"internal/progress"},
	"github.com/spf13/cobra":            {"cmd/session-keeper"},
	"github.com/tailscale/hujson":       {"internal/install"},
	"golang.org/x/sys":                  {"internal/durable", "archive/spool", "hooklib", "bench/hook"},
	"golang.org/x/term":                 {"cmd/session-keeper", "internal/progress"},
}

// hookBinaries start at the end of every session and must start fast.
var hookBinaries = []string{"cmd/session-end-archive", "cmd/pre-compact-snapshot"}

// hookMustNotLink names packages that no hook binary may hold, directly or not,
// and why. A trailing slash stands for all packages below.
var hookMustNotLink = map[string]string{
	"crypto/tls":                         "a hook opens no connection",
	"database/sql":                       "the catalog is for people",
	"github.com/rivo/":                   "widths of characters are for people",
	"github.com/schollz/":                "progress bars are for people",
	"github.com/spf13/":                  "a command line for people",
	"github.com/klauspost/compress/zstd": "the worker compresses; a hook hands over",
	module + "/archive":                  "a hook never opens the store, which may be on a disk that is not there",
	"golang.org/x/term":                  "a hook has no terminal",
	"html/template":                      "rendering is for people",
	"modernc.org/":                       "SQLite: hooks never open the catalog",
	"net/http":                           "a hook opens no connection",
	"plugin":                             "loads code",
	"regexp":                             "compiles patterns as the program starts",
	"testing":                            "test code",
	"text/template":                      "rendering is for people",
}

// hookMustNotHold names symbols that no hook binary may hold. The package net is
// there, since two modules name its types; the code that opens a connection,
// listens or asks a name server must not be.
var hookMustNotHold = []string{"net.(*Dialer).", "net.(*ListenConfig).", "net.(*Resolver).", "net.(*netFD).", "net.Dial", "net.Listen"}

// listed is the part of "go list -json" that is needed here.
type listed struct {
	ImportPath string
	Name       string
	Standard   bool
	Module     *struct{ Path string }
	Imports    []string
	Deps       []string
}

func goList(t *testing.T, system string, args ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Name,Standard,Module,Imports,Deps"}, args...)...)
	cmd.Env = append(cmd.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %q: %v\n%s", args, err, stderr.String())
	}
	var packages []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatalf("go list %q: %v", args, err)
		}
		packages = append(packages, p)
	}
}

// short names a package of this module by its folder.
func short(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

var systems = []string{"linux", "darwin", "windows"}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	for _, system := range systems {
		for _, p := range goList(t, system, "./...") {
			name := short(p.ImportPath)
			seen[name] = true
			row, ok := allowed[name]
			if !ok {
				t.Errorf("package %s has no row in the table of allowed imports", p.ImportPath)
				continue
			}
			for _, path := range p.Imports {
				ours := path == module || strings.HasPrefix(path, module+"/")
				if !ours && !strings.Contains(strings.Split(path, "/")[0], ".") {
					continue // the standard library
				}
				if !slices.Contains(row, "any") && !slices.Contains(row, short(path)) {
					t.Errorf("%s imports %s, which its row does not allow (%s)", name, short(path), system)
				}
				if ours && strings.HasPrefix(short(path), "cmd/") {
					t.Errorf("%s imports the command %s", name, short(path))
				}
				checkHome(t, name, path, ours)
			}
		}
	}
	for name := range allowed {
		if !seen[name] {
			t.Errorf("the table of allowed imports has a row for %q, which does not exist", name)
		}
	}
}

func checkHome(t *testing.T, name, path string, ours bool) {
	t.Helper()
	if ours {
		return
	}
	for outside, packages := range homes {
		if path == outside || strings.HasPrefix(path, outside+"/") {
			if !slices.Contains(packages, name) {
				t.Errorf("%s imports %s, whose home is %q", name, path, packages)
			}
			return
		}
	}
	t.Errorf("%s imports %s, which has no home", name, path)
}

func TestHookBinariesLinkLittle(t *testing.T) {
	for _, system := range systems {
		for _, p := range goList(t, system, prefixed(hookBinaries)...) {
			for _, path := range p.Deps {
				for banned, why := range hookMustNotLink {
					if path == banned || strings.HasSuffix(banned, "/") && strings.HasPrefix(path, banned) {
						t.Errorf("%s links %s: %s (%s)", short(p.ImportPath), path, why, system)
					}
				}
			}
		}
	}
}

func prefixed(names []string) []string {
	var paths []string
	for _, name := range names {
		paths = append(paths, module+"/"+name)
	}
	return paths
}

func TestHookBinariesOpenNoConnection(t *testing.T) {
	for _, name := range hookBinaries {
		for _, line := range strings.Split(run(t, nil, "go", "tool", "nm", build(t, name)), "\n") {
			fields := strings.Fields(line)
			if len(fields) < 3 {
				continue
			}
			for _, banned := range hookMustNotHold {
				if strings.HasPrefix(fields[2], banned) {
					t.Errorf("%s holds %s", name, fields[2])
				}
			}
		}
	}
}

// maxInit bounds what the packages of a hook binary may do before main starts,
// maxSize its bytes without symbols and debugging information.
const (
	maxInit = 500 * time.Microsecond
	maxSize = 4_000_000
)

func TestHookBinariesAreSmall(t *testing.T) {
	for _, name := range hookBinaries {
		fi, err := os.Stat(build(t, name, "-trimpath", "-ldflags=-s -w"))
		if err != nil {
			t.Fatal(err)
		}
		if fi.Size() > maxSize {
			t.Errorf("%s: %d bytes, at most %d are allowed", name, fi.Size(), maxSize)
		}
	}
}

// SE-08: a hook starts within milliseconds, whatever it has to do then.
func TestHookBinariesInitFast(t *testing.T) {
	for _, name := range hookBinaries {
		binary := build(t, name)
		least := time.Hour
		for range 100 { // the machine may be busy: the best run counts
			least = min(least, initTime(t, run(t, []string{"GODEBUG=inittrace=1"}, binary, "-version")))
			if least <= maxInit {
				break
			}
		}
		if least > maxInit {
			t.Errorf("%s: package initialisation takes %v, at most %v is allowed", name, least, maxInit)
		}
	}
}

// initTime adds up the clock times of "init PACKAGE @T ms, T ms clock, …".
func initTime(t *testing.T, trace string) time.Duration {
	t.Helper()
	var total time.Duration
	packages := 0
	for _, line := range strings.Split(trace, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 7 || fields[0] != "init" || fields[6] != "clock," {
			continue
		}
		spent, err := time.ParseDuration(fields[4] + fields[5])
		if err != nil {
			t.Fatalf("init trace: %v in %q", err, line)
		}
		total += spent
		packages++
	}
	if packages == 0 {
		t.Fatalf("no init trace in %q", trace)
	}
	return total
}

func build(t *testing.T, name string, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(name))
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	args := append([]string{"build", "-o", path}, flags...)
	run(t, []string{"CGO_ENABLED=0"}, "go", append(args, "./"+name)...)
	return path
}

func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(cmd.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}
