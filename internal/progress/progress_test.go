package progress

import (
	"bytes"
	"strings"
	"testing"
)

func TestSilentWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	b := Bytes(&out, false, 100, "reading")
	b.Add(50)
	b.Set(60, 100)
	b.Say("still reading")
	b.Done()
	if out.Len() != 0 {
		t.Errorf("wrote %q where there is no terminal", out.String())
	}
}

func TestDrawsOnTerminal(t *testing.T) {
	var out bytes.Buffer
	b := Count(&out, true, 4, "checking")
	b.Set(2, 8)
	b.Say("checking more")
	b.Done()
	if !strings.Contains(out.String(), "checking") {
		t.Errorf("drew %q, want the description in it", out.String())
	}
}
