package durable

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// holdEnv makes the test binary a program that takes a lock and holds it.
const holdEnv = "DURABLE_TEST_HOLD"

func TestMain(m *testing.M) {
	if path := os.Getenv(holdEnv); path != "" {
		if os.Getenv(holdEnv+"_NOLOCKS") != "" {
			takeLock = func(*os.File, LockMode) error { return errNoLocks }
		}
		_, err := TryLock(path, Exclusive)
		if err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Stdout.WriteString("held\n")
		select {}
	}
	os.Exit(m.Run())
}

// withoutLocks stands for a file system that refuses locks (FS-06).
func withoutLocks(t *testing.T) {
	t.Helper()
	old := takeLock
	takeLock = func(*os.File, LockMode) error { return errNoLocks }
	t.Cleanup(func() { takeLock = old })
}

func TestLockModes(t *testing.T) {
	for _, tt := range []struct {
		held, wanted LockMode
		locked       bool
	}{
		{Shared, Shared, false},
		{Shared, Exclusive, true},
		{Exclusive, Shared, true},
		{Exclusive, Exclusive, true},
	} {
		path := filepath.Join(t.TempDir(), "lock")
		unlock, err := TryLock(path, tt.held)
		if err != nil {
			t.Fatal(err)
		}
		// A lock dies with its *os.File; the collector must not find it.
		for range 3 {
			runtime.GC()
		}
		unlock2, err := TryLock(path, tt.wanted)
		if errors.Is(err, ErrLocked) != tt.locked || (err == nil) == tt.locked {
			t.Errorf("%v: %v", tt, err)
		}
		if err == nil {
			if err := unlock2(); err != nil {
				t.Error(err)
			}
		}
		if err := unlock(); err != nil {
			t.Error(err)
		}
		unlock, err = TryLock(path, Exclusive)
		if err != nil {
			t.Fatalf("%v: after it was given back: %v", tt, err)
		}
		if err := unlock(); err != nil {
			t.Error(err)
		}
		if err := unlock(); err == nil {
			t.Error("given back twice without an error")
		}
	}
}

// FS-06: a wait for a lock ends with its context.
func TestLockWaitIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := TryLock(path, Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = Lock(ctx, path, Shared)
	if !errors.Is(err, ErrLocked) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error: %v", err)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("waited %v", d)
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		if err := unlock(); err != nil {
			t.Error(err)
		}
	}()
	unlock2, err := Lock(context.Background(), path, Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock2(); err != nil {
		t.Error(err)
	}
}

func TestLockExcludes(t *testing.T) {
	for _, locks := range []bool{true, false} {
		if !locks {
			withoutLocks(t)
		}
		path := filepath.Join(t.TempDir(), "lock")
		var inside, total atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 10 {
					unlock, err := Lock(context.Background(), path, Exclusive)
					if err != nil {
						t.Error(err)
						return
					}
					if inside.Add(1) != 1 {
						t.Error("two inside")
					}
					total.Add(1)
					inside.Add(-1)
					if err := unlock(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if total.Load() != 80 {
			t.Errorf("%d rounds", total.Load())
		}
	}
}

// A lock file that is removed while somebody waits for it does not make two
// holders.
func TestLockFileRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	old := takeLock
	defer func() { takeLock = old }()
	removed := false
	takeLock = func(f *os.File, m LockMode) error {
		if !removed {
			removed = true
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		return old(f, m)
	}
	unlock, err := TryLock(path, Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := TryLock(path, Exclusive); !errors.Is(err, ErrLocked) {
		t.Errorf("second holder: %v", err)
	}
}

// SE-13: the lock of a holder that was killed without warning is free.
func TestKilledHolderFreesTheLock(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, locks := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "lock")
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), holdEnv+"="+path)
		if !locks {
			withoutLocks(t)
			cmd.Env = append(cmd.Env, holdEnv+"_NOLOCKS=1")
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if line != "held\n" || err != nil {
			t.Fatalf("holder says %q, %v", line, err)
		}
		if _, err := TryLock(path, Exclusive); !errors.Is(err, ErrLocked) {
			t.Errorf("system locks %v: while it lives: %v", locks, err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("the holder ended well")
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		unlock, err := Lock(ctx, path, Exclusive)
		cancel()
		if err != nil {
			t.Fatalf("system locks %v: after its death: %v", locks, err)
		}
		if err := unlock(); err != nil {
			t.Error(err)
		}
	}
}

// FS-06: without locks of the system, the file that stands in for one goes
// stale with its maker, and not before.
func TestStandInGoesStale(t *testing.T) {
	withoutLocks(t)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	dead := exec.Command(os.Args[0], "-test.run=^$")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	me, start := os.Getpid(), processStart(os.Getpid())
	for _, tt := range []struct {
		name   string
		h      holder
		age    time.Duration
		locked bool
	}{
		{"alive", holder{PID: me, Start: start, Host: host}, 1000 * time.Hour, true},
		{"dead", holder{PID: dead.Process.Pid, Host: host}, 0, false},
		{"number used again", holder{PID: me, Start: "another boot/1", Host: host}, 0, false},
		{"start unknown", holder{PID: me, Host: host}, 0, true},
		{"another machine", holder{PID: me, Start: "x", Host: host + "-2"}, 59 * time.Minute, true},
		{"another machine, long ago", holder{PID: me, Start: "x", Host: host + "-2"}, 61 * time.Minute, false},
		{"nobody", holder{}, 59 * time.Minute, true},
		{"nobody, long ago", holder{}, 61 * time.Minute, false},
	} {
		path := filepath.Join(t.TempDir(), "lock")
		data, err := json.Marshal(tt.h)
		if err != nil {
			t.Fatal(err)
		}
		if tt.h == (holder{}) {
			data = []byte("{")
		}
		if err := os.WriteFile(path+".held", data, 0o600); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-tt.age)
		if err := os.Chtimes(path+".held", then, then); err != nil {
			t.Fatal(err)
		}
		unlock, err := TryLock(path, Exclusive)
		if errors.Is(err, ErrLocked) != tt.locked || (err == nil) == tt.locked {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if err == nil {
			if err := unlock(); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		for _, left := range names(t, filepath.Dir(path)) {
			if left != "lock" && (left != "lock.held" || !tt.locked) {
				t.Errorf("%s: %q is left over", tt.name, left)
			}
		}
	}
}

// One that died while it took a stale lock over holds nobody up for long.
func TestGuardLeftBehind(t *testing.T) {
	withoutLocks(t)
	path := filepath.Join(t.TempDir(), "lock")
	old := time.Now().Add(-2 * farHolderStale)
	for _, name := range []string{path + ".held", path + ".held.steal"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	unlock, err := Lock(ctx, path, Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}
