package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/session-keeper/session-keeper/internal/sessions"
)

func TestListFitsTheTerminal(t *testing.T) {
	rows := []listRow{
		{"ID", "LAST", "SIZE", "STATE", "PROJECT", "TITLE"},
		{"0a1b2c3d", "2026-11-30", "999 kB", "unclean end", "~/work/日本語プロジェクト (feature/a-long-branch)", "日本語のタイトルはとても長い"},
		{"0a1b2c3e", "3 h ago", "12 MB", "archived", "/a", strings.Repeat("word ", 50)},
	}
	for columns := 24; columns <= 300; columns++ {
		widths := listWidths(rows, columns)
		total, used := 0, 0
		for _, w := range widths {
			if w > 0 {
				total += w
				used++
			}
		}
		if total += (used - 1) * len(columnGap); total > columns {
			t.Errorf("%d columns: widths %v take %d cells", columns, widths, total)
		}
		if widths[colID] != 8 || widths[colTitle] < 1 {
			t.Errorf("%d columns: widths %v, want the id whole and some title", columns, widths)
		}
	}
	if got := listWidths(rows, 0); got[colTitle] != 250 {
		t.Errorf("without a terminal the title is cut to %d cells", got[colTitle])
	}
}

func TestUniqueLength(t *testing.T) {
	list := func(ids ...string) []*sessions.Session {
		var all []*sessions.Session
		for _, id := range ids {
			all = append(all, &sessions.Session{ID: id})
		}
		return all
	}
	for _, c := range []struct {
		ids  []string
		want int
	}{
		{nil, 8},
		{[]string{"aaaa0000-0000", "bbbb0000-0000"}, 8},
		{[]string{"aaaa0000-0001", "aaaa0000-0002"}, 13},
		{[]string{"aaaa0000-1000", "aaaa0000-2000", "bbbb0000-0000"}, 10},
	} {
		if got := uniqueLength(list(c.ids...)); got != c.want {
			t.Errorf("uniqueLength(%v) = %d, want %d", c.ids, got, c.want)
		}
	}
}

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]string{
		"36h": "2026-11-29T00:00:00Z", "7d": "2026-11-23T12:00:00Z", "2w": "2026-11-16T12:00:00Z",
		"2026-11-01": "2026-11-01T00:00:00Z", "2026-11-01 08:30": "2026-11-01T08:30:00Z", "2026-11-01T08:30:00+02:00": "2026-11-01T06:30:00Z",
	} {
		got, err := parseSince(in, now)
		if err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("parseSince(%q) = %v, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"x", "-1h", "-3d", "d", "2026-13-01"} {
		if got, err := parseSince(in, now); err == nil {
			t.Errorf("parseSince(%q) = %v, want an error", in, got)
		}
	}
}

func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local)
	for d, want := range map[time.Duration]string{
		0: "just now", time.Minute: "1 min ago", 59 * time.Minute: "59 min ago", time.Hour: "1 h ago", 23 * time.Hour: "23 h ago",
		24 * time.Hour: "1 d ago", 6*24*time.Hour + 23*time.Hour: "6 d ago", 7 * 24 * time.Hour: "2026-11-23", -time.Hour: "2026-11-30 13:00",
	} {
		if got := ago(now.Add(-d), now); got != want {
			t.Errorf("ago(%v) = %q, want %q", d, got, want)
		}
	}
	if got := ago(time.Time{}, now); got != "-" {
		t.Errorf("ago(never) = %q", got)
	}
}

func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 entries", 1: "1 entry", 2: "2 entries"} {
		if got := plural(n, "entry"); got != want {
			t.Errorf("plural = %q, want %q", got, want)
		}
	}
	if got := fmt.Sprint(plural(2, "session")); got != "2 sessions" {
		t.Errorf("plural = %q", got)
	}
}
