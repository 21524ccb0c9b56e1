// Package digest words what a session was about, from its transcript alone.
//
// It makes two texts, without a model: [Compaction] for the session that goes on
// after its conversation was compacted, [LastSession] for the next one in the
// same project. Both are for a language model to read, as background.
//
// What is promised of them:
//
//   - They are within their limit in UTF-16 units, the most important first, and
//     say what was left out.
//   - The same input gives the same bytes. Times are in UTC.
//   - Words of the user and of the assistant stand in fences that nothing in
//     them closes; outside of fences are this package's own words, numbers, and
//     names of letters, digits and a few signs.
//   - Output of tools and contents of files are not in them, nor what the model
//     thought, the system prompt, or what the client and hooks put in. Of a
//     command its first line is shown. What a tool's result says is used to know
//     whether it succeeded; the user's own words that the client keeps in one
//     (an answer to a question, the reason of a refusal, an approved plan) are
//     quoted.
//   - Secrets of common shapes are masked. A password in a sentence is not
//     recognised.
//   - Nothing is invented: what the transcript does not hold has no heading.
//
// They follow the branch of the conversation that would be resumed: what was
// asked on a branch that the user left is counted, not told. Where the chain of
// records is broken, what stands before the break counts as told.
//
// The transcript is read three times, one record at a time. Memory is bounded by
// its longest line and some 60 bytes a record.
package digest
