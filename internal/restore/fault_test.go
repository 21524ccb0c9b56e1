package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

var errNoSpace = errors.New("no space left on device")

// TestEveryFault fails each durable operation of a restore in turn, and all
// that follow: so that it does not happen, or happens and is reported as
// failed, as a full disk and a lost answer do; with removals that work, or
// without any, as if the process were dead. What is seen then is whole side
// files at most, and the next run finishes.
func TestEveryFault(t *testing.T) {
	for _, c := range []struct{ after, dead bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		t.Run(fmt.Sprintf("after=%v,dead=%v", c.after, c.dead), func(t *testing.T) {
			for n := 1; ; n++ {
				if !faultAt(t, n, c.after, c.dead) {
					if n < 10 {
						t.Fatalf("only %d operations were seen", n-1)
					}
					return
				}
			}
		})
	}
}

// faultAt reports whether there was an n-th operation.
func faultAt(t *testing.T, n int, after, dead bool) bool {
	w := newWorld(t)
	p := w.make(w.request())
	seen := 0
	what := ""
	restore := durable.SetFault(func(op, path string, late bool) error {
		if late != after || strings.HasPrefix(path, w.lock) {
			return nil
		}
		if seen++; seen >= n { // a full disk stays full
			if what == "" {
				what = op + " " + path
			}
			if op == "remove" && !dead {
				return nil // there is always room to remove
			}
			return errNoSpace
		}
		return nil
	})
	_, err := Apply(context.Background(), p, Options{Lock: w.lock, Now: time.Now()})
	restore()
	if seen < n {
		if err != nil {
			t.Fatalf("no fault, and still %v", err)
		}
		return false
	}
	if err == nil && !strings.HasPrefix(what, "remove") && !strings.HasPrefix(what, "lock") {
		t.Errorf("fault %d (%s) was not told", n, what)
	}
	want := map[string]string{}
	for _, it := range w.items() {
		r, _ := it.Open()
		want[w.path(it.Family, it.Path)] = readAll(t, r)
	}
	files := w.tree()
	for path, content := range files {
		if strings.HasPrefix(filepath.Base(path), ".tmp-sk-") {
			continue // swept by the next run
		}
		if content != want[path] {
			t.Errorf("fault %d (%s): %s holds %d bytes, want none or %d", n, what, path, len(content), len(want[path]))
		}
	}
	if _, there := files[w.main()]; there && len(without(files, ".tmp-sk-")) != len(want) {
		t.Errorf("fault %d (%s): the transcript is there before all side files", n, what)
	}
	w.apply(w.make(w.request()))
	files = w.tree()
	if len(files) != len(want) {
		t.Errorf("fault %d (%s): after the second run there are %d files, want %d: %v", n, what, len(files), len(want), keys(files))
	}
	for path, content := range want {
		if files[path] != content {
			t.Errorf("fault %d (%s): after the second run %s holds %q", n, what, path, files[path])
		}
	}
	return true
}

func readAll(t *testing.T, r io.ReadCloser) string {
	t.Helper()
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func without(files map[string]string, prefix string) map[string]string {
	left := map[string]string{}
	for path, content := range files {
		if !strings.HasPrefix(filepath.Base(path), prefix) {
			left[path] = content
		}
	}
	return left
}

func keys(files map[string]string) []string {
	var list []string
	for path := range files {
		list = append(list, path)
	}
	return list
}
