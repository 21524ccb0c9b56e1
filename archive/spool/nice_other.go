//go:build !unix || solaris || aix

package spool

// LowerPriority makes this process step back behind others, as far as the
// system lets it. On Windows a worker starts with a lower priority already.
func LowerPriority() error { return nil }
