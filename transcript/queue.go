package transcript

import (
	"hash/maphash"
	"sort"
)

// queuedBytes is how much of a queued prompt's text is kept.
const queuedBytes = 4 << 10

// A QueuedPrompt is something the user typed while the model worked and that no
// later record repeats.
type QueuedPrompt struct {
	Text string // cut for display
	Line int64
}

// A Queue follows prompts that were typed while the model worked. The client notes
// them when they are typed; most come again as a user record or as an attachment,
// some never do. The zero Queue is ready for use.
type Queue struct {
	seed      maphash.Seed
	waiting   map[uint64][]QueuedPrompt // by the text's hash, oldest first
	delivered map[uint64]int            // attachments without a user record yet
	attached  int64
}

// See takes note of the next record.
func (q *Queue) See(r *Record) {
	switch view, text := r.view(); view {
	case ViewQueued, ViewPrompt:
		q.see(r, view, text)
	}
}

func (q *Queue) see(r *Record, view View, text Value) {
	if q.waiting == nil {
		q.seed = maphash.MakeSeed()
		q.waiting = make(map[uint64][]QueuedPrompt)
		q.delivered = make(map[uint64]int)
	}
	// The same text may be escaped in different ways.
	whole, _ := text.Text()
	key := maphash.String(q.seed, whole)
	switch {
	case view == ViewPrompt:
		if !q.drop(key) && q.delivered[key] > 0 {
			q.delivered[key]--
			q.attached--
		}
	case r.Type.Is("attachment"):
		q.drop(key)
		q.delivered[key]++
		q.attached++
	default:
		short, _ := text.prefix(queuedBytes)
		if len(short) > 0 && short[0] == '/' {
			return // a command: it comes again in the client's own words
		}
		q.waiting[key] = append(q.waiting[key], QueuedPrompt{Text: short, Line: r.Line})
	}
}

// drop forgets the oldest waiting prompt with this text.
func (q *Queue) drop(key uint64) bool {
	w := q.waiting[key]
	switch len(w) {
	case 0:
		return false
	case 1:
		delete(q.waiting, key)
	default:
		q.waiting[key] = w[1:]
	}
	return true
}

// Waiting returns the prompts that no record so far repeated, in the order in which
// they were typed.
func (q *Queue) Waiting() []QueuedPrompt {
	var all []QueuedPrompt
	for _, w := range q.waiting {
		all = append(all, w...)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Line < all[j].Line })
	return all
}

// Len returns how many prompts exist as queued ones alone: waiting, or handed to the
// model as an attachment.
func (q *Queue) Len() int64 {
	n := q.attached
	for _, w := range q.waiting {
		n += int64(len(w))
	}
	return n
}
