package transcript

import (
	"math/big"
	"strings"
	"time"
)

const (
	// DefaultCleanupDays is how long the client keeps a transcript if no settings
	// file says otherwise (documented; observed on 2.1.332).
	DefaultCleanupDays = 30
	// KeepForeverDays is what to set to keep transcripts: a hundred years. 0 is no
	// such thing: older clients deleted everything at it, newer ones refuse it.
	KeepForeverDays = 36500
	// maxDays is the largest period that is told apart from never.
	maxDays = 2_000_000
)

// A RetentionSetting is the cleanupPeriodDays of one settings file.
type RetentionSetting struct {
	Where string // names the file to a person
	Raw   []byte // the value's JSON text; nil if the file or the key is absent
}

// An InvalidRetention is a setting that the client does not accept. It then takes
// nothing from that file at all, hooks included, and does not clean up (observed on
// 2.1.332); clients before 2.1.89 took 0 for "delete everything, write nothing".
type InvalidRetention struct {
	RetentionSetting
	Reason string
}

// Retention is how long the client keeps transcripts, by their mtime.
type Retention struct {
	Days    int64
	Where   string             // the file that decides; "" for the default
	Invalid []InvalidRetention // in the order given
}

// EffectiveRetention tells which setting holds. Settings are given from the weakest
// to the strongest: user, project, local, and the managed ones last. A project's
// setting beats the user's, also where the project is not trusted (observed on
// 2.1.332). Invalid ones do not count.
func EffectiveRetention(settings ...RetentionSetting) Retention {
	r := Retention{Days: DefaultCleanupDays}
	for _, s := range settings {
		if s.Raw == nil {
			continue
		}
		days, why := cleanupDays(s.Raw)
		if why != "" {
			r.Invalid = append(r.Invalid, InvalidRetention{s, why})
			continue
		}
		r.Days, r.Where = days, s.Where
	}
	return r
}

// cleanupDays reads a period, or says why it is none.
func cleanupDays(raw []byte) (int64, string) {
	text := strings.TrimSpace(string(raw))
	l := lexer{b: []byte(text)}
	end, f := l.value(0, 0)
	if f != faultNone || end != len(text) {
		return 0, "is no JSON value"
	}
	if c := text[0]; c != '-' && (c < '0' || c > '9') {
		return 0, "is no number"
	}
	// 30.0 and 3e1 are whole numbers to JavaScript. An absurd exponent would be
	// expanded to as many digits.
	if len(text) > 32 {
		return 0, "is no sensible number"
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 && len(strings.TrimLeft(text[i+1:], "+-0")) > 2 {
		return 0, "is no sensible number"
	}
	n, ok := new(big.Rat).SetString(text)
	switch {
	case !ok || !n.IsInt():
		return 0, "is no whole number"
	case n.Sign() <= 0:
		return 0, "is less than 1"
	case !n.Num().IsInt64() || n.Num().Int64() > maxDays:
		return maxDays, ""
	}
	return n.Num().Int64(), ""
}

// Expiry returns when the client may delete a file with this mtime, and false if
// that is beyond all planning. The clean-up runs at most once a day and only while a
// client runs, so the file may live longer; with its transcript the whole side
// folder goes, however fresh.
func Expiry(mtime time.Time, days int64) (time.Time, bool) {
	if days <= 0 || days >= maxDays {
		return time.Time{}, false
	}
	at := time.Unix(mtime.Unix()+days*24*60*60, int64(mtime.Nanosecond())).In(mtime.Location())
	return at, at.Year() <= 9999
}
