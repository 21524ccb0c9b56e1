package transcript

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// A search goes on where the last one ended, and a line that was not complete
// then is not missed.
func TestSlugsGoOn(t *testing.T) {
	config := configDir(t)
	path := transcriptPath(config, "-p", idA)
	first := `{"type":"user","slug":"brave-fox"}` + "\n"
	torn := `{"type":"user","slug":"calm-owl"}`
	write(t, path, first+torn[:len(torn)-12])
	b, err := (&Locator{ConfigDirs: []string{config}}).Locate(idA, path)
	if err != nil {
		t.Fatal(err)
	}
	slugs, end, err := b.Slugs(context.Background(), 0, nil)
	if err != nil || !slices.Equal(slugs, []string{"brave-fox"}) || end != int64(len(first)) {
		t.Fatalf("%q, %d, %v", slugs, end, err)
	}
	whole := strings.Repeat(" ", len(first)-1) + "\n" + torn + "\n"
	write(t, path, whole) // the first line is not looked at again
	slugs, end, err = b.Slugs(context.Background(), end, slugs)
	if err != nil || !slices.Equal(slugs, []string{"brave-fox", "calm-owl"}) || end != int64(len(whole)) {
		t.Errorf("%q, %d, %v", slugs, end, err)
	}
	if slugs, end, err := (Bundle{SessionID: idA}).Slugs(context.Background(), 0, nil); len(slugs) > 0 || end != 0 || err != nil {
		t.Errorf("husk: %q, %d, %v", slugs, end, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if slugs, end, err := b.Slugs(context.Background(), 7, slugs); !errors.Is(err, os.ErrNotExist) || end != 7 || len(slugs) != 2 {
		t.Errorf("removed: %q, %d, %v", slugs, end, err)
	}
}
