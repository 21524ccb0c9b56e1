//go:build unix

// Command hook measures session-keeper on this machine, as ratios within one
// run. It needs the programs in one folder (bench/run builds them), jq and
// zstd, and uses nothing of the user's own home.
//
//	hook     start to return of the SessionEnd hook as install wires it, beside
//	         the smallest program that could do the job and a shell script
//	grow     archiving a session that was resumed, beside one pass over it
//	first    archiving a session for the first time, beside zstd -3
//
// Medians of interleaved runs; files are in the page cache.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"

	"github.com/session-keeper/session-keeper/bench/sample"
	"github.com/session-keeper/session-keeper/internal/durable"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "hook: error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 1 && args[0] == alone {
		return runAlone(args[1], args[2:])
	}
	flags := flag.NewFlagSet("hook", flag.ContinueOnError)
	bin := flags.String("bin", "", "folder of the programs to measure")
	work := flags.String("work", "", "folder to work in (it fills up to five times the largest size)")
	sizes := flags.String("sizes", "100KB,1MB,10MB,100MB,1GB", "sizes of the transcripts")
	runs := flags.Int("runs", 21, "runs per line; a fifth of it, at least 5, from 100 MB on")
	only := flags.String("only", "hook,grow,first", "what to measure")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *bin == "" || *work == "" || flags.NArg() > 0 {
		return errors.New("-bin and -work are needed, and no arguments")
	}
	b, err := newBench(*bin, *work, *runs)
	if err != nil {
		return err
	}
	for _, s := range strings.Split(*sizes, ",") {
		n, err := humanize.ParseBytes(s)
		if err != nil {
			return fmt.Errorf("-sizes: %w", err)
		}
		b.sizes = append(b.sizes, int64(n))
	}
	parts := map[string]func() error{"hook": b.hook, "grow": b.grow, "first": b.first}
	for _, name := range strings.Split(*only, ",") {
		part, ok := parts[name]
		if !ok {
			return fmt.Errorf("-only: %q is none of hook, grow, first", name)
		}
		if err := part(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

type bench struct {
	bin, work, home string
	wired           string // the command that install wrote for SessionEnd
	runs            int
	sizes           []int64
	text            *sample.Text
	seed            uint64
}

// newBench sets up a home with the hook wired and one session archived, as on
// any machine where session-keeper has run before.
func newBench(bin, work string, runs int) (*bench, error) {
	work, err := filepath.Abs(work)
	if err != nil {
		return nil, err
	}
	bin, err = filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	b := &bench{bin: bin, work: work, home: filepath.Join(work, "home"), runs: runs}
	for _, dir := range []string{b.projects(), b.links()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find the Go source: %w", err)
	}
	if b.text, err = sample.ReadText(filepath.Join(strings.TrimSpace(string(root)), "src")); err != nil {
		return nil, err
	}
	if _, err := b.keeper("install"); err != nil {
		return nil, err
	}
	if b.wired, err = readWired(filepath.Join(b.home, ".claude", "settings.json")); err != nil {
		return nil, err
	}
	first, err := b.newTranscript(50_000)
	if err != nil {
		return nil, err
	}
	if _, err := b.wiredHook(first); err != nil {
		return nil, err
	}
	return b, b.settle(first)
}

func (b *bench) projects() string { return filepath.Join(b.home, ".claude", "projects", "-src-app") }
func (b *bench) links() string    { return filepath.Join(b.work, "links") }
func (b *bench) local() string    { return filepath.Join(b.home, ".local") }

func (b *bench) spool() string {
	return filepath.Join(b.local(), "state", "session-keeper", "spool")
}

func readWired(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read what install wired: %w", err)
	}
	var settings struct {
		Hooks map[string][]struct {
			Hooks []struct{ Command string }
		}
	}
	if err := json.Unmarshal(data, &settings); err != nil {
		return "", fmt.Errorf("read what install wired: %w", err)
	}
	for _, entry := range settings.Hooks["SessionEnd"] {
		for _, hook := range entry.Hooks {
			return hook.Command, nil
		}
	}
	return "", errors.New("install wired no SessionEnd hook")
}

// transcript is a session that can grow.
type transcript struct {
	*sample.Session
	path string
	size int64
}

func (b *bench) newTranscript(size int64) (*transcript, error) {
	b.seed++
	s := sample.New(b.text, b.seed, "/src/app")
	t := &transcript{Session: s, path: filepath.Join(b.projects(), s.ID+".jsonl")}
	return t, t.grow(size)
}

func (t *transcript) grow(add int64) error {
	file, err := os.OpenFile(t.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = t.Write(file, add)
	info, statErr := file.Stat()
	if err := errors.Join(err, statErr, file.Close()); err != nil {
		return err
	}
	t.size = info.Size()
	return nil
}

func (b *bench) environment() []string {
	return []string{"HOME=" + b.home, "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}
}

// measure runs one program to its end.
func (b *bench) measure(stdin []byte, name string, args ...string) (time.Duration, error) {
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Dir = b.environment(), b.work
	cmd.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	start := time.Now()
	err := cmd.Run()
	wall := time.Since(start)
	if err != nil {
		return 0, fmt.Errorf("%s %q: %w: %s", filepath.Base(name), args, err, stderr.String())
	}
	return wall, nil
}

// alone as the first argument makes this program start another one and print
// the other's peak memory in bytes. Linux counts the memory of the process that
// starts a program as that program's, so a small one has to start it.
const alone = "alone"

func runAlone(name string, args []string) error {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return errors.New("this system does not tell the peak memory")
	}
	peak := int64(r.Maxrss)
	if runtime.GOOS != "darwin" {
		peak *= 1024 // kilobytes elsewhere
	}
	_, err := fmt.Println(peak)
	return err
}

// peakMemory runs one program and gives the bytes it had resident at its peak.
func (b *bench) peakMemory(name string, args ...string) (int64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, append([]string{alone, name}, args...)...)
	cmd.Env, cmd.Dir, cmd.Stderr = b.environment(), b.work, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%s %q: %w", filepath.Base(name), args, err)
	}
	return strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
}

func (b *bench) keeper(args ...string) (time.Duration, error) {
	return b.measure(nil, filepath.Join(b.bin, "session-keeper"), args...)
}

func (b *bench) event(t *transcript) []byte {
	return fmt.Appendf(nil, `{"session_id":%q,"transcript_path":%q,"cwd":"/src/app","prompt_id":"081193b4-0000-4000-8000-000000000000","hook_event_name":"SessionEnd","reason":"prompt_input_exit"}`, t.ID, t.path)
}

// wiredHook runs the hook as the client does: /bin/sh -c with the command as it
// stands in settings.json.
func (b *bench) wiredHook(t *transcript) (time.Duration, error) {
	return b.measure(b.event(t), "/bin/sh", "-c", b.wired)
}

func (b *bench) minimal(t *transcript) (time.Duration, error) {
	return b.measure(b.event(t), filepath.Join(b.bin, "minimal"), b.links())
}

// minimalBySh runs the same as install wires the hook: what the shell costs is
// in both then.
func (b *bench) minimalBySh(t *transcript) (time.Duration, error) {
	return b.measure(b.event(t), "/bin/sh", "-c", "'"+filepath.Join(b.bin, "minimal")+"' '"+b.links()+"' || exit 1")
}

// handOff leaves a transcript in the spool with nobody at work on it: the spool
// is locked while the hook runs, and until its worker has given up.
func (b *bench) handOff(t *transcript) error {
	unlock, err := durable.TryLock(filepath.Join(b.spool(), "lock"), durable.Exclusive)
	if err != nil {
		return err
	}
	_, err = b.wiredHook(t)
	time.Sleep(workerPatience)
	return errors.Join(err, unlock())
}

// workerPatience is more than a worker waits for a spool that is taken.
const workerPatience = 1500 * time.Millisecond

// worker does what the hook's worker does, in the foreground.
func (b *bench) worker(t *transcript) (time.Duration, error) {
	if err := b.handOff(t); err != nil {
		return 0, err
	}
	unix.Sync()
	wall, err := b.measure(nil, filepath.Join(b.bin, "session-keeper-worker"), b.spool())
	if err != nil {
		return 0, err
	}
	if busy, err := spooled(b.spool()); err != nil || busy {
		return 0, errors.Join(err, errors.New("the worker left something in the spool"))
	}
	return wall, nil
}

func (b *bench) workerPeak(t *transcript) (int64, error) {
	if err := b.handOff(t); err != nil {
		return 0, err
	}
	return b.peakMemory(filepath.Join(b.bin, "session-keeper-worker"), b.spool())
}

// script is the hook that people write today.
func (b *bench) script(t *transcript) (time.Duration, error) {
	const text = `set -e; event=$(cat); cp "$(printf %s "$event" | jq -r .transcript_path)" "$0/$(printf %s "$event" | jq -r .session_id)"`
	return b.measure(b.event(t), "/bin/sh", "-c", text, b.links())
}

// settle waits until the archive holds the transcript as it is and no worker
// has anything left to do.
func (b *bench) settle(t *transcript) error {
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		busy, err := spooled(b.spool())
		if err != nil {
			return err
		}
		if !busy {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the worker has not finished %s after 5 minutes", t.ID)
		}
	}
	unix.Sync()
	return nil
}

// spooled says whether a pin or a job is left: both carry a session's id.
func spooled(spool string) (bool, error) {
	busy := false
	err := filepath.WalkDir(spool, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil // taken by the worker meanwhile
		}
		if err == nil && d.Type().IsRegular() && strings.Count(d.Name(), "-") >= 4 {
			busy = true
		}
		return err
	})
	return busy, err
}

// median gives the middle one, and the one that 95 of 100 do not exceed.
func median(all []time.Duration) (middle, p95 time.Duration) {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2], sorted[len(sorted)*95/100]
}

func (b *bench) runsFor(size int64) int {
	if size >= 100_000_000 {
		return max(5, b.runs/5)
	}
	return b.runs
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }

func size(n int64) string { return humanize.Bytes(uint64(n)) }

func ratio(a, b time.Duration) string { return fmt.Sprintf("%.2f", float64(a)/float64(b)) }

// hook measures the start to the return of the hook.
func (b *bench) hook() error {
	fmt.Printf("\n## Hook, start to return (ms)\n\nwired as `%s`\n\n", b.wired)
	fmt.Println("| transcript | session | hook median | p95 | one hard link | ratio | the same by sh -c | ratio | sh, jq, cp |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for _, n := range b.sizes {
		for _, resumed := range []bool{false, true} {
			if err := b.hookLine(n, resumed); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) hookLine(n int64, resumed bool) error {
	t, err := b.newTranscript(n)
	if err != nil {
		return err
	}
	defer b.remove(t)
	kept := filepath.Join(b.work, "kept")
	if resumed {
		if _, err := b.keeper("archive", t.ID); err != nil {
			return err
		}
	} else if err := copyTree(b.local(), kept); err != nil {
		return err
	}
	var ours, minimal, bySh, script []time.Duration
	for range b.runsFor(n) {
		if resumed {
			if err := t.grow(50_000); err != nil {
				return err
			}
		}
		for _, one := range []struct {
			into *[]time.Duration
			run  func(*transcript) (time.Duration, error)
		}{{&minimal, b.minimal}, {&bySh, b.minimalBySh}, {&script, b.script}, {&ours, b.wiredHook}} {
			if err := os.RemoveAll(filepath.Join(b.links(), t.ID)); err != nil {
				return err
			}
			unix.Sync()
			u, err := one.run(t)
			if err != nil {
				return err
			}
			*one.into = append(*one.into, u)
		}
		if err := b.settle(t); err != nil {
			return err
		}
		if !resumed { // as if it had never been archived
			if err := errors.Join(os.RemoveAll(b.local()), copyTree(kept, b.local())); err != nil {
				return err
			}
		}
	}
	wall, worst := median(ours)
	least, _ := median(minimal)
	shLeast, _ := median(bySh)
	shell, _ := median(script)
	fmt.Printf("| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", size(n), map[bool]string{false: "new", true: "resumed"}[resumed],
		ms(wall), ms(worst), ms(least), ratio(wall, least), ms(shLeast), ratio(wall, shLeast), ms(shell))
	return os.RemoveAll(kept)
}

// grow measures archiving what was added to a session that is in the archive.
func (b *bench) grow() error {
	fmt.Println("\n## A resumed session (ms), the worker of the hook")
	fmt.Println("\n| archived bytes | new bytes | median | one pass of SHA-256 | ratio |")
	fmt.Println("|---|---|---|---|---|")
	for _, n := range b.sizes {
		t, err := b.newTranscript(n)
		if err != nil {
			return err
		}
		if _, err := b.worker(t); err != nil {
			return err
		}
		for _, add := range []int64{50_000, 1_000_000, 10_000_000} {
			var ours, pass []time.Duration
			for range max(3, b.runsFor(n)/2) {
				if err := t.grow(add); err != nil {
					return err
				}
				unix.Sync()
				u, err := onePass(t.path)
				if err != nil {
					return err
				}
				pass = append(pass, u)
				if u, err = b.worker(t); err != nil {
					return err
				}
				ours = append(ours, u)
			}
			wall, _ := median(ours)
			once, _ := median(pass)
			fmt.Printf("| %s | %s | %s | %s | %s |\n", size(n), size(add), ms(wall), ms(once), ratio(wall, once))
		}
		b.remove(t)
	}
	return nil
}

// onePass hashes a file, which is the least that proves it unchanged.
func onePass(path string) (time.Duration, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	start := time.Now()
	_, err = io.Copy(sha256.New(), file)
	return time.Since(start), err
}

// first measures archiving a session that is not in the archive yet.
func (b *bench) first() error {
	fmt.Println("\n## First archive, the worker of the hook beside `zstd -3`")
	fmt.Println("\n| transcript | archive (ms) | zstd -3 (ms) | ratio | peak memory | stored | zstd -3 |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, n := range b.sizes {
		t, err := b.newTranscript(n)
		if err != nil {
			return err
		}
		kept, packed := filepath.Join(b.work, "kept"), filepath.Join(b.work, "packed.zst")
		if err := copyTree(b.local(), kept); err != nil {
			return err
		}
		before, err := treeSize(b.local())
		if err != nil {
			return err
		}
		var ours, zstd []time.Duration
		var stored int64
		for range b.runsFor(n) {
			unix.Sync()
			u, err := b.measure(nil, "zstd", "-q", "-f", "-3", t.path, "-o", packed)
			if err != nil {
				return err
			}
			zstd = append(zstd, u)
			if u, err = b.worker(t); err != nil {
				return err
			}
			ours = append(ours, u)
			if stored, err = treeSize(b.local()); err != nil {
				return err
			}
			if err := errors.Join(os.RemoveAll(b.local()), copyTree(kept, b.local())); err != nil {
				return err
			}
		}
		info, err := os.Stat(packed)
		if err != nil {
			return err
		}
		memory, err := b.workerPeak(t)
		if err != nil {
			return err
		}
		if err := errors.Join(os.RemoveAll(b.local()), copyTree(kept, b.local())); err != nil {
			return err
		}
		wall, _ := median(ours)
		plain, _ := median(zstd)
		fmt.Printf("| %s | %s | %s | %s | %s | %s | %s |\n", size(n), ms(wall), ms(plain), ratio(wall, plain), size(memory), size(stored-before), size(info.Size()))
		b.remove(t)
		if err := os.RemoveAll(kept); err != nil {
			return err
		}
	}
	return nil
}

// remove makes room; what it leaves behind costs only space in the work folder.
func (b *bench) remove(t *transcript) {
	for _, path := range []string{t.path, filepath.Join(b.links(), t.ID)} {
		if err := os.RemoveAll(path); err != nil {
			fmt.Fprintln(os.Stderr, "hook: warning:", err)
		}
	}
}

func copyTree(from, to string) error {
	out, err := exec.Command("cp", "-a", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, out)
	}
	return nil
}

func treeSize(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
