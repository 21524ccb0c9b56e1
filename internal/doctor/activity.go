package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/session-keeper/session-keeper/archive/spool"
	"github.com/session-keeper/session-keeper/internal/handoff"
	"github.com/session-keeper/session-keeper/internal/install"
	"github.com/session-keeper/session-keeper/internal/logfile"
	"github.com/session-keeper/session-keeper/internal/optout"
	"github.com/session-keeper/session-keeper/transcript"
)

// checkLastEvent tells what the log says of the last event that reached us.
func checkLastEvent(ctx context.Context, w *World) []Finding {
	if w.Settings == nil {
		return nil
	}
	var last, event *logfile.Entry
	newest := map[string]logfile.Entry{} // by session
	failures := 0
	err := logfile.Entries(handoff.LogDir(w.Settings.Paths.State), func(e logfile.Entry) bool {
		if w.Now.Sub(e.Time) > soon {
			return false
		}
		if last == nil {
			last = &e
		}
		if id := field(e, "session"); id != "" {
			if _, known := newest[id]; !known {
				newest[id] = e
			}
		}
		if event == nil && field(e, "event") != "" {
			event = &e
		}
		if e.Level == "error" {
			failures++
		}
		return true
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []Finding{note("log-unreadable", "", "the log cannot be read: %v", err)}
	}
	var found []Finding
	if last != nil && last.Level == "error" {
		found = append(found, problem("last-failed", fixArchive, "the last thing in the log, %s, is a failure of %s: %s", w.ago(last.Time), last.Program, outcome(*last)))
		failures--
	}
	if event == nil {
		if n := w.unheard(ctx); n > 0 {
			found = append(found, note("hook-silent", "start claude and see with /hooks whether SessionEnd is listed; if it is not, one value of a wrong type in a settings file may be why",
				"%s written since the hook was wired, and no event of the last seven days is in the log: unless they are still open, Claude Code does not run the hook", sessions(n)))
		} else {
			found = append(found, note("no-event", "", "no event of the last seven days is in the log: end a session of Claude Code, then look again"))
		}
	} else {
		what := field(*event, "event")
		if reason := field(*event, "reason"); reason != "" {
			what += " (" + reason + ")"
		}
		result := outcome(*event)
		if e, known := newest[field(*event, "session")]; known && e.Time.After(event.Time) {
			result += ", then " + outcome(e)
		}
		found = append(found, ok("last-event", "last event, %s: %s, %s", w.ago(event.Time), what, result))
	}
	if failures > 0 {
		found = append(found, note("failures", "look into "+handoff.LogDir(w.Settings.Paths.State), "failures in the log of the last seven days: %d", failures))
	}
	return found
}

// unheard counts the sessions that were written after the hook was wired and that
// nobody seems to work on any more. The client ignores a settings file for reasons
// that only it knows (one value of a wrong type does, observed on 2.1.332), and says
// nothing: this is how it shows.
func (w *World) unheard(ctx context.Context) int {
	wired := install.WiredAt(w.Settings.Paths.State)
	if w.Keeper == nil || wired.IsZero() {
		return 0
	}
	bundles, _, err := w.Keeper.Locator().Sessions(ctx)
	if err != nil {
		return 0 // checkCatchUp tells
	}
	// A session that was open at the time of the install has no hook; one that
	// was written to of late may be open still.
	const settling, idle = time.Hour, time.Hour
	n := 0
	for _, b := range bundles {
		if b.Transcript != "" && b.ModTime.After(wired.Add(settling)) && b.ModTime.Before(w.Now.Add(-idle)) && b.ModTime.After(w.Now.Add(-soon)) {
			n++
		}
	}
	return n
}

// field is a text of a log entry, "" if there is none of this name.
func field(e logfile.Entry, name string) string {
	text, _ := e.Fields[name].(string)
	return text
}

// outcome is what a log entry says happened.
func outcome(e logfile.Entry) string {
	if err := field(e, "error"); err != "" {
		return e.Message + ": " + err
	}
	return e.Message
}

func (w *World) ago(t time.Time) string {
	if w.Now.Sub(t) < time.Minute {
		return "just now"
	}
	return humanize.RelTime(t, w.Now, "ago", "ahead")
}

// recommendedDays keeps transcripts for a hundred years. Zero does not: old
// clients wiped everything at it, newer ones refuse the whole settings file.
const recommendedDays = 36500

// checkRetention looks how long the client keeps transcripts.
func checkRetention(_ context.Context, w *World) []Finding {
	dir := w.clientDir()
	if dir == "" {
		return nil
	}
	user := filepath.Join(dir, install.SettingsName)
	fix := fmt.Sprintf("write \"cleanupPeriodDays\": %d into %s", recommendedDays, user)
	files := append(append([]string{user}, ProjectFiles(w.Env.Dir)...), w.Managed)
	settings := w.retentionSettings(files...)
	r := transcript.EffectiveRetention(settings...)
	var found []Finding
	for _, bad := range r.Invalid {
		found = append(found, problem("retention-invalid", fmt.Sprintf("write \"cleanupPeriodDays\": %d into %s", recommendedDays, bad.Where),
			"cleanupPeriodDays is %.64s, which Claude Code does not take (%s): newer versions ignore the whole file, hooks included, older ones may delete every transcript", bad.Raw, bad.Reason).at(bad.Where, 0))
	}
	switch {
	case len(settings) == 0:
		found = append(found, note("retention-default", fix, "Claude Code deletes transcripts after %d days, its default: from then on a session must be restored before it can be resumed", r.Days))
	case r.Days < transcript.DefaultCleanupDays:
		found = append(found, note("retention-short", fmt.Sprintf("write \"cleanupPeriodDays\": %d into %s", recommendedDays, r.Where),
			"Claude Code deletes transcripts after %d days", r.Days).at(r.Where, 0))
	case len(r.Invalid) == 0:
		found = append(found, ok("retention", "Claude Code keeps transcripts for %d days", r.Days).at(r.Where, 0))
	}
	return found
}

// checkKeptOut tells what the user keeps out of the archive.
func checkKeptOut(_ context.Context, w *World) []Finding {
	if w.Settings == nil {
		return nil
	}
	var found []Finding
	pause, paused, err := optout.PausedAt(w.Settings.Paths.State, w.Now)
	switch {
	case err != nil:
		found = append(found, problem("pause-unreadable", "session-keeper unpause", "whether archiving is paused cannot be read: %v", err))
	case paused:
		until := "until session-keeper unpause"
		if !pause.Until.IsZero() {
			until = "until " + pause.Until.Local().Format("2006-01-02 15:04")
		}
		found = append(found, note("paused", "session-keeper unpause", "archiving is paused %s", until))
	}
	if n := len(w.Settings.Archive.Exclude); n > 0 {
		found = append(found, ok("excludes", "exclude patterns in %s: %d", w.short(w.Settings.Paths.Config), n))
	}
	return found
}

// checkCatchUp counts the sessions that are not archived.
func checkCatchUp(ctx context.Context, w *World) []Finding {
	if w.Settings == nil || w.Keeper == nil {
		return nil
	}
	n, err := w.Survey(ctx)
	if err != nil {
		return []Finding{note("survey-failed", "", "sessions cannot be counted: %v", err)}
	}
	var found []Finding
	switch {
	case n.MissingExpiring > 0:
		found = append(found, problem("expiring", fixArchive, "%s of %s not archived, and Claude Code deletes %s of them within a week", count(n.Missing), sessions(n.Sessions), count(n.MissingExpiring)))
	case n.Missing > 0:
		found = append(found, note("not-archived", fixArchive, "%s of %s not archived", count(n.Missing), sessions(n.Sessions)))
	default:
		found = append(found, ok("archived", "%s on this machine, %s, none left out", sessions(n.Sessions), humanize.Bytes(uint64(n.Bytes))))
	}
	if n.KeptOut > 0 {
		found = append(found, note("kept-out", "session-keeper archive ID takes one in after all", "%s kept out of the archive, because you said so", sessions(n.KeptOut)))
	}
	for _, s := range n.Unreadable {
		found = append(found, note("unreadable", "", "%s: %s", s.Path, s.Reason).at(s.Path, 0))
	}
	return found
}

func count(n int) string { return humanize.Comma(int64(n)) }

func sessions(n int) string {
	if n == 1 {
		return "1 session"
	}
	return count(n) + " sessions"
}

// lingering is how long a job may wait before that is worth a word.
const lingering = time.Hour

// checkSpools looks for work that waits, and for work that was given up.
func checkSpools(_ context.Context, w *World) []Finding {
	if w.Keeper == nil {
		return nil
	}
	dirs, err := w.Keeper.Spools()
	if err != nil {
		return []Finding{note("spool-unknown", "", "remembered spools cannot be read: %v", err)}
	}
	var found []Finding
	waiting, overdue, fresh := 0, 0, 0
	for _, dir := range dirs {
		sum, err := spool.Status(dir)
		if err != nil {
			found = append(found, problem("spool-unreadable", "", "spool %s: %v", dir, err).at(dir, 0))
			continue
		}
		found = append(found, w.checkMode(dir, "the spool")...)
		for _, job := range sum.Waiting {
			since := w.ago(job.Since)
			switch {
			case job.Parked:
				f := problem("parked", fixArchive, "session %s in the spool, handed over %s, could not be archived: %s", job.SessionID, since, job.LastError)
				if job.OnlyName {
					f.Message += "; Claude Code has deleted its own copy, so leave the spool alone"
				}
				found = append(found, f.at(dir, 0))
			case w.Now.Sub(job.Since) > lingering:
				overdue++
			default:
				fresh++
			}
			waiting++
		}
		if n := len(sum.Aside); n > 0 {
			found = append(found, note("spool-aside", "look at them, then delete them", "%d files in the spool are not ours, or damaged: %s", n, sum.Aside[0]).at(dir, 0))
		}
		if n := len(sum.Newer); n > 0 {
			found = append(found, note("spool-newer", "install the newer version of session-keeper", "%d jobs in the spool were written by a newer version", n).at(dir, 0))
		}
		for _, err := range sum.Errors {
			found = append(found, note("spool-damaged", "", "spool: %v", err).at(dir, 0))
		}
	}
	if overdue > 0 {
		found = append(found, note("spool-overdue", fixArchive, "%s waiting in the spool for more than an hour: no worker has come to them", sessions(overdue)))
	}
	switch {
	case waiting == 0:
		found = append(found, ok("spool", "no session waits to be archived"))
	case fresh > 0:
		found = append(found, ok("spool", "%s being archived", sessions(fresh)))
	}
	return found
}
