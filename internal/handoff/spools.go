package handoff

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/durable"
)

// clientSpool names the spool inside a client's config folder.
const clientSpool = "session-keeper-spool"

// Spools returns every folder in which a spool may be, the one of the state
// folder first: those remembered, and that of each known config folder of the
// client. They need not exist.
func (h *Handoff) Spools() ([]string, error) {
	dirs, err := config.SeenSpools(h.Settings.Paths.State)
	for _, client := range h.Settings.ClientDirs {
		if dir := filepath.Join(client, clientSpool); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, err
}

// spoolsFor returns the spools to try for a file, the best one first. A hard
// link needs the same file system, so that is the state folder's spool if it
// lies on the file's, else the one beside the client's files. The other one
// is for when the first cannot be written to.
func (h *Handoff) spoolsFor(file, clientDir string) []string {
	state := config.DefaultSpool(h.Settings.Paths.State)
	if clientDir == "" {
		return []string{state}
	}
	beside := filepath.Join(clientDir, clientSpool)
	if sameDevice(state, file) {
		return []string{state, beside}
	}
	return []string{beside, state}
}

// SpoolFor returns the spool that a hand-off of file would try first.
func (h *Handoff) SpoolFor(file, clientDir string) string { return h.spoolsFor(file, clientDir)[0] }

// sameDevice tells whether a folder, which need not exist yet, lies on the
// device of a file. Where that cannot be told they are taken to: a link that
// is refused then turns into a copy.
func sameDevice(dir, file string) bool {
	info, err := os.Stat(file)
	if err != nil {
		return true
	}
	fileID, ok := durable.FileID(info)
	if !ok {
		return true
	}
	for at := dir; ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil {
			dirID, ok := durable.FileID(info)
			return !ok || dirID.Device == fileID.Device
		}
		if at == filepath.Dir(at) {
			return true
		}
	}
}
