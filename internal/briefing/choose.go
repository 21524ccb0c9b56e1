package briefing

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Status says what became of a briefing.
type Status string

// What becomes of a briefing.
const (
	Whole        Status = "whole"         // it is in the output
	Cut          Status = "cut"           // the beginning of it is
	NoRoom       Status = "no room"       // it is named as left out
	Broken       Status = "broken"        // the file cannot be used
	Empty        Status = "empty"         // there is no text in it
	Untrusted    Status = "untrusted"     // the repository is not trusted
	OtherSource  Status = "other source"  // it is for sessions that begin otherwise
	OtherProject Status = "other project" // it is for other directories
	OtherBranch  Status = "other branch"  // it is for other branches
	Expired      Status = "expired"       // its time is over
	Unattended   Status = "unattended"    // it is for sessions that somebody attends
	Said         Status = "said"          // it was said in this session already
	Duplicate    Status = "duplicate"     // its text is that of one before it
)

// In tells whether something of the briefing is in the output.
func (s Status) In() bool { return s == Whole || s == Cut }

// Verdict is a briefing and what became of it.
type Verdict struct {
	Entry
	Status Status
	Why    string // for people; "" if it is in whole
}

// Length measures the briefing's text, in full; zero if the file is of no use.
// Nothing that a session waits for asks this.
func (v Verdict) Length() Length {
	if v.Briefing == nil {
		return Length{}
	}
	return Measure(strings.ToValidUTF8(v.Briefing.Body, "\uFFFD"))
}

// Options say how to choose.
type Options struct {
	Budget Budget
	// Trust is asked, at most once, whether the repository's briefings may be
	// used, and only if one of them would be. If nil, they may not.
	Trust func() Trust
	// Memory knows what was said in a session. If nil, nothing was.
	Memory Memory
}

// Result is what a session gets, and why.
type Result struct {
	Text         string // "" if it gets nothing; never longer than the budget
	Length       Length // of Text
	SessionTitle string // from the most important personal briefing that has one
	Verdicts     []Verdict
	// Problems are failures that somebody should know of and that kept nothing
	// from the session: of the memory, of reading the client's record.
	Problems []error
}

// Choose picks the briefings for a session and words them within the budget.
// Verdicts has each entry once, in the order of importance: priority, then
// home (store, repository, personal), then name; files that cannot be used
// come last.
func Choose(entries []Entry, s Session, o Options) Result {
	var r Result
	r.Verdicts = make([]Verdict, len(entries))
	for i, e := range entries {
		r.Verdicts[i].Entry = e
	}
	slices.SortStableFunc(r.Verdicts, func(a, b Verdict) int { return compare(a.Entry, b.Entry) })

	r.pick(newMatcher(s), o)
	r.place(s, o)
	return r
}

// pick gives a status to each briefing that is not for this session.
func (r *Result) pick(m matcher, o Options) {
	s := m.Session
	var trust *Trust
	texts := map[string]string{}
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		if v.Briefing == nil {
			v.Status, v.Why = Broken, "it cannot be used"
			if v.Err != nil {
				v.Why = v.Err.Error()
			}
			continue
		}
		if v.Status, v.Why = m.refuse(v.Entry); v.Status != "" {
			continue
		}
		if v.Kind == Repository {
			if trust == nil {
				trust = &Trust{Why: "no trust was asked for"}
				if o.Trust != nil {
					*trust = o.Trust()
				}
				r.Problems = append(r.Problems, trust.Problems...)
			}
			if !trust.Trusted {
				v.Status, v.Why = Untrusted, trust.Why
				continue
			}
		}
		if v.Briefing.Once && o.Memory != nil && s.ID != "" {
			said, err := o.Memory.Said(s.ID, v.key())
			if err != nil {
				r.Problems = append(r.Problems, fmt.Errorf("whether %s was said: %w", v.label(), err))
			} else if said {
				v.Status, v.Why = Said, "it was said in this session, and says once = true"
				continue
			}
		}
		if first, ok := texts[v.Briefing.Body]; ok {
			v.Status, v.Why = Duplicate, "its text is that of "+first
			continue
		}
		texts[v.Briefing.Body] = v.label()
	}
	if m.disk.tired != nil {
		r.Problems = append(r.Problems, m.disk.tired)
	}
}

// place words what was picked. What is to be said once is claimed only after
// it has found its room; where somebody else claims it at the same moment, all
// is placed anew without it. What then has no room any more gives its claim
// back: nobody has said it.
func (r *Result) place(s Session, o Options) {
	claimed := map[int]bool{} // what was asked for, and whether it was given
	for {
		var at []int
		var blocks []block
		for i, v := range r.Verdicts {
			if v.Status == "" || v.Status.In() || v.Status == NoRoom {
				if b := newBlock(v.Entry); b.body != "" {
					at, blocks = append(at, i), append(blocks, b)
				} else {
					r.Verdicts[i].Status, r.Verdicts[i].Why = Empty, "it holds no text"
				}
			}
		}
		text, states := fit(blocks, o.Budget)
		again := false
		for k, i := range at {
			v := &r.Verdicts[i]
			switch states[k] {
			case asWhole:
				v.Status, v.Why = Whole, ""
			case cutShort:
				v.Status, v.Why = Cut, "the budget holds its beginning only"
			default:
				v.Status, v.Why = NoRoom, "the budget has no room for it"
				continue
			}
			if _, asked := claimed[i]; asked || again || !v.Briefing.Once || o.Memory == nil || s.ID == "" {
				continue
			}
			first, err := o.Memory.Claim(s.ID, v.key())
			if err != nil {
				r.Problems = append(r.Problems, fmt.Errorf("remember that %s was said: %w", v.label(), err))
			} else if !first {
				v.Status, v.Why = Said, "it was said in this session, and says once = true"
				again = true
				continue
			}
			claimed[i] = err == nil
		}
		if again {
			continue
		}
		r.Text, r.Length = text, Measure(text)
		break
	}
	for i := range r.Verdicts {
		if v := &r.Verdicts[i]; claimed[i] && !v.Status.In() {
			if err := o.Memory.Release(s.ID, v.key()); err != nil {
				r.Problems = append(r.Problems, fmt.Errorf("forget that %s was said: %w", v.label(), err))
			}
		}
	}
	for _, v := range r.Verdicts {
		if v.Status.In() && v.Kind == Personal && v.Briefing.SessionTitle != "" {
			r.SessionTitle = line(v.Briefing.SessionTitle, maxTitleUnits)
			break
		}
	}
}

// compare orders entries by importance, the same on every machine.
func compare(a, b Entry) int {
	switch {
	case (a.Briefing == nil) != (b.Briefing == nil):
		if a.Briefing == nil {
			return 1
		}
		return -1
	case a.Briefing != nil && a.Briefing.Priority != b.Briefing.Priority:
		return cmp.Compare(b.Briefing.Priority, a.Briefing.Priority)
	}
	return cmp.Or(cmp.Compare(a.Kind.rank(), b.Kind.rank()), strings.Compare(a.Name, b.Name), strings.Compare(a.Path, b.Path))
}

// key tells a briefing from others in the memory: by its place, so that one
// that was edited is not said again.
func (e Entry) key() string { return string(e.Kind) + "\x00" + e.Path }

// Err joins what is wrong with the files: nil if each could be used.
func (r Result) Err() error {
	var all []error
	for _, v := range r.Verdicts {
		if v.Status == Broken {
			all = append(all, v.Err)
		}
	}
	return errors.Join(all...)
}
