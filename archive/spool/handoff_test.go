//go:build unix

package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

func TestHandOffIsDrained(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	s.write(s.transcript(id), "one\ntwo\n")
	r := s.request(id)
	r.Event = Event{Name: "SessionEnd", Reason: "clear", PromptID: "p", Agent: "a", Time: testTime, Cwd: "/project/sub"}
	agent := s.write("project/"+id+"/subagents/agent-1.jsonl", "agent\n")
	r.Side = slices.Values([]File{{"session", "subagents/agent-1.jsonl", agent}})
	rec, err := HandOff(context.Background(), s.spool, r)
	if err != nil {
		t.Fatal(err)
	}
	if !rec.Pinned || rec.Size != 8 || rec.Side != 1 || rec.SideSkipped != 0 || rec.Job == "" {
		t.Errorf("receipt: %+v", rec)
	}
	s.remove(filepath.Join(s.home, "project"))
	if stats := s.drain(); stats != (Stats{Done: 1}) {
		t.Errorf("stats: %+v", stats)
	}
	if len(s.store.works) != 1 {
		t.Fatalf("%d calls of Process", len(s.store.works))
	}
	w := s.store.works[0]
	if len(w.Side) != 1 || w.Side[0].Size != 6 {
		t.Fatalf("side: %+v", w.Side)
	}
	pin := filepath.Dir(w.Path)
	w.Side, w.Path = nil, ""
	want := Work{StoreRoot: s.root, SessionID: id, Transcript: s.transcript(id), Size: 8, Reason: "session-end",
		Events: []Event{r.Event}, ConfigDir: s.home, Folder: "-project", Cwd: "/project"}
	if fmt.Sprintf("%+v", w) != fmt.Sprintf("%+v", want) || pin != filepath.Join(s.spool, pinsDir) {
		t.Errorf("work:\n got %+v\nwant %+v", w, want)
	}
	if !s.store.has(id, "one\ntwo\n") || s.store.side[id]["session/subagents/agent-1.jsonl"] != "agent\n" {
		t.Errorf("stored: %q, %q", s.store.versions[id], s.store.side[id])
	}
	s.wantEmpty("afterwards")
}

// The order of what a hand-off does is what makes it safe, and their number
// what makes it fast.
func TestHandOffOrder(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	s.write(s.transcript(id), "x")
	side := s.write("project/side", "y")
	r := s.request(id)
	r.Side = slices.Values([]File{{"session", "side", side}})
	for _, tt := range []struct{ name, want string }{
		{"first ever", `
			link pins/PIN (fails: no folder)
			mkdir state/spool, syncdir HOME/state, mkdir spool/pins, syncdir state/spool
			link pins/PIN, syncdir spool/pins
			mkdir spool/stores, syncdir state/spool
			create stores/TEMP, write stores/TEMP, sync stores/TEMP, rename stores/RECORD, syncdir spool/stores
			create jobs/TEMP (fails: no folder)
			mkdir spool/jobs, syncdir state/spool
			create jobs/TEMP, write jobs/TEMP, sync jobs/TEMP, rename jobs/JOB, syncdir spool/jobs
			link session/PIN (fails: no folder)
			mkdir TREE/session, mkdir side/TREE, mkdir spool/side, mkdir side/TREE, mkdir TREE/session
			link session/PIN`},
		{"again", `
			link pins/PIN, syncdir spool/pins
			create jobs/TEMP, write jobs/TEMP, sync jobs/TEMP, rename jobs/JOB, syncdir spool/jobs
			link session/PIN`},
	} {
		ops := operations(func() {
			if _, err := HandOff(context.Background(), s.spool, r); err != nil {
				t.Fatal(err)
			}
		})
		var want []string
		for _, line := range strings.Split(strings.TrimSpace(tt.want), "\n") {
			line, _, _ = strings.Cut(line, " (")
			for _, op := range strings.Split(line, ", ") {
				op = strings.Replace(strings.TrimSpace(op), "HOME", filepath.Base(s.home), 1)
				want = append(want, op)
			}
		}
		for i, op := range ops {
			if strings.HasPrefix(op, "link session/side.") {
				ops[i] = "link session/PIN"
			}
		}
		if !slices.Equal(ops, want) {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, strings.Join(ops, ", "), strings.Join(want, ", "))
		}
	}
	// Nothing under the store's root, not even the folder above it.
	if _, err := os.Lstat(filepath.Dir(s.root)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the store's place was touched: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(s.spool, lockFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a lock was taken: %v", err)
	}
}

// SE-04, SE-10, FS-01, FS-02, FS-03: a hand-off may die, or fail, at each
// thing it does. If it came as far as the pin, the bytes are stored although
// the client deletes the file; and the next hand-off goes through.
func TestHandOffCrash(t *testing.T) {
	var before, pinned, finished int
	for _, warm := range []bool{false, true} {
		for n := 1; ; n++ {
			done := false
			for _, after := range []bool{false, true} {
				s := newQuickScene(t)
				id, other := sessionID(1), sessionID(2)
				if warm {
					s.write(s.transcript(other), "other")
					s.handOff(other)
				}
				s.write(s.transcript(id), "as it was\n")
				r := s.request(id)
				r.Side = slices.Values([]File{{"session", "side", s.write("project/side", "y")}})
				name := fmt.Sprintf("operation %d, after %v, warm %v", n, after, warm)
				count, restore := crashAt(n, after)
				_, err := HandOff(context.Background(), s.spool, r)
				restore()
				if *count < n {
					done = true
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
				} else if err != nil && !errors.Is(err, errCrash) {
					t.Errorf("%s: the error hides its cause: %v", name, err)
				}
				hasPin := slices.ContainsFunc(s.in(pinsDir), func(p string) bool { return strings.Contains(p, id) })
				if err == nil && !hasPin {
					t.Errorf("%s: success without a pin", name)
				}
				switch {
				case !hasPin:
					before++
				case err != nil:
					pinned++
				default:
					finished++
				}
				if hasPin {
					s.remove(s.transcript(id))
				}
				s.later()
				o := s.options()
				o.StoreRoots = []string{s.root} // its record may not have been written
				if _, err := Drain(context.Background(), s.spool, o); err != nil {
					t.Fatalf("%s: drain: %v", name, err)
				}
				if hasPin && !s.store.has(id, "as it was\n") {
					t.Errorf("%s: the pin was made and its bytes are lost", name)
				}
				if warm && !s.store.has(other, "other") {
					t.Errorf("%s: the other session is lost", name)
				}
				s.wantEmpty(name)
				s.write(s.transcript(id), "as it was\nlater\n")
				s.handOff(id)
				s.drain()
				if !s.store.has(id, "as it was\nlater\n") {
					t.Errorf("%s: the next hand-off is lost", name)
				}
				s.wantEmpty(name + ", next")
				if done {
					break
				}
			}
			if done {
				break
			}
		}
	}
	t.Logf("died before the pin %d, after it %d, not at all %d", before, pinned, finished)
	if before == 0 || pinned == 0 || finished == 0 {
		t.Error("not all kinds of death were tried")
	}
}

// FS-01, FS-02, FS-03, FS-04: a disk that is full or read-only fails a hand-off
// at once and says why, and what was pinned is found.
func TestHandOffOnABadDisk(t *testing.T) {
	for _, bad := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO} {
		for _, op := range []string{"link", "mkdir", "create", "write", "sync", "rename", "syncdir"} {
			s := newQuickScene(t)
			id := sessionID(1)
			s.write(s.transcript(id), "x")
			calls := 0
			restore := durable.SetFault(func(o, path string, after bool) error {
				if o == op && !after {
					calls++
					return &fs.PathError{Op: o, Path: path, Err: bad}
				}
				return nil
			})
			_, err := HandOff(context.Background(), s.spool, s.request(id))
			restore()
			if !errors.Is(err, bad) {
				t.Errorf("%v in %s: error is %v", bad, op, err)
			}
			if calls > 3 {
				t.Errorf("%v in %s: tried %d times", bad, op, calls)
			}
			o := s.options()
			o.StoreRoots = []string{s.root}
			s.later()
			pinned := len(s.in(pinsDir)) > 0
			s.remove(s.transcript(id))
			if _, err := Drain(context.Background(), s.spool, o); err != nil {
				t.Error(err)
			}
			if pinned != s.store.has(id, "x") {
				t.Errorf("%v in %s: pinned %v, stored %v", bad, op, pinned, !pinned)
			}
		}
	}
	s := newScene(t)
	s.write(s.transcript(sessionID(1)), "x")
	s.spool = filepath.Join(s.write("state/file", ""), "spool")
	if _, err := HandOff(context.Background(), s.spool, s.request(sessionID(1))); err == nil {
		t.Error("a spool below a file was made")
	}
}

func TestHandOffRefusesWhatItMustNotRead(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	file := s.write(s.transcript(id), "x")
	folder := filepath.Join(s.home, "project")
	for _, tt := range []struct {
		name   string
		change func(r *Request)
		want   error
	}{
		{"upper case id", func(r *Request) { r.SessionID = "ABCDEF00-0000-4000-8000-000000000000" }, nil},
		{"no id", func(r *Request) { r.SessionID = "" }, nil},
		{"traversal as id", func(r *Request) { r.SessionID = "../../../../../../../../etc/passwd12" }, nil},
		{"relative store", func(r *Request) { r.StoreRoot = "store" }, nil},
		{"store not clean", func(r *Request) { r.StoreRoot = s.root + "/../x" }, nil},
		{"relative transcript", func(r *Request) { r.Transcript = "x.jsonl" }, nil},
		{"relative config folder", func(r *Request) { r.ConfigDir = "." }, nil},
		{"folder as transcript", func(r *Request) { r.Transcript = folder }, durable.ErrNotRegular},
		{"device as transcript", func(r *Request) { r.Transcript = "/dev/null" }, durable.ErrNotRegular},
		{"no transcript there", func(r *Request) { r.Transcript = file + "x" }, fs.ErrNotExist},
	} {
		r := s.request(id)
		tt.change(&r)
		_, err := HandOff(context.Background(), s.spool, r)
		if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if got := s.files(); len(got) > 0 {
		t.Errorf("something was written: %q", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := HandOff(ctx, s.spool, s.request(id)); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// Another file that is put in the transcript's place between its opening and
// its linking is noticed: what is pinned is what is told.
func TestHandOffOfAFileThatIsReplaced(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	path := s.write(s.transcript(id), "old")
	s.write("new", "new content")
	swapped := false
	restore := durable.SetFault(func(op, p string, after bool) error {
		if op == "link" && !after && !swapped {
			swapped = true
			return os.Rename(filepath.Join(s.home, "new"), path)
		}
		return nil
	})
	rec, err := HandOff(context.Background(), s.spool, s.request(id))
	restore()
	if err != nil || !rec.Pinned || rec.Size != 11 {
		t.Fatalf("%+v, %v", rec, err)
	}
	pins := s.in(pinsDir)
	if len(pins) != 1 {
		t.Fatalf("pins: %q", pins)
	}
	n, _ := parsePinName(pins[0])
	if have, _, err := fileID(filepath.Join(s.spool, pinsDir, pins[0])); err != nil || n.ID != have {
		t.Errorf("the pin's name says %v, it is %v, %v", n.ID, have, err)
	}
	s.drain()
	if !s.store.has(id, "new content") {
		t.Errorf("stored: %q", s.store.versions[id])
	}
	s.wantEmpty("afterwards")
}

// AR-10: a transcript that vanishes between its opening and its linking is told
// as what it is, and leaves neither pin nor job; with an earlier pin, what that
// one holds is stored.
func TestHandOffOfAFileThatVanishes(t *testing.T) {
	for _, warm := range []bool{false, true} {
		s := newScene(t)
		id := sessionID(1)
		path := s.write(s.transcript(id), "as it was")
		if warm {
			s.handOff(id)
			s.write("new", "never seen")
			if err := os.Rename(filepath.Join(s.home, "new"), path); err != nil {
				t.Fatal(err)
			}
		}
		restore := durable.SetFault(func(op, p string, after bool) error {
			if op == "link" && !after {
				s.remove(path)
			}
			return nil
		})
		_, err := HandOff(context.Background(), s.spool, s.request(id))
		restore()
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("warm %v: %v", warm, err)
		}
		s.drain()
		if s.store.has(id, "as it was") != warm {
			t.Errorf("warm %v: stored %q", warm, s.store.versions[id])
		}
		s.wantEmpty("afterwards")
	}
}

// PA-12, PA-13: directory and folder come to the worker as they were told, also
// those of another system, and at any length that a directory may have.
func TestDirectoryIsKeptAsTold(t *testing.T) {
	for i, cwd := range []string{
		`Z:\home\u\p`, `\\wsl.localhost\Ubuntu\home\u\p`, "/mnt/c/Foo/../foo//", `c:\a <b> & "c"`,
		"/" + strings.Repeat("ü😀/", 580), // 4 KB, the most that Linux takes
	} {
		s := newScene(t)
		id := sessionID(i)
		s.write(s.transcript(id), "x")
		r := s.request(id)
		r.Cwd, r.Folder, r.Event.Cwd = cwd, "-folder-of-"+cwd[:3], cwd
		if _, err := HandOff(context.Background(), s.spool, r); err != nil {
			t.Fatal(err)
		}
		s.drain()
		if len(s.store.works) != 1 {
			t.Fatalf("%q: %d calls of Process", cwd, len(s.store.works))
		}
		if w := s.store.works[0]; w.Cwd != cwd || w.Folder != r.Folder || w.Events[0].Cwd != cwd {
			t.Errorf("%q became %q in %q, the event's %q", cwd, w.Cwd, w.Folder, w.Events[0].Cwd)
		}
	}
}

// A spool that was copied or restored has pins under the numbers of other
// files. They are kept, under their own.
func TestHandOffMeetsAForeignPin(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	s.write(s.transcript(id), "mine")
	fileNumber, _, err := fileID(s.transcript(id))
	if err != nil {
		t.Fatal(err)
	}
	name := pinName{Store: StoreKey(s.root), Session: id, ID: fileNumber}.String()
	s.write(filepath.Join(s.spool, pinsDir, name), "only copy of something older")
	s.handOff(id)
	s.remove(s.transcript(id))
	if n := len(s.in(pinsDir)); n != 2 {
		t.Fatalf("%d pins", n)
	}
	s.drain()
	for _, want := range []string{"mine", "only copy of something older"} {
		if !s.store.has(id, want) {
			t.Errorf("%q is lost", want)
		}
	}
	s.wantEmpty("afterwards")

	if err := os.Symlink("/etc/passwd", filepath.Join(s.spool, pinsDir, name)); err != nil {
		t.Fatal(err)
	}
	s.write(s.transcript(id), "mine") // most likely with the same number again
	s.handOff(id)
	s.drain()
	for _, v := range s.store.versions[id] {
		if strings.Contains(v, "root:") {
			t.Error("a link was followed")
		}
	}
}

// Side files are taken for 20 ms, then no more, and what is wrong with one
// keeps no other from its turn.
func TestSideFiles(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	s.write(s.transcript(id), "x")
	good := s.write("project/good", "good")
	if err := syscall.Mkfifo(filepath.Join(s.home, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(good, filepath.Join(s.home, "link")); err != nil {
		t.Fatal(err)
	}
	r := s.request(id)
	r.Side = slices.Values([]File{
		{"session", "../out", good},
		{"session", "/abs", good},
		{"session", "a/../../b", good},
		{"session", "", good},
		{"session", ".", good},
		{"Session", "upper", good},
		{"..", "up", good},
		{"", "none", good},
		{"session", "pipe", filepath.Join(s.home, "pipe")},
		{"session", "link", filepath.Join(s.home, "link")},
		{"session", "folder", s.home},
		{"session", "absent", filepath.Join(s.home, "absent")},
		{"session", strings.Repeat("n", 255), good},
		{"session", "deep/er/file.txt", good},
		{"session", "name.1-2", good},
		{"tasks", "1.json", good},
		{"tasks", "1.json", good},
	})
	rec, err := HandOff(context.Background(), s.spool, r)
	if err != nil {
		t.Fatal(err)
	}
	if rec.Side != 4 || rec.SideSkipped != 13 {
		t.Errorf("%d pinned, %d skipped", rec.Side, rec.SideSkipped)
	}
	s.drain()
	want := map[string]string{"session/deep/er/file.txt": "good", "session/name.1-2": "good", "tasks/1.json": "good"}
	if got := s.store.side[id]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("stored: %q", got)
	}
	s.wantEmpty("afterwards")

	yielded := 0
	r.Side = func(yield func(File) bool) {
		for yield(File{"session", fmt.Sprintf("f%d", yielded), good}) {
			yielded++
			time.Sleep(sideBudget + 5*time.Millisecond)
		}
	}
	if rec, err = HandOff(context.Background(), s.spool, r); err != nil || yielded > 1 || rec.Side < 1 {
		t.Errorf("%d files taken after the time was up: %+v, %v", yielded, rec, err)
	}
}

// A session without a main file is handed off all the same, by its side files.
func TestHusk(t *testing.T) {
	s := newScene(t)
	id := sessionID(1)
	r := s.request(id)
	r.Transcript = ""
	file := s.write("project/"+id+"/tool-results/1.txt", "result")
	r.Side = slices.Values([]File{{"session", "tool-results/1.txt", file}})
	rec, err := HandOff(context.Background(), s.spool, r)
	if err != nil || rec.Pinned || rec.Side != 1 || rec.Job == "" {
		t.Fatalf("%+v, %v", rec, err)
	}
	s.remove(file)
	if stats := s.drain(); stats != (Stats{Done: 1}) {
		t.Errorf("%+v", stats)
	}
	if s.store.side[id]["session/tool-results/1.txt"] != "result" || len(s.store.versions[id]) != 0 {
		t.Errorf("stored: %q %q", s.store.side[id], s.store.versions[id])
	}
	s.wantEmpty("afterwards")
}

// SM-06, SM-07: whatever the umask, and the transcript keeps its own mode.
// Nothing is made in the folder for temporary files.
func TestSpoolModes(t *testing.T) {
	public := t.TempDir()
	t.Setenv("TMPDIR", public)
	defer durable.SetFault(func(op, path string, after bool) error {
		if strings.HasPrefix(path, public) {
			t.Errorf("%s %s, outside of the spool", op, path)
		}
		return nil
	})()
	for _, umask := range []int{0, 0o022, 0o077, 0o777} {
		s := newScene(t)
		id := sessionID(1)
		s.write(s.transcript(id), "x")
		if err := os.Chmod(s.transcript(id), 0o640); err != nil {
			t.Fatal(err)
		}
		side := s.write("project/side", "y")
		s.store.fail = func(Work) error { return ErrRefused }
		s.write("strange", "z")
		r := s.request(id)
		r.Side = slices.Values([]File{{"session", "a/b", side}})
		old := syscall.Umask(umask)
		_, err1 := HandOff(context.Background(), s.spool, r)
		_, err2 := Drain(context.Background(), s.spool, s.options())
		_, err3 := HandOff(context.Background(), s.spool, r)
		syscall.Umask(old)
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		seen := 0
		err := filepath.WalkDir(s.spool, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			fi, err := e.Info()
			if err != nil {
				return err
			}
			seen++
			want := fs.FileMode(0o600)
			switch {
			case e.IsDir():
				want = 0o700
			case filepath.Base(filepath.Dir(path)) == pinsDir:
				want = 0o640
			}
			if fi.Mode().Perm() != want {
				t.Errorf("umask %03o: %s has mode %v", umask, path, fi.Mode())
			}
			return nil
		})
		if err != nil || seen < 12 {
			t.Errorf("umask %03o: %d files, %v", umask, seen, err)
		}
	}
}

// SS-05, RE-01: 200 hand-offs at the same time, of one session and of 200,
// each followed by a drain as a worker would make it. One drains at a time,
// and each session is stored with all that its hand-off saw, although the
// client deletes it right after.
func TestManyAtOnce(t *testing.T) {
	const many = 200
	for _, sessions := range []int{1, many} {
		t.Run(fmt.Sprint(sessions), func(t *testing.T) {
			s := newScene(t)
			for i := range sessions {
				s.write(s.transcript(sessionID(i)), "start\n")
			}
			saw := make([]string, many)
			busy := 0
			var mu, file sync.Mutex
			var wg sync.WaitGroup
			for i := range many {
				wg.Go(func() {
					id := sessionID(i % sessions)
					path := s.transcript(id)
					file.Lock()
					s.append(path, fmt.Sprintf("line %d\n", i))
					data, err := os.ReadFile(path)
					file.Unlock()
					if err != nil {
						t.Error(err)
					}
					saw[i] = string(data)
					if _, err := HandOff(context.Background(), s.spool, s.request(id)); err != nil {
						t.Error(err)
					}
					if sessions > 1 {
						s.remove(path)
					}
					_, err = Drain(context.Background(), s.spool, s.options())
					switch {
					case errors.Is(err, ErrBusy):
						mu.Lock()
						busy++
						mu.Unlock()
					case err != nil:
						t.Error(err)
					}
				})
			}
			wg.Wait()
			// The last drainer has looked once more, so nothing waits.
			s.wantEmpty("after the last one")
			for i := range many {
				if !s.store.has(sessionID(i%sessions), saw[i]) {
					t.Errorf("hand-off %d is lost", i)
				}
			}
			if s.store.most != 1 {
				t.Errorf("%d worked at the same time", s.store.most)
			}
			for id, versions := range s.store.versions {
				if sessions > 1 && len(versions) != 1 {
					t.Errorf("%s was stored in %d versions", id, len(versions))
				}
			}
			t.Logf("%d calls of Process, %d drains found the spool busy", len(s.store.works), busy)
		})
	}
}

// BenchmarkHandOff times a hand-off to a spool that is there, syncs included.
// Budget: 2 ms on a local disk, whatever the transcript's size.
func BenchmarkHandOff(b *testing.B) {
	home := b.TempDir()
	path := filepath.Join(home, "x.jsonl")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, size := range []int64{1 << 20, 1 << 30} {
		if err := os.Truncate(path, size); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				_, err := HandOff(context.Background(), filepath.Join(home, "spool"), Request{
					StoreRoot: "/store", SessionID: sessionID(i % 100), Transcript: path, Reason: "stop", Event: Event{Name: "Stop", Time: testTime}})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
