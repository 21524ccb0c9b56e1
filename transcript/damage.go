package transcript

import "fmt"

// A Kind says what is wrong with a part of a transcript.
type Kind uint8

// Kinds of damage. What the client makes of each was observed on 2.1.332.
const (
	TornTail    Kind = iota + 1 // the last line has no 0x0A and its record is cut off; on a live file this is no error
	Torn                        // a record is cut off and its line ends there
	Spliced                     // a record is cut off and another one begins on the same line
	Glued                       // a whole record stands behind another one on the same line
	NULRun                      // a line of NUL bytes
	NULGlued                    // NUL bytes on the line of a record
	ControlChar                 // a raw control character inside a string
	NotObject                   // a JSON value that is no object
	Garbage                     // bytes that are no JSON
	Trailing                    // other bytes behind a whole record
	InvalidUTF8                 // a record with bytes that are no UTF-8
	MultiLine                   // a record that is spread over several lines
	TooDeep                     // a record nested deeper than 10,000 levels
	TooLong                     // a line longer than the reader's limit
)

// Kinds lists all kinds, in their order.
func Kinds() []Kind {
	all := make([]Kind, 0, kinds-1)
	for k := TornTail; k < kinds; k++ {
		all = append(all, k)
	}
	return all
}

const kinds = TooLong + 1

// String names the kind in a few words, the same ones in every version.
func (k Kind) String() string {
	switch k {
	case TornTail:
		return "cut-off last line"
	case Torn:
		return "cut-off record"
	case Spliced:
		return "cut-off record with another behind it"
	case Glued:
		return "second record on a line"
	case NULRun:
		return "line of NUL bytes"
	case NULGlued:
		return "NUL bytes beside a record"
	case ControlChar:
		return "raw control character in a string"
	case NotObject:
		return "JSON value that is no object"
	case Garbage:
		return "bytes that are no JSON"
	case Trailing:
		return "bytes behind a record"
	case InvalidUTF8:
		return "bytes that are no UTF-8"
	case MultiLine:
		return "record over several lines"
	case TooDeep:
		return "nesting over 10,000 levels"
	case TooLong:
		return "line over the limit"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Damage is one damaged part of a transcript. The bytes are the file's; nothing is
// kept here.
type Damage struct {
	Kind   Kind
	Line   int64 // physical line number, from 1
	Offset int64 // of the first byte of the part, from the start of the file
	Length int64 // bytes
	Lost   bool  // the client does not see a record because of it
}

// String describes the damage without quoting it.
func (d Damage) String() string {
	return fmt.Sprintf("line %d, byte %d: %s (%d bytes)", d.Line, d.Offset, d.Kind, d.Length)
}

// A Format says what kind of file the first lines are of.
type Format uint8

// Formats.
const (
	FormatLines  Format = iota // one record a line, as the client writes it
	FormatEmpty                // nothing, or white space alone
	FormatArray                // one JSON array, as web exports are; the client finds no conversation in it
	FormatPretty               // pretty-printed JSON, records over several lines
	FormatUTF16                // UTF-16 text; the client finds no conversation in it
)

// String names the format in a few words.
func (f Format) String() string {
	switch f {
	case FormatLines:
		return "JSON lines"
	case FormatEmpty:
		return "empty"
	case FormatArray:
		return "one JSON array"
	case FormatPretty:
		return "pretty-printed JSON"
	case FormatUTF16:
		return "UTF-16 text"
	}
	return fmt.Sprintf("format %d", uint8(f))
}
