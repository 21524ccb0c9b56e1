package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// namedFields pairs the names in records with the fields that take them.
func namedFields(f *Fields) map[string]*Value {
	return map[string]*Value{
		"type": &f.Type, "subtype": &f.Subtype, "uuid": &f.UUID, "parentUuid": &f.ParentUUID,
		"logicalParentUuid": &f.LogicalParentUUID, "sessionId": &f.SessionID, "timestamp": &f.Timestamp,
		"cwd": &f.Cwd, "gitBranch": &f.GitBranch, "version": &f.Version, "entrypoint": &f.Entrypoint,
		"userType": &f.UserType, "requestId": &f.RequestID, "promptId": &f.PromptID,
		"isSidechain": &f.IsSidechain, "isMeta": &f.IsMeta, "isCompactSummary": &f.IsCompactSummary,
		"isVisibleInTranscriptOnly": &f.IsVisibleInTranscriptOnly, "isApiErrorMessage": &f.IsAPIErrorMessage,
		"agentId": &f.AgentID, "agentName": &f.AgentName, "teamName": &f.TeamName, "slug": &f.Slug,
		"leafUuid": &f.LeafUUID, "message": &f.Message, "toolUseResult": &f.ToolUseResult,
		"content": &f.Content, "operation": &f.Operation, "attachment": &f.Attachment,
		"customTitle": &f.CustomTitle, "aiTitle": &f.AITitle, "summary": &f.Summary,
		"lastPrompt": &f.LastPrompt, "compactMetadata": &f.CompactMetadata, "forkedFrom": &f.ForkedFrom,
		"relocatedCwd": &f.RelocatedCwd,
	}
}

func TestNamedFieldsIsWhole(t *testing.T) {
	var f Fields
	if got, want := len(namedFields(&f)), reflect.TypeFor[Fields]().NumField(); got != want {
		t.Fatalf("%d names for %d fields", got, want)
	}
	for name, v := range namedFields(&f) {
		f.set([]byte(name), []byte(`1`))
		if string(v.Raw()) != "1" {
			t.Errorf("%s was not taken", name)
		}
	}
}

// reference reads the top-level fields with encoding/json's tokens. It returns nil if
// the text is no object or not valid.
func reference(text []byte) map[string]string {
	if !json.Valid(text) || bytes.TrimLeft(text, " \t\r\n")[0] != '{' {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil
	}
	m := map[string]string{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil
		}
		m[key.(string)] = string(v)
	}
	if _, err := d.Token(); err != nil {
		return nil
	}
	if _, err := d.Token(); err != io.EOF {
		return nil
	}
	return m
}

var fieldSeeds = []string{
	`{}`,
	` {"type":"user"} `,
	"{\"type\":\"user\"}\r",
	`{"type":"user","Type":"assistant","uuid":"a","UUID":"b","uuId":"c"}`,
	`{"uuid":"first","uuid":"last"}`,
	`{"message":{"role":"user"},"message":{"role":"assistant"}}`,
	`{"\u0074ype":"user","t\u0079pe":"assistant"}`,
	`{"type":"\u0075ser","cwd":"/a\/b\\c\"d\b\f\n\r\t"}`,
	`{"cwd":"\ud83d\ude00","gitBranch":"\ud83d…","slug":"\udc00\ud800","version":"\uD83D"}`,
	"{\"cwd\":\"\xff\xfe\",\"slug\":\"\xed\xa0\x80\"}",
	`{"uuid":1,"parentUuid":null,"sessionId":["x"],"timestamp":1.5e-3,"cwd":{},"isMeta":"true","isSidechain":true}`,
	`{"a":[1,-0,0.5,1e5,1E+5,true,false,null,"",{},[],[[]],{"b":{"c":[]}}]}`,
	`{"message":{"role":"user","content":[{"type":"text","text":"{\"type\":\"user\"}"}]}}`,
	"{\"cwd\":\"a\u2028b\u2029c\u0085d\x7f\"}",
	`{"":1,"type":""}`,
	`{"type":"user"`, `{"type":"us`, `{"type":`, `{"type"`, `{"ty`, `{`, `{"a":tru`, `{"a":-`, `{"a":1.`, `{"a":1e`,
	`{"a":"\u00`, `{"a":"\`, `{"a":"\x"}`, `{"a":01}`, `{"a":.5}`, `{"a":+1}`, `{"a":NaN}`, `{"a":1,}`, `{,}`, `{"a" 1}`, `{a:1}`,
	"{\"a\":\"\t\"}", "{\"a\":\"\x00\"}", "{\"a\x01\":1}", `{"a":[1,]}`, `{"a":[}`, `{"a":{]}`, `{"a":nul}`,
	`{}{}`, `{} x`, "{}\x00", `null`, `5`, `"s"`, `[]`, ``, "  ", "\x00\x00", `xyz`, `'a'`,
	`{"12345678":"1234567\"","1234567\\":"\\\\\\\\\\\\\\\\"}`,
}

func checkFields(t *testing.T, text []byte) {
	t.Helper()
	want := reference(text)
	f, err := ParseFields(text)
	if (want == nil) != (err != nil) {
		t.Fatalf("%.200q: error %v, encoding/json says valid object: %v", text, err, want != nil)
	}
	if bad := (*SyntaxError)(nil); err != nil && (!errors.As(err, &bad) || bad.Offset < 0 || bad.Offset > len(text) || bad.Error() == "") {
		t.Fatalf("%.200q: error %#v", text, err)
	}
	if err != nil {
		return
	}
	for name, v := range namedFields(&f) {
		raw, ok := want[name]
		if ok != v.Present() || string(v.Raw()) != raw {
			t.Fatalf("%.200q: %s is %q (%v), want %q (%v)", text, name, v.Raw(), v.Present(), raw, ok)
		}
		if !ok {
			continue
		}
		checkValue(t, *v)
	}
}

// checkValue compares the decoding of one value with encoding/json's.
func checkValue(t *testing.T, v Value) {
	t.Helper()
	var want any
	if err := json.Unmarshal(v.Raw(), &want); err != nil && !strings.Contains(err.Error(), "cannot unmarshal number") {
		t.Fatalf("%q: %v", v.Raw(), err)
	}
	s, isText := want.(string)
	got, ok := v.Text()
	if isText && !utf8.Valid(v.Raw()) {
		// encoding/json puts one U+FFFD for each bad byte, the client often fewer.
		few := regexp.MustCompile("\ufffd+")
		if few.ReplaceAllString(s, "\ufffd") != few.ReplaceAllString(got, "\ufffd") {
			t.Fatalf("%q: text %q, want about %q", v.Raw(), got, s)
		}
		s = got
	}
	if ok != isText || got != s || v.String() != s {
		t.Fatalf("%q: text %q (%v), want %q (%v)", v.Raw(), got, ok, s, isText)
	}
	if v.Is(s) != isText || isText && v.Is(s+"x") {
		t.Fatalf("%q: Is(%q) is %v", v.Raw(), s, v.Is(s))
	}
	if b, _ := want.(bool); v.True() != b {
		t.Fatalf("%q: True is %v", v.Raw(), v.True())
	}
	for max := range 12 {
		p, all := v.prefix(max)
		if len(p) > max || !strings.HasPrefix(s, p) || all != (p == s) || !all && len(p)+utf8.UTFMax <= max {
			t.Fatalf("%q: %d bytes of it are %q (%v)", v.Raw(), max, p, all)
		}
	}
}

// JF-01, UN-01, UN-04, UN-05, UN-06, UN-08, and every way a record can end early.
func TestParseFieldsAgreesWithEncodingJSON(t *testing.T) {
	for _, s := range fieldSeeds {
		checkFields(t, []byte(s))
		// The eight-byte steps meet the same bytes at every alignment.
		for pad := range 9 {
			checkFields(t, []byte(strings.Repeat(" ", pad)+s))
		}
		for cut := range len(s) {
			checkFields(t, []byte(s[:cut]))
		}
	}
}

// JF-01: no field is taken from a key of another case, the last of two counts.
func TestParseFieldsKeys(t *testing.T) {
	f, err := ParseFields([]byte(`{"uuid":"a","UUID":"b","Uuid":"c","type":"user","TYPE":"x","cwd":"one","cwd":"two","\u0063wd":"three"}`))
	if err != nil {
		t.Fatal(err)
	}
	if f.UUID.String() != "a" || f.Type.String() != "user" || f.Cwd.String() != "three" {
		t.Errorf("uuid %q, type %q, cwd %q", f.UUID, f.Type, f.Cwd)
	}
}

func TestParseFieldsDamage(t *testing.T) {
	for _, c := range []struct {
		in     string
		kind   Kind
		offset int
	}{
		{`{"type":"us`, Torn, 11},
		{`{"type":"user",`, Torn, 15},
		{`{"type":"user"}{"type":"x"}`, Glued, 15},
		{`{"type":"user"} xyz`, Trailing, 16},
		{`{"type":"user"},`, Trailing, 15},
		{"{\"type\":\"user\"}\x00", Trailing, 15},
		{"{\"type\":\"u\tr\"}", ControlChar, 10},
		{"{\"type\":\"u\x00r\"}", ControlChar, 10},
		{`null`, NotObject, 0}, {`42`, NotObject, 0}, {`"x"`, NotObject, 0}, {` []`, NotObject, 1}, // DL-06
		{"\x00\x00\x00", NULRun, 0},
		{`xyz {"type":"user"}`, Garbage, 0},
		{`{'type':'user'}`, Garbage, 1},
		{`{"x":NaN}`, Garbage, 5},
		{"\ufeff{}", Garbage, 0},
		{``, Garbage, 0},
		{strings.Repeat(`{"a":`, 10_001) + "1" + strings.Repeat("}", 10_001), TooDeep, 5 * 10_000},
		{`{"a":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "}", TooDeep, 5 + 9_999},
	} {
		_, err := ParseFields([]byte(c.in))
		var bad *SyntaxError
		if !errors.As(err, &bad) || bad.Kind != c.kind || bad.Offset != c.offset {
			t.Errorf("%.40q: %v, want %v at %d", c.in, err, c.kind, c.offset)
		}
	}
	for _, deep := range []int{9_999, 300, 257, 256, 255, 64, 63} {
		in := `{"type":"user","a":` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + `,"cwd":"x"}`
		if f, err := ParseFields([]byte(in)); err != nil || f.Cwd.String() != "x" {
			t.Errorf("%d levels: %v", deep+1, err)
		}
	}
	// What stands before the damage is there, also of a record with something behind.
	f, _ := ParseFields([]byte(`{"type":"user","cwd":"/a","message":{"role":"us`))
	if f.Cwd.String() != "/a" || f.Message.Present() {
		t.Errorf("of a cut record: cwd %q, message %q", f.Cwd, f.Message.Raw())
	}
}

// A cut character is one U+FFFD, as in the client; a surrogate's three bytes are three.
func TestBadUTF8(t *testing.T) {
	for in, want := range map[string]string{
		"a\xf0\x9f\x98": "a1", "\xf0\x9f\x98b": "1b", "\xe2\x82\xe2\x82\xac": "1€", "\xed\xa0\x80": "111",
		"\xc0\xaf": "11", "\xff\xfe": "11", "\xc3": "1", "\x80\x80": "11", "\xf4\x90\x80\x80": "1111",
		"\xe0\x9f\x80": "111", "\xf0\x8f\x80\x80": "1111", "\xf1\x80\x80x": "1x", "\xc3\xa9": "é", "\ufffd": "1",
	} {
		got := Value{[]byte(`"` + in + `"`)}.String()
		if got = strings.ReplaceAll(got, "\ufffd", "1"); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestValueNumbers(t *testing.T) {
	for in, want := range map[string]string{
		`0`: "0 true", `-0`: "0 true", `12`: "12 true", `-7`: "-7 true", `9007199254740993`: "9007199254740993 true",
		`922337203685477580`: "922337203685477580 true", `99999999999999999999`: "0 false", `1.5`: "0 false", `1e3`: "0 false",
		`"1"`: "0 false", `null`: "0 false", `-`: "0 false", ``: "0 false",
	} {
		n, ok := Value{[]byte(in)}.Int()
		if got := fmt.Sprint(n, ok); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	if v := (Value{[]byte(`{"a":1,"A":2,"a":{"b":3}}`)}); string(v.Member("a").Member("b").Raw()) != "3" || v.Member("b").Present() {
		t.Error("members of members")
	}
	if v := (Value{[]byte(`"\u0041"`)}); v.Is(`\u0041`) || !v.Is("A") {
		t.Error("an escape was compared as it stands")
	}
	if !(Value{[]byte("null")}).Present() || (Value{}).Present() {
		t.Error("null is not absence")
	}
}

// Nothing is allocated for fields that nobody asks for.
func TestParseFieldsAllocatesNothing(t *testing.T) {
	line := []byte(`{"parentUuid":"x","isSidechain":false,"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"` +
		strings.Repeat(`a \"line\"\n`, 1000) + `"}]},"uuid":"u","timestamp":"2026-11-30T09:00:02.000Z"}`)
	n := testing.AllocsPerRun(100, func() {
		f, err := ParseFields(line)
		if err != nil || !f.Type.Is("assistant") || f.IsSidechain.True() {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParseFields(f *testing.F) {
	for _, s := range fieldSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(checkFields)
}
