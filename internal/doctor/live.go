package doctor

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/session-keeper/session-keeper/internal/handoff"
	"github.com/session-keeper/session-keeper/internal/logfile"
)

// checkLive has every command of ours that is wired do its work, as the client
// would have it. The same command at several places is tried once for each
// event. What a plugin wires is left out: it gets variables from the client that
// are not known here.
func checkLive(ctx context.Context, w *World) []Finding {
	if w.Try == nil || w.Settings == nil {
		return nil
	}
	var found []Finding
	tried := map[string]bool{}
	for _, f := range w.clientSettings() {
		if f.settings == nil {
			continue
		}
		for _, h := range f.settings.Hooks() {
			if !h.Ours() || !slices.Contains(archivingEvents, h.Event) || tried[h.Event+" "+h.Display()] || ctx.Err() != nil {
				continue
			}
			tried[h.Event+" "+h.Display()] = true
			if !h.Plain {
				// It may lead anywhere, to the user's own archive too.
				found = append(found, note("self-test-skipped", "", "at %s the hook runs in a way of your own, which was not tried", h.Event).at(h.File, h.Line))
				continue
			}
			took, err := w.Try(ctx, h)
			if err != nil {
				found = append(found, problem("self-test-failed", fixInstall,
					"at %s the wired command does not do its work: %v", h.Event, err).at(h.File, h.Line))
				continue
			}
			found = append(found, ok("self-test", "at %s the wired command archived a sample session, which was then deleted and restored, byte for byte; it took %d ms",
				h.Event, took.Milliseconds()).at(h.File, h.Line))
		}
	}
	return found
}

// archivingEvents are those at which a session is archived.
var archivingEvents = []string{"SessionEnd", "Stop", "StopFailure", "SubagentStop", "PreCompact", "PostCompact"}

// speedRuns is over how many runs of each hook the time is taken.
const speedRuns = 100

// slowHook is from when on a median is worth a note.
const slowHook = 100 * time.Millisecond

// checkSpeed tells how long the hooks took to get sessions to safety.
func checkSpeed(_ context.Context, w *World) []Finding {
	if w.Settings == nil {
		return nil
	}
	took := map[string][]time.Duration{} // by program
	err := logfile.Entries(handoff.LogDir(w.Settings.Paths.State), func(e logfile.Entry) bool {
		if d, err := time.ParseDuration(field(e, "took")); err == nil && e.Message == handoff.HandedOff && len(took[e.Program]) < speedRuns {
			took[e.Program] = append(took[e.Program], d)
		}
		return true
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil // checkLastEvent tells
	}
	var found []Finding
	programs := make([]string, 0, len(took))
	for program := range took {
		programs = append(programs, program)
	}
	slices.Sort(programs)
	for _, program := range programs {
		times := took[program]
		slices.Sort(times)
		median, worst := times[len(times)/2], times[len(times)-1]
		finding := ok
		if median > slowHook {
			finding = func(code, format string, args ...any) Finding {
				return note(code, "look whether the disk with "+w.Settings.Paths.State+" is slow or full", format, args...)
			}
		}
		found = append(found, finding("hook-time", "%s got a session to safety within %s (median of the last %d runs; %s at worst)",
			program, milliseconds(median), len(times), milliseconds(worst)))
	}
	return found
}

func milliseconds(d time.Duration) string { return d.Round(100 * time.Microsecond).String() }
