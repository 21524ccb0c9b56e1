//go:build unix

package spool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// killedEnv makes the test binary a worker that kills itself in Process.
	killedEnv = "SPOOL_TEST_KILLED"
	// workerArg makes it a worker that tells about itself.
	workerArg = "spool-test-worker"
	// starterEnv makes it a program that starts such a worker.
	starterEnv = "SPOOL_TEST_STARTER"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(killedEnv) != "":
		_, err := Drain(context.Background(), os.Getenv(killedEnv), DrainOptions{Process: func(_ context.Context, w Work) (int64, error) {
			if w.SessionID == os.Getenv(killedEnv+"_AT") {
				return 0, syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			return w.Size, nil
		}})
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case os.Getenv(starterEnv) != "":
		told := os.Getenv(starterEnv)
		if err := Start(filepath.Dir(told), os.Args[0], workerArg, told); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("started")
		select {}
	case len(os.Args) == 5 && os.Args[1] == turnArg:
		if err := takeTurnAndTell(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case len(os.Args) == 3 && os.Args[1] == workerArg:
		if err := tell(os.Args[2]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A self is what a worker tells about itself.
type self struct {
	PID, Parent, Session, Group, Nice int
	Dir                               string
	Env                               []string
	Files                             map[string]string // open ones, as /proc shows them
	Standard                          bool              // all three are the null device
}

func tell(path string) error {
	// The shell in between may still be there for a moment.
	deadline := time.Now().Add(5 * time.Second)
	group, err := syscall.Getpgid(0)
	for err == nil && time.Now().Before(deadline) && os.Getppid() == group {
		time.Sleep(time.Millisecond)
	}
	// So may be the call that lowers the priority.
	for n, err := niceness(); err == nil && n < workerNice && time.Now().Before(deadline); n, err = niceness() {
		time.Sleep(time.Millisecond)
	}
	s := self{PID: os.Getpid(), Parent: os.Getppid(), Group: group, Env: os.Environ(), Files: map[string]string{}, Standard: true}
	s.Session, _ = getsid()
	s.Nice, _ = niceness()
	s.Dir, _ = os.Getwd()
	null, err := os.Stat(os.DevNull)
	if err != nil {
		return err
	}
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		fi, err := f.Stat()
		s.Standard = s.Standard && err == nil && os.SameFile(fi, null)
	}
	if entries, err := os.ReadDir("/proc/self/fd"); err == nil {
		for _, e := range entries {
			if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
				s.Files[e.Name()] = to
			}
		}
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

func getsid() (int, error) {
	r, _, errno := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(r), nil
}

func niceness() (int, error) {
	n, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if runtime.GOOS == "linux" {
		n = 20 - n // the system call's own way of telling it
	}
	return n, err
}

func waitFor(t *testing.T, path string) self {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		data, err := os.ReadFile(path)
		if err == nil {
			var s self
			if err := json.Unmarshal(data, &s); err != nil {
				t.Fatal(err)
			}
			return s
		}
		if !errors.Is(err, os.ErrNotExist) || time.Now().After(deadline) {
			t.Fatalf("the worker tells nothing: %v", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestStart(t *testing.T) {
	dir := t.TempDir()
	told := filepath.Join(dir, "a worker's own words")
	for name, value := range map[string]string{
		"ANTHROPIC_API_KEY": "secret", "SOME_TOKEN": "secret", "XDG_STATE_HOME": "/x", "SESSION_KEEPER_HOME": "/y",
		"CLAUDE_CONFIG_DIR": "/z", "CLAUDE_CODE_OAUTH_TOKEN": "secret", "BASH_ENV": "/secret", "ENV": "/secret",
	} {
		t.Setenv(name, value)
	}
	held, err := os.Create(filepath.Join(dir, "held open"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	// A descriptor that a careless parent left us.
	leaked, err := syscall.Dup(int(held.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leaked)
	began := time.Now()
	if err := Start(dir, os.Args[0], workerArg, told); err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %v", time.Since(began))
	s := waitFor(t, told)
	if s.Parent == os.Getpid() {
		t.Error("it is our child")
	}
	mySession, err := getsid()
	if err != nil || s.Session == mySession || s.Session == 0 || s.Group == syscall.Getpgrp() {
		t.Errorf("session %d, group %d; ours are %d, %d, %v", s.Session, s.Group, mySession, syscall.Getpgrp(), err)
	}
	if mine, err := niceness(); err != nil || s.Nice < max(mine, workerNice) {
		t.Errorf("niceness %d, ours is %d, %v", s.Nice, mine, err)
	}
	if s.Dir != "/" || !s.Standard {
		t.Errorf("folder %q, null streams %v", s.Dir, s.Standard)
	}
	for fd, file := range s.Files {
		if file == filepath.Join(dir, turnFile) && fd == strconv.Itoa(turnDescriptor) {
			continue
		}
		if strings.HasPrefix(file, dir) || strings.HasPrefix(file, "pipe:") || strings.HasPrefix(file, "socket:") {
			t.Errorf("descriptor %s is %s", fd, file)
		}
	}
	for _, kv := range s.Env {
		if strings.Contains(kv, "secret") {
			t.Errorf("in its environment: %s", kv)
		}
	}
	for _, want := range []string{"XDG_STATE_HOME=/x", "SESSION_KEEPER_HOME=/y", "CLAUDE_CONFIG_DIR=/z"} {
		if !slices.Contains(s.Env, want) {
			t.Errorf("not in its environment: %s", want)
		}
	}
	// The shell is the only child, and it has ended.
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, 0, nil)
	if err != nil || status.ExitStatus() != 0 || pid == s.PID {
		t.Errorf("waited for %d, the worker is %d: status %d, %v", pid, s.PID, status.ExitStatus(), err)
	}
	if pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("another child: %d, %v", pid, err)
	}
	if err := Start(t.TempDir(), filepath.Join(dir, "absent")); err == nil {
		t.Error("what does not exist was started")
	}
	if err := Start(t.TempDir(), held.Name()); err == nil {
		t.Error("what cannot be run was started")
	}
}

// SE-10, SE-13: the worker outlives the hook that started it, when the whole
// tree of processes under the client is killed.
func TestWorkerOutlivesTheTree(t *testing.T) {
	told := filepath.Join(t.TempDir(), "told")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), starterEnv+"="+told)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("started\n"))); err != nil {
		t.Fatal(err)
	}
	// A moment later the shell in between has ended, and with it the tie.
	deadline := time.Now().Add(5 * time.Second)
	tree := descendants(t, cmd.Process.Pid)
	for ; len(tree) > 0 && time.Now().Before(deadline); tree = descendants(t, cmd.Process.Pid) {
		time.Sleep(time.Millisecond)
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, pid := range tree {
		t.Errorf("still below the hook: %d", pid)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it was not killed")
	}
	waitFor(t, told)
}

// descendants lists the living processes below pid, where the system tells.
func descendants(t *testing.T, pid int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []int
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat[strings.LastIndex(string(stat), ")"):]), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[0] != "Z" && fields[1] == strconv.Itoa(pid) {
			all = append(all, child)
			all = append(all, descendants(t, child)...)
		}
	}
	return all
}

func TestWorkerEnv(t *testing.T) {
	env := []string{"PATH=/bin", "Path=x", "HOME=/h", "AWS_SECRET_ACCESS_KEY=1", "LC_ALL=C", "LANG=C", "TMPDIR=/t", "XDG_DATA_HOME=/d",
		"LocalAppData=c", "SystemRoot=w", "broken", "=C:=C:", "SESSION_KEEPER=off", "SESSION_KEEPER_HOME=/s"}
	want := []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "LANG=C", "TMPDIR=/t", "XDG_DATA_HOME=/d", "SESSION_KEEPER_HOME=/s"}
	if got := workerEnv(env, "linux"); !slices.Equal(got, want) {
		t.Errorf("linux: %q", got)
	}
	want = []string{"PATH=/bin", "Path=x", "HOME=/h", "LC_ALL=C", "LANG=C", "TMPDIR=/t", "XDG_DATA_HOME=/d", "LocalAppData=c", "SystemRoot=w", "SESSION_KEEPER_HOME=/s"}
	if got := workerEnv(env, "windows"); !slices.Equal(got, want) {
		t.Errorf("windows: %q", got)
	}
}
