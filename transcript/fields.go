package transcript

import "errors"

// A Value is the JSON text of one value inside a record. The zero Value means
// that the key was absent. It refers to the record's bytes and is valid as long
// as they are.
type Value struct{ raw []byte }

// Present reports whether the key was there, whatever its value.
func (v Value) Present() bool { return v.raw != nil }

// Raw returns the JSON text, nil if absent.
func (v Value) Raw() []byte { return v.raw }

// Text returns the decoded string, and false if the value is absent or no string.
func (v Value) Text() (string, bool) { return "", false }

// String returns the decoded string, or "" if the value is absent or no string.
func (v Value) String() string { return "" }

// Is reports whether the value is the JSON string s. It does not allocate.
func (v Value) Is(s string) bool { return false }

// True reports whether the value is the literal true.
func (v Value) True() bool { return false }

// Fields are the top-level values of one record. Keys match exactly; of a key
// that occurs twice the last one counts.
type Fields struct {
	Type, Subtype                              Value
	UUID, ParentUUID, LogicalParentUUID        Value
	SessionID, Timestamp, Cwd, GitBranch       Value
	Version, Entrypoint, UserType              Value
	IsSidechain, IsMeta, IsCompactSummary      Value
	IsVisibleInTranscriptOnly                  Value
	IsAPIErrorMessage                          Value
	AgentID, AgentName, TeamName, Slug         Value
	LeafUUID, RequestID, PromptID              Value
	Message, Content, Attachment               Value
	Operation                                  Value // of queue-operation
	CustomTitle, AITitle, Summary, LastPrompt  Value
	CompactMetadata, ToolUseResult, ForkedFrom Value
	RelocatedCwd                               Value
}

// ParseFields reads the top-level fields of one record without a full parse.
func ParseFields(raw []byte) (Fields, error) { return Fields{}, errors.ErrUnsupported }
