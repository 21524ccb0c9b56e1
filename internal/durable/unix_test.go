//go:build unix

package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// SM-06, SM-07: nothing is wider than 0600 and 0700, or narrower, whatever the
// umask; SM-08: what is there keeps its mode.
func TestModesWhateverTheUmask(t *testing.T) {
	for _, umask := range []int{0, 0o002, 0o022, 0o077, 0o177, 0o277, 0o777} {
		t.Run(fmt.Sprintf("%03o", umask), func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			old := syscall.Umask(umask)
			defer syscall.Umask(old)
			sub := filepath.Join(dir, "a", "b")
			errs := MkdirAll(sub)
			errs = errors.Join(errs, WriteFile(filepath.Join(sub, "once"), []byte("x")))
			errs = errors.Join(errs, ReplaceFile(filepath.Join(sub, "state"), []byte("x")))
			temp, err := CreateTemp(sub)
			errs = errors.Join(errs, err)
			unlock, err := TryLock(filepath.Join(sub, "lock"), Exclusive)
			errs = errors.Join(errs, err)
			if errs != nil {
				t.Fatal(errs)
			}
			seen := 0
			err = filepath.WalkDir(filepath.Join(dir, "a"), func(path string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				fi, err := d.Info()
				if err != nil {
					return err
				}
				seen++
				want := fs.FileMode(0o600)
				if fi.IsDir() {
					want = 0o700
				}
				if fi.Mode().Perm() != want {
					t.Errorf("%s has mode %v", path, fi.Mode())
				}
				return nil
			})
			if err != nil || seen != 6 {
				t.Fatalf("%d seen, %v", seen, err)
			}
			if err := errors.Join(temp.Discard(), unlock()); err != nil {
				t.Error(err)
			}
			if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o755 {
				t.Errorf("the folder that was there: %v, %v", fi.Mode(), err)
			}
			lock := filepath.Join(sub, "lock")
			if err := os.Chmod(lock, 0o640); err != nil {
				t.Fatal(err)
			}
			unlock, err = TryLock(lock, Shared)
			if err != nil {
				t.Fatal(err)
			}
			if err := unlock(); err != nil {
				t.Error(err)
			}
			if fi, _ := os.Stat(lock); fi.Mode().Perm() != 0o640 {
				t.Errorf("the lock that was there: %v", fi.Mode())
			}
		})
	}
}

func TestOpenRegular(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	// A file of another user: as root we make one, else one of root's is read.
	foreign := "/etc/passwd"
	if os.Geteuid() == 0 {
		foreign = filepath.Join(dir, "foreign")
		if err := os.WriteFile(foreign, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(foreign, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		path string
		want error
	}{
		{file, nil},
		{link, nil},
		{dir, ErrNotRegular},
		{pipe, ErrNotRegular},
		{"/dev/null", ErrNotRegular},
		{foreign, ErrNotOwned},
		{filepath.Join(dir, "absent"), fs.ErrNotExist},
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			f, fi, err := OpenRegular(tt.path)
			if !errors.Is(err, tt.want) || (tt.want == nil) != (err == nil) {
				t.Errorf("%s: %v, want %v", tt.path, err, tt.want)
			}
			var pe *fs.PathError
			if err != nil && !errors.As(err, &pe) {
				t.Errorf("%s: %T is no PathError", tt.path, err)
			}
			if err != nil {
				return
			}
			defer f.Close()
			want, _ := os.Stat(file)
			if !os.SameFile(fi, want) {
				t.Errorf("%s: the FileInfo is of another file", tt.path)
			}
			a, ok1 := FileID(fi)
			b, ok2 := OpenID(f)
			if !ok1 || !ok2 || a != b || a.Inode == 0 {
				t.Errorf("%s: ids %v %v, %v %v", tt.path, a, ok1, b, ok2)
			}
			if n, ok := Links(fi); !ok || n != 1 {
				t.Errorf("%s: %d links, %v", tt.path, n, ok)
			}
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: still waiting", tt.path)
		}
	}
}

func TestLinkRefusals(t *testing.T) {
	for _, err := range []error{syscall.EXDEV, syscall.EPERM, syscall.EMLINK, syscall.ENOTSUP, syscall.ENOSYS} {
		if !LinkRefused(&os.LinkError{Op: "link", Err: err}) {
			t.Errorf("%v is a refusal", err)
		}
	}
	for _, err := range []error{nil, syscall.EEXIST, syscall.ENOENT, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EACCES} {
		if LinkRefused(err) {
			t.Errorf("%v is no refusal", err)
		}
	}
}

// Where the file system has no rename without replacing, a second name and the
// removal of the first does the same.
func TestRenameNewByLink(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := os.WriteFile(a, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := renameNewByLink(a, b); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(a); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old name: %v", err)
	}
	if err := os.WriteFile(a, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := renameNewByLink(a, b); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	if got, _ := os.ReadFile(b); string(got) != "a" {
		t.Errorf("the file holds %q", got)
	}
}

func TestRetryAfterASignal(t *testing.T) {
	n := 0
	err := retry(func() error {
		if n++; n < 3 {
			return syscall.EINTR
		}
		return syscall.EIO
	})
	if n != 3 || !errors.Is(err, syscall.EIO) {
		t.Errorf("%d calls, %v", n, err)
	}
}

func TestSyncDirReportsWhatIsNoFolder(t *testing.T) {
	dir := t.TempDir()
	if err := SyncDir(dir); err != nil {
		t.Error(err)
	}
	if err := SyncDir(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}

func TestChangeTimeMovesWithTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	// The zero time is the answer of systems where it is not asked for.
	if got, ok := ChangeTime(fi); !ok || !got.IsZero() && got.Before(old.AddDate(1, 0, 0)) {
		t.Errorf("changed %v, %v: it is not the time that was set", got, ok)
	}
}
