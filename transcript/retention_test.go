package transcript

import (
	"fmt"
	"testing"
	"time"
)

// CL-07, CL-08.
func TestEffectiveRetention(t *testing.T) {
	set := func(where, raw string) RetentionSetting {
		s := RetentionSetting{Where: where}
		if raw != "" {
			s.Raw = []byte(raw)
		}
		return s
	}
	for _, c := range []struct {
		user, project, local string
		days                 int64
		where, invalid       string
	}{
		{"", "", "", 30, "", ""},
		{"36500", "", "", 36500, "user", ""},
		{"36500", "1", "", 1, "project", ""},
		{"36500", "1", "7", 7, "local", ""},
		{" 30.0 ", "", "", 30, "user", ""},
		{"3e1", "", "", 30, "user", ""},
		{"99999999", "", "", maxDays, "user", ""},
		{"9999999999999999999999", "", "", maxDays, "user", ""},
		{"0", "", "", 30, "", "user is less than 1"},
		{"60", "0", "", 60, "user", "project is less than 1"},
		{"-1", "1.5", `"30"`, 30, "", "user is less than 1, project is no whole number, local is no number"},
		{"null", "true", "[]", 30, "", "user is no number, project is no number, local is no number"},
		{"1e999999", "01", "{", 30, "", "user is no sensible number, project is no JSON value, local is no JSON value"},
	} {
		r := EffectiveRetention(set("user", c.user), set("project", c.project), set("local", c.local))
		var invalid string
		for i, v := range r.Invalid {
			if i > 0 {
				invalid += ", "
			}
			invalid += v.Where + " " + v.Reason
		}
		if r.Days != c.days || r.Where != c.where || invalid != c.invalid {
			t.Errorf("%q %q %q: %d days by %q, invalid: %q", c.user, c.project, c.local, r.Days, r.Where, invalid)
		}
	}
}

func TestExpiry(t *testing.T) {
	mtime := time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)
	for days, want := range map[int64]string{
		1: "2026-03-02 12:00:00.000000005 true", 30: "2026-03-31 12:00:00.000000005 true", 36500: "2126-02-05 12:00:00.000000005 true",
		200_000: "2573-09-29 12:00:00.000000005 true", maxDays: "0001-01-01 00:00:00.000000000 false", 0: "0001-01-01 00:00:00.000000000 false", -1: "0001-01-01 00:00:00.000000000 false",
	} {
		at, ok := Expiry(mtime, days)
		if got := fmt.Sprint(at.Format("2006-01-02 15:04:05.000000000"), " ", ok); got != want {
			t.Errorf("%d days: %s, want %s", days, got, want)
		}
	}
}
