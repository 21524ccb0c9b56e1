package digest

import (
	"sort"
	"strings"
)

// A section is a part of a text that can be made to fit.
type section struct {
	// render words it within so many units. cut tells whether something is
	// missing; if nothing fits, the text is empty and cut is true.
	render func(room int) (text string, cut bool)
	least  int    // kept free for it while sections before it are laid out
	most   int    // what it takes before all others had their share
	name   string // what is missing if it is left out
}

// leftOut begins the last line of a text from which whole sections are missing.
const leftOut = "\nLeft out for lack of room: "

// compose puts the sections, which come in the order of their importance, behind
// the head. Each first gets room up to its own limit, without taking what the
// later ones need at least; what is then free goes to those that were cut, the
// most important first. Nothing comes out if not even the head fits.
func compose(limit int, top string, sections []section) (text string, cut bool) {
	room := limit - units(top)
	if room < 0 {
		return "", true
	}
	texts := make([]string, len(sections))
	cuts := make([]bool, len(sections))
	layout := func(room int) int {
		later := 0
		for _, s := range sections {
			later += s.least
		}
		for i, s := range sections {
			later -= s.least
			texts[i], cuts[i] = s.render(min(s.most, max(room-later, min(room, s.least))))
			room -= units(texts[i])
		}
		for i, s := range sections {
			if !cuts[i] || room <= 0 {
				continue
			}
			before := units(texts[i])
			if longer, still := s.render(before + room); units(longer) > before {
				texts[i], cuts[i] = longer, still
				room -= units(longer) - before
			}
		}
		return room
	}
	missing := func() string {
		var names []string
		for i, s := range sections {
			if texts[i] == "" && cuts[i] {
				names = append(names, s.name)
			}
		}
		if len(names) == 0 {
			return ""
		}
		return leftOut + strings.Join(names, ", ") + ".\n"
	}
	free := layout(room)
	note := missing()
	if free < units(note) {
		// Once more, with room for the longest note that there can be.
		all := 0
		for _, s := range sections {
			all += units(s.name) + 2
		}
		layout(max(0, room-units(leftOut)-all))
		note = missing()
	}
	text = top + strings.Join(texts, "") + note
	if units(text) > limit {
		text = top + strings.Join(texts, "")
	}
	for _, c := range cuts {
		cut = cut || c
	}
	return text, cut
}

// quoted is a section of one text under a heading.
func quoted(heading, text, name string, least, most int) section {
	return section{name: name, least: least, most: most, render: func(room int) (string, bool) {
		f := len(fence(text))
		inside := room - units(heading) - 2*f - len("\n\n") - len("text\n\n\n")
		if inside < min(units(text), 60) {
			return "", true
		}
		short := shorten(text, inside)
		return "\n" + heading + "\n" + fenced(short), short != text
	}}
}

// listing is a section of items under a heading, the ones to be kept first.
type listing struct {
	heading     string
	items       []item
	wide        []item // the same with more of each, for when there is room
	more        int    // of them that are not even in items
	what        string // what an item is, for the number of those left out
	name        string
	least, most int
}

// An item is a line or two of a listing. Items are shown by their place.
type item struct {
	text  string
	place int
}

// inOrder makes items of lines that are kept and shown in this order.
func inOrder(lines []string) []item {
	items := make([]item, len(lines))
	for i, l := range lines {
		items[i] = item{l, i}
	}
	return items
}

func (l listing) section() section {
	return section{name: l.name, least: l.least, most: l.most, render: func(room int) (string, bool) {
		if l.wide != nil {
			if text, cut := l.render(l.wide, room); !cut || l.more > 0 && strings.HasSuffix(text, l.note(l.more)) {
				return text, cut
			}
		}
		text, cut := l.render(l.items, room)
		return text, cut || l.wide != nil
	}}
}

// note says how many items are not shown.
func (l listing) note(n int) string {
	if n == 0 {
		return ""
	}
	return "(" + count(n, "more "+l.what) + ")\n"
}

func (l listing) render(items []item, room int) (text string, cut bool) {
	width := 0 // of the fence
	for _, it := range items {
		width = max(width, len(fence(it.text)))
	}
	room -= units(l.heading) + 2*width + len("\n\n") + len("text\n\n\n")
	fit := func(room int) (n int) {
		for room++; n < len(items); n++ { // the last line's end is counted above
			if room -= units(items[n].text) + 1; room < 0 {
				break
			}
		}
		return n
	}
	n := fit(room)
	if n < len(items) || l.more > 0 {
		n = fit(room - len(l.note(len(items)+l.more)))
	}
	if n == 0 {
		return "", true
	}
	shown := append([]item(nil), items[:n]...)
	sort.SliceStable(shown, func(i, j int) bool { return shown[i].place < shown[j].place })
	lines := make([]string, n)
	for i, it := range shown {
		lines[i] = it.text
	}
	rest := len(items) - n + l.more
	return "\n" + l.heading + "\n" + fenced(strings.Join(lines, "\n")) + l.note(rest), rest > 0
}
