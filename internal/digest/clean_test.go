package digest

import (
	"math/rand/v2"
	"testing"

	"github.com/session-keeper/session-keeper/internal/briefing"
)

// The texts become briefings. What those are cleaned of has no place in them, or
// they would grow beyond their limit on the way.
func TestBriefingsHaveNothingToClean(t *testing.T) {
	for _, s := range attacks {
		if q := quotable(s); briefing.Clean(q) != q {
			t.Errorf("%.80q becomes %.80q, and that becomes %.80q", s, q, briefing.Clean(q))
		}
	}
	for _, where := range [][2]rune{{0, 0x3200}, {0xfd00, 0x10000}, {0x1f000, 0x20000}, {0xdff00, 0xe0400}} { // nothing is hidden elsewhere
		for r := where[0]; r < where[1]; r++ {
			for _, s := range []string{string(r), "a" + string(r) + "b", "漢" + string(r), "😀" + string(r) + "😀", string(r) + "\ufe0f", string(r) + "\u200d" + string(r)} {
				if q := visible(s); briefing.Clean(q) != q {
					t.Fatalf("%q becomes %q, and that becomes %q", s, q, briefing.Clean(q))
				}
			}
		}
	}
	text := compaction(t, full(t, rand.New(rand.NewPCG(3, 4)), attacks).input())
	if briefing.Clean(text) != text {
		t.Errorf("changed by being cleaned:\n%s", text)
	}
}
