//go:build unix

package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// fill puts one of each kind of waiting session into the spool: with three
// jobs and side files, a husk, a bare pin, side files alone. It returns what
// must be stored of each.
func fill(s *scene) map[string]string {
	want := map[string]string{}
	for i, kind := range []string{"full", "husk", "bare", "side"} {
		id := sessionID(i + 1)
		side := s.write("project/"+id+"/side", kind)
		r := s.request(id)
		r.Side = slices.Values([]File{{"session", "a/side", side}, {"tasks", "side", side}})
		content := ""
		if kind != "husk" {
			s.write(r.Transcript, "")
		} else {
			r.Transcript = ""
		}
		for n := range 3 {
			if kind != "husk" {
				s.append(r.Transcript, fmt.Sprintf("%s %d\n", kind, n))
				content += fmt.Sprintf("%s %d\n", kind, n)
			}
			if _, err := HandOff(context.Background(), s.spool, r); err != nil {
				s.t.Fatal(err)
			}
		}
		if kind == "bare" || kind == "side" {
			for _, job := range s.in(jobsDir) {
				if strings.Contains(job, id) {
					s.remove(filepath.Join(s.spool, jobsDir, job))
				}
			}
		}
		if kind == "side" {
			content = ""
			for _, pin := range s.in(pinsDir) {
				if strings.Contains(pin, id) {
					s.remove(filepath.Join(s.spool, pinsDir, pin))
				}
			}
		}
		want[id] = content
	}
	s.remove(filepath.Join(s.home, "project"))
	return want
}

func (s *scene) wantStored(when string, want map[string]string) {
	s.t.Helper()
	for id, content := range want {
		if content != "" && !s.store.has(id, content) {
			s.t.Errorf("%s: %s holds %q, want %q", when, id, s.store.versions[id], content)
		}
		for _, name := range []string{"session/a/side", "tasks/side"} {
			if s.store.side[id][name] == "" {
				s.t.Errorf("%s: %s has no side file %s", when, id, name)
			}
		}
	}
}

func TestDrainAllKinds(t *testing.T) {
	s := newScene(t)
	want := fill(s)
	if stats := s.drain(); stats != (Stats{Done: 4}) {
		t.Errorf("%+v", stats)
	}
	s.wantStored("once", want)
	s.wantEmpty("once")
	if n := len(s.store.works); n != 4 {
		t.Errorf("%d calls of Process: jobs of one session are one", n)
	}
	if n := len(s.store.works[0].Events); n != 1 {
		t.Errorf("%d events: three hand-offs told the same one", n)
	}
	if stats := s.drain(); stats != (Stats{}) {
		t.Errorf("again: %+v", stats)
	}
	if stats, err := Drain(context.Background(), filepath.Join(s.home, "absent"), s.options()); err != nil || stats != (Stats{}) {
		t.Errorf("no spool: %+v, %v", stats, err)
	}
}

// SE-04, SE-13: a worker may die at each thing it does, and be given a failing
// store before or after: nothing is lost, and the next one finishes.
func TestDrainCrash(t *testing.T) {
	for _, failing := range []bool{false, true} {
		for n := 1; ; n++ {
			done := false
			for _, after := range []bool{false, true} {
				name := fmt.Sprintf("operation %d, after %v, failing %v", n, after, failing)
				s := newQuickScene(t)
				want := fill(s)
				if failing {
					s.store.fail = func(w Work) error { return errors.New("no") }
				}
				count, restore := crashAt(n, after)
				stats, err := Drain(context.Background(), s.spool, s.options())
				restore()
				s.store.fail = nil
				if *count < n {
					done = true
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
				} else if err == nil && stats.Failed == 0 {
					// Only what is swept or noted may fail unseen.
					if stats.Done != 4 {
						t.Errorf("%s: all is well, it says: %+v", name, stats)
					}
				}
				s.later()
				s.drain()
				s.wantStored(name, want)
				s.wantEmpty(name)
				if done {
					break
				}
			}
			if done {
				if n < 20 {
					t.Errorf("only %d operations", n-1)
				}
				break
			}
		}
	}
}

// A hand-off may come at each moment of a drain, get as far as each of its own
// steps, and die there; and the client may delete the file right after. What it
// saw at its start is stored, if a pin was there when it died.
func TestHandOffDuringSettle(t *testing.T) {
	id := sessionID(1)
	type moment struct{ drainOp, handOffOp int }
	total := 0
	for drainOp := 1; ; drainOp++ {
		ran := false
		// The hand-off has seven operations when the spool is warm, plus a
		// repeated pin; 99 is never reached.
		for _, handOffOp := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 99} {
			at := moment{drainOp, handOffOp}
			s := newQuickScene(t)
			s.write(s.transcript(id), "first\n")
			s.handOff(id)
			saw, pinned := "", false
			n, inner, nested := 0, 0, false
			restore := durable.SetFault(func(op, path string, after bool) error {
				if nested {
					if !after {
						inner++
					}
					if inner > handOffOp {
						return errCrash
					}
					return nil
				}
				if !after {
					n++
				}
				if n != drainOp || after {
					return nil
				}
				nested = true
				s.append(s.transcript(id), "second\n")
				saw = "first\nsecond\n"
				r := s.request(id)
				r.Event.Time = r.Event.Time.Add(time.Second)
				_, err := HandOff(context.Background(), s.spool, r)
				if err != nil && !errors.Is(err, errCrash) {
					t.Errorf("%+v: %v", at, err)
				}
				pinned = inner > 1 || err == nil // its link was made, or was there
				nested = false
				if pinned {
					s.remove(s.transcript(id))
				}
				return nil
			})
			_, err := Drain(context.Background(), s.spool, s.options())
			restore()
			if err != nil {
				t.Fatalf("%+v: %v", at, err)
			}
			if saw == "" {
				break
			}
			ran = true
			total++
			s.drain()
			if !pinned {
				saw = "first\n"
			}
			if !s.store.has(id, saw) {
				t.Errorf("%+v: stored %q, want %q", at, s.store.versions[id], saw)
			}
			s.later()
			s.drain()
			s.wantEmpty(fmt.Sprintf("%+v", at))
		}
		if !ran {
			break
		}
	}
	if total < 100 {
		t.Errorf("only %d moments were tried", total)
	}
}

// A pin that grows while it is stored is stored again until it keeps still; if
// it never does it stays, and the drain ends.
func TestFileThatGrowsMeanwhile(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	s.write(s.transcript(id), "a")
	s.handOff(id)
	grow := 2
	s.store.during = func(w Work) {
		if grow > 0 {
			grow--
			s.append(s.transcript(id), "b")
		}
	}
	if stats := s.drain(); stats != (Stats{Done: 1}) {
		t.Errorf("grows twice: %+v", stats)
	}
	if !s.store.has(id, "abb") {
		t.Errorf("stored: %q", s.store.versions[id])
	}
	s.wantEmpty("afterwards")

	s.handOff(id)
	grow = 1000
	if stats := s.drain(); stats != (Stats{Changing: 1, Left: 1}) {
		t.Errorf("grows for ever: %+v", stats)
	}
	if len(s.pins()) != 1 || len(s.in(jobsDir)) != 1 {
		t.Errorf("job or pin are gone: %q", s.files())
	}
	grow = 0
	s.drain()
	data, err := os.ReadFile(s.transcript(id))
	if err != nil || !s.store.has(id, string(data)) {
		t.Errorf("the end is not stored: %v", err)
	}
	s.wantEmpty("at last")
}

func TestSideFileThatChangesMeanwhile(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	s.write(s.transcript(id), "a")
	side := s.write("project/side", "1")
	r := s.request(id)
	r.Side = slices.Values([]File{{"session", "side", side}})
	if _, err := HandOff(context.Background(), s.spool, r); err != nil {
		t.Fatal(err)
	}
	once := true
	s.store.during = func(w Work) {
		if once {
			once = false
			s.append(side, "2")
		}
	}
	s.drain()
	if got := s.store.side[id]["session/side"]; got != "12" {
		t.Errorf("stored: %q", got)
	}
	s.wantEmpty("afterwards")
}

// Of a side file that was replaced between two hand-offs the newer is stored.
func TestNewestSideFile(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	s.write(s.transcript(id), "a")
	side := filepath.Join(s.home, "project", "side")
	for i, content := range []string{"new", "old"} {
		s.write("tmp", content)
		when := testTime.Add(-time.Duration(i) * time.Hour)
		if err := os.Chtimes(filepath.Join(s.home, "tmp"), when, when); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(s.home, "tmp"), side); err != nil {
			t.Fatal(err)
		}
		r := s.request(id)
		r.Side = slices.Values([]File{{"session", "side", side}})
		if _, err := HandOff(context.Background(), s.spool, r); err != nil {
			t.Fatal(err)
		}
	}
	s.drain()
	if got := s.store.side[id]["session/side"]; got != "new" {
		t.Errorf("stored: %q", got)
	}
	s.wantEmpty("afterwards")
}

// RE-01: one drains, the others leave at once; what they came for is not left
// lying.
func TestTwoDrainers(t *testing.T) {
	s := newScene(t)
	first, second := sessionID(1), sessionID(2)
	s.write(s.transcript(first), "first")
	s.write(s.transcript(second), "second")
	s.handOff(first)
	once := true
	s.store.during = func(Work) {
		if once {
			once = false
			s.handOff(second)
			start := time.Now()
			if _, err := Drain(context.Background(), s.spool, s.options()); !errors.Is(err, ErrBusy) {
				t.Errorf("second drainer: %v", err)
			}
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("it waited %v", d)
			}
			if sum, err := Status(s.spool); err != nil || !sum.Busy {
				t.Errorf("status: %+v, %v", sum, err)
			}
		}
	}
	if stats := s.drain(); stats != (Stats{Done: 2}) {
		t.Errorf("%+v", stats)
	}

	// A hand-off comes after the holder has looked for the last time under the
	// lock, and its own worker finds the spool busy.
	s.handOff(first)
	worked, came := false, false
	s.store.during = func(Work) { worked = true }
	o := s.options()
	o.Now = func() time.Time {
		// The clock is read after each look: the one after the work found
		// nothing.
		if worked && !came {
			came = true
			s.handOff(second)
			if _, err := Drain(context.Background(), s.spool, s.options()); !errors.Is(err, ErrBusy) {
				t.Errorf("second drainer: %v", err)
			}
		}
		return s.clock
	}
	if stats, err := Drain(context.Background(), s.spool, o); err != nil || stats != (Stats{Done: 2}) || !came {
		t.Errorf("%+v, %v", stats, err)
	}
	s.wantEmpty("after the last look")
}

// SE-13: the spool of a worker that was killed is free, and what it was at is
// done by the next one.
func TestKilledWorker(t *testing.T) {
	s := newScene(t)
	id, other := sessionID(1), sessionID(2)
	s.write(s.transcript(id), "deadly")
	s.write(s.transcript(other), "harmless")
	s.handOff(id)
	s.clock = s.clock.Add(time.Second)
	s.handOff(other)
	die := func() {
		t.Helper()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killedEnv+"="+s.spool, killedEnv+"_AT="+id)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("the worker was not killed: %v\n%s", err, out)
		}
	}
	die()
	if left := s.in(jobsDir); len(left) != 2 {
		t.Errorf("jobs after its death: %q", left)
	}
	// The next one sees to the others first, and so on until it is enough.
	for range maxFailures - 1 {
		die()
	}
	if left := s.in(jobsDir); len(left) != 1 || !strings.Contains(left[0], id) {
		t.Errorf("jobs after %d deaths: %q", maxFailures, left)
	}
	var out []Outcome
	o := s.options()
	o.Report = func(x Outcome) { out = append(out, x) }
	stats, err := Drain(context.Background(), s.spool, o)
	if err != nil || stats != (Stats{Parked: 1}) {
		t.Errorf("%+v, %v, %+v", stats, err, out)
	}
	if len(s.pins()) != 1 {
		t.Error("its pin is gone")
	}
	// Its next event gets it another try.
	s.handOff(id)
	if stats := s.drain(); stats != (Stats{Done: 1}) {
		t.Errorf("%+v", stats)
	}
	if !s.store.has(id, "deadly") {
		t.Error("it is not stored")
	}
	s.wantEmpty("afterwards")
}

func TestParking(t *testing.T) {
	s := newScene(t)
	bad, good := sessionID(1), sessionID(2)
	s.write(s.transcript(bad), "bad")
	s.write(s.transcript(good), "good")
	s.store.fail = func(w Work) error {
		if w.SessionID == bad {
			return errors.New("the store says no\nand more")
		}
		return nil
	}
	s.handOff(bad)
	s.handOff(good)
	s.remove(s.transcript(bad))
	for i := 1; i <= maxFailures; i++ {
		s.clock = s.clock.Add(time.Minute)
		stats := s.drain()
		want := Stats{Failed: 1, Left: 1}
		if i == maxFailures {
			want = Stats{Parked: 1}
		}
		if i == 1 {
			want.Done = 1 // it holds nobody up
		}
		if stats != want {
			t.Errorf("drain %d: %+v, want %+v", i, stats, want)
		}
	}
	parked := s.clock
	sum, err := Status(s.spool)
	if err != nil || len(sum.Waiting) != 1 {
		t.Fatalf("%+v, %v", sum, err)
	}
	w := sum.Waiting[0]
	want := Waiting{SessionID: bad, StoreRoot: s.root, Transcript: s.transcript(bad), Since: testTime.Local(), Parked: true, Attempts: maxFailures,
		LastError: "the store says no", LastTry: parked, Pinned: true, Size: 3, OnlyName: true}
	if fmt.Sprintf("%+v", w) != fmt.Sprintf("%+v", want) {
		t.Errorf("status:\n got %+v\nwant %+v", w, want)
	}

	for _, tt := range []struct {
		after time.Duration
		want  Stats
	}{
		{parkedRetry - time.Second, Stats{}},
		{parkedRetry, Stats{Parked: 1}},
		{parkedRetry + time.Hour, Stats{}},
		{2 * parkedRetry, Stats{Parked: 1}},
		{-time.Hour, Stats{Parked: 1}}, // a clock set back does not make it rest for days
	} {
		s.clock = parked.Add(tt.after)
		if stats := s.drain(); stats != tt.want {
			t.Errorf("%v after it was parked: %+v, want %+v", tt.after, stats, tt.want)
		}
	}

	// A new event is a new try, with the old events told too.
	s.write(s.transcript(bad), "bad again")
	s.clock = parked.Add(30 * time.Minute)
	s.handOff(bad)
	if stats := s.drain(); stats != (Stats{Parked: 2}) { // the new file, and the old one beside it
		t.Logf("with a new event: %+v", stats)
	}
	s.store.fail = nil
	s.clock = s.clock.Add(3 * parkedRetry)
	s.drain()
	for _, want := range []string{"bad", "bad again"} {
		if !s.store.has(bad, want) {
			t.Errorf("%q is lost", want)
		}
	}
	s.wantEmpty("at last")
}

func TestProcessVerdicts(t *testing.T) {
	for _, tt := range []struct {
		name     string
		process  func(ctx context.Context, w Work) (int64, error)
		want     Stats
		jobs     int
		parked   int
		pins     int
		attempts int
	}{
		{"refused", func(context.Context, Work) (int64, error) {
			return 0, fmt.Errorf("%w: needs version 9", ErrRefused)
		}, Stats{Parked: 1}, 0, 1, 1, 1},
		{"discard", func(context.Context, Work) (int64, error) { return 0, fmt.Errorf("%w: forgotten", ErrDiscard) },
			Stats{Discarded: 1}, 0, 0, 0, 0},
		{"panic", func(context.Context, Work) (int64, error) { panic("oops") }, Stats{Failed: 1, Left: 1}, 1, 0, 1, 1},
		{"too little", func(context.Context, Work) (int64, error) { return 3, nil }, Stats{Failed: 1, Left: 1}, 1, 0, 1, 1},
		{"all", func(context.Context, Work) (int64, error) { return 4, nil }, Stats{Done: 1}, 0, 0, 0, 0},
		{"more than it was", func(context.Context, Work) (int64, error) { return 5, nil }, Stats{Done: 1}, 0, 0, 0, 0},
	} {
		for _, bare := range []bool{false, true} {
			s := newScene(t)
			id := sessionID(1)
			s.write(s.transcript(id), "four")
			side := s.write("project/side", "1")
			r := s.request(id)
			r.Side = slices.Values([]File{{"session", "side", side}})
			if _, err := HandOff(context.Background(), s.spool, r); err != nil {
				t.Fatal(err)
			}
			if bare {
				s.remove(filepath.Join(s.spool, jobsDir))
			}
			var out []Outcome
			o := s.options()
			o.Process = tt.process
			o.Report = func(x Outcome) { out = append(out, x) }
			stats, err := Drain(context.Background(), s.spool, o)
			if err != nil || stats != tt.want {
				t.Errorf("%s, bare %v: %+v, %v", tt.name, bare, stats, err)
			}
			if len(s.in(jobsDir)) != tt.jobs || len(s.in(parkedDir)) != tt.parked || len(s.pins()) != tt.pins || len(s.in(sideDir)) != tt.pins {
				t.Errorf("%s, bare %v: left %q", tt.name, bare, s.files())
			}
			if len(out) != 1 || out[0].SessionID != id || out[0].Attempts != tt.attempts || (out[0].Err == nil) != (out[0].What == Done) {
				t.Errorf("%s, bare %v: told %+v", tt.name, bare, out)
			}
			s.drain()
			if tt.parked == 0 {
				s.wantEmpty(tt.name)
			}
		}
	}
}

// What was interrupted has not failed.
func TestInterruptedDrain(t *testing.T) {
	s := newScene(t)
	want := fill(s)
	ctx, cancel := context.WithCancel(context.Background())
	s.store.fail = func(Work) error { cancel(); return ctx.Err() }
	stats, err := Drain(ctx, s.spool, s.options())
	if !errors.Is(err, context.Canceled) || stats.Failed != 0 || stats.Left != 4 {
		t.Errorf("%+v, %v", stats, err)
	}
	sum, err := Status(s.spool)
	if err != nil || sum.Busy || len(sum.Waiting) != 4 || sum.Waiting[0].Attempts != 0 {
		t.Errorf("status: %+v, %v", sum, err)
	}
	s.store.fail = nil
	s.drain()
	s.wantStored("after it", want)
	s.wantEmpty("after it")
}

// In a hook's own process only its session is worked on; the rest is told.
func TestDrainOfOneSession(t *testing.T) {
	s := newScene(t)
	for i := range 3 {
		s.write(s.transcript(sessionID(i)), "x")
		s.handOff(sessionID(i))
	}
	o := s.options()
	o.Session = sessionID(1)
	stats, err := Drain(context.Background(), s.spool, o)
	if err != nil || stats != (Stats{Done: 1, Left: 2}) {
		t.Errorf("%+v, %v", stats, err)
	}
	if len(s.store.works) != 1 || s.store.works[0].SessionID != o.Session {
		t.Errorf("worked on %+v", s.store.works)
	}
}

// Files that nobody of ours wrote are moved out of the way, once, and block
// nothing.
func TestStrangeFiles(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	want := fill(s)
	valid := newJobName(id, testTime).String()
	key := StoreKey(s.root)
	strange := []string{
		"jobs/readme.txt", "jobs/" + valid, "jobs/.hidden", "jobs/" + newJobName(id, testTime).String(),
		"parked/" + newJobName(id, testTime).String(), "pins/x", "pins/" + key + "." + id + ".1-", "pins/" + key + "." + id + ".1-2.0.snap",
		"side/file", "settling/what", "pins/" + key + "." + strings.ToUpper(sessionID(0xabc)) + ".1-2",
	}
	contents := []string{"", "{", "null", "{}", `{"version":1}`, `[1]`, "\x00\xff", `{"version":1,"session":"` + id + `","store":"relative"}`, strings.Repeat("[", 100000), "x", "y"}
	for i, name := range strange {
		s.write(filepath.Join(s.spool, name), contents[i])
	}
	for _, dir := range []string{"jobs/" + newJobName(id, testTime).String(), "pins/" + key + "." + id + ".77-77", "side/folder", "settling/folder"} {
		if err := os.MkdirAll(filepath.Join(s.spool, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		strange = append(strange, dir)
	}
	for _, link := range []string{"jobs/" + newJobName(id, testTime).String(), "pins/" + key + "." + id + ".78-78"} {
		if err := os.Symlink("/etc/passwd", filepath.Join(s.spool, link)); err != nil {
			t.Fatal(err)
		}
		strange = append(strange, link)
	}
	// Those in settling/ are moved by the tidying, and are not counted.
	counted := len(strange) - 2
	stats := s.drain()
	if stats.SetAside != counted || stats.Done != 4 {
		t.Errorf("%+v, want %d set aside", stats, counted)
	}
	s.wantStored("beside strange files", want)
	if got := len(s.in(asideDir)); got != len(strange) {
		t.Errorf("%d files aside, want %d: %q", got, len(strange), s.in(asideDir))
	}
	if stats := s.drain(); stats != (Stats{}) {
		t.Errorf("again: %+v", stats)
	}
	sum, err := Status(s.spool)
	if err != nil || len(sum.Aside) != len(strange) || len(sum.Waiting) != 0 {
		t.Errorf("status: %d aside, %d waiting, %v", len(sum.Aside), len(sum.Waiting), err)
	}
}

// A job of a later version is left for a later program.
func TestNewerJob(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	s.write(s.transcript(id), "x")
	rec := s.handOff(id)
	path := filepath.Join(s.spool, jobsDir, rec.Job)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s.write(path, strings.Replace(string(data), `"version":1`, `"version":2`, 1))
	s.drain()
	if jobs := s.in(jobsDir); len(jobs) != 1 {
		t.Errorf("jobs: %q", jobs)
	}
	if sum, err := Status(s.spool); err != nil || len(sum.Newer) != 1 {
		t.Errorf("status: %+v, %v", sum, err)
	}
}

// A bare pin whose store nobody knows waits, and is told.
func TestPinOfAnUnknownStore(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	s.write(s.transcript(id), "x")
	s.handOff(id)
	s.remove(filepath.Join(s.spool, jobsDir))
	for _, record := range []string{"", "{", `{"version":1,"root":"/elsewhere"}`} {
		s.remove(filepath.Join(s.spool, storesDir))
		if record != "" {
			s.write(storePath(s.spool, StoreKey(s.root)), record)
		}
		if stats := s.drain(); stats != (Stats{}) {
			t.Errorf("record %q: %+v", record, stats)
		}
	}
	if sum, err := Status(s.spool); err != nil || len(sum.Waiting) != 1 || sum.Waiting[0].StoreRoot != "" || !sum.Waiting[0].Pinned {
		t.Errorf("status: %+v, %v", sum, err)
	}
	o := s.options()
	o.StoreRoots = []string{"relative", "/elsewhere", s.root}
	if stats, err := Drain(context.Background(), s.spool, o); err != nil || stats != (Stats{Done: 1}) {
		t.Errorf("%+v, %v", stats, err)
	}
	s.wantEmpty("afterwards")
}

// AR-07: two files of one session, one put in the place of the other, are both
// kept.
func TestTranscriptReplacedBetweenHandOffs(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	s.write(s.transcript(id), "long and old")
	s.handOff(id)
	s.write("new", "short")
	if err := os.Rename(filepath.Join(s.home, "new"), s.transcript(id)); err != nil {
		t.Fatal(err)
	}
	s.clock = s.clock.Add(time.Second)
	s.handOff(id)
	s.remove(s.transcript(id))
	s.drain()
	if got := s.store.versions[id]; !slices.Equal(got, []string{"long and old", "short"}) {
		t.Errorf("stored: %q", got)
	}
	s.wantEmpty("afterwards")
}

// AR-07: a snapshot is stored if its pin was rewritten in place, before it and
// only then.
func TestSnapshots(t *testing.T) {
	for _, tt := range []struct {
		name, snap, pin string
		want            []string
	}{
		{"the same", "abc", "abc", []string{"abc"}},
		{"grown", "abc", "abcdef", []string{"abcdef"}},
		{"truncated", "abcdef", "abc", []string{"abcdef", "abc"}},
		{"rewritten", "abc", "xyz", []string{"abc", "xyz"}},
		{"rewritten longer", "abc", "xyzxyz", []string{"abc", "xyzxyz"}},
		{"emptied", "abc", "", []string{"abc", ""}},
		{"was empty", "", "abc", []string{"abc"}},
	} {
		s := newScene(t)
		id := sessionID(1)
		s.write(s.transcript(id), tt.pin)
		s.handOff(id)
		s.write(filepath.Join(s.spool, pinsDir, s.in(pinsDir)[0]+".1"+snapSuffix), tt.snap)
		s.drain()
		if got := s.store.versions[id]; !slices.Equal(got, tt.want) {
			t.Errorf("%s: stored %q, want %q", tt.name, got, tt.want)
		}
		s.wantEmpty(tt.name)
	}
}

// Where the file system has clones, a transcript that is rewritten in place
// while the store is away is kept as it was at the first try, too.
func TestRewrittenWhileTheStoreIsAway(t *testing.T) {
	s := newScene(t)
	probe, err := os.Open(s.write("probe", "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()
	err = durable.Clone(probe, filepath.Join(s.home, "clone"))
	clones := !errors.Is(err, durable.ErrNoClone)
	if clones && err != nil {
		t.Fatal(err)
	}
	id := sessionID(1)
	s.write(s.transcript(id), "as it was")
	s.store.fail = func(Work) error { return errors.New("away") }
	s.handOff(id)
	s.drain()
	s.drain() // an unchanged file needs no second snapshot
	if snaps := len(s.in(pinsDir)) - len(s.pins()); clones && snaps != 1 || !clones && snaps != 0 {
		t.Errorf("%d snapshots, clones %v", snaps, clones)
	}
	s.write(s.transcript(id), "short")
	s.store.fail = nil
	s.drain()
	if s.store.has(id, "as it was") != clones || !s.store.has(id, "short") {
		t.Errorf("clones %v, stored %q", clones, s.store.versions[id])
	}
	s.wantEmpty("afterwards")
	t.Logf("the file system has clones: %v", clones)
}

// noLinks makes the file system refuse hard links, as between two of them.
func noLinks(t *testing.T) {
	t.Helper()
	t.Cleanup(durable.SetFault(func(op, path string, after bool) error {
		if op == "link" && !after {
			return &os.LinkError{Op: "link", New: path, Err: syscall.EXDEV}
		}
		return nil
	}))
}

// Without hard links the job goes in first, and the worker makes a copy before
// it tries to store anything. Copies that others continue do not pile up.
func TestWithoutHardLinks(t *testing.T) {
	s := newScene(t)
	noLinks(t)
	id, first := sessionID(1), sessionID(0)
	s.write(s.transcript(first), "first")
	s.handOff(first)
	s.write(s.transcript(id), "one\n")
	if err := os.Chmod(s.transcript(id), 0o640); err != nil {
		t.Fatal(err)
	}
	when := testTime.Add(-time.Hour)
	if err := os.Chtimes(s.transcript(id), when, when); err != nil {
		t.Fatal(err)
	}
	r := s.request(id)
	r.Side = slices.Values([]File{{"session", "side", s.write("project/side", "1")}})
	rec, err := HandOff(context.Background(), s.spool, r)
	if err != nil || rec.Pinned || rec.Job == "" || rec.Side != 0 {
		t.Fatalf("%+v, %v", rec, err)
	}
	s.store.fail = func(Work) error {
		if err := os.RemoveAll(s.transcript(id)); err != nil {
			t.Error(err)
		}
		return errors.New("no store")
	}
	s.drain()
	snaps := s.in(pinsDir)
	if len(snaps) != 2 {
		t.Fatalf("copies: %q", snaps)
	}
	fi, err := os.Stat(filepath.Join(s.spool, pinsDir, snaps[1]))
	if err != nil || fi.Mode().Perm() != 0o640 || !fi.ModTime().Equal(when) {
		t.Errorf("the copy's mode and time: %v %v, %v", fi.Mode(), fi.ModTime(), err)
	}
	s.store.fail = func(Work) error { return ErrRefused }
	for i := range 3 {
		s.write(s.transcript(id), "one\n"+strings.Repeat("more\n", i+1))
		s.clock = s.clock.Add(time.Second)
		s.handOff(id)
		s.drain()
	}
	if snaps := s.in(pinsDir); len(snaps) > 1+3+1 {
		t.Errorf("copies: %q", snaps)
	}
	s.store.fail = nil
	s.clock = s.clock.Add(parkedRetry)
	s.remove(filepath.Join(s.home, "project"))
	s.drain()
	for _, want := range []string{"one\n", "one\nmore\nmore\nmore\n"} {
		if !s.store.has(id, want) {
			t.Errorf("%q is lost", want)
		}
	}
	if !s.store.has(first, "first") {
		t.Error("the other session is lost")
	}
	s.wantEmpty("afterwards")
}

// The same file grown: the new copy takes the place of the old one.
func TestCopyOfAGrownFile(t *testing.T) {
	s := newScene(t)
	noLinks(t)
	id := sessionID(1)
	s.write(s.transcript(id), "one\n")
	s.store.fail = func(Work) error { return ErrRefused }
	for range 5 {
		s.handOff(id)
		s.drain()
		s.append(s.transcript(id), "more\n")
		s.clock = s.clock.Add(time.Second)
	}
	if snaps := s.in(pinsDir); len(snaps) != 1 {
		t.Errorf("copies: %q", snaps)
	}
	if parked := s.in(parkedDir); len(parked) != 1 {
		t.Errorf("parked: %q", parked)
	}
	// Rewritten in place: both are kept, in their order.
	s.write(s.transcript(id), "other\n")
	s.handOff(id)
	s.drain()
	if snaps := s.in(pinsDir); len(snaps) != 2 {
		t.Errorf("copies after a rewriting: %q", snaps)
	}
	s.store.fail = nil
	s.handOff(id)
	s.drain()
	if got := s.store.versions[id]; len(got) != 2 || got[0] != "one\nmore\nmore\nmore\nmore\n" || got[1] != "other\n" {
		t.Errorf("stored: %q", got)
	}
	s.wantEmpty("afterwards")
}

// If no copy can be made either, the live file is stored from where it is.
func TestNoRoomForACopy(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	s.write(s.transcript(id), "x")
	t.Cleanup(durable.SetFault(func(op, path string, after bool) error {
		switch {
		case op == "link" && !after:
			return &os.LinkError{Op: "link", New: path, Err: syscall.EPERM}
		case op == "create" && !after && filepath.Base(filepath.Dir(path)) == pinsDir:
			return &fs.PathError{Op: "create", Path: path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	s.handOff(id)
	var out []Outcome
	o := s.options()
	o.Report = func(x Outcome) { out = append(out, x) }
	if stats, err := Drain(context.Background(), s.spool, o); err != nil || stats != (Stats{Done: 1}) {
		t.Errorf("%+v, %v", stats, err)
	}
	if len(out) != 2 || out[0].What != NoCopy || !errors.Is(out[0].Err, syscall.ENOSPC) {
		t.Errorf("told: %+v", out)
	}
	if !s.store.has(id, "x") {
		t.Error("not stored")
	}
	s.wantEmpty("afterwards")
}

// Between two real file systems.
func TestAcrossFileSystems(t *testing.T) {
	const shm = "/dev/shm"
	dir, err := os.MkdirTemp(shm, "spool-test-")
	if err != nil {
		t.Skipf("no second file system to write to: %v", err)
	}
	defer os.RemoveAll(dir)
	s := newScene(t)
	a, _, err1 := fileID(dir)
	b, _, err2 := fileID(s.home)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if a.Device == b.Device {
		t.Skipf("%s and %s are one file system", shm, s.home)
	}
	s.spool = filepath.Join(dir, "spool")
	id := sessionID(1)
	s.write(s.transcript(id), strings.Repeat("far away\n", 1000))
	if rec := s.handOff(id); rec.Pinned {
		t.Fatalf("%+v", rec)
	}
	s.store.fail = func(w Work) error {
		if w.Path == "" {
			t.Error("no copy was made first")
		}
		s.remove(s.transcript(id))
		return nil
	}
	if stats := s.drain(); stats != (Stats{Done: 1}) {
		t.Errorf("%+v", stats)
	}
	if !s.store.has(id, strings.Repeat("far away\n", 1000)) {
		t.Error("not stored")
	}
	s.wantEmpty("afterwards")
}

// AR-12, and no loss of events while a store is away: fifty events of one
// session leave one job.
func TestJobsDoNotPileUp(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	s.write(s.transcript(id), "x")
	s.store.fail = func(Work) error { return errors.New("away") }
	for range 50 {
		s.clock = s.clock.Add(time.Minute)
		s.handOff(id)
		s.drain()
	}
	if n := len(s.in(jobsDir)) + len(s.in(parkedDir)); n != 1 {
		t.Errorf("%d jobs", n)
	}
	s.store.fail = nil
	s.clock = s.clock.Add(parkedRetry)
	s.drain()
	if n := len(s.store.works[0].Events); n != 50 {
		t.Errorf("%d events", n)
	}
	s.wantEmpty("afterwards")
}

func TestPurge(t *testing.T) {
	s := newScene(t)
	id, other := sessionID(1), sessionID(2)
	for _, session := range []string{id, other} {
		s.write(s.transcript(session), "x")
		r := s.request(session)
		r.Side = slices.Values([]File{{"session", "a/b", s.write("project/"+session+"/b", "1")}})
		if _, err := HandOff(context.Background(), s.spool, r); err != nil {
			t.Fatal(err)
		}
	}
	key := StoreKey(s.root)
	s.write(filepath.Join(s.spool, parkedDir, newJobName(id, testTime).String()), "{")
	s.write(filepath.Join(s.spool, jobsDir, "strange"), "about "+id)
	s.write(filepath.Join(s.spool, asideDir, "1-strange"), "about "+id)
	s.write(filepath.Join(s.spool, asideDir, "2-strange"), "about another")
	s.write(filepath.Join(s.spool, settlingDir, key+"."+id+".1-2"), "x")
	s.write(filepath.Join(s.spool, settlingDir, key+"."+id, "session", "x.1-2"), "x")
	s.write(filepath.Join(s.spool, pinsDir, key+"."+id+".1-2.3.snap"), "x")
	s.write(filepath.Join(s.spool, tryingFile), id)
	s.write(filepath.Join(s.spool, pinsDir, ".tmp-sk-0000000000000000"), "half a copy")
	if err := Purge(s.spool, id); err != nil {
		t.Fatal(err)
	}
	if hits := grep(t, s.spool, id); len(hits) > 0 {
		t.Errorf("still there: %q", hits)
	}
	if hits := grep(t, s.spool, "half a copy"); len(hits) > 0 {
		t.Errorf("still there: %q", hits)
	}
	if got := s.in(asideDir); !slices.Equal(got, []string{"2-strange"}) {
		t.Errorf("aside: %q", got)
	}
	s.drain()
	if !s.store.has(other, "x") || len(s.store.versions[id]) > 0 {
		t.Errorf("stored: %q", s.store.versions)
	}
	if err := Purge(s.spool, "../x"); err == nil {
		t.Error("no session id is refused")
	}
	if err := Purge(filepath.Join(s.home, "absent"), id); err != nil {
		t.Error(err)
	}
}

// What is purged while a worker is at it does not come back, whether the
// worker fails or not.
func TestPurgeUnderAWorker(t *testing.T) {
	for _, failing := range []bool{false, true} {
		s := newScene(t)
		id := sessionID(1)
		s.write(s.transcript(id), "x")
		r := s.request(id)
		r.Side = slices.Values([]File{{"session", "a", s.write("project/a", "1")}})
		if _, err := HandOff(context.Background(), s.spool, r); err != nil {
			t.Fatal(err)
		}
		o := s.options()
		o.Process = func(context.Context, Work) (int64, error) {
			if err := Purge(s.spool, id); err != nil {
				t.Error(err)
			}
			if failing {
				return 0, errors.New("no")
			}
			return 1, nil
		}
		if _, err := Drain(context.Background(), s.spool, o); err != nil {
			t.Fatal(err)
		}
		if hits := grep(t, s.spool, id); len(hits) > 0 {
			t.Errorf("failing %v: came back: %q", failing, hits)
		}
	}
}

// A copy whose job and pin are gone is worked on like any pin, and has a job
// once it failed.
func TestBareSnapshot(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	s.write(s.transcript(id), "x")
	s.handOff(id)
	pin := filepath.Join(s.spool, pinsDir, s.in(pinsDir)[0])
	if err := os.Rename(pin, pin+".3"+snapSuffix); err != nil {
		t.Fatal(err)
	}
	s.remove(filepath.Join(s.spool, jobsDir))
	s.remove(s.transcript(id))
	s.store.fail = func(Work) error { return ErrRefused }
	if stats := s.drain(); stats != (Stats{Parked: 1}) {
		t.Errorf("%+v", stats)
	}
	s.store.fail = nil
	s.clock = s.clock.Add(parkedRetry)
	if stats := s.drain(); stats != (Stats{Done: 1}) || !s.store.has(id, "x") {
		t.Errorf("%+v, stored %q", stats, s.store.versions[id])
	}
	s.wantEmpty("afterwards")
}

// Who asks for the parked ones gets them tried, once in each drain.
func TestParkedOnRequest(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	s.write(s.transcript(id), "text")
	tries := 0
	s.store.fail = func(Work) error { tries++; return ErrRefused }
	s.handOff(id)
	if stats := s.drain(); stats != (Stats{Parked: 1}) {
		t.Fatalf("%+v", stats)
	}
	o := s.options()
	o.Parked = true
	for want := 2; want <= 3; want++ {
		if stats, err := Drain(context.Background(), s.spool, o); err != nil || stats != (Stats{Parked: 1}) || tries != want {
			t.Errorf("%+v, %v, %d tries, want %d", stats, err, tries, want)
		}
	}
	s.store.fail = nil
	if stats := s.drain(); stats != (Stats{}) {
		t.Errorf("not asked for: %+v", stats)
	}
	if stats, err := Drain(context.Background(), s.spool, o); err != nil || stats != (Stats{Done: 1}) || !s.store.has(id, "text") {
		t.Errorf("%+v, %v", stats, err)
	}
	s.wantEmpty("at last")
}

// FS-01, FS-02, FS-03: on a disk that stays full, over its quota, read-only or
// broken a drain ends, after a bounded number of tries, and says so; once there
// is room again everything is stored.
func TestDrainOnABadDisk(t *testing.T) {
	for _, bad := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO} {
		for _, op := range []string{"mkdir", "create", "write", "rename", "remove", "syncdir", "lock"} {
			name := fmt.Sprintf("%v in %s", bad, op)
			s := newQuickScene(t)
			want := fill(s)
			calls := 0
			restore := durable.SetFault(func(o, path string, after bool) error {
				if o != op || after {
					return nil
				}
				calls++
				return &fs.PathError{Op: o, Path: path, Err: bad}
			})
			var told error
			o := s.options()
			o.Report = func(x Outcome) { told = errors.Join(told, x.Err) }
			stats, err := Drain(context.Background(), s.spool, o)
			restore()
			if calls == 0 || calls > 100 {
				t.Errorf("%s: tried %d times", name, calls)
			}
			if !errors.Is(errors.Join(err, told), bad) {
				t.Errorf("%s: nobody was told: %+v, %v", name, stats, err)
			}
			s.later()
			s.drain()
			s.wantStored(name, want)
			s.wantEmpty(name)
		}
	}
}

// CL-06: a session whose transcript was deleted before anybody could pin it is
// looked at once, and not tried for ever.
func TestDeletedBeforeItWasPinned(t *testing.T) {
	s := newScene(t)
	noLinks(t)
	id := sessionID(1)
	s.write(s.transcript(id), "x")
	if rec := s.handOff(id); rec.Pinned {
		t.Fatalf("pinned without links: %+v", rec)
	}
	s.remove(s.transcript(id))
	if stats := s.drain(); stats != (Stats{Done: 1}) {
		t.Errorf("%+v", stats)
	}
	s.wantEmpty("afterwards")
	for range 3 {
		s.clock = s.clock.Add(2 * parkedRetry)
		if stats := s.drain(); stats != (Stats{}) {
			t.Errorf("later: %+v", stats)
		}
	}
	if n := len(s.store.works); n != 1 {
		t.Errorf("looked at %d times", n)
	}
}

// CL-09: the client deletes by a file's time, so neither hand-off nor worker
// moves it, or the mode, or the file, although all names are of one file.
func TestTranscriptIsLeftAlone(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	past := testTime.Add(-1000 * time.Hour)
	side := s.write("project/"+id+"/side", "y")
	for _, path := range []string{s.write(s.transcript(id), "x"), side} {
		if err := errors.Join(os.Chmod(path, 0o644), os.Chtimes(path, past, past)); err != nil {
			t.Fatal(err)
		}
	}
	before := map[string]fs.FileInfo{}
	look := func(path string) fs.FileInfo {
		t.Helper()
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return fi
	}
	for _, path := range []string{s.transcript(id), side} {
		before[path] = look(path)
	}
	check := func(when string) {
		t.Helper()
		for path, was := range before {
			now := look(path)
			if !now.ModTime().Equal(was.ModTime()) || now.Mode() != was.Mode() || !os.SameFile(now, was) {
				t.Errorf("%s: %s is %v %v, was %v %v", when, filepath.Base(path), now.ModTime(), now.Mode(), was.ModTime(), was.Mode())
			}
		}
	}
	r := s.request(id)
	r.Side = slices.Values([]File{{"session", "side", side}})
	s.store.fail = func(Work) error { return errors.New("away") }
	for range maxFailures {
		if _, err := HandOff(context.Background(), s.spool, r); err != nil {
			t.Fatal(err)
		}
		check("handed off")
		s.drain()
		check("failed")
	}
	s.store.fail = nil
	s.clock = s.clock.Add(2 * parkedRetry)
	s.drain()
	check("stored")
	s.wantEmpty("afterwards")
}
