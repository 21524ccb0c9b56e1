// Package transcript reads Claude Code's session transcripts and finds them on disk.
//
// A transcript is a file of JSON records, one a line, named after its session:
// <config>/projects/<folder>/<session id>.jsonl. The format is internal to the
// client and changes between its releases, so nothing here depends on a record
// being of a known kind: unknown types and fields are kept and counted. What is
// said of the client's behaviour was observed on Claude Code 2.1.332 unless a
// comment gives another source.
//
// The package promises three things. Bytes are never altered or dropped: a line
// that does not parse is handed out as it stands, with its offset, its physical
// line number and the kind of damage. Memory is bounded by the longest line, not
// by the file. And nothing is opened for reading but regular files of the user's
// own, named after a valid session id, in a client's config folder.
//
// It does not decide which branch of a conversation the client would resume, and
// it writes nothing.
package transcript
