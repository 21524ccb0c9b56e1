package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/internal/install"
	"github.com/session-keeper/session-keeper/transcript"
)

// soon is how near the client's clean-up must be for a session to count as
// expiring.
const soon = 7 * 24 * time.Hour

// Survey counts the sessions in the client's folders.
type Survey struct {
	Sessions int   `json:"sessions"`
	Bytes    int64 `json:"bytes"`    // with their side files
	Expiring int   `json:"expiring"` // the client may delete them within a week

	Missing         int `json:"missing"`          // not in the archive, and not kept out
	MissingExpiring int `json:"missing_expiring"` // of these, expiring
	KeptOut         int `json:"kept_out"`

	Unreadable []transcript.Skipped `json:"-"` // places where no session could be looked for
}

// Survey goes through the client's folders. It reads no
// transcript, but for the first records where there are excludes. A session
// counts as archived if the archive has any of it; what it lacks of a session
// that goes on is a matter of its next event.
func (w *World) Survey(ctx context.Context) (Survey, error) {
	var n Survey
	bundles, skipped, err := w.Keeper.Locator().Sessions(ctx)
	if err != nil {
		return n, err
	}
	n.Unreadable = skipped
	kept := map[string]bool{}
	store, err := archive.Open(w.Settings.Paths.Store)
	switch {
	case err == nil:
		ids, err := store.Sessions(ctx)
		if err != nil {
			return n, err
		}
		for _, id := range ids {
			kept[id] = true
		}
	case !errors.Is(err, archive.ErrNotStore) && !errors.Is(err, fs.ErrNotExist):
		return n, err
	}
	days := map[string]int64{}
	for _, b := range bundles {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		n.Sessions++
		files, _, err := b.ListFiles(ctx, transcript.FilesOptions{NoReads: true})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, err
		}
		var size int64
		for _, f := range files {
			size += f.Size
		}
		n.Bytes += size
		period, known := days[b.ConfigDir]
		if !known {
			period = w.retention(b.ConfigDir).Days
			days[b.ConfigDir] = period
		}
		expires, may := transcript.Expiry(b.ModTime, period)
		expiring := may && expires.Before(w.Now.Add(soon))
		if expiring {
			n.Expiring++
		}
		if kept[b.SessionID] || size == 0 {
			continue // a session without a byte is nothing to archive
		}
		out, err := w.Keeper.Skips(b, store)
		if err != nil {
			return n, err
		}
		switch {
		case out:
			n.KeptOut++
		case expiring:
			n.Missing++
			n.MissingExpiring++
		default:
			n.Missing++
		}
	}
	return n, nil
}

// retention is the client's clean-up period for one of its config folders, as
// its user's and the administrator's settings give it.
func (w *World) retention(configDir string) transcript.Retention {
	return transcript.EffectiveRetention(w.retentionSettings(filepath.Join(configDir, install.SettingsName), w.Managed)...)
}

// retentionSettings reads cleanupPeriodDays from settings files, weakest
// first. A file that cannot be read says nothing; checkWiring reports it.
func (w *World) retentionSettings(files ...string) []transcript.RetentionSetting {
	var settings []transcript.RetentionSetting
	for _, file := range files {
		if file == "" {
			continue
		}
		s, err := install.Read(file)
		if err != nil || s == nil {
			continue
		}
		raw, _ := s.Value("cleanupPeriodDays")
		if raw == nil {
			continue
		}
		setting := transcript.RetentionSetting{Where: file, Raw: raw}
		if alone := transcript.EffectiveRetention(setting); s.Loose() > 0 && len(alone.Invalid) == 0 && alone.Days >= transcript.DefaultCleanupDays {
			continue // such a file is not loaded, so it makes nothing longer
		}
		settings = append(settings, setting)
	}
	return settings
}

// Size adds up the sizes of all regular files below dir, and counts them. A
// folder that does not exist has none.
func Size(dir string) (bytes int64, files int, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone meanwhile, or never there
		}
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() {
			return nil
		}
		fi, err := d.Info()
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		bytes += fi.Size()
		files++
		return nil
	})
	return bytes, files, err
}
