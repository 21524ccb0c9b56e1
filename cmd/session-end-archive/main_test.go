//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/archive/spool"
)

// programs is where the program lies that the scripts run: the real one, as a
// user has it, not this test.
var programs string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	flag.Parse()
	dir, err := os.MkdirTemp("", "session-end-archive-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs = dir
	build := exec.Command("go", "build", "-trimpath", "-o", dir+string(filepath.Separator), ".", "../pre-compact-snapshot", "../session-keeper-worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build %s: %v\n%s", name, err, out)
		return 1
	}
	return m.Run()
}

// longWait bounds waits for what takes milliseconds, on a machine that is busy.
const longWait = 60 * time.Second

// TestScripts runs the scripts in testdata/scripts/hook. Each has a home of
// its own, $HOME, and nothing of the real environment but PATH. In events,
// $WORK stands for the script's folder. Beside testscript's own commands there
// are
//
//	hook [FLAG...] CODE EVENT [ARG...]  run the hook with a file as its event, or
//	                                    "none" for none, and want this exit code
//	                                    (or "any", also death by a signal); its
//	                                    streams go to hook.stdout, hook.stderr
//	  -open            keep standard input open
//	  -closed          have stdout and stderr closed before it writes
//	  -signal SIG -after D   send a signal so long after the start
//	  -late            give it the event only after that
//	  -umask MODE      run it with this umask
//	  -times N         run it so many times at once
//	  -within D        want it to take no longer
//	  -program NAME    run another hook than session-end-archive
//	settle             wait until the workers are done and the spools are empty
//	archived ID FILE [FAMILY PATH]  want these bytes in the latest generation
//	generations ID N   want so many generations; 0: want no word of the session
//	log PATTERN        (or ! log) want the log to match, as grep does
//	fifo FILE          make a named pipe
//	private DIR...     want no file in there to be open to others
//	repeat N TEXT FILE append a text so many times
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata", "scripts", "hook"),
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("STATE", filepath.Join(home, ".local", "state", "session-keeper"))
			env.Setenv("STORE", filepath.Join(home, ".local", "share", "session-keeper"))
			env.Setenv("PROJECTS", filepath.Join(home, ".claude", "projects"))
			env.Setenv("PATH", programs+string(filepath.ListSeparator)+os.Getenv("PATH"))
			env.Setenv("CLAUDE_PROJECT_DIR", filepath.Join(env.WorkDir, "proj"))
			events, err := filepath.Abs(filepath.Join("..", "..", "testdata", "events"))
			if err != nil {
				return err
			}
			env.Setenv("EVENTS", events)
			for _, dir := range []string{home, filepath.Join(env.WorkDir, "proj")} {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"hook":        scriptHook,
			"settle":      scriptSettle,
			"archived":    scriptArchived,
			"generations": scriptGenerations,
			"log":         scriptLog,
			"fifo":        scriptFifo,
			"private":     scriptPrivate,
			"repeat":      scriptRepeat,
		},
	})
}

func scriptHook(ts *testscript.TestScript, neg bool, args []string) {
	flags := flag.NewFlagSet("hook", flag.ContinueOnError)
	open := flags.Bool("open", false, "")
	closed := flags.Bool("closed", false, "")
	sig := flags.String("signal", "", "")
	after := flags.Duration("after", 0, "")
	late := flags.Bool("late", false, "")
	umask := flags.String("umask", "", "")
	times := flags.Int("times", 1, "")
	within := flags.Duration("within", longWait, "")
	program := flags.String("program", name, "")
	if err := flags.Parse(args); err != nil || neg || flags.NArg() < 2 {
		ts.Fatalf("usage: hook [FLAG...] CODE EVENT [ARG...]")
	}
	want, err := strconv.Atoi(flags.Arg(0))
	if flags.Arg(0) != "any" {
		ts.Check(err)
	}
	event := ""
	if flags.Arg(1) != "none" {
		event = strings.ReplaceAll(ts.ReadFile(flags.Arg(1)), "$WORK", ts.Getenv("WORK"))
	}
	signals := map[string]syscall.Signal{"": 0, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL}
	run := hookRun{program: *program, event: event, args: flags.Args()[2:], open: *open, closed: *closed, signal: signals[*sig], after: *after, late: *late, umask: *umask,
		dir: ts.MkAbs("."), env: scriptEnv(ts)}

	var wg sync.WaitGroup
	results := make([]hookResult, *times)
	for i := range results {
		wg.Go(func() { results[i] = run.do() })
	}
	wg.Wait()
	var stdout, stderr bytes.Buffer
	for _, r := range results {
		stdout.Write(r.stdout)
		stderr.Write(r.stderr)
		if r.err != nil {
			ts.Fatalf("run the hook: %v", r.err)
		}
		if r.code != want && flags.Arg(0) != "any" || r.code == 2 {
			ts.Fatalf("exit code %d, want %d\nstdout: %s\nstderr: %s", r.code, want, r.stdout, r.stderr)
		}
		if r.took > *within {
			ts.Fatalf("took %v, want at most %v", r.took, *within)
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs("hook.stdout"), stdout.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("hook.stderr"), stderr.Bytes(), 0o600))
}

// scriptEnv returns the variables that scripts set and hooks read.
func scriptEnv(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{
		"PATH", "HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "SESSION_KEEPER", "SESSION_KEEPER_HOME",
		"LANG", "LC_ALL", "CLAUDE_CONFIG_DIR", "CLAUDE_PROJECT_DIR", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION",
		"CLAUDE_CODE_ENTRYPOINT", "ANTHROPIC_API_KEY", "GOTRACEBACK",
	} {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

type hookRun struct {
	program      string
	event        string
	args         []string
	open, closed bool
	signal       syscall.Signal
	after        time.Duration
	late         bool
	umask        string
	dir          string
	env          []string
}

type hookResult struct {
	code           int
	stdout, stderr []byte
	took           time.Duration
	err            error
}

func (r hookRun) do() (res hookResult) {
	ctx, cancel := context.WithTimeout(context.Background(), longWait)
	defer cancel()
	program, args := filepath.Join(programs, r.program), r.args
	if r.umask != "" {
		program, args = "/bin/sh", append([]string{"-c", `umask "$0"; exec "$@"`, r.umask, program}, args...)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = r.dir, r.env
	// The client's standard streams are sockets (observed on 2.1.332).
	// No hook that starts meanwhile may inherit this one's.
	syscall.ForkLock.RLock()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(pair[0])
		syscall.CloseOnExec(pair[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return hookResult{err: err}
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "stdin"), os.NewFile(uintptr(pair[1]), "stdin")
	defer ours.Close()
	cmd.Stdin = theirs
	var stdout, stderr bytes.Buffer
	if r.closed {
		out, err := closedPipe()
		if err != nil {
			return hookResult{err: err}
		}
		defer out.Close()
		cmd.Stdout, cmd.Stderr = out, out
	} else {
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
	}
	start := time.Now()
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return hookResult{err: err}
	}
	give := func() error {
		if _, err := io.WriteString(ours, r.event); err != nil && !errors.Is(err, syscall.EPIPE) {
			return err
		}
		if r.open {
			return nil
		}
		return ours.Close()
	}
	if !r.late {
		res.err = give()
	}
	if r.signal != 0 {
		time.Sleep(r.after)
		if err := cmd.Process.Signal(r.signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			res.err = err
		}
	}
	if r.late {
		res.err = errors.Join(res.err, give())
	}
	err = cmd.Wait()
	res.took = time.Since(start)
	res.stdout, res.stderr = stdout.Bytes(), stderr.Bytes()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		res.code = exit.ExitCode()
	case err != nil:
		res.err = err
	}
	return res
}

// closedPipe returns the end to write to of a pipe that nobody reads.
func closedPipe() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return w, r.Close()
}

// spools returns the spools of a script.
func spools(ts *testscript.TestScript) []string {
	state := ts.Getenv("STATE")
	if dir := ts.Getenv("XDG_STATE_HOME"); dir != "" {
		state = filepath.Join(dir, "session-keeper")
	}
	dirs := []string{filepath.Join(state, "spool"), filepath.Join(ts.Getenv("HOME"), ".claude", "session-keeper-spool")}
	if dir := ts.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		dirs = append(dirs, filepath.Join(dir, "session-keeper-spool"))
	}
	return dirs
}

func scriptSettle(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: settle")
	}
	var left string
	for end := time.Now().Add(longWait); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		left = ""
		for _, dir := range spools(ts) {
			if _, err := os.Stat(dir); err != nil {
				continue
			}
			sum, err := spool.Status(dir)
			ts.Check(err)
			if sum.Busy || len(sum.Waiting) > 0 {
				left += fmt.Sprintf("%s: %+v\n", dir, sum)
			}
		}
		if left == "" {
			return
		}
	}
	ts.Fatalf("the spools did not empty:\n%s\n%s", left, readLog(ts))
}

func openStore(ts *testscript.TestScript) *archive.Store {
	root := ts.Getenv("STORE")
	if dir := ts.Getenv("SESSION_KEEPER_HOME"); dir != "" {
		root = dir
	}
	store, err := archive.Open(root)
	if errors.Is(err, archive.ErrNotStore) {
		return nil
	}
	ts.Check(err)
	return store
}

func scriptArchived(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 && len(args) != 4 {
		ts.Fatalf("usage: archived ID FILE [FAMILY PATH]")
	}
	id, family, path := args[0], "transcript", args[0]+".jsonl"
	if len(args) == 4 {
		family, path = args[2], args[3]
	}
	store := openStore(ts)
	if store == nil {
		ts.Fatalf("there is no store\n%s", readLog(ts))
	}
	generation, err := store.Latest(context.Background(), id)
	if err != nil {
		ts.Fatalf("%v\n%s", err, readLog(ts))
	}
	for _, f := range generation.Files {
		if f.Family != family || f.Path != path {
			continue
		}
		r, err := store.OpenFile(generation, f)
		ts.Check(err)
		got, err := io.ReadAll(r)
		ts.Check(err)
		ts.Check(r.Close())
		if want := ts.ReadFile(args[1]); string(got) != want {
			ts.Fatalf("%d bytes in the archive, and not the %d of %s", len(got), len(want), args[1])
		}
		return
	}
	ts.Fatalf("%s %s is not in generation %d: %+v", family, path, generation.Number, generation.Files)
}

func scriptGenerations(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: generations ID N")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	got := 0
	if store := openStore(ts); store != nil {
		history, err := store.History(context.Background(), args[0])
		switch {
		case errors.Is(err, archive.ErrNoSession):
		case err != nil:
			ts.Check(err)
		default:
			got = len(history.Generations)
			if len(history.Problems) > 0 {
				ts.Fatalf("problems: %+v", history.Problems)
			}
		}
		report, err := store.Verify(context.Background(), archive.VerifyOptions{})
		ts.Check(err)
		if len(report.Problems) > 0 {
			ts.Fatalf("verify: %+v", report.Problems)
		}
	}
	if got != want {
		ts.Fatalf("%d generations, want %d\n%s", got, want, readLog(ts))
	}
}

func readLog(ts *testscript.TestScript) string {
	state := ts.Getenv("STATE")
	if dir := ts.Getenv("XDG_STATE_HOME"); dir != "" {
		state = filepath.Join(dir, "session-keeper")
	}
	files, err := filepath.Glob(filepath.Join(state, "log", "*.jsonl"))
	ts.Check(err)
	var all strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		ts.Check(err)
		all.Write(data)
	}
	return all.String()
}

func scriptLog(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] log TEXT")
	}
	text := readLog(ts)
	if found := strings.Contains(text, args[0]); found == neg {
		ts.Fatalf("%q in the log: %v\n%s", args[0], found, text)
	}
}

func scriptFifo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fifo FILE")
	}
	ts.Check(syscall.Mkfifo(ts.MkAbs(args[0]), 0o600))
}

func scriptPrivate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: private DIR...")
	}
	for _, dir := range args {
		files := 0
		ts.Check(filepath.WalkDir(ts.MkAbs(dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			fi, err := d.Info()
			if err != nil {
				return err
			}
			if files++; fi.Mode().Perm()&0o077 != 0 {
				ts.Fatalf("%s has mode %v", path, fi.Mode())
			}
			return nil
		}))
		if files < 2 {
			ts.Fatalf("%s is empty", dir)
		}
	}
}

func scriptRepeat(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: repeat N TEXT FILE")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	f, err := os.OpenFile(ts.MkAbs(args[2]), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	ts.Check(err)
	_, err = f.WriteString(strings.Repeat(args[1]+"\n", n))
	ts.Check(err)
	ts.Check(f.Close())
}
