package archive

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// restoreSh runs contrib/restore.sh and returns its exit code and messages.
func restoreSh(t *testing.T, args ...string) (int, string) {
	t.Helper()
	for _, tool := range []string{"sh", "jq", "zstd"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed; install it and run: go test ./archive -run RestoreSh", tool)
		}
	}
	cmd := exec.Command("sh", append([]string{filepath.Join("..", "contrib", "restore.sh")}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func filesBelow(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := make(map[string][]byte)
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		out[filepath.ToSlash(rel)], err = os.ReadFile(p)
		return err
	}))
	return out
}

// The store can be read without this program.
func TestRestoreSh(t *testing.T) {
	r := newRig(t)
	name := "transcript/" + sessionA + ".jsonl"
	want := map[string][]byte{
		name:                              records(1, 9<<20),
		"session/subagents/a b 'c'.jsonl": records(2, 30<<10),
		"session/tool-results/$(x) `y`":   []byte("x\x00\xff"),
		"session/-n":                      []byte("-e"),
		"session/Ünï.txt":                 []byte("ü"),
		"tasks/empty":                     {},
		"tasks/vanishes":                  []byte("v"),
	}
	for n, b := range want {
		r.file(n, b)
	}
	mtime := time.Date(2021, 2, 3, 4, 5, 6, 123456789, time.UTC)
	history := []map[string][]byte{}
	for i := range 20 { // through a full manifest, and on
		if i > 0 {
			want[name] = append(bytes.Clone(want[name]), records(uint64(100+i), 5000*i)...)
			r.file(name, want[name])
		}
		if i == 5 {
			must(t, os.Remove(r.path("tasks/vanishes")))
		}
		if i == 18 { // diverges
			want[name] = append(bytes.Clone(want[name][:1<<20]), "other\n"...)
			r.file(name, want[name])
		}
		must(t, os.Chtimes(r.path(name), mtime, mtime))
		r.archive()
		history = append(history, map[string][]byte{})
		for n, b := range want {
			history[i][n] = b
		}
	}
	dest := filepath.Join(t.TempDir(), "out put")
	code, out := restoreSh(t, r.store.Root(), sessionA, dest)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	sameFiles(t, "restored", filesBelow(t, dest), want)
	fi, err := os.Stat(filepath.Join(dest, filepath.FromSlash(name)))
	must(t, err)
	if !fi.ModTime().Equal(mtime) {
		t.Errorf("mtime %v", fi.ModTime())
	}
	must(t, filepath.WalkDir(dest, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err == nil && fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", p, fi.Mode())
		}
		return err
	}))
	h := r.history()
	for i, which := range map[int]string{
		0:  fmt.Sprint(h.Generations[0].Number),
		5:  h.Generations[5].Hash[:10],
		17: fmt.Sprintf("%06d-%s.json", h.Generations[17].Number, h.Generations[17].Hash),
	} {
		dest := filepath.Join(t.TempDir(), "out")
		if code, out := restoreSh(t, r.store.Root(), sessionA, dest, which); code != 0 {
			t.Fatalf("generation %s: exit %d: %s", which, code, out)
		}
		sameFiles(t, "generation "+which, filesBelow(t, dest), history[i])
	}
	if code, out := restoreSh(t, r.store.Root(), sessionA, dest); code != 1 || !strings.Contains(out, "not empty") {
		t.Errorf("over existing files: exit %d: %s", code, out)
	}
}

func TestRestoreShRefuses(t *testing.T) {
	r := newRig(t)
	r.file("transcript/x", noise(1, 40<<10))
	r.archive()
	r.add("transcript/x", noise(2, 40<<10))
	r.file("session/a", noise(3, 2<<20))
	g := r.archive().Generation
	root := r.store.Root()
	fresh := func() string { return filepath.Join(t.TempDir(), "out") }
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no arguments", nil, 2, "usage"},
		{"no store", []string{t.TempDir(), sessionA, fresh()}, 3, "no session-keeper store"},
		{"bad id", []string{root, "../sessions", fresh()}, 2, "no session id"},
		{"other id", []string{root, sessionB, fresh()}, 3, "not in"},
		{"no generation", []string{root, sessionA, fresh(), "7"}, 3, "no generation"},
	} {
		if code, out := restoreSh(t, c.args...); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("%s: exit %d: %s", c.name, code, out)
		}
	}
	// A forged manifest cannot write outside, however well it is named.
	dir := filepath.Join(root, "sessions", sessionA)
	good, err := os.ReadFile(filepath.Join(dir, manifestName(2, g.Hash)))
	must(t, err)
	for _, c := range [][2]string{
		{`"path":"a"`, `"path":"../../evil"`},
		{`"path":"a"`, `"path":"/tmp/evil"`},
		{`"path":"a"`, `"path":"x/./evil"`},
		{`"path":"a"`, `"path":"x\\evil"`},
		{`"path":"a"`, `"path":"c:evil"`},
		{`"path":"a"`, `"path":"x\nP\tevil"`},
		{`"path":"a"`, `"path":""`},
		{`"family":"session"`, `"family":".."`},
		{`"family":"session"`, `"family":"a/b"`},
		{`"keep":1`, `"keep":2`},
		{`"depth":1`, `"depth":2`},
		{`"version":1`, `"version":2`},
	} {
		bad := bytes.Replace(good, []byte(c[0]), []byte(c[1]), 1)
		if bytes.Equal(bad, good) {
			t.Fatalf("%s is not there", c[0])
		}
		file := filepath.Join(dir, manifestName(2, hashOf(bad)))
		must(t, os.WriteFile(file, bad, 0o600))
		dest := fresh()
		code, out := restoreSh(t, root, sessionA, dest, hashOf(bad))
		if code != 4 {
			t.Errorf("%s: exit %d: %s", c[1], code, out)
		}
		if _, err := os.Stat(dest); err == nil {
			t.Errorf("%s: something was written", c[1])
		}
		must(t, os.Remove(file))
	}
	// Damage of one segment costs the files in it, and is said.
	var seg string
	for _, f := range g.Files {
		if f.Family == "session" {
			seg = f.pieces.all()[0].segment
		}
	}
	whole, err := os.ReadFile(r.segmentFile(seg))
	must(t, err)
	for name, b := range map[string][]byte{"cut": whole[:1000], "empty": nil, "flipped": append(bytes.Clone(whole[:2000]), append([]byte{whole[2000] ^ 1}, whole[2001:]...)...)} {
		must(t, os.WriteFile(r.segmentFile(seg), b, 0o600))
		dest := fresh()
		code, out := restoreSh(t, root, sessionA, dest)
		if code != 4 || !strings.Contains(out, "segment "+seg+" is damaged") {
			t.Errorf("%s: exit %d: %s", name, code, out)
		}
		sameFiles(t, name, filesBelow(t, dest), map[string][]byte{"transcript/x": append(noise(1, 40<<10), noise(2, 40<<10)...)})
	}
	must(t, os.WriteFile(r.segmentFile(seg), whole, 0o600))
	// A damaged newest manifest: the one before, and it is said.
	must(t, os.Truncate(filepath.Join(dir, manifestName(2, g.Hash)), 100))
	dest := fresh()
	if code, out := restoreSh(t, root, sessionA, dest); code != 4 || !strings.Contains(out, "is damaged") {
		t.Errorf("exit %d: %s", code, out)
	}
	sameFiles(t, "older", filesBelow(t, dest), map[string][]byte{"transcript/x": noise(1, 40<<10)})
	// A store from the future is not guessed at.
	f, err := os.ReadFile(filepath.Join(root, "format"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(root, "format"), bytes.Replace(f, []byte(`"read_features": []`), []byte(`"read_features": ["packs"]`), 1), 0o600))
	if code, out := restoreSh(t, root, sessionA, fresh()); code != 1 || !strings.Contains(out, "newer restore.sh") {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestRestoreShIsClean(t *testing.T) {
	tool, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("shellcheck is not installed; install it and run: go test ./archive -run RestoreShIsClean")
	}
	if out, err := exec.CommandContext(context.Background(), tool, filepath.Join("..", "contrib", "restore.sh")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
