package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// LockMode is how a lock is held.
type LockMode int

const (
	// Shared can be held by many at once, but not beside Exclusive.
	Shared LockMode = iota
	// Exclusive is held by one alone.
	Exclusive
)

// ErrLocked says that somebody else holds the lock.
var ErrLocked = errors.New("locked by another process")

// errNoLocks says that the file system has no locks, or does not give them.
var errNoLocks = errors.New("file system has no locks")

const (
	// Polls start short, since most holders need milliseconds, and grow.
	firstPoll = time.Millisecond
	lastPoll  = 50 * time.Millisecond
	// farHolderStale is the age after which a lock file (see lockByFile) that
	// was made by another machine counts as left behind. Nothing that is kept
	// under such a lock is harmed if its holder lives after all.
	farHolderStale = time.Hour
	// stealStale is the age of a guard file that its maker did not live to
	// remove. It is kept for microseconds.
	stealStale = 10 * time.Second
)

// Lock takes the lock on the file path, which is made if it is missing and
// stays there; its folder must exist. It is a lock of the operating system
// (flock, LockFileEx), bound to this call: it excludes other goroutines as
// well as other processes, and the system takes it back the moment its holder
// dies, however that happens. It is given back by the returned function.
//
// Lock asks again and again until ctx is done, and then returns an error that
// is both ErrLocked and ctx's; it never waits in the kernel.
//
// Where the file system has no locks, a file path+".held" made with O_EXCL
// stands in for one. It holds the process's number and start time, and is
// taken over once that process is gone. Shared is Exclusive there.
func Lock(ctx context.Context, path string, m LockMode) (unlock func() error, err error) {
	poll := firstPoll
	for {
		unlock, err := TryLock(path, m)
		if err == nil || !errors.Is(err, ErrLocked) {
			return unlock, err
		}
		timer := time.NewTimer(poll/2 + rand.N(poll))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("%w: %w", err, ctx.Err())
		case <-timer.C:
		}
		poll = min(2*poll, lastPoll)
	}
}

// TryLock is Lock without waiting: ErrLocked if somebody else holds it.
func TryLock(path string, m LockMode) (unlock func() error, err error) {
	err = step("lock", path, func() (err error) {
		unlock, err = lockOnce(path, m)
		return err
	})
	if err != nil && unlock != nil {
		// It was taken, and the hook point reports a failure all the same.
		return nil, errors.Join(err, unlock())
	}
	return unlock, err
}

// LockToHandOn is TryLock, exclusively, for a lock that is meant for another
// process: one that inherits the file holds the lock, and takes it over with
// [AdoptLock]. Closing the file here does not give the lock back then. It is
// an error where locks cannot be handed on, as on Windows.
func LockToHandOn(path string) (*os.File, error) {
	if !locksInherit {
		return nil, errNoLocks
	}
	f, err := openLockFile(path)
	if err != nil {
		return nil, err
	}
	if err := takeLock(f, Exclusive); err != nil {
		f.Close() // nothing was written
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	return f, nil
}

// AdoptLock takes over the lock on path that was handed to this process as the
// descriptor fd, which must be nobody else's. No child inherits it further. If
// it is not a lock on what lies at path now, fd is closed.
func AdoptLock(fd uintptr, path string) (unlock func() error, err error) {
	f := os.NewFile(fd, path)
	if f == nil {
		return nil, fmt.Errorf("lock of descriptor %d: %w", fd, fs.ErrInvalid)
	}
	closeOnExec(fd)
	mine, err := f.Stat()
	if err == nil {
		var now fs.FileInfo
		if now, err = os.Stat(path); err == nil && !os.SameFile(mine, now) {
			err = &fs.PathError{Op: "lock", Path: path, Err: errors.New("another file was handed on")}
		}
	}
	if err == nil {
		// The descriptor that holds a lock may take it once more.
		err = takeLock(f, Exclusive)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error { return errors.Join(osUnlock(f), f.Close()) }, nil
}

// takeLock is the system's; a test puts another in its place to stand for a
// file system without locks.
var takeLock = osLock

func lockOnce(path string, m LockMode) (func() error, error) {
	// A lock file that is removed between its opening and its locking would
	// leave two holders, each with a lock on a file of its own.
	const tries = 100
	for range tries {
		f, err := openLockFile(path)
		if err != nil {
			return nil, err
		}
		if err := takeLock(f, m); err != nil {
			f.Close() // nothing was written
			if errors.Is(err, errNoLocks) {
				return lockByFile(path)
			}
			if errors.Is(err, ErrLocked) {
				return nil, &fs.PathError{Op: "lock", Path: path, Err: ErrLocked}
			}
			return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
		}
		mine, err := f.Stat()
		if err == nil {
			var now fs.FileInfo
			now, err = os.Stat(path)
			if err == nil && os.SameFile(mine, now) {
				// The closure keeps f alive: a collected *os.File would be
				// closed, and its lock gone with it.
				return func() error { return errors.Join(osUnlock(f), f.Close()) }, nil
			}
		}
		f.Close() // gives the lock on the wrong file back
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, &fs.PathError{Op: "lock", Path: path, Err: ErrLocked}
}

func openLockFile(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
		if errors.Is(err, fs.ErrExist) {
			if fi, err := os.Lstat(path); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
				return nil, &fs.PathError{Op: "lock", Path: path, Err: errors.New("is a link that leads nowhere")}
			}
			continue // made by another process since
		}
		if err != nil {
			return nil, err
		}
		if err := ensureFileMode(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
}

// A holder is what a stand-in lock file says about who made it.
type holder struct {
	PID   int    `json:"pid"`
	Start string `json:"start"`
	Host  string `json:"host"`
	Nonce string `json:"nonce"`
}

// lockByFile is the lock of file systems that have none: a file that only one
// process can make.
func lockByFile(path string) (func() error, error) {
	path += ".held"
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	me := holder{PID: os.Getpid(), Start: processStart(os.Getpid()), Host: host, Nonce: fmt.Sprintf("%016x", rand.Uint64())}
	data, err := json.Marshal(me)
	if err != nil {
		return nil, err
	}
	t, err := CreateTemp(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	if _, err := t.Write(data); err != nil {
		return nil, errors.Join(err, t.Discard())
	}
	err = t.Place(path)
	if errors.Is(err, fs.ErrExist) {
		var gone bool
		if gone, err = removeStale(path, host); err == nil {
			if gone {
				err = t.placeAgain(path)
			} else {
				err = fs.ErrExist
			}
		}
	}
	if err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = &fs.PathError{Op: "lock", Path: path, Err: ErrLocked}
		}
		return nil, errors.Join(err, t.Discard())
	}
	return func() error {
		h, _, err := readHolder(path)
		if err != nil {
			return err
		}
		if h != me {
			return &fs.PathError{Op: "unlock", Path: path, Err: errors.New("taken over by another process")}
		}
		return os.Remove(path)
	}, nil
}

// placeAgain is the second try of Place, whose first one synced and closed.
func (t *Temp) placeAgain(path string) error {
	if err := renameNew(t.Name(), path); err != nil {
		return err
	}
	t.done = true
	return nil
}

func readHolder(path string) (holder, fs.FileInfo, error) {
	var h holder
	fi, err := os.Stat(path)
	if err != nil {
		return h, nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return h, nil, err
	}
	// What does not parse was not made by us; it goes stale by its age alone.
	if json.Unmarshal(data, &h) != nil {
		h = holder{}
	}
	return h, fi, nil
}

// removeStale removes the lock file of a holder that is gone, and says whether
// it is away. Two that find it stale at the same time must not remove each
// other's new one, so the removal has a guard file of its own.
func removeStale(path, host string) (bool, error) {
	stale := func() (bool, error) {
		h, fi, err := readHolder(path)
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if h.Host != host || h.PID <= 0 {
			return time.Since(fi.ModTime()) > farHolderStale, nil
		}
		return !alive(h.PID) || (h.Start != "" && processStart(h.PID) != h.Start), nil
	}
	if ok, err := stale(); err != nil || !ok {
		return false, err
	}
	guard := path + ".steal"
	g, err := os.OpenFile(guard, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if errors.Is(err, fs.ErrExist) {
		if fi, err := os.Stat(guard); err == nil && time.Since(fi.ModTime()) > stealStale {
			return false, os.Remove(guard)
		}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = g.Close()
	ok := false
	if err == nil {
		if ok, err = stale(); ok && err == nil {
			err = os.Remove(path)
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		}
	}
	return ok && err == nil, errors.Join(err, os.Remove(guard))
}
