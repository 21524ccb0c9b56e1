package digest

import (
	"context"
	"hash/maphash"
	"io"

	"github.com/session-keeper/session-keeper/transcript"
)

// checkEvery is how many records are read between two looks at the context.
const checkEvery = 64

// each calls visit for every record. Damage is no error: what can be read counts.
func each(ctx context.Context, r io.Reader, visit func(*transcript.Record)) error {
	rd := transcript.NewReader(r)
	err := ctx.Err()
	for n := 1; err == nil && rd.Next(); n++ {
		visit(rd.Record())
		if n%checkEvery == 0 {
			err = ctx.Err()
		}
	}
	if err == nil {
		err = rd.Err()
	}
	return err
}

// A chain tells which records of a transcript belong to the branch of the
// conversation that would be resumed.
type chain struct {
	seed  maphash.Seed
	at    map[uint64]int32 // by the uuid's hash
	nodes []node
	count int32  // of records
	leaf  uint64 // that the last last-prompt record names
}

type node struct {
	parent, logical uint64 // hashes, 0 for none
	place           int32  // in the file, of the last record with this uuid
	main            bool
	live            bool
	told            bool // it was visited before: the client writes records again
}

func newChain() *chain {
	return &chain{seed: maphash.MakeSeed(), at: make(map[uint64]int32)}
}

func (c *chain) hash(v transcript.Value) uint64 {
	text, ok := v.Text()
	if !ok || text == "" {
		return 0
	}
	return maphash.String(c.seed, text) | 1
}

// add takes note of a record.
func (c *chain) add(r *transcript.Record) {
	switch r.Type.String() {
	case "user", "assistant", "attachment", "system", "progress":
	case "last-prompt":
		c.leaf = c.hash(r.LeafUUID)
		return
	default:
		return
	}
	id := c.hash(r.UUID)
	if id == 0 {
		return
	}
	c.count++
	n := node{parent: c.hash(r.ParentUUID), logical: c.hash(r.LogicalParentUUID), place: c.count, main: !r.IsSidechain.True()}
	if i, ok := c.at[id]; ok {
		c.nodes[i] = n // of several the last one counts
		return
	}
	c.at[id] = int32(len(c.nodes))
	c.nodes = append(c.nodes, n)
}

// ends gives the last record of the main line, and the last one from which
// nothing goes on; -1 for none.
func (c *chain) ends() (last, leaf int32) {
	parents := make([]bool, len(c.nodes))
	for _, n := range c.nodes {
		if i, ok := c.at[n.parent]; ok {
			parents[i] = true
		}
	}
	last, leaf = -1, -1
	for i, n := range c.nodes {
		if !n.main {
			continue
		}
		if last < 0 || n.place > c.nodes[last].place {
			last = int32(i)
		}
		if !parents[i] && (leaf < 0 || n.place > c.nodes[leaf].place) {
			leaf = int32(i)
		}
	}
	return last, leaf
}

// resolve marks what is live: the ancestors of the leaf. The leaf is what the
// last last-prompt record names, unless that is an ancestor of the last leaf
// (observed on 2.1.332). At a root, be it the cut of a compaction or a record
// whose parent is gone, it goes on with what the cut names as its parent, or with
// the record before it in the file.
func (c *chain) resolve() {
	last, leaf := c.ends()
	if last < 0 {
		return
	}
	var live []bool
	if leaf >= 0 {
		live = c.ancestors(leaf)
	}
	if leaf < 0 || !live[last] {
		live = c.ancestors(last) // it is in a circle, to which nothing leads
	}
	if i, ok := c.at[c.leaf]; ok && !live[i] {
		live = c.ancestors(i)
	}
	for i := range live {
		c.nodes[i].live = live[i]
	}
}

// ancestors marks a node and all that it leads to. Where a node has no parent
// that is known, or the way leads in a circle, it goes on before all nodes that it
// has come to.
func (c *chain) ancestors(at int32) []bool {
	marked := make([]bool, len(c.nodes))
	for first := at; ; { // first is the first node of the file that was come to
		marked[at] = true
		first = min(first, at)
		n := &c.nodes[at]
		next, ok := c.at[n.parent]
		if !ok {
			next, ok = c.at[n.logical]
		}
		if !ok || marked[next] {
			for next = first - 1; next >= 0 && !c.nodes[next].main; next-- {
			}
			if next < 0 {
				return marked
			}
		}
		at = next
	}
}

// tells says whether the record is to be told: it is of the main line, comes for
// the first time, and is live or cannot be placed. left is true for one of a
// branch that was left.
func (c *chain) tells(r *transcript.Record) (tells, left bool) {
	if r.IsSidechain.True() {
		return false, false
	}
	i, ok := c.at[c.hash(r.UUID)]
	if !ok {
		return true, false
	}
	n := &c.nodes[i]
	if n.told {
		return false, false
	}
	n.told = true
	return n.live, !n.live
}
