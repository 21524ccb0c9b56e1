package restore

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/session-keeper/session-keeper/transcript"
)

// The client's clean-up goes by modification time alone, and --continue takes
// the newest transcript of the folder (observed on 2.1.332). A restored file
// therefore keeps its archived time only while half of the period is left;
// else it gets just that half, which keeps it below what was used since.

const (
	// below is the distance kept from the newest other transcript: the
	// coarsest clock of a common file system (FAT) counts two seconds.
	below = 2 * time.Second
	// cleanupMargin must be left of the period at least: clean-up runs once
	// a day, so a file with less could go at the next one.
	cleanupMargin = 48 * time.Hour
)

// freshTime gives the time for a file that only has to survive.
func freshTime(archived, now time.Time, period time.Duration) time.Time {
	if archived.After(now) {
		return now
	}
	if half := now.Add(-period / 2); archived.Before(half) {
		return half
	}
	return archived
}

// transcriptTime gives the time for the transcript. newest is the time of the
// newest other transcript of the folder, zero if there is none. over reports
// that the restored one has to be newer than that one, because what lies below
// would not survive the next clean-up.
func transcriptTime(archived, now time.Time, period time.Duration, newest time.Time) (t time.Time, over bool) {
	t = freshTime(archived, now, period)
	if newest.IsZero() || t.Before(newest) || archived.After(newest) {
		// Nothing to stay below, or it was the newest before it went.
		return t, false
	}
	lower := newest.Add(-below)
	margin := min(cleanupMargin, period/4)
	if lower.Before(now.Add(-period + margin)) {
		return t, true
	}
	return lower, false
}

// newestOther gives the modification time of the newest transcript in folder
// that --continue would take, other than the session's own.
func newestOther(folder, sessionID string) (time.Time, error) {
	var newest time.Time
	entries, err := os.ReadDir(folder)
	if err != nil {
		if os.IsNotExist(err) {
			return newest, nil
		}
		return newest, err
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok || id == sessionID || !transcript.ValidSessionID(id) {
			continue
		}
		fi, err := os.Stat(filepath.Join(folder, e.Name()))
		if err != nil || !fi.Mode().IsRegular() || fi.Size() == 0 {
			continue // dangling link or gone meanwhile: nothing to continue
		}
		if fi.ModTime().After(newest) {
			newest = fi.ModTime()
		}
	}
	return newest, nil
}
