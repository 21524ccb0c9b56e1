//go:build !unix

package hooklib

// noCoreDump: no such files here.
func noCoreDump() {}
