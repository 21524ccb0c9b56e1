//go:build unix

package spool

import (
	"os"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// fileID gives a file's number without following links, and tells whether it
// is a regular file of the user's.
func fileID(path string) (id durable.ID, regular bool, err error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return id, false, err
	}
	id, ok := durable.FileID(fi)
	if !ok {
		return id, false, errNoID
	}
	return id, fi.Mode().IsRegular() && durable.OwnedByUser(fi), nil
}
