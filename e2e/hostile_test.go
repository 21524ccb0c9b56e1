//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/archive/spool"
)

// hostSession is the session of these tests.
const hostSession = "0badcafe-0000-4000-8000-000000000001"

// A host is a user's home in which something is wrong. Hooks run in it as the
// client runs them, by the command that install wires.
type host struct {
	t    *testing.T
	home string
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{t, t.TempDir()}
	t.Cleanup(h.end)
	return h
}

// end waits until the last worker has ended: it must not find its home gone.
func (h *host) end() {
	for _, dir := range h.spools() {
		for end := time.Now().Add(archiveTimeout); ; time.Sleep(5 * time.Millisecond) {
			turn, err := spool.TakeTurn(context.Background(), dir)
			if err == nil {
				err = turn.End()
			}
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				break
			}
			if !errors.Is(err, spool.ErrBusy) || time.Now().After(end) {
				h.t.Error(err)
				break
			}
		}
	}
}

func (h *host) spools() []string {
	return []string{h.path(".local", "state", "session-keeper", "spool"), h.path(".claude", "session-keeper-spool")}
}

func (h *host) path(elements ...string) string {
	return filepath.Join(append([]string{h.home}, elements...)...)
}

func (h *host) transcript() string {
	return h.path(".claude", "projects", "-src-p", hostSession+".jsonl")
}

func (h *host) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) write(path, data string) {
	h.t.Helper()
	h.must(os.MkdirAll(filepath.Dir(path), 0o700))
	h.must(os.WriteFile(path, []byte(data), 0o600))
}

func (h *host) event() string {
	return fmt.Sprintf(`{"session_id":%q,"transcript_path":%q,"cwd":"/src/p","hook_event_name":"SessionEnd","reason":"other"}`, hostSession, h.transcript())
}

// ended is what became of a hook.
type ended struct {
	code           int
	stdout, stderr string
}

// hook runs the wired command, after what is to be done in its shell before.
// Whatever is wrong, it ends soon, with 0 or 1, and prints nothing on stdout
// and at most a line and a hint on stderr.
func (h *host) hook(event, before string, env ...string) ended {
	h.t.Helper()
	command := "'" + filepath.Join(programs(h.t), "session-end-archive") + "' || exit 1"
	if before != "" {
		command = before + "; " + command
	}
	cmd := exec.CommandContext(h.t.Context(), "/bin/sh", "-c", command)
	cmd.Env = append([]string{"HOME=" + h.home, "PATH=/usr/bin:/bin", "CLAUDECODE=1", "CLAUDE_CODE_SESSION_ID=" + hostSession}, env...)
	cmd.Dir = h.home
	cmd.Stdin = strings.NewReader(event)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		h.t.Fatalf("%q: %v", before, err)
	}
	if took := time.Since(began); took > archiveTimeout/2 {
		h.t.Errorf("%q: it took %v", before, took)
	}
	e := ended{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
	if e.code != 0 && e.code != 1 {
		h.t.Errorf("%q: exit code %d\n%s", before, e.code, e.stderr)
	}
	if e.stdout != "" {
		h.t.Errorf("%q: it printed %q", before, e.stdout)
	}
	return e
}

// idle waits until no worker is at the spools.
func (h *host) idle() {
	h.t.Helper()
	for end := time.Now().Add(archiveTimeout); ; time.Sleep(5 * time.Millisecond) {
		waiting := 0
		for _, dir := range h.spools() {
			summary, err := spool.Status(dir)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				h.t.Fatal(err)
			}
			if summary.Busy {
				waiting++
			}
			waiting += len(summary.Waiting)
		}
		if waiting == 0 {
			return
		}
		if time.Now().After(end) {
			h.t.Fatalf("%d things are left to do", waiting)
		}
	}
}

// settled lets all be well again, ends the session once more, and wants the
// archive to hold the transcript as it is, and to be in order.
func (h *host) settled() {
	h.t.Helper()
	if e := h.hook(h.event(), ""); e.code != 0 || e.stderr != "" {
		h.t.Errorf("when all is well again: exit code %d, %s", e.code, e.stderr)
	}
	h.idle()
	want, err := os.ReadFile(h.transcript())
	h.must(err)
	if all := h.generations(); len(all) == 0 || !bytes.Equal(all[len(all)-1], want) {
		h.t.Errorf("the archive has %d generations, and the last is not the transcript", len(all))
	}
	store, err := archive.Open(h.path(".local", "share", "session-keeper"))
	h.must(err)
	report, err := store.Verify(h.t.Context(), archive.VerifyOptions{})
	if err != nil || !report.OK() {
		h.t.Errorf("verify: %v, %+v", err, report)
	}
	h.private()
}

// generations gives the transcript of each generation, the newest last.
func (h *host) generations() [][]byte {
	h.t.Helper()
	store, err := archive.Open(h.path(".local", "share", "session-keeper"))
	h.must(err)
	history, err := store.History(h.t.Context(), hostSession)
	h.must(err)
	var all [][]byte
	for _, generation := range history.Generations {
		for _, file := range generation.Files {
			if file.Family != archive.Transcript {
				continue
			}
			r, err := store.OpenFile(generation, file)
			h.must(err)
			data, err := io.ReadAll(r)
			h.must(errors.Join(err, r.Close()))
			all = append(all, data)
		}
	}
	return all
}

// private wants that nothing of ours is open to others.
func (h *host) private() {
	h.t.Helper()
	err := filepath.WalkDir(h.path(".local"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == h.path(".local") || path == h.path(".local", "share") || path == h.path(".local", "state") {
			return err
		}
		fi, err := d.Info()
		// Pins share the inode, and so the mode, of the client's files.
		if err == nil && fi.Mode().Perm()&0o077 != 0 && !strings.Contains(path, "/pins/") {
			h.t.Errorf("%s has mode %v", path, fi.Mode())
		}
		return err
	})
	h.must(err)
}

func lines(n int, word string) string {
	return strings.Repeat(`{"type":"user","message":{"role":"user","content":"`+word+`"}}`+"\n", n)
}

// Limits that a shell can set: too few descriptors, too short files, too little
// memory. The hook may fail, and the user is told; nothing is lost by it.
func TestHostLimits(t *testing.T) {
	for _, limit := range []string{
		"ulimit -n 3", "ulimit -n 4", "ulimit -n 5", "ulimit -n 6", "ulimit -n 7", "ulimit -n 8", "ulimit -n 10", "ulimit -n 16",
		"ulimit -f 0", "ulimit -f 1", "ulimit -f 8", "ulimit -c unlimited",
		"ulimit -v 1000", "ulimit -v 50000", "ulimit -v 400000", "ulimit -s 64", "ulimit -t 1",
		"exec <&-", "exec >&-", "exec 2>&-", "exec <&- >&- 2>&-", "exec </dev/null", "exec </",
		"umask 0", "umask 777", "cd /; true", "trap '' TERM HUP INT PIPE",
	} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.write(h.transcript(), lines(3, limit))
			before, err := os.Stat(h.transcript())
			h.must(err)
			h.hook(h.event(), limit)
			h.settled()
			after, err := os.Stat(h.transcript())
			h.must(err)
			if before.Mode() != after.Mode() || !before.ModTime().Equal(after.ModTime()) {
				t.Error("the transcript was touched")
			}
		})
	}
}

// Environments that hurt a Go program, or lead it elsewhere.
func TestHostEnvironments(t *testing.T) {
	for _, env := range [][]string{
		{"GOMAXPROCS=1"}, {"GOMAXPROCS=0"}, {"GOGC=off"}, {"GOGC=1"}, {"GOMEMLIMIT=1MiB"}, {"GODEBUG=asyncpreemptoff=1,madvdontneed=1"},
		{"GODEBUG=nonsense=1"}, {"GOTRACEBACK=crash"}, {"GOTRACEBACK=none"}, {"TMPDIR=/nonexistent"}, {"TMPDIR=relative"},
		{"LC_ALL=xx_XX.nonsense"}, {"TZ=Nowhere/Atall"}, {"PATH="}, {"PATH=relative:."}, {"XDG_STATE_HOME=relative"}, {"XDG_DATA_HOME="},
		{"BASH_ENV=/nonexistent", "ENV=/nonexistent"}, {"IFS=/"}, {"CLAUDE_PROJECT_DIR=relative"}, {"CLAUDE_PID=-1"},
		{"CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS=nonsense"}, {"SESSION_KEEPER_TURN=1"}, {"SESSION_KEEPER=on"},
	} {
		t.Run(strings.Join(env, " "), func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.write(h.transcript(), lines(3, "x"))
			if e := h.hook(h.event(), "", env...); e.code != 0 || e.stderr != "" {
				t.Errorf("exit code %d, %q", e.code, e.stderr)
			}
			h.idle()
			if all := h.generations(); len(all) != 1 || string(all[0]) != lines(3, "x") {
				t.Errorf("%d generations", len(all))
			}
			h.settled()
		})
	}
}

// TP-11: while hooks run, the transcript is replaced by a link to a file
// that is none of the client's, and back, as fast as can be.
func TestHostSwaps(t *testing.T) {
	const secret = "the private key of somebody"
	h := newHost(t)
	h.write(h.path("secret"), strings.Repeat(secret+"\n", 1000))
	h.write(h.transcript(), lines(100, "x"))
	h.must(os.Link(h.transcript(), h.path("real")))
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		link, again := h.path(".claude", "projects", "-src-p", "link"), h.path(".claude", "projects", "-src-p", "again")
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			var err error
			switch i % 6 {
			case 0:
				err = errors.Join(os.Symlink(h.path("secret"), link), os.Rename(link, h.transcript()))
			case 2:
				err = errors.Join(syscall.Mkfifo(link, 0o600), os.Rename(link, h.transcript()))
			case 4:
				err = os.Remove(h.transcript())
			default:
				err = errors.Join(os.Link(h.path("real"), again), os.Rename(again, h.transcript()))
				// Renaming one name of a file over another leaves both.
				_ = os.Remove(again)
			}
			if err != nil {
				t.Errorf("swap: %v", err)
				return
			}
		}
	})
	var hooks sync.WaitGroup
	for range 4 {
		hooks.Go(func() {
			for range 25 {
				h.hook(h.event(), "")
			}
		})
	}
	hooks.Wait()
	close(stop)
	swapper.Wait()
	h.must(os.RemoveAll(h.transcript()))
	h.must(os.Link(h.path("real"), h.transcript()))
	h.settled()
	for _, data := range h.generations() {
		if bytes.Contains(data, []byte(secret)) {
			t.Error("a file that is none of the client's is in the archive")
		}
	}
	// Neither is it anywhere else among our files.
	h.must(filepath.WalkDir(h.path(".local", "state"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("%s holds it", path)
		}
		return err
	}))
}

// CO-01, AR-07: while hooks run the transcript grows, is cut short, and is
// written anew. Each generation is something that it was, none replaces
// another, and the last one is what it is.
func TestHostChanges(t *testing.T) {
	h := newHost(t)
	h.write(h.transcript(), lines(10, "begin"))
	stop := make(chan struct{})
	var writer sync.WaitGroup
	var states [][]byte
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			f, err := os.OpenFile(h.transcript(), os.O_WRONLY|os.O_APPEND, 0)
			if err == nil && i%40 == 39 {
				err = f.Truncate(int64(len(lines(5, "begin"))))
			}
			if err == nil {
				_, err = f.WriteString(lines(1+i%7, fmt.Sprintf("turn %d", i)))
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				t.Errorf("turn %d: %v", i, err)
				return
			}
			data, err := os.ReadFile(h.transcript())
			if err != nil {
				t.Error(err)
				return
			}
			states = append(states, data)
		}
	})
	for range 40 {
		h.hook(h.event(), "")
	}
	close(stop)
	writer.Wait()
	h.settled()
	states = append(states, []byte(lines(10, "begin")))
	odd := 0
	for n, data := range h.generations() {
		if !slices.ContainsFunc(states, func(s []byte) bool { return bytes.HasPrefix(s, data) }) {
			odd++
			t.Logf("generation %d, %d bytes, is a mixture", n+1, len(data))
		}
	}
	// A hard link does not protect from being rewritten in place: a reader that
	// is at it when that happens may see the beginning of one state and the end
	// of another, as any reader does. It must be rare, and never the last.
	if odd > 4 {
		t.Errorf("%d generations were never the transcript", odd)
	}
}

// FS-01: a disk that is full, for each place that we write to.
func TestHostFullDisk(t *testing.T) {
	for _, place := range []string{".local/state", ".local/share", ".claude"} {
		t.Run(place, func(t *testing.T) {
			h := newHost(t)
			dir := h.path(filepath.FromSlash(place))
			h.must(os.MkdirAll(dir, 0o700))
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
				t.Skipf("needs the right to mount a small disk: %v", err)
			}
			defer func() {
				h.end()
				for end := time.Now().Add(archiveTimeout); ; time.Sleep(5 * time.Millisecond) {
					err := syscall.Unmount(dir, 0)
					if err == nil {
						return
					}
					if !errors.Is(err, syscall.EBUSY) || time.Now().After(end) {
						t.Error(err)
						return
					}
				}
			}()
			h.write(h.transcript(), lines(2000, "x"))
			filler, err := os.Create(filepath.Join(dir, "filler"))
			h.must(err)
			if _, err := io.Copy(filler, zeros{}); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("the disk did not fill up: %v", err)
			}
			h.must(filler.Close())
			e := h.hook(h.event(), "")
			t.Logf("exit code %d, %q", e.code, e.stderr)
			if place != ".local/state" && e.code != 0 {
				t.Errorf("exit code %d: the session could have been handed off", e.code)
			}
			time.Sleep(50 * time.Millisecond) // for the worker to fail as well
			h.must(os.Remove(filler.Name()))
			h.settled()
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// Standard input with more than any event, or with what is none.
func TestHostInput(t *testing.T) {
	for name, input := range map[string]string{
		"100 MB":         `{"last_assistant_message":"` + strings.Repeat("x", 100<<20) + `"}`,
		"never an end":   strings.Repeat("[", 30<<20),
		"nesting":        strings.Repeat(`{"a":`, 100_000),
		"two":            "{}{}",
		"garbage":        "\x00\xFF\xFE{",
		"duplicate keys": `{"session_id":"` + hostSession + `","session_id":"../../x","hook_event_name":"SessionEnd"}`,
		"wrong types":    `{"session_id":{"a":1},"transcript_path":[1],"cwd":7,"hook_event_name":"SessionEnd","reason":{}}`,
		"NUL in paths":   `{"session_id":"` + hostSession + `","transcript_path":"/a\u0000b","cwd":"\u0000","hook_event_name":"SessionEnd"}`,
		"long paths":     `{"session_id":"` + hostSession + `","transcript_path":"/` + strings.Repeat("a/", 100_000) + `","hook_event_name":"SessionEnd"}`,
		"devices":        `{"session_id":"` + hostSession + `","transcript_path":"/dev/zero","cwd":"/dev/zero","hook_event_name":"SessionEnd"}`,
		"own memory":     `{"session_id":"` + hostSession + `","transcript_path":"/proc/self/mem","hook_event_name":"SessionEnd"}`,
		"shell text":     `{"session_id":"$(touch pwned)","transcript_path":"'; touch pwned; '","cwd":"` + "`touch pwned`" + `","hook_event_name":"SessionEnd"}`,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.write(h.transcript(), lines(3, "x"))
			if e := h.hook(input, ""); e.code != 0 || strings.Count(e.stderr, "\n") > 1 {
				t.Errorf("exit code %d, %q", e.code, e.stderr)
			}
			h.settled()
			if _, err := os.Lstat(h.path("pwned")); err == nil {
				t.Error("text of the event was run")
			}
		})
	}
}

// FS-07: the client's folder is mounted read-only, as it is for programs that
// the model runs in a sandbox: what is there is archived and read, and what
// cannot be written says where and why.
func TestHostReadOnlyClient(t *testing.T) {
	h := newHost(t)
	dir := h.path(".claude")
	h.must(os.MkdirAll(dir, 0o700))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		t.Skipf("needs the right to mount a disk: %v", err)
	}
	defer func() {
		h.end()
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	h.write(h.transcript(), lines(10, "x"))
	h.must(syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	if e := h.hook(h.event(), ""); e.code != 0 || e.stderr != "" {
		t.Errorf("exit code %d, %q", e.code, e.stderr)
	}
	h.idle()
	if all := h.generations(); len(all) != 1 || string(all[0]) != lines(10, "x") {
		t.Errorf("%d generations", len(all))
	}
	h.must(syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, ""))
	h.must(os.Remove(h.transcript()))
	h.must(syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))

	keeper := func(args ...string) (string, int) {
		cmd := exec.Command(filepath.Join(programs(t), "session-keeper"), args...)
		cmd.Env = []string{"HOME=" + h.home, "PATH=/usr/bin:/bin"}
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, code := keeper("cat", hostSession); code != 0 || out != lines(10, "x") {
		t.Errorf("cat: %d, %q", code, out)
	}
	if out, code := keeper("restore", hostSession); code != 1 || !strings.Contains(out, "read-only file system") || !strings.Contains(out, ".claude/projects/-src-p") {
		t.Errorf("restore: %d, %q", code, out)
	}
}
