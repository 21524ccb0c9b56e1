//go:build unix

package keeper

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// A transcript that has grown is searched for plans from where the last search
// ended; one that was rewritten, from its start.
func TestPlansAreRemembered(t *testing.T) {
	w := newWorld(t, nil)
	pad := text(1) + `{"pad":"` + strings.Repeat("x", minPlansEnd) + "\"}\n"
	slug := func(name string) string { return `{"type":"user","slug":"` + name + `"}` + "\n" }
	find := func(content string) []string {
		t.Helper()
		w.write(w.path(1), content, now)
		slugs, end := w.plans(context.Background(), w.locate(1))
		if end != int64(len(content)) {
			t.Errorf("searched up to %d of %d", end, len(content))
		}
		return slugs
	}
	one := slug("brave-fox") + pad
	if got := find(one); !slices.Equal(got, []string{"brave-fox"}) {
		t.Fatalf("%q", got)
	}
	// Only what is behind the first part is searched: a name that is put
	// into it meanwhile is not seen.
	hidden := slug("sharp-elk") + pad
	if got := find(hidden + slug("calm-owl")); !slices.Equal(got, []string{"brave-fox", "calm-owl"}) {
		t.Errorf("grown: %q", got)
	}
	if got := find(slug("sharp-elk") + slug("tall-hen") + pad + slug("calm-owl")); !slices.Equal(got, []string{"sharp-elk", "tall-hen", "calm-owl"}) {
		t.Errorf("rewritten: %q", got)
	}
	if got := find(one[:len(one)-9] + "\n"); !slices.Equal(got, []string{"brave-fox"}) {
		t.Errorf("cut: %q", got)
	}
	if err := os.WriteFile(w.plansPath(id(1)), []byte(`{"version":1,"end":-4`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := find(one); !slices.Equal(got, []string{"brave-fox"}) {
		t.Errorf("with a broken memory: %q", got)
	}
	if err := w.forgetPlans(id(1)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(w.plansPath(id(1))); !os.IsNotExist(err) {
		t.Errorf("not forgotten: %v", err)
	}
}

// A small transcript is searched quicker than its memory is kept.
func TestPlansOfSmallTranscripts(t *testing.T) {
	w := newWorld(t, nil)
	w.session(1, time.Hour)
	w.plans(context.Background(), w.locate(1))
	if _, err := os.Stat(w.plansPath(id(1))); !os.IsNotExist(err) {
		t.Errorf("it is remembered: %v", err)
	}
}
