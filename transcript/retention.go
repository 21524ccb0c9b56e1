package transcript

import "time"

// DefaultCleanupDays is the client's retention when no settings file names one (documented).
const DefaultCleanupDays = 30

// A RetentionSetting is the cleanupPeriodDays of one settings file.
type RetentionSetting struct {
	Where string // names the file to a person
	Raw   []byte // the value's JSON text, nil if the key is absent
}

// Retention is how long the client keeps transcripts.
type Retention struct {
	Days    int64
	Where   string             // the file that decides, "" for the default
	Invalid []RetentionInvalid // files that the client refuses as a whole
}

// RetentionInvalid is a setting that the client does not accept.
type RetentionInvalid struct {
	RetentionSetting
	Reason string
}

// EffectiveRetention tells which setting holds; later ones override earlier ones.
func EffectiveRetention(settings ...RetentionSetting) Retention { return Retention{} }

// Expiry returns when a file with this mtime may be deleted; false: never.
func Expiry(mtime time.Time, days int64) (time.Time, bool) { return time.Time{}, false }
