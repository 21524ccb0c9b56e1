//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/archive/spool"
)

// The phases of an archive's making, in each of which it is killed many times.
const (
	beforePin = "before the pin"
	pinToJob  = "pin to job"
	afterJob  = "job to worker"
	segments  = "segments"
	manifest  = "manifest"
	afterAll  = "after"
)

var phases = []string{beforePin, pinToJob, afterJob, segments, manifest, afterAll}

// killsPerPhase and killsInAll are how many moments must have been tried.
const (
	killsPerPhase = 20
	killsInAll    = 200
)

// pair is a hook's program and the worker's.
type pair struct{ hook, worker string }

// ordinaryPair gives the programs as they are installed.
func ordinaryPair(t *testing.T) pair {
	t.Helper()
	dir := programs(t)
	return pair{filepath.Join(dir, "session-end-archive"), filepath.Join(dir, "session-keeper-worker")}
}

// buildKillable builds a hook and a worker that can kill themselves before and
// after each of their operations that change the disk; the default build
// cannot. Beside that hook lies an ordinary worker: one of them dies at a time.
var buildKillable = sync.OnceValues(func() (pair, error) {
	killable := pair{filepath.Join(scratch, "killable hook", "session-end-archive"), filepath.Join(scratch, "killable worker", "session-keeper-worker")}
	for _, build := range [][]string{
		{"-tags", "killpoints", "-o", killable.hook, "../cmd/session-end-archive"},
		{"-o", filepath.Join(filepath.Dir(killable.hook), "session-keeper-worker"), "../cmd/session-keeper-worker"},
		{"-tags", "killpoints", "-o", killable.worker, "../cmd/session-keeper-worker"},
	} {
		if out, err := exec.Command("go", append([]string{"build"}, build...)...).CombinedOutput(); err != nil {
			return killable, fmt.Errorf("build %q: %w\n%s", build, err, out)
		}
	}
	return killable, nil
})

// A victim is one user whose hook or worker is killed.
type victim struct {
	t       *testing.T
	name    string // of the case, for messages
	home    string
	session string
	want    []byte            // the transcript as it is when the hook starts
	side    map[string]string // side files by their path below the session's folder
	pid     int               // of the program that ran last
}

// newVictim makes a home with one session of about size bytes.
func newVictim(t *testing.T, home, name, inline string, size int, withSide bool) *victim {
	v := &victim{t: t, name: name, home: home, session: "0badcafe-0000-4000-8000-000000000001"}
	v.write(filepath.Join(home, ".config", "session-keeper", "config.toml"), []byte("[archive]\ninline = \""+inline+"\"\n"))
	var b bytes.Buffer
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `{"type":"user","uuid":"%08x","message":{"role":"user","content":"line %d of a session"}}`+"\n", i, i)
	}
	v.want = b.Bytes()
	v.write(v.transcript(), v.want)
	if withSide {
		v.side = map[string]string{"subagents/agent-1.jsonl": "an agent's\n", "tool-results/t1.txt": strings.Repeat("result\n", 1000)}
		for name, content := range v.side {
			v.write(filepath.Join(v.sideDir(), name), []byte(content))
		}
	}
	return v
}

func (v *victim) sideDir() string {
	return filepath.Join(v.home, ".claude", "projects", "-src-p", v.session)
}
func (v *victim) transcript() string { return v.sideDir() + ".jsonl" }
func (v *victim) store() string      { return filepath.Join(v.home, ".local", "share", "session-keeper") }
func (v *victim) spool() string {
	return filepath.Join(v.home, ".local", "state", "session-keeper", "spool")
}

func (v *victim) errorf(format string, args ...any) {
	v.t.Helper()
	v.t.Errorf(v.name+": "+format, args...)
}

func (v *victim) write(path string, data []byte) {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		v.errorf("%v", err)
	}
}

// grow appends to the transcript, as the next prompt of the session does.
func (v *victim) grow() {
	const more = `{"type":"user","uuid":"more","message":{"role":"user","content":"one more"}}` + "\n"
	v.want = append(slices.Clone(v.want), more...)
	f, err := os.OpenFile(v.transcript(), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString(more)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		v.errorf("%v", err)
	}
	if data, err := os.ReadFile(v.transcript()); err != nil || !bytes.Equal(data, v.want) {
		v.errorf("the transcript did not grow as it should: %v", err)
	}
}

// command prepares the hook, or with a worker's arguments the worker, in this
// home and an otherwise empty environment.
func (v *victim) command(program string, env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Env = append([]string{"HOME=" + v.home, "PATH=" + os.Getenv("PATH"), "CLAUDE_CODE_SESSION_ID=" + v.session}, env...)
	cmd.Dir = v.home
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if len(args) == 0 {
		event, err := json.Marshal(map[string]string{"session_id": v.session, "transcript_path": v.transcript(),
			"cwd": v.home, "hook_event_name": "SessionEnd", "reason": "other"})
		if err != nil {
			v.errorf("%v", err)
		}
		cmd.Stdin = bytes.NewReader(event)
	}
	return cmd
}

// run runs a program to its end and tells whether it was killed. Any other
// failure is the test's.
func (v *victim) run(program string, env []string, args ...string) (killed bool) {
	v.t.Helper()
	cmd := v.command(program, env, args...)
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		v.pid = cmd.Process.Pid
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil || len(out) > 0 {
		v.errorf("%s %q: %v\n%s", filepath.Base(program), args, err, out)
	}
	return false
}

// pinned tells whether the session's bytes have a second name in the spool.
func (v *victim) pinned() bool {
	for _, sub := range []string{"pins", "settling"} {
		entries, err := os.ReadDir(filepath.Join(v.spool(), sub))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			v.errorf("%v", err)
		}
		for _, e := range entries {
			if strings.Contains(e.Name(), v.session) {
				return true
			}
		}
	}
	return false
}

// generations reads every generation's transcript, the oldest first, and the
// side files of the latest one.
func (v *victim) generations() (transcripts [][]byte, side map[string]string) {
	store, err := archive.Open(v.store())
	if errors.Is(err, archive.ErrNotStore) {
		return nil, nil
	}
	if err != nil {
		v.errorf("%v", err)
		return nil, nil
	}
	history, err := store.History(v.t.Context(), v.session)
	if errors.Is(err, archive.ErrNoSession) {
		return nil, nil
	}
	if err != nil || len(history.Problems) > 0 {
		v.errorf("history: %v, %v", err, history)
		return nil, nil
	}
	for _, g := range history.Generations {
		side = map[string]string{}
		for _, f := range g.Files {
			r, err := store.OpenFile(g, f)
			if err != nil {
				v.errorf("%v", err)
				continue
			}
			data, err := io.ReadAll(r)
			if err := errors.Join(err, r.Close()); err != nil {
				v.errorf("%v", err)
			}
			if f.Family == archive.Transcript {
				transcripts = append(transcripts, data)
			} else {
				side[f.Path] = string(data)
			}
		}
	}
	return transcripts, side
}

// delete removes the session from the client's folder, as its clean-up does.
func (v *victim) delete() {
	if err := errors.Join(os.Remove(v.transcript()), os.RemoveAll(v.sideDir())); err != nil {
		v.errorf("%v", err)
	}
}

// check looks for the bytes that were there when the hook started, for damage,
// and for anything left to do.
func (v *victim) check(want []byte) {
	v.t.Helper()
	transcripts, side := v.generations()
	if !slices.ContainsFunc(transcripts, func(t []byte) bool { return bytes.Equal(t, want) }) {
		var lengths []int
		for _, t := range transcripts {
			lengths = append(lengths, len(t))
		}
		v.errorf("LOST: %d bytes were there when the hook started; the archive has generations of %d", len(want), lengths)
	}
	if _, err := os.Lstat(v.sideDir()); err == nil {
		for name, content := range v.side {
			if side[name] != content {
				v.errorf("side file %s is not in the archive", name)
			}
		}
	}
	store, err := archive.Open(v.store())
	if err != nil {
		v.errorf("%v", err)
		return
	}
	report, err := store.Verify(v.t.Context(), archive.VerifyOptions{})
	if err != nil || len(report.Problems) > 0 || report.Sessions < 1 {
		v.errorf("verify: %v, %+v", err, report)
	}
	summary, err := spool.Status(v.spool())
	if err != nil || len(summary.Waiting)+len(summary.Aside)+len(summary.Errors) > 0 {
		v.errorf("left in the spool: %v, %+v", err, summary)
	}
}

// finish is what happens after the death: maybe the client deletes the
// session; then the next event of the same session, or the next worker, or an
// event of another session comes by. All bytes that the dead one saw at its
// start are in the archive then.
func (v *victim) finish(ordinary pair, next int, deleted bool) {
	v.t.Helper()
	want := v.want
	found := v.pinned()
	if !found {
		transcripts, _ := v.generations()
		found = slices.ContainsFunc(transcripts, func(t []byte) bool { return bytes.Equal(t, want) })
	}
	switch {
	case found && deleted:
		v.delete()
		v.nextWorker(ordinary, next)
	case found && next%3 == 2:
		v.nextWorker(ordinary, next)
	case next%2 == 0:
		// The session goes on: what there was at the start may be in the
		// archive as the beginning of what there is now.
		before, _ := v.generations()
		v.grow()
		v.run(ordinary.hook, nil)
		v.idle(ordinary)
		if !slices.ContainsFunc(before, func(t []byte) bool { return bytes.Equal(t, want) }) {
			want = v.want
		}
	default:
		v.run(ordinary.hook, nil)
		v.idle(ordinary)
	}
	v.check(want)
}

// nextWorker is the worker of the next event anywhere.
func (v *victim) nextWorker(ordinary pair, next int) {
	if next%2 == 0 {
		other := *v
		other.session = "0badcafe-0000-4000-8000-00000000000" + strconv.Itoa(2+next%7)
		other.write(other.transcript(), []byte(`{"type":"user","uuid":"x"}`+"\n"))
		other.run(ordinary.hook, nil)
	} else {
		v.run(ordinary.worker, nil, v.spool())
	}
	v.idle(ordinary)
}

// idle waits until nothing is left to do, with a worker of its own where none
// is at it.
func (v *victim) idle(ordinary pair) {
	v.t.Helper()
	deadline := time.Now().Add(archiveTimeout)
	for {
		summary, err := spool.Status(v.spool())
		if err == nil && !summary.Busy && len(summary.Waiting) == 0 {
			return
		}
		if err != nil || time.Now().After(deadline) {
			v.errorf("the spool is never empty: %v, %+v", err, summary)
			return
		}
		if !summary.Busy {
			v.run(ordinary.worker, nil, v.spool())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// A killStep is a line of what a build with kill points tells.
type killStep struct {
	number         int
	side, op, path string
}

// readTrace reads the steps of the program that ran last. A worker that it
// started wrote its own between them.
func (v *victim) readTrace(path string) []killStep {
	data, err := os.ReadFile(path)
	if err != nil {
		v.errorf("%v", err)
	}
	var steps []killStep
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 5 {
			v.errorf("trace line %q", line)
			continue
		}
		pid, pidErr := strconv.Atoi(f[0])
		n, err := strconv.Atoi(f[1])
		if err := errors.Join(pidErr, err); err != nil {
			v.errorf("trace line %q: %v", line, err)
			continue
		}
		if pid == v.pid {
			steps = append(steps, killStep{n, f[2], f[3], f[4]})
		}
	}
	return steps
}

// A plan says what a run that nobody kills does. In the worker the manifest is
// counted from the operation that takes the store's lock: from there on all
// runs of a kind do the same.
type plan struct {
	last            int // number of the last operation
	job             int // of the job's rename, in a hook
	lock            int // of the taking of the store's lock, in a worker
	first, recorded int // of the manifest, from the store's lock
}

func hookPlan(v *victim, steps []killStep) plan {
	var p plan
	for _, s := range steps {
		p.last = max(p.last, s.number)
		if s.side == "after" && v.isJob(s) {
			p.job = s.number
		}
	}
	if p.job == 0 {
		v.errorf("no job was written:\n%v", steps)
	}
	return p
}

func workerPlan(v *victim, steps []killStep) plan {
	var p plan
	create := 0
	for _, s := range steps {
		p.last = max(p.last, s.number)
		if s.side == "before" {
			if s.op == "create" {
				create = s.number
			}
			continue
		}
		switch {
		case v.isStoreLock(s):
			p.lock = s.number
		case s.op == "rename" && filepath.Dir(s.path) == filepath.Join(v.store(), "sessions", v.session):
			p.first = create - p.lock
		case s.op == "syncdir" && s.path == filepath.Join(v.store(), "sessions", v.session) && p.first > 0 && p.recorded == 0:
			p.recorded = s.number - p.lock
		}
	}
	if p.lock == 0 || p.first == 0 || p.recorded == 0 {
		v.errorf("no manifest was written:\n%v", steps)
	}
	return p
}

func (v *victim) isPin(s killStep) bool {
	return s.op == "link" && filepath.Dir(s.path) == filepath.Join(v.spool(), "pins")
}

func (v *victim) isJob(s killStep) bool {
	return s.op == "rename" && filepath.Dir(s.path) == filepath.Join(v.spool(), "jobs")
}

func (v *victim) isStoreLock(s killStep) bool {
	return s.op == "lock" && s.path == filepath.Join(v.store(), "locks", "store")
}

// phase tells in which phase a process died, whose steps are given up to that
// moment. A worker begins where the hook has ended.
func (v *victim) phase(p plan, steps []killStep, worker bool) string {
	pinned, handedOff, lock := worker, worker, 0
	for _, s := range steps {
		if s.side == "after" {
			pinned = pinned || v.isPin(s)
			handedOff = handedOff || v.isJob(s)
			if v.isStoreLock(s) {
				lock = s.number
			}
		}
	}
	last := steps[len(steps)-1]
	at := last.number - lock
	switch {
	case !pinned:
		return beforePin
	case !handedOff:
		return pinToJob
	case !worker:
		return afterJob
	case lock == 0 || at < p.first:
		return segments
	case at < p.recorded || at == p.recorded && last.side == "before":
		return manifest
	}
	return afterAll
}

// killTrace names the file that a build with kill points writes its steps to.
const killTrace = "SESSION_KEEPER_KILL_TRACE="

func killEnv(number int, after bool) []string {
	side := "before"
	if after {
		side = "after"
	}
	return []string{"SESSION_KEEPER_KILL_AT=" + strconv.Itoa(number), "SESSION_KEEPER_KILL_SIDE=" + side}
}

// quickDir is a folder in memory where there is such a place: a killed process
// leaves there what it would leave on a disk, and these tests do not cut power.
func quickDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "session-keeper-e2e-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// SE-04, SE-10, SE-13: session-end-archive and its worker are killed before and
// after each thing they do to the disk. Whatever the moment, the archive stays
// clean, the next run is not held up, and if there was a pin (or more) nothing
// is lost, although the client deletes the session at once.
func TestKilledAtEachOperation(t *testing.T) {
	ordinary := ordinaryPair(t)
	killable, err := buildKillable()
	if err != nil {
		t.Fatal(err)
	}
	root := quickDir(t)
	histogram := map[string]int{}
	deleted := map[string]int{}
	var mu sync.Mutex
	all := 0
	for _, kind := range []struct {
		name    string
		size    int
		side    bool
		resumed bool // the archive holds an earlier generation
		worker  bool // the hook died with its job written; the worker is killed
	}{
		{name: "first session ever", size: 2 << 10},
		{name: "first session with side files", size: 100 << 10, side: true},
		{name: "resumed session with side files", size: 200 << 10, side: true, resumed: true},
		{name: "worker, first session ever", size: 2 << 10, worker: true},
		{name: "worker, first session with side files", size: 100 << 10, side: true, worker: true},
		{name: "worker, two segments", size: 9 << 20, worker: true},
		{name: "worker, resumed session", size: 200 << 10, resumed: true, worker: true},
		{name: "worker, resumed session with side files", size: 200 << 10, side: true, resumed: true, worker: true},
	} {
		prepare := func(name string) *victim {
			// A hook that waits for its worker leaves nothing running.
			inline := "always"
			if kind.worker {
				inline = "never"
			}
			v := newVictim(t, filepath.Join(root, name), kind.name+", "+name, inline, kind.size, kind.side)
			if kind.resumed {
				v.run(ordinary.hook, nil)
				v.idle(ordinary)
				v.grow()
			}
			return v
		}
		// Runs that nobody kills tell when the hook's job is written, and what
		// the worker does.
		trace := filepath.Join(root, "trace")
		v := prepare("hook")
		if v.run(killable.hook, []string{killTrace + trace}) {
			t.Fatalf("%s: killed without being asked", kind.name)
		}
		p := hookPlan(v, v.readTrace(trace))
		v.idle(ordinary)
		jobWritten := killEnv(p.job, true)
		die := func(v *victim, env []string) (killed bool) {
			if !kind.worker {
				return v.run(killable.hook, env)
			}
			if !v.run(killable.hook, jobWritten) {
				v.errorf("the hook was not killed")
			}
			return v.run(killable.worker, env, v.spool())
		}
		if kind.worker {
			if err := os.Remove(trace); err != nil {
				t.Fatal(err)
			}
			v = prepare("worker")
			if die(v, []string{killTrace + trace}) {
				t.Fatalf("%s: killed without being asked", kind.name)
			}
			p = workerPlan(v, v.readTrace(trace))
		}
		if err := os.Remove(trace); err != nil || t.Failed() {
			t.Fatal(err)
		}

		var wg sync.WaitGroup
		slots := make(chan struct{}, 4)
		for i := range 2 * p.last {
			// That phase is long; a third of it is many times enough.
			if number := i/2 + 1; kind.worker && number < p.lock+p.first && i%3 != 0 {
				continue
			}
			wg.Add(1)
			slots <- struct{}{}
			go func() {
				defer func() { <-slots; wg.Done() }()
				number, after := i/2+1, i%2 == 1
				v := prepare(fmt.Sprintf("%d-%v", number, after))
				trace := v.home + ".trace"
				killed := die(v, append(killEnv(number, after), killTrace+trace))
				steps := v.readTrace(trace)
				if killed {
					phase := v.phase(p, steps, kind.worker)
					remove := i%4 < 2
					mu.Lock()
					all++
					histogram[phase]++
					if remove && v.pinned() {
						deleted[phase]++
					}
					mu.Unlock()
					v.finish(ordinary, i/4, remove)
				} else {
					// An operation that failed has no other side, and there may be
					// fewer than in the plan.
					for _, s := range steps {
						if s.number == number && (s.side == "after") == after {
							v.errorf("was not killed")
						}
					}
					v.idle(ordinary)
					v.check(v.want)
				}
				v.killWorkers() // one that comes too late must not find its home gone
				if err := errors.Join(os.RemoveAll(v.home), os.Remove(trace)); err != nil {
					t.Error(err)
				}
			}()
		}
		wg.Wait()
		for _, name := range []string{"hook", "worker"} {
			if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
				t.Error(err)
			}
		}
	}
	for _, phase := range phases {
		t.Logf("%-15s killed %3d times; the pinned session deleted at once: %d", phase, histogram[phase], deleted[phase])
		if histogram[phase] < killsPerPhase {
			t.Errorf("killed only %d times %s", histogram[phase], phase)
		}
	}
	t.Logf("%-15s killed %3d times", "in all", all)
	if all < killsInAll {
		t.Errorf("killed only %d times in all", all)
	}
}

// SE-04, SE-10, SE-13: the ordinary programs are killed from outside, as the
// client does it: the hook with its whole process group, at a moment that
// nobody chose, and often the worker too.
func TestKilledFromOutside(t *testing.T) {
	const rounds = 42
	ordinary := ordinaryPair(t)
	root := t.TempDir() // a disk, where things take their time
	random := rand.New(rand.NewPCG(1, 2))
	// How long the whole takes on this machine now, so that deaths spread over it.
	took := map[string]time.Duration{}
	kind := func(i int) (inline string, size int) {
		return []string{"always", "never"}[i%2], []int{2 << 10, 500 << 10, 6 << 20}[i%3]
	}
	for i := range 6 {
		inline, size := kind(i)
		v := newVictim(t, filepath.Join(root, "timed", strconv.Itoa(i)), "timed", inline, size, true)
		start := time.Now()
		v.run(ordinary.hook, nil)
		v.idle(ordinary)
		took[fmt.Sprint(inline, size)] = time.Since(start)
		v.check(v.want)
	}
	var hooks, workers, ended, deletedAll atomic.Int64
	var wg sync.WaitGroup
	slots := make(chan struct{}, 3)
	for i := range rounds {
		inline, size := kind(i)
		whole := took[fmt.Sprint(inline, size)]
		hookDies := time.Duration(random.Int64N(int64(whole)))
		workerDies := time.Duration(random.Int64N(int64(whole)))
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; wg.Done() }()
			v := newVictim(t, filepath.Join(root, strconv.Itoa(i)), fmt.Sprintf("round %d, %s, %d bytes", i, inline, size), inline, size, true)
			cmd := v.command(ordinary.hook, nil)
			if err := cmd.Start(); err != nil {
				v.errorf("%v", err)
				return
			}
			time.Sleep(hookDies)
			if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				v.errorf("%v", err)
			}
			if err := cmd.Wait(); err != nil {
				hooks.Add(1)
			} else {
				ended.Add(1)
			}
			time.Sleep(workerDies)
			workers.Add(int64(v.killWorkers()))
			remove := i%2 == 0 && v.pinned()
			if remove {
				deletedAll.Add(1)
			}
			v.finish(ordinary, i, remove)
			v.killWorkers()
			if err := os.RemoveAll(v.home); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	t.Logf("%d hooks were killed and %d had ended, %d workers were killed; the pinned session deleted at once: %d",
		hooks.Load(), ended.Load(), workers.Load(), deletedAll.Load())
	if hooks.Load()+ended.Load() != rounds {
		t.Error("not all rounds were run")
	}
}

// killWorkers kills the workers of this home, where the system tells who they
// are, and says how many those were.
func (v *victim) killWorkers() int {
	killed := 0
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		v.errorf("%v", err)
	}
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(line, []byte("session-keeper-worker\x00"+v.spool()+"\x00")) {
			continue // gone, or another's
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err == nil {
			killed++
		}
	}
	return killed
}
