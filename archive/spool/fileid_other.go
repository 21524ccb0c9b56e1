//go:build !unix

package spool

import (
	"os"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// fileID gives a file's number without following links, and tells whether it
// is a regular file.
func fileID(path string) (id durable.ID, regular bool, err error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return id, false, err
	}
	if !fi.Mode().IsRegular() {
		return id, false, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return id, false, err
	}
	defer f.Close()
	id, ok := durable.OpenID(f)
	if !ok {
		return id, false, errNoID
	}
	return id, true, nil
}
