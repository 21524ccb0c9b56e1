package briefing

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lookTime is how long the file system may take, in all, to tell what the
// paths in patterns are.
const lookTime = 200 * time.Millisecond

// disk asks the file system about paths that a pattern names. They may lie
// anywhere, also on a network disk that does not answer any more; a session
// must not wait for that. Answers are kept: many briefings name the same
// folders.
type disk struct {
	find  func(path string) found
	left  time.Duration
	found map[string]found
	tired error // why it is not asked any more
}

// found is what a path is; zero if nothing is there.
type found struct {
	real string // without links
	info os.FileInfo
}

func newDisk(left time.Duration) *disk {
	return &disk{find: find, left: left, found: map[string]found{}}
}

func find(path string) found {
	real, err := filepath.EvalSymlinks(filepath.FromSlash(path))
	if err != nil {
		return found{} // what is not there holds no session
	}
	info, err := os.Stat(real)
	if err != nil {
		return found{}
	}
	return found{real, info}
}

// look tells what path is. After a path that took all the time there was,
// nothing is found any more.
func (d *disk) look(path string) found {
	if at, known := d.found[path]; known || d.tired != nil {
		return at
	}
	start := time.Now()
	answer := make(chan found, 1) // has room: a late answer is thrown away
	// A goroutine, although a panic in one ends the program: no call of the
	// system can be given up in another way. Nothing in find panics.
	go func() { answer <- d.find(path) }()
	timer := time.NewTimer(d.left)
	defer timer.Stop()
	select {
	case at := <-answer:
		d.left -= time.Since(start)
		d.found[path] = at
		return at
	case <-timer.C:
		d.tired = fmt.Errorf("the file system did not tell in time what %q is; no further path in a briefing was looked at", shorten(path, 200))
		return found{}
	}
}
