//go:build !unix

package logfile

const openFlags = 0
