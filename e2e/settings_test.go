//go:build unix

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// One value of a type that the client does not want makes it ignore the
// whole settings file, and with it our hook, without a word. Doctor says so.
func TestSettingsThatTheClientIgnores(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"model": `null`, "includeCoAuthoredBy": `"yes"`} {
		l := newLab(t)
		l.install()
		var settings map[string]json.RawMessage
		l.must(json.Unmarshal(l.read(l.settings()), &settings))
		settings[name] = json.RawMessage(value)
		l.writeJSON(l.settings(), settings)
		l.print("prompt-one")
		session := l.newSession(nil)
		l.waitIdle()
		if l.stored(session) != nil {
			t.Errorf("%s: %s: the client ran the hook all the same", name, value)
		}
		doctor := l.keeperCode("doctor", "--quick")
		if doctor.code != 4 || !strings.Contains(doctor.stdout, ": "+name+" is ") {
			t.Errorf("%s: %s: doctor: %d\n%s%s", name, value, doctor.code, doctor.stdout, doctor.stderr)
		}
	}
}
