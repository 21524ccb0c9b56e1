package hooktest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/hooklib"
)

// Stdin says how a hook gets its event. The zero value is what breaks most
// hooks that wait for the end.
type Stdin int

// The ways in which an event arrives, or does not.
const (
	Open      Stdin = iota // the whole event; the other end is never closed
	Closed                 // the whole event, then the end
	Pieces                 // the whole event, a few bytes at a time; never closed
	Late                   // nothing for 200 ms, then the whole event; never closed
	Truncated              // half of the event, then the end
	Stalled                // half of the event; never closed
	Empty                  // the end at once
	Silent                 // nothing at all; never closed
)

// String names the way.
func (s Stdin) String() string {
	names := []string{"open", "closed", "pieces", "late", "truncated", "stalled", "empty", "silent"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("Stdin(%d)", int(s))
	}
	return names[s]
}

// arrives tells whether the whole event comes.
func (s Stdin) arrives() bool { return s <= Late }

const (
	lateness = 200 * time.Millisecond
	// grace is how long after the end of a hook its standard streams may be
	// open. The client waits half a second for a child that holds them
	// (observed on 2.1.332); a busy machine's test may need as long to see
	// that there is none.
	grace = time.Second
	// maxOutput bounds what is kept of a stream.
	maxOutput = 4 << 20
)

// markerName is a variable by which what a hook has started is found.
const markerName = "HOOKTEST_RUN"

// Program is a hook that is a program, and how it is run.
type Program struct {
	Path string
	Args []string
	Env  []string // added to [Session.Env]

	Stdin       Stdin
	CloseStdout bool // the readers of standard output and error have gone
	Pipes       bool // for standard streams, in place of the sockets that the client uses (observed on 2.1.332); always so on Windows

	// Timeout is the timeout that the hook is wired with; 0 for none. The
	// program is ended when its time is up; see [hooklib.Budget].
	Timeout time.Duration
}

// Result is what came of a run.
type Result struct {
	Payload        []byte
	Stdout, Stderr []byte
	ExitCode       int // -1 if a signal ended it
	Took           time.Duration
	Budget         time.Duration
	TimedOut       bool // its time was up, and SIGTERM was sent
	Killed         bool // it took SIGKILL to end it
	Held           bool // something held its standard streams after its end

	arrived bool // the whole event came
	closed  bool // nobody read what it printed
	marker  string
}

// Build builds the program of a package, a folder or an import path as the go
// command takes it, and returns its path.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hook")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	return path
}

// Run runs a program with an event, as the client does, and waits for its end
// or brings it about. What it leaves running goes on until the test ends; see
// [Result.Survivors].
func (s *Session) Run(t testing.TB, p Program, payload []byte) *Result {
	t.Helper()
	name := ""
	if e, err := hooklib.ParseEvent(payload); err == nil {
		name = e.Base().Name
	}
	r := &Result{
		Payload: payload, ExitCode: -1, marker: markerName + "=" + newID(),
		arrived: p.Stdin.arrives(), closed: p.CloseStdout,
	}
	env := append(append(s.Env(name), p.Env...), r.marker)
	r.Budget = hooklib.Budget(name, p.Timeout, hooklib.ReadEnv(lookup(env)))

	var ours, theirs [3]*os.File
	defer func() {
		for _, f := range append(ours[:], theirs[:]...) {
			if f != nil {
				f.Close() // the second time an error, which is as well
			}
		}
	}()
	for i := range ours {
		var err error
		if ours[i], theirs[i], err = stream(i > 0, p.Pipes); err != nil {
			t.Fatalf("standard streams: %v", err)
		}
	}
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Dir, cmd.Env = s.Project, env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	cmd.SysProcAttr = ownSession()
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the hook: %v", err)
	}
	// The process itself has ended when Run returns, and its id may be that of
	// another one by then: only the marker tells what is ours.
	t.Cleanup(func() { endMarked(r.marker) })
	for _, f := range theirs {
		f.Close()
	}
	if p.CloseStdout {
		ours[1].Close()
		ours[2].Close()
	}

	var work sync.WaitGroup
	stop := make(chan struct{})
	work.Go(func() { feed(ours[0], p.Stdin, payload, stop) })
	ended := make([]chan struct{}, 2)
	outputs := []*[]byte{&r.Stdout, &r.Stderr}
	for i := range ended {
		ended[i] = make(chan struct{})
		work.Go(func() {
			*outputs[i] = drain(ours[i+1])
			close(ended[i])
		})
	}
	exited := make(chan error, 1)
	work.Go(func() { exited <- cmd.Wait() })

	err := r.await(cmd.Process.Pid, exited)
	r.Took = time.Since(start)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Errorf("wait for the hook: %v", err)
	}
	r.ExitCode = cmd.ProcessState.ExitCode()
	patience := time.NewTimer(grace)
	defer patience.Stop()
	for _, c := range ended {
		select {
		case <-c:
		case <-patience.C:
			r.Held = true
			patience.Reset(0)
		}
	}
	close(stop)
	for _, f := range ours {
		f.Close()
	}
	work.Wait()
	return r
}

// await waits for the end of the process, and brings it about when its time is
// up.
func (r *Result) await(pid int, exited <-chan error) error {
	budget := time.NewTimer(r.Budget)
	defer budget.Stop()
	select {
	case err := <-exited:
		return err
	case <-budget.C:
	}
	r.TimedOut = true
	endTree(pid, false)
	kill := time.NewTimer(hooklib.KillDelay)
	defer kill.Stop()
	select {
	case err := <-exited:
		return err
	case <-kill.C:
	}
	r.Killed = true
	endTree(pid, true)
	return <-exited
}

// feed gives the event to the hook. A hook may end without reading it.
func feed(w *os.File, how Stdin, payload []byte, stop <-chan struct{}) {
	wait := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-stop:
		}
	}
	pieces := [][]byte{payload}
	switch how {
	case Truncated, Stalled:
		pieces[0] = payload[:len(payload)/2]
	case Empty, Silent:
		pieces = nil
	case Late:
		wait(lateness)
	case Pieces:
		pieces = nil
		for size := max(1, len(payload)/16); len(payload) > 0; payload = payload[min(size, len(payload)):] {
			pieces = append(pieces, payload[:min(size, len(payload))])
		}
	}
	for _, piece := range pieces {
		if _, err := w.Write(piece); err != nil {
			break
		}
		if how == Pieces {
			wait(time.Millisecond)
		}
	}
	switch how {
	case Closed, Truncated, Empty:
		w.Close()
	}
}

// drain reads to the end, and keeps the beginning.
func drain(r io.Reader) []byte {
	var kept bytes.Buffer
	// Its errors are those of an end that came early: a reader that was
	// closed, or a socket whose other end left something unread.
	if _, err := io.Copy(&kept, io.LimitReader(r, maxOutput)); err == nil {
		_, _ = io.Copy(io.Discard, r)
	}
	return kept.Bytes()
}

// Call runs a hook within the test: its event is there at once, and the
// environment is the session's. What only a process shows, [Session.Run] does.
func (s *Session) Call(t testing.TB, hook hooklib.Hook, payload []byte) *Result {
	t.Helper()
	name := ""
	if e, err := hooklib.ParseEvent(payload); err == nil {
		name = e.Base().Name
	}
	env := s.Env(name)
	if hook.Getenv == nil {
		hook.Getenv = lookup(env)
	}
	var stdout, stderr bytes.Buffer
	start := time.Now()
	code := hooklib.Run(hook, nil, bytes.NewReader(payload), &stdout, &stderr)
	return &Result{
		Payload: payload, Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), ExitCode: code, Took: time.Since(start),
		Budget: hooklib.Budget(name, hook.Timeout, hooklib.ReadEnv(hook.Getenv)), arrived: true,
	}
}

// Survivors returns the processes that the hook has started and that still
// run: those that had left its process tree in time, as a worker does that is
// to outlive it. They are found on Linux and macOS.
func (r *Result) Survivors() []int {
	if r.marker == "" {
		return nil
	}
	return marked(r.marker)
}

// Check fails the test for whatever the client would not have been content
// with: an exit code other than 0 and 1, above all 2; an end that had to be
// brought about; standard streams that something held on to; output that the
// client would reject, ignore or misunderstand, or for no event; a secret of
// the environment in any output.
func (r *Result) Check(t testing.TB) {
	t.Helper()
	for _, problem := range r.problems() {
		t.Errorf("%s\nstandard output: %s\nstandard error: %s", problem, short(r.Stdout), short(r.Stderr))
	}
}

func (r *Result) problems() (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	switch {
	case r.TimedOut:
		add("the hook took longer than the client lets it: %v", r.Budget)
	case r.Took > r.Budget:
		add("the hook took %v, longer than the client lets it: %v", r.Took, r.Budget)
	case r.ExitCode == 2:
		add("the hook exited 2, which blocks what the client was about to do")
	case r.ExitCode != 0 && r.ExitCode != 1:
		add("the hook ended with code %d", r.ExitCode)
	}
	if r.Held {
		add("something holds the hook's standard streams after its end, for which the client waits")
	}
	switch text := bytes.TrimSpace(r.Stdout); {
	case r.closed || len(text) == 0 && (!r.arrived || r.ExitCode != 0):
	case !r.arrived:
		add("the hook printed something without an event")
	case r.ExitCode != 0:
		add("the hook printed something and failed")
	default:
		if err := CheckOutput(r.Payload, r.Stdout); err != nil {
			add("output: %v", err)
		}
	}
	for _, secret := range []string{apiKey, messagingToken} {
		if bytes.Contains(r.Stdout, []byte(secret)) || bytes.Contains(r.Stderr, []byte(secret)) {
			add("the hook printed a secret of its environment")
		}
	}
	return all
}

// Torture runs a program with an event in each way in which one can arrive or
// fail to, with and without anybody to read what it prints, and once with each
// kind of bad input, and checks each run. The program's own Stdin and
// CloseStdout do not count.
func (s *Session) Torture(t *testing.T, p Program, payload []byte) {
	t.Helper()
	for how := Open; how <= Silent; how++ {
		t.Run("stdin "+how.String(), func(t *testing.T) {
			p := p
			p.Stdin, p.CloseStdout = how, false
			s.Run(t, p, payload).Check(t)
		})
	}
	t.Run("stdout closed", func(t *testing.T) {
		p := p
		p.Stdin, p.CloseStdout = Open, true
		s.Run(t, p, payload).Check(t)
	})
	for name, input := range map[string]string{
		"no JSON": "hello\n", "an array": "[1]\n", "null": "null\n", "no event": "{}\n", "broken JSON": `{"session_id":]}` + "\n",
		"an unknown event": `{"session_id":"` + s.ID + `","hook_event_name":"Brewed"}` + "\n",
		"wrong types":      `{"session_id":7,"transcript_path":["/"],"cwd":{},"hook_event_name":true}` + "\n",
		"hostile values":   `{"session_id":"../../etc/passwd","transcript_path":"/dev/zero","cwd":"\u0000","hook_event_name":"SessionEnd","reason":"` + strings.Repeat("x", 300) + `"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			p := p
			p.Stdin, p.CloseStdout = Open, false
			s.Run(t, p, []byte(input)).Check(t)
		})
	}
}
