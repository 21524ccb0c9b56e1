//go:build !unix

package transcript

import "os"

// Opening a regular file does not wait here, and what is none was refused before.
func openNonBlocking(path string) (*os.File, error) { return os.Open(path) }

// Ownership is a matter of access lists here: what the user may open is taken.
func ownedByUser(os.FileInfo) bool { return true }

// A file where a folder is looked for gives fs.ErrNotExist here.
func isNotDir(error) bool { return false }
