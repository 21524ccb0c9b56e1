// Package archive keeps generations of a session's files in a store on disk.
//
// A store is a folder; FORMAT.md specifies every byte in it. Everything but
// temporaries and locks is written once: segments (compressed raw bytes, named
// by their SHA-256), manifests (one generation of one session each) and
// tombstones (sessions that must stay forgotten). What comes out is, byte for
// byte, what went in: nothing is parsed to be stored.
//
// Archiving is idempotent and may be cut off at any point: the store stays
// readable, holds every generation it held before, and the next run finishes.
// Readers take no locks. Several processes may archive at once.
//
// The package does not know what a transcript is, does not find a session's
// files, and does not keep hooks waiting: that is for its callers.
package archive
