package transcript

import "strings"

const (
	transcriptExt = ".jsonl"
	projectsDir   = "projects" // below a config folder
)

// ValidSessionID reports whether s is a session id in the one form that the client
// finds: a UUID in lower case, 8-4-4-4-12 (an upper-case one is not found, observed
// on 2.1.332). Such an id is safe as a file name on every system.
func ValidSessionID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

// sessionOf returns the session id that a transcript's file name gives, "" for other
// names. A subagent's agent-….jsonl is no session.
func sessionOf(name string) string {
	id, ok := strings.CutSuffix(name, transcriptExt)
	if !ok || !ValidSessionID(id) {
		return ""
	}
	return id
}
