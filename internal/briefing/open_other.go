//go:build !unix

package briefing

// nonBlocking is nothing where a name in a folder is never a pipe.
const nonBlocking = 0
