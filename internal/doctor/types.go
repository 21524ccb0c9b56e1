package doctor

import (
	"encoding/json"
	"fmt"
)

// wantedTypes are the types of settings of which one wrong value, null too,
// makes the client ignore the whole file, hooks included, without a word (each
// observed on 2.1.332). There are others; a hook that is never heard of is noted
// as such.
var wantedTypes = []struct{ name, kind string }{
	{"apiKeyHelper", "a string"},
	{"disableAllHooks", "true or false"},
	{"enabledPlugins", "an object"},
	{"env", "an object"},
	{"includeCoAuthoredBy", "true or false"},
	{"language", "a string"},
	{"model", "a string"},
	{"outputStyle", "a string"},
	{"permissions", "an object"},
	{"statusLine", "an object"},
}

// checkTypes looks for such values.
func (w *World) checkTypes(f clientFile) (found []Finding) {
	for _, want := range wantedTypes {
		raw, line := f.settings.Value(want.name)
		if raw == nil {
			continue
		}
		name, have := want.name, kindOf(raw)
		if have == want.kind {
			if name != "permissions" {
				continue
			}
			// Of the members too, which are lists.
			var rules map[string]json.RawMessage
			if json.Unmarshal(raw, &rules) != nil {
				continue
			}
			for _, list := range []string{"allow", "ask", "deny"} {
				if rules[list] != nil && kindOf(rules[list]) != "a list" {
					found = append(found, w.wrongType(f, line, name+"."+list, kindOf(rules[list]), "a list"))
				}
			}
			continue
		}
		found = append(found, w.wrongType(f, line, name, have, want.kind))
	}
	return found
}

func (w *World) wrongType(f clientFile, line int, name, have, want string) Finding {
	return problem("settings-wrong-type", fmt.Sprintf("correct %s in line %d of %s, or remove it", name, line, f.file),
		"%s, line %d: %s is %s where Claude Code wants %s; it ignores the whole file then, hooks included", w.short(f.file), line, name, have, want).at(f.file, line)
}

// kindOf names the type of a JSON value.
func kindOf(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}
