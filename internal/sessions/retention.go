package sessions

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"

	"github.com/session-keeper/session-keeper/transcript"
)

// retentionPattern finds the setting in a file that is no plain JSON, for
// example because of comments.
var retentionPattern = regexp.MustCompile(`"cleanupPeriodDays"\s*:\s*(-?[0-9.]+)`)

// RetentionDays gives the client's clean-up period for sessions of a config
// folder that ran in cwd. A project's setting beats the user's (observed on
// 2.1.332), a managed one beats both (documented). managed may be "".
func RetentionDays(configDir, cwd, managed string) int64 {
	files := []string{filepath.Join(configDir, "settings.json")}
	if cwd != "" {
		files = append(files,
			filepath.Join(cwd, ".claude", "settings.json"),
			filepath.Join(cwd, ".claude", "settings.local.json"))
	}
	if managed != "" {
		files = append(files, managed)
	}
	var settings []transcript.RetentionSetting
	for _, f := range files {
		if raw := retentionIn(f); raw != nil {
			settings = append(settings, transcript.RetentionSetting{Where: f, Raw: raw})
		}
	}
	return transcript.EffectiveRetention(settings...).Days
}

// retentionIn gives the setting's text. A file that cannot be read says
// nothing: the client's default then holds.
func retentionIn(path string) []byte {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var settings struct {
		Days json.RawMessage `json:"cleanupPeriodDays"`
	}
	if json.Unmarshal(data, &settings) == nil {
		return settings.Days
	}
	if m := retentionPattern.FindSubmatch(data); m != nil {
		return m[1]
	}
	return nil
}
