package transcript

// A Kind says what is wrong with a part of a transcript.
type Kind uint8

// Kinds of damage.
const (
	TornTail    Kind = iota + 1 // the last line has no 0x0A and its record is cut off
	Torn                        // a record is cut off, the line ends there
	Spliced                     // a record is cut off and another begins on the same line
	Glued                       // a complete record stands behind another on one line: the client does not read it
	NULRun                      // a line of NUL bytes
	NULGlued                    // NUL bytes on a record's line
	ControlChar                 // a raw control character inside a string: the client loses the line
	NotObject                   // valid JSON, but no object
	Garbage                     // bytes that are no JSON
	Trailing                    // other bytes behind a complete record; the client ignores them
	InvalidUTF8                 // the record is read, the client puts U+FFFD for the bad bytes
	MultiLine                   // one record over several lines; the client reads it
	TooDeep                     // nested deeper than 10,000 levels
	TooLong                     // longer than the reader's limit
)

// String names the kind in a few words.
func (k Kind) String() string { return "" }

// Lost reports whether the client loses something by damage of this kind.
func (k Kind) Lost() bool { return false }

// Damage is one damaged part of a transcript.
type Damage struct {
	Kind   Kind
	Line   int64 // physical line number, from 1
	Offset int64 // of the first damaged byte, from the start of the file
	Length int64 // bytes
}

// A Format says what kind of file the first bytes promise.
type Format uint8

// Formats.
const (
	FormatLines  Format = iota // one JSON record a line
	FormatEmpty                // no bytes at all
	FormatArray                // the whole file is one JSON array
	FormatPretty               // pretty-printed JSON: records over several lines
	FormatUTF16                // UTF-16 text
)

// String names the format in a few words.
func (f Format) String() string { return "" }
