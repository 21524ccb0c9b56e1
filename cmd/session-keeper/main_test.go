package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"
)

// programs is the folder with the programs under test, built as install.sh
// builds them.
var programs string

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "session-keeper-programs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs = dir
	build := exec.Command("go", "build", "-trimpath", "-o", dir+string(filepath.Separator), ".", "../session-end-archive", "../pre-compact-snapshot", "../session-keeper-worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the programs: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// TestScripts runs the scripts in testdata/scripts. Each has a home of its own,
// $HOME, in which nothing is; no variable of the real environment but PATH
// reaches it. $BIN has the programs, $CONTRIB and $TESTDATA are these
// folders. Beside testscript's own commands there are
//
//	exits CODE PROGRAM [ARG...]   run, and want exactly this exit code
//	expand FILE...                replace $WORK, $HOME and $BIN in files
//	modes MODE PATH...            want exactly this mode, in octal
//	age DURATION FILE...          set a file's times to so long ago
//	await DURATION PROGRAM ARG... run until it succeeds, for so long at most
//	replace OLD NEW FILE          replace a text that must be there
//	copytree FROM TO              copy a folder
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata", "scripts"),
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("USERPROFILE", home)
			env.Setenv("TMPDIR", filepath.Join(env.WorkDir, "tmp"))
			env.Setenv("BIN", programs)
			for name, dir := range map[string]string{"CONTRIB": "contrib", "TESTDATA": "testdata"} {
				path, err := filepath.Abs(filepath.Join("..", "..", dir))
				if err != nil {
					return err
				}
				env.Setenv(name, path)
			}
			env.Setenv("PATH", programs+string(filepath.ListSeparator)+os.Getenv("PATH"))
			env.Setenv("LC_ALL", "C.UTF-8")
			env.Setenv("TZ", "UTC")
			for _, dir := range []string{home, filepath.Join(env.WorkDir, "tmp")} {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":    scriptExits,
			"expand":   scriptExpand,
			"modes":    scriptModes,
			"age":      scriptAge,
			"await":    scriptAwait,
			"replace":  scriptReplace,
			"copytree": scriptCopyTree,
		},
	})
}

func needArgs(ts *testscript.TestScript, neg bool, args []string, n int, usage string) {
	if neg || len(args) < n {
		ts.Fatalf("usage: %s", usage)
	}
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	needArgs(ts, neg, args, 2, "exits CODE PROGRAM [ARG...]")
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func scriptExpand(ts *testscript.TestScript, neg bool, args []string) {
	needArgs(ts, neg, args, 1, "expand FILE...")
	expand := strings.NewReplacer("$WORK", ts.Getenv("WORK"), "$HOME", ts.Getenv("HOME"), "$BIN", ts.Getenv("BIN"))
	for _, name := range args {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(expand.Replace(ts.ReadFile(name))), 0o600))
	}
}

func scriptModes(ts *testscript.TestScript, neg bool, args []string) {
	needArgs(ts, neg, args, 2, "modes MODE PATH...")
	for _, name := range args[1:] {
		fi, err := os.Lstat(ts.MkAbs(name))
		ts.Check(err)
		if got := fmt.Sprintf("%04o", fi.Mode().Perm()); got != args[0] {
			ts.Fatalf("%s has mode %s, want %s", name, got, args[0])
		}
	}
}

func scriptAge(ts *testscript.TestScript, neg bool, args []string) {
	needArgs(ts, neg, args, 2, "age DURATION FILE...")
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	then := time.Now().Add(-d)
	for _, name := range args[1:] {
		ts.Check(os.Chtimes(ts.MkAbs(name), then, then))
	}
}

func scriptAwait(ts *testscript.TestScript, neg bool, args []string) {
	needArgs(ts, neg, args, 2, "await DURATION PROGRAM [ARG...]")
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	for deadline := time.Now().Add(d); ; time.Sleep(20 * time.Millisecond) {
		err := ts.Exec(args[1], args[2:]...)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("not within %v: %v", d, err)
		}
	}
}

func scriptReplace(ts *testscript.TestScript, neg bool, args []string) {
	needArgs(ts, neg, args, 3, "replace OLD NEW FILE")
	data := []byte(ts.ReadFile(args[2]))
	if !bytes.Contains(data, []byte(args[0])) {
		ts.Fatalf("%s does not hold %q", args[2], args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), bytes.ReplaceAll(data, []byte(args[0]), []byte(args[1])), 0o600))
}

func scriptCopyTree(ts *testscript.TestScript, neg bool, args []string) {
	needArgs(ts, neg, args, 2, "copytree FROM TO")
	ts.Check(os.CopyFS(ts.MkAbs(args[1]), os.DirFS(ts.MkAbs(args[0]))))
}

// Help is wrapped by hand, for a terminal of about 80 columns.
func TestHelpFits(t *testing.T) {
	const columns = 82
	for _, cmd := range newRoot(&app{}).Commands() {
		for line := range strings.Lines(cmd.Long) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns && cmd.Name() != "completion" {
				t.Errorf("help of %s: %d columns: %s", cmd.Name(), n, line)
			}
		}
	}
}

// CL-08: zero keeps nothing, so no document and no help advises it.
func TestNobodyAdvisesZeroDays(t *testing.T) {
	zero := regexp.MustCompile(`cleanupPeriodDays["` + "`" + `]*\s*[:=]?\s*["` + "`" + `]*0\b`)
	texts := map[string]string{}
	for _, pattern := range []string{"../../*.md", "../../docs/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file] = string(data)
		}
	}
	for _, cmd := range newRoot(&app{}).Commands() {
		texts[cmd.Name()+" --help"] = cmd.Long + cmd.UsageString()
	}
	for name, text := range texts {
		if found := zero.FindString(text); found != "" {
			t.Errorf("%s says %q", name, found)
		}
	}
	if !zero.MatchString("set `\"cleanupPeriodDays\": 0` and") || zero.MatchString(`"cleanupPeriodDays": 36500`) {
		t.Error("the pattern does not find what it is for")
	}
}
