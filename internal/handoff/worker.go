package handoff

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/session-keeper/session-keeper/archive/spool"
	"github.com/session-keeper/session-keeper/hooklib"
	"github.com/session-keeper/session-keeper/internal/config"
)

// WorkerName is the program that archives what was handed off. It lies beside
// the hooks.
const WorkerName = "session-keeper-worker"

const (
	// inlineBudget is how long after its start a hook may still wait for the
	// worker, inlineStart until when it may begin to: a disk that made the
	// hand-off slow makes the rest slow as well.
	inlineBudget = 100 * time.Millisecond
	inlineStart  = 40 * time.Millisecond
	// inlineBytes bounds the transcript that a hook waits for.
	inlineBytes = 1 << 20
	// alwaysBudget is how long a hook waits where its user wants it always. It
	// stays below the most that the client gives a hook at a session's end
	// (observed on 2.1.332: 60 s).
	alwaysBudget = 55 * time.Second
)

// WorkerOf returns the path of the worker that a hook's program starts: beside
// it, or beside what it is a link to. Whether there is one is not said.
func WorkerOf(hook string) string {
	beside := filepath.Join(filepath.Dir(hook), WorkerName+filepath.Ext(hook))
	if _, err := os.Stat(beside); errors.Is(err, fs.ErrNotExist) {
		if real, err := filepath.EvalSymlinks(hook); err == nil {
			return filepath.Join(filepath.Dir(real), filepath.Base(beside))
		}
	}
	return beside
}

// startWorker starts the worker that outlives this process, unless one waits
// for its turn already. Without one the session stays in the spool, safe, and
// the next event that finds a worker has it archived: a failure that the user
// should see.
func (h *Handoff) startWorker(dir string) error {
	if dir == "" || h.NoWorker {
		return nil
	}
	worker := h.Worker
	if worker == "" {
		self, err := os.Executable()
		if err != nil {
			h.Log.Log(warn, "own path", "error", err)
			return nil
		}
		worker = WorkerOf(self)
	}
	err := spool.Start(dir, worker, dir)
	switch {
	case err == nil, errors.Is(err, spool.ErrBusy):
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return &hooklib.Failure{
			Err:  fmt.Errorf("the program that archives what hooks hand over cannot be run: %w", err),
			Hint: "sessions wait in the spool meanwhile; install session-keeper again, all of its programs belong into one folder",
		}
	}
	h.Log.Log(warn, "start worker", "spool", dir, "error", err)
	return nil
}

// awaitWorker waits until the worker has archived a session that ended: as long
// as that may take where the settings say so, else only if it is small, and
// then for a tenth of a second from the start of the hook at most. Where
// processes die with the client this is what gets a session into the archive.
func (h *Handoff) awaitWorker(c *hooklib.Call, dir string, receipt spool.Receipt) {
	var end time.Time
	switch h.Settings.Archive.Inline {
	case config.InlineAlways:
		end = c.Start.Add(alwaysBudget)
	case config.InlineAuto:
		if receipt.Size > inlineBytes || !receipt.Pinned || c.Elapsed() > inlineStart {
			return
		}
		end = c.Start.Add(inlineBudget)
	default:
		return
	}
	if dir == "" || receipt.Job == "" || h.NoWorker {
		return
	}
	pause := time.Millisecond
	for time.Now().Before(end) && !c.Interrupted() && spool.Waits(dir, receipt.Job) {
		time.Sleep(pause)
		pause = min(pause+pause/8, 50*time.Millisecond)
	}
}
