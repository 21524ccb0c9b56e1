package briefing

import (
	"encoding/json"
	"errors"
	"fmt"
)

// parseRecord finds the trusted folders in the client's record. It walks over
// the text and decodes nothing but the names it looks for, since a session
// waits for it and the record is large. A record that is cut off anywhere is
// an error: what it says may be half.
func parseRecord(data []byte) ([]string, error) {
	w := walker{data: data}
	trusted := map[string]bool{}
	var order []string
	err := w.object(func(key string) error {
		if key != "projects" {
			return w.skip()
		}
		clear(trusted) // of a repeated key the last one holds
		order = nil
		if !w.at('{') {
			return w.skip()
		}
		return w.object(func(folder string) error {
			yes := false
			if !w.at('{') {
				trusted[folder] = false // whatever the same name said before
				return w.skip()
			}
			err := w.object(func(key string) error {
				start := w.pos
				if err := w.skip(); err != nil {
					return err
				}
				if key == "hasTrustDialogAccepted" {
					yes = string(w.data[start:w.pos]) == "true"
				}
				return nil
			})
			trusted[folder] = yes
			order = append(order, folder)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	if w.space(); w.pos != len(w.data) {
		return nil, w.fail()
	}
	var folders []string
	for _, folder := range order {
		if trusted[folder] {
			trusted[folder] = false // named once
			folders = append(folders, folder)
		}
	}
	return folders, nil
}

// walker goes over JSON text. It accepts a little more than JSON is, but finds
// the end of each value where JSON has it.
type walker struct {
	data []byte
	pos  int
}

var errNotJSON = errors.New("not whole JSON")

func (w *walker) fail() error { return fmt.Errorf("%w at byte %d", errNotJSON, w.pos) }

func (w *walker) space() {
	for w.pos < len(w.data) {
		switch w.data[w.pos] {
		case ' ', '\t', '\r', '\n':
			w.pos++
		default:
			return
		}
	}
}

// at tells whether the next value begins with c.
func (w *walker) at(c byte) bool {
	w.space()
	return w.pos < len(w.data) && w.data[w.pos] == c
}

func (w *walker) take(c byte) error {
	if !w.at(c) {
		return w.fail()
	}
	w.pos++
	return nil
}

// object walks over an object; member is called before each value and walks
// over that.
func (w *walker) object(member func(key string) error) error {
	if err := w.take('{'); err != nil {
		return err
	}
	if w.at('}') {
		w.pos++
		return nil
	}
	for {
		w.space()
		start := w.pos
		if err := w.string(); err != nil {
			return err
		}
		var key string
		if err := json.Unmarshal(w.data[start:w.pos], &key); err != nil {
			return err
		}
		if err := w.take(':'); err != nil {
			return err
		}
		w.space()
		if err := member(key); err != nil {
			return err
		}
		if w.at('}') {
			w.pos++
			return nil
		}
		if err := w.take(','); err != nil {
			return err
		}
	}
}

// string walks over a string.
func (w *walker) string() error {
	if err := w.take('"'); err != nil {
		return err
	}
	for w.pos < len(w.data) {
		switch w.data[w.pos] {
		case '\\':
			w.pos += 2
		case '"':
			w.pos++
			return nil
		default:
			w.pos++
		}
	}
	w.pos = len(w.data)
	return w.fail()
}

// skip walks over any value, however deep.
func (w *walker) skip() error {
	w.space()
	var open []byte
	for {
		w.space()
		if w.pos >= len(w.data) {
			return w.fail()
		}
		switch c := w.data[w.pos]; c {
		case '{', '[':
			open = append(open, c+2) // the closing one, in ASCII
			w.pos++
		case '}', ']':
			if len(open) == 0 || open[len(open)-1] != c {
				return w.fail()
			}
			open = open[:len(open)-1]
			w.pos++
		case '"':
			if err := w.string(); err != nil {
				return err
			}
		case ',', ':':
			if len(open) == 0 {
				return w.fail()
			}
			w.pos++
			continue
		default:
			start := w.pos
			for w.pos < len(w.data) && isWord(w.data[w.pos]) {
				w.pos++
			}
			if w.pos == start {
				return w.fail()
			}
		}
		if len(open) == 0 {
			return nil
		}
	}
}

// isWord tells whether c belongs to a number, true, false or null.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.' || c == 'E'
}
