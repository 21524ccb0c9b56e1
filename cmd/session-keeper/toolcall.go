package main

import (
	"encoding/json"
	"strings"

	"github.com/session-keeper/session-keeper/transcript"
)

// telling are the inputs by which a reader knows a tool call, the most telling
// first. Of other calls the whole input is shown, cut to the line.
var telling = []string{
	"command", "file_path", "notebook_path", "path", "pattern", "query", "url",
	"skill", "subject", "description", "prompt",
}

// callText tells what a tool was called with: ": " and the text, "" for
// nothing.
func callText(input transcript.Value) string {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(input.Raw(), &fields); err != nil || len(fields) == 0 {
		text := strings.TrimSpace(string(input.Raw()))
		if text == "" || text == "{}" || text == "null" {
			return ""
		}
		return ": " + text
	}
	for _, name := range telling {
		var s string
		if raw, ok := fields[name]; ok && json.Unmarshal(raw, &s) == nil && s != "" {
			return ": " + s
		}
	}
	return ": " + string(input.Raw())
}
