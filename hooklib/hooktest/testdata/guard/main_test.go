package main

import (
	"strings"
	"testing"

	"github.com/session-keeper/session-keeper/hooklib"
	"github.com/session-keeper/session-keeper/hooklib/hooktest"
)

func TestGuard(t *testing.T) {
	s := hooktest.New(t) // a home with a session, in a temporary folder
	p := hooktest.Program{Path: hooktest.Build(t, ".")}
	edit := s.Payload(hooklib.NamePreToolUse, hooktest.Set("tool_input", map[string]string{"file_path": "/a/b.pb.go"}))

	r := s.Run(t, p, edit)
	r.Check(t)
	if !strings.Contains(string(r.Stdout), `"permissionDecision":"deny"`) {
		t.Errorf("printed %s", r.Stdout)
	}
	s.Torture(t, p, edit)
}
