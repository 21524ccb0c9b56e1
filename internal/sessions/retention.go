package sessions

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/session-keeper/session-keeper/transcript"
)

// retentionPattern finds the setting in a file that is no plain JSON, for
// example because of comments.
var retentionPattern = regexp.MustCompile(`"cleanupPeriodDays"\s*:\s*([0-9]+)\b`)

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
	shorter := int64(transcript.KeepForeverDays)
	for _, f := range files {
		raw, loose := retentionIn(f)
		switch {
		case loose > 0:
			shorter = min(shorter, loose)
		case raw != nil:
			settings = append(settings, transcript.RetentionSetting{Where: f, Raw: raw})
		}
	}
	return min(transcript.EffectiveRetention(settings...).Days, shorter)
}

// retentionIn gives the setting's text. A file that cannot be read says
// nothing: the client's default then holds. One with comments or trailing commas
// is not loaded by 2.1.332 (observed), and may be by other versions: the days in
// it, given as loose, can make the period shorter, never longer.
func retentionIn(path string) (raw []byte, loose int64) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, 0
	}
	var settings struct {
		Days json.RawMessage `json:"cleanupPeriodDays"`
	}
	if json.Unmarshal(data, &settings) == nil {
		return settings.Days, 0
	}
	if m := retentionPattern.FindSubmatch(data); m != nil {
		if days, err := strconv.ParseInt(string(m[1]), 10, 64); err == nil && days > 0 {
			return nil, days
		}
	}
	return nil, 0
}
