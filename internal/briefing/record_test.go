package briefing

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// record is the client's record as it writes it, with what matters in it.
const record = `{
  "numStartups": 12,
  "hasTrustDialogAccepted": true,
  "/top": {"hasTrustDialogAccepted": true},
  "oauthAccount": {"projects": {"/account": {"hasTrustDialogAccepted": true}}},
  "projects": {
    "/home/ada/src/app": {
      "allowedTools": [],
      "history": [{"display": "say \"hasTrustDialogAccepted\": true", "pastedContents": {}}],
      "mcpServers": {"x": {"hasTrustDialogAccepted": true}},
      "hasTrustDialogAccepted": true,
      "projectOnboardingSeenCount": 0
    },
    "/home/ada/asked": {"hasTrustDialogAccepted": false},
    "/home/ada/never": {"mcpServers": {"x": {"hasTrustDialogAccepted": true}}},
    "/home/ada/\u00fcber \"x\"": {"hasTrustDialogAccepted" : true }
  },
  "projects2": {"/two": {"hasTrustDialogAccepted": true}}
}
`

// What the record says, and what it does not: only the answer of a person for
// that very folder counts.
func TestRecord(t *testing.T) {
	in := func(project string) string { return `{"projects": {` + project + `}}` }
	yes := `{"hasTrustDialogAccepted": true}`
	for _, test := range []struct {
		name, record string
		want         []string
	}{
		{"as the client writes it", record, []string{"/home/ada/src/app", `/home/ada/über "x"`}},
		{"empty object", "{}", nil},
		{"no projects", `{"a": [1, {"b": null}], "c": -1.5e+9}`, nil},
		{"without blanks", `{"projects":{"/a":{"hasTrustDialogAccepted":true}}}`, []string{"/a"}},
		{"false, then true", in(`"/a": {"hasTrustDialogAccepted": false, "hasTrustDialogAccepted": true}`), []string{"/a"}},
		{"true, then false", in(`"/a": {"hasTrustDialogAccepted": true, "hasTrustDialogAccepted": false}`), nil},
		{"the folder twice, yes last", in(`"/a": {}, "/a": ` + yes), []string{"/a"}},
		{"the folder twice, no last", in(`"/a": ` + yes + `, "/b": ` + yes + `, "/\u0061": {}`), []string{"/b"}},
		{"the folder twice, a list last", in(`"/a": ` + yes + `, "/a": [{}]`), nil},
		{"projects twice", `{"projects": {"/a": ` + yes + `}, "projects": {"/b": ` + yes + `}}`, []string{"/b"}},
		{"projects twice, a list last", `{"projects": {"/a": ` + yes + `}, "projects": []}`, nil},
		{"projects by another spelling", `{"Projects": {"/a": ` + yes + `}}`, nil},
		{"the key by another spelling", in(`"/a": {"HasTrustDialogAccepted": true, "hastrustdialogaccepted": true}`), nil},
		{"the key by escapes", in(`"/a": {"\u0068asTrustDialogAccepted": true}`), []string{"/a"}},
		{"a string", in(`"/a": {"hasTrustDialogAccepted": "true"}`), nil},
		{"a number", in(`"/a": {"hasTrustDialogAccepted": 1}`), nil},
		{"null", in(`"/a": {"hasTrustDialogAccepted": null}`), nil},
		{"a list", in(`"/a": {"hasTrustDialogAccepted": [true]}`), nil},
		{"a word", in(`"/a": {"hasTrustDialogAccepted": truetrue}`), nil},
		{"the folder is true", in(`"/a": true`), nil},
		{"the folder is a list", in(`"/a": [` + yes + `]`), nil},
		{"below an object", in(`"/a": {"x": ` + yes + `}`), nil},
		{"projects is null", `{"projects": null}`, nil},
		{"projects is a list", `{"projects": [` + yes + `]}`, nil},
		{"no text in a name", in("\"/\xff\": " + yes + `, "/\ud800": ` + yes), []string{"/\uFFFD"}},
		{"no name", in(`"": ` + yes), []string{""}},
	} {
		got, err := parseRecord([]byte(test.record))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

// A record of which the end is missing, wherever it was cut, or which has more
// after its end, says nothing at all.
func TestRecordInPart(t *testing.T) {
	whole := strings.TrimSpace(record)
	for end := range len(whole) {
		if folders, err := parseRecord([]byte(whole[:end])); len(folders) > 0 || !errors.Is(err, errNotJSON) {
			t.Fatalf("cut at byte %d: %q, %v", end, folders, err)
		}
	}
	for _, after := range []string{"}", "x", "{}", ",", "\x00", "\n}", `"projects": {}}`} {
		if folders, err := parseRecord([]byte(record + after)); len(folders) > 0 || err == nil {
			t.Errorf("%q after it: %q, %v", after, folders, err)
		}
	}
	for _, bad := range []string{
		"", " ", "\x00", "null", "true", "[]", `"x"`, "{]", "{,}", `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{"a":1 "b":2}`, `{"a":}]`, `{"a":[}]}`,
		`{"a":[1}`, `{"a":"x}`, `{"a\`, `{"a":"\`, `{"a":\}`, `{"\q":1}`, "{\"a\nb\":1}", `{"projects":{"/a":}}`, `{"projects":{"/a":{"x"}}}`, `{"a":,}`, `{"a"::1}`,
	} {
		folders, err := parseRecord([]byte(bad))
		if len(folders) > 0 || err == nil || len(err.Error()) > 200 {
			t.Errorf("%q: %q, %v", bad, folders, err)
		}
	}
}

// A record of any depth and shape is walked over in one go: no stack and no
// search grows with it.
func TestRecordHostile(t *testing.T) {
	const n = 1 << 19
	tail := `, "projects": {"/a": {"hasTrustDialogAccepted": true}}}`
	for name, value := range map[string]string{
		"lists":       strings.Repeat("[", n) + strings.Repeat("]", n),
		"objects":     strings.Repeat(`{"a":`, n/4) + "1" + strings.Repeat("}", n/4),
		"backslashes": `"` + strings.Repeat(`\\`, n) + `"`,
		"quotes":      `"` + strings.Repeat(`\"`, n) + `"`,
		"digits":      strings.Repeat("9", n),
		"blanks":      strings.Repeat(" \n", n) + "1",
	} {
		if got, err := parseRecord([]byte(`{"x": ` + value + tail)); err != nil || !slices.Equal(got, []string{"/a"}) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if got, err := parseRecord([]byte(`{"x": ` + value[:len(value)-1])); err == nil {
			t.Errorf("%s, in part: %q", name, got)
		}
	}
	var many strings.Builder
	many.WriteString(`{"projects": {`)
	for i := range 20_000 {
		fmt.Fprintf(&many, `"/p/%d": {"hasTrustDialogAccepted": true}, "/p/%d": {},`, i, i/2)
	}
	many.WriteString(`"/last": {"hasTrustDialogAccepted": true}}}`)
	if got, err := parseRecord([]byte(many.String())); err != nil || len(got) != 10_001 || got[10_000] != "/last" {
		t.Errorf("%d folders, %v", len(got), err)
	}
}

// byLibrary reads a record with the library; false if that finds none.
func byLibrary(data []byte) (folders []string, ok bool) {
	var top, projects, project map[string]json.RawMessage
	if json.Unmarshal(data, &top) != nil || top == nil {
		return nil, false
	}
	if json.Unmarshal(top["projects"], &projects) != nil {
		return nil, true
	}
	for folder, raw := range projects {
		project = nil
		if json.Unmarshal(raw, &project) == nil && string(project["hasTrustDialogAccepted"]) == "true" {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return folders, true
}

// FuzzRecord: of a record that is JSON the same is read as by the library, with
// its end missing nothing is, and of what is none nothing panics or grows.
func FuzzRecord(f *testing.F) {
	for _, seed := range []string{
		record, "{}", `{"projects":{"/a":{"hasTrustDialogAccepted":true},"/a":[{}]}}`, `{"projects":{"/a":{"x":[{"y":"\\\""}],"hasTrustDialogAccepted":true}},"projects":{"/b":{}}}`,
		"{\"projects\":{\"/\xff\":{\"hasTrustDialogAccepted\":true}}}", `{"a":truetrue}`, `{"a":[,:]}`, "[[[[", `{"\ud800":1e9}`,
	} {
		f.Add([]byte(seed), 7)
	}
	f.Fuzz(func(t *testing.T, data []byte, end int) {
		got, err := parseRecord(data)
		if err != nil && (len(got) > 0 || len(err.Error()) > 300) {
			t.Fatalf("%q, %v", got, err)
		}
		if want, ok := byLibrary(data); ok {
			slices.Sort(got)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("got %q, %v, want %q", got, err, want)
			}
			whole := strings.TrimRight(string(data), " \t\r\n")
			if end >= 0 && end < len(whole) {
				if part, err := parseRecord(data[:end]); err == nil {
					t.Fatalf("cut at byte %d: %q", end, part)
				}
			}
		}
	})
}

// bigRecord is as a client's record of some years: a history in each project,
// caches beside them.
func bigRecord(projects int) []byte {
	var out strings.Builder
	out.WriteString("{\n  \"numStartups\": 4711,\n  \"tipsHistory\": {\"a\": 1, \"b\": 2},\n  \"cachedChangelog\": \"")
	out.WriteString(strings.Repeat(`- A line \"quoted\" of what changed\n`, 5000))
	out.WriteString("\",\n  \"projects\": {\n")
	for i := range projects {
		if i > 0 {
			out.WriteString(",\n")
		}
		fmt.Fprintf(&out, "    \"/home/ada/src/app-%d\": {\n      \"allowedTools\": [],\n      \"history\": [", i)
		for j := range 100 {
			if j > 0 {
				out.WriteString(", ")
			}
			fmt.Fprintf(&out, `{"display": "prompt %d: why does \"it\" fail in {this} [case]?", "pastedContents": {}}`, j)
		}
		fmt.Fprintf(&out, "],\n      \"mcpServers\": {},\n      \"hasTrustDialogAccepted\": %v,\n      \"lastCost\": 0.25\n    }", i%2 == 0)
	}
	out.WriteString("\n  },\n  \"userID\": \"x\"\n}\n")
	return []byte(out.String())
}

// BenchmarkRecord reads a record of 4 MB, as a hook does once where a
// repository has briefings: it should be some milliseconds.
func BenchmarkRecord(b *testing.B) {
	data := bigRecord(500)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if folders, err := parseRecord(data); err != nil || len(folders) != 250 {
			b.Fatal(len(folders), err)
		}
	}
}
