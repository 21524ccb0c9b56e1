package install

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tailscale/hujson"
)

var wired = wiring{command: ShellCommand("/opt/sk/bin/session-end-archive"), events: []string{"SessionEnd"}}

const wiredJSON = `"'/opt/sk/bin/session-end-archive' || exit 1"`

// layouts are settings files of many shapes; each must come back byte for byte
// after install and uninstall. They seed the fuzz target as well.
var layouts = map[string]string{
	"empty file":       "",
	"blank file":       " \n\t\r\n",
	"BOM alone":        "\xef\xbb\xbf",
	"empty object":     "{}",
	"spaced object":    "{ }",
	"broken object":    "{\n}\n",
	"comment only":     "{\n  // nothing yet\n}\n",
	"comment inline":   "{ /* nothing yet */ }",
	"one line":         `{"model":"opus"}`,
	"one line, spaces": `{"model": "opus", "a": 1}`,
	"two spaces":       "{\n  \"model\": \"opus\"\n}\n",
	"four spaces":      "{\n    \"model\": \"opus\",\n    \"n\": [1, 2]\n}",
	"tabs":             "{\n\t\"model\": \"opus\"\n}\n",
	"CRLF":             "{\r\n  \"model\": \"opus\"\r\n}\r\n",
	"CRLF comment":     "{\r\n  \"model\": \"opus\" // mine\r\n}\r\n",
	"BOM":              "\xef\xbb\xbf{\n  \"model\": \"opus\"\n}\n",
	"BOM empty object": "\xef\xbb\xbf{}",
	"trailing comma":   "{\n  \"model\": \"opus\",\n}\n",
	"trailing both":    "{\"model\":\"opus\", /* x */ }",
	"comma on a line":  "{\n  \"a\": 1\n  ,\n  \"b\": 2\n}",
	"comment at end":   "{\n  \"model\": \"opus\" // keep\n  // last\n}\n",
	"comment spaces":   "{\n  \"model\": \"opus\" //   \n}\n",
	"URL in string":    "{\n  \"url\": \"https://x//y\", /* a */\n  \"z\": \"\\\"}\" // b\n}",
	"close on line":    "{\n  \"a\": 1}",
	"hooks empty":      "{\n  \"hooks\": {}\n}\n",
	"hooks empty line": `{"hooks":{}}`,
	"hooks broken":     "{\n  \"hooks\": {\n  }\n}\n",
	"event empty":      "{\n  \"hooks\": {\n    \"SessionEnd\": []\n  }\n}\n",
	"event spaced":     "{\n  \"hooks\": {\n    \"SessionEnd\": [ ]\n  }\n}\n",
	"event comment":    "{\n  \"hooks\": {\n    \"SessionEnd\": [ // none\n    ]\n  }\n}\n",
	"other event":      "{\n  \"hooks\": {\n    \"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"true\"}]}]\n  }\n}\n",
	"others' hook":     "{\n  \"hooks\": {\n    \"SessionEnd\": [\n      {\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"save.sh\"\n          }\n        ]\n      }\n    ]\n  },\n  \"model\": \"opus\"\n}\n",
	"others' inline":   `{"hooks":{"SessionEnd":[{"hooks":[{"type":"command","command":"save.sh"}]}]},"model":"opus"}`,
	"others' comma":    "{\"hooks\": {\"SessionEnd\": [\n  {\"hooks\": []},\n],}, }",
	"escaped key":      "{\n  \"ho\\u006fks\": {}\n}",
	"blank around":     "\n\n  {\n  \"a\": 1\n  }\n\n// end\n",
	"comment at EOF":   "/* mine */ {\"model\": \"opus\"} // no line's end",
	"comment at EOF 2": "{\n  \"hooks\": {}\n}\n//",
	"array last":       "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(ls:*)\"\n    ]\n  }\n}\n",
	"indented root":    "  {\n    \"a\": 1\n  }\n",
}

// IN-01, IN-02, IN-04, IN-05, IN-07, IN-09, IO-02: whatever a settings file
// looks like, it comes back as it was.
func TestAddThenStrip(t *testing.T) {
	for name, before := range layouts {
		t.Run(name, func(t *testing.T) { checkLaws(t, []byte(before)) })
	}
	t.Run("missing file", func(t *testing.T) {
		after, rec, err := add(nil, wired)
		if err != nil {
			t.Fatal(err)
		}
		want := "{\n  \"hooks\": {\n    \"SessionEnd\": [\n      {\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": " +
			wiredJSON + ",\n            \"timeout\": 60\n          }\n        ]\n      }\n    ]\n  }\n}\n"
		if string(after) != want {
			t.Errorf("got\n%s\nwant\n%s", after, want)
		}
		if _, remove, err := strip(after, rec); err != nil || !remove {
			t.Errorf("strip: remove %v, %v; want the file gone", remove, err)
		}
	})
}

// checkLaws holds what must be true of every settings file that parses.
func checkLaws(t *testing.T, before []byte) {
	t.Helper()
	after, rec, err := add(before, wired)
	if err != nil {
		t.Fatalf("add: %v", err)
	}
	d, err := parse(after)
	if err != nil {
		t.Fatalf("parse after add: %v\n%s", err, after)
	}
	ours := d.ours("SessionEnd")
	if len(ours) != 1 || ours[0].Command != wired.command || ours[0].Timeout != "60" || !ours[0].Plain {
		t.Fatalf("after add: %+v\n%s", ours, after)
	}
	if json.Valid(trimBOM(before)) && !json.Valid(trimBOM(after)) {
		t.Fatalf("strict JSON became something else:\n%s", after)
	}
	again, rec2, err := add(after, wired)
	if err != nil || rec2 != nil || string(again) != string(after) {
		t.Fatalf("second add: %v %v\n%s", err, rec2, again)
	}
	back, remove, err := strip(after, rec)
	if err != nil || remove {
		t.Fatalf("strip: remove %v, %v", remove, err)
	}
	if string(back) != string(before) {
		t.Fatalf("not given back:\nbefore %q\nafter  %q\nback   %q", before, after, back)
	}
	// Without the record nothing of ours stays, and all that is foreign does.
	loose, _, err := strip(after, nil)
	if err != nil {
		t.Fatalf("strip without a record: %v", err)
	}
	d, err = parse(loose)
	if err != nil {
		t.Fatalf("strip without a record: %v\n%s", err, loose)
	}
	if n := len(d.ours("")); n > 0 {
		t.Fatalf("%d entries left:\n%s", n, loose)
	}
	if old, err := parse(before); err == nil {
		if err := sameForeign(old, d); err != nil {
			t.Fatalf("strip without a record: %v\n%q\n%q", err, before, loose)
		}
	}
}

func trimBOM(data []byte) []byte { return []byte(strings.TrimPrefix(string(data), utf8BOM)) }

// FuzzSettings: for any settings file, install adds exactly one entry, says
// what it said before, does nothing the second time, and uninstall gives the
// same bytes back. What does not parse is refused.
func FuzzSettings(f *testing.F) {
	for _, before := range layouts {
		f.Add([]byte(before))
	}
	f.Add([]byte(`{"hooks":{"SessionEnd":[{"matcher":"clear","hooks":[{"type":"command","command":"x"}]}, 3, null]}}`))
	f.Fuzz(func(t *testing.T, before []byte) {
		d, err := parse(before)
		if err != nil && !errors.Is(err, errEmpty) {
			if _, _, err := add(before, wired); err == nil {
				t.Fatalf("edited what does not parse: %q", before)
			}
			return
		}
		if d != nil {
			if err := d.ambiguous(); err != nil {
				if _, _, err := add(before, wired); err == nil {
					t.Fatalf("edited what is ambiguous: %q", before)
				}
				return
			}
			if len(d.ours("")) > 0 {
				return // healing is no insertion; TestHeal has it
			}
			if hooks, i := member(d.root, "hooks"); i >= 0 {
				events, at := member(hooks.Value, "SessionEnd")
				if hooks.Value.Value.Kind() != '{' || at >= 0 && events.Value.Value.Kind() != '[' {
					if _, _, err := add(before, wired); err == nil {
						t.Fatalf("edited hooks of an unknown shape: %q", before)
					}
					return
				}
			}
		}
		checkLaws(t, before)
	})
}

// IN-08, IO-02: nothing is written when the file cannot be understood, and the
// reason is the true one.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"cut off":       {"{\n  \"a\": 1,\n  \"b\"", "line 3"},
		"text":          {"hello", "not valid JSON"},
		"two objects":   {"{} {}", "not valid JSON"},
		"array":         {"[]", "holds an array"},
		"string":        {`"x"`, "holds a string"},
		"null":          {"null", "holds null"},
		"hooks array":   {"{\n\"hooks\": []}", "an array as its \"hooks\" in line 2"},
		"hooks null":    {"{\"hooks\": null}", "null as its \"hooks\""},
		"event object":  {"{\"hooks\": {\"SessionEnd\": {}}}", "an object as its SessionEnd hooks"},
		"UTF-16LE BOM":  {"\xff\xfe{\x00}\x00", "UTF-16LE"},
		"UTF-16BE BOM":  {"\xfe\xff\x00{\x00}", "UTF-16BE"},
		"UTF-16LE":      {"{\x00}\x00", "UTF-16LE"},
		"UTF-16BE":      {"\x00{\x00}", "UTF-16BE"},
		"UTF-32":        {"\xff\xfe\x00\x00{\x00\x00\x00", "UTF-32"},
		"too deep":      {`{"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "}", "nested deeper"},
		"too large":     {`{"a":"` + strings.Repeat("x", maxSettingsBytes) + `"}`, "larger than"},
		"twice the key": {"{\n  \"hooks\": {},\n  \"ho\\u006fks\": {}\n}", `"hooks" twice, in lines 2 and 3`},
		"twice Stop":    {"{\"hooks\": {\"Stop\": [], \"Stop\": []}}", `"Stop" twice`},
		"open comment":  {"{ /* ", "not valid JSON"},
		"single quotes": {"{'a': 1}", "not valid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := add([]byte(test.text), wired)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %v, want one with %q", err, test.want)
			}
			if out != nil {
				t.Fatalf("gave out %q", out)
			}
		})
	}
}

func entry(command string) string {
	return `{"hooks":[{"type":"command","command":` + quoteJSON(command) + `,"timeout":60}]}`
}

// IN-03, IN-10, IN-11: one entry stays, however many and however written, and
// what the user arranged wins.
func TestHeal(t *testing.T) {
	const mine = "'/opt/sk/bin/session-end-archive' || exit 1"
	for name, test := range map[string]struct {
		groups []string
		want   []string // the commands that stay
	}{
		"three equal (IN-11)":     {[]string{entry(mine), entry(mine), entry(mine)}, []string{mine}},
		"other prefixes (IN-10)":  {[]string{entry(`/a/bin/session-end-archive`), entry(`"/b/my bin/session-end-archive" || exit 1`)}, []string{mine}},
		"older version (IN-03)":   {[]string{entry(`'/opt/sk/bin/session-end-archive'`)}, []string{mine}},
		"wrapper wins (IN-10)":    {[]string{entry(mine), entry(`nice -n 5 /a/bin/session-end-archive`), entry(mine)}, []string{`nice -n 5 /a/bin/session-end-archive`}},
		"sh -c wrapper":           {[]string{entry(`sh -c 'exec "/a/session-end-archive" 2>/dev/null'`), entry(mine)}, []string{`sh -c 'exec "/a/session-end-archive" 2>/dev/null'`}},
		"variable wrapper":        {[]string{entry(`SESSION_KEEPER_HOME=/mnt/x "$HOME/.local/bin/session-end-archive"`)}, []string{`SESSION_KEEPER_HOME=/mnt/x "$HOME/.local/bin/session-end-archive"`}},
		"others stay (IN-04)":     {[]string{entry("save.sh"), entry(mine), entry("session-end-archive.sh"), entry(mine)}, []string{"save.sh", mine, "session-end-archive.sh"}},
		"same group":              {[]string{`{"hooks":[{"type":"command","command":"/a/session-end-archive"},{"type":"command","command":"x"},{"type":"command","command":"/a/session-end-archive"}]}`}, []string{mine, "x"}},
		"exec form":               {[]string{`{"hooks":[{"type":"command","command":"/a b/session-end-archive","args":[]}]}`}, []string{mine}},
		"exec form, own args":     {[]string{`{"hooks":[{"type":"command","command":"nice","args":["/a/session-end-archive"]}]}`}, []string{"nice"}},
		"for one reason only":     {[]string{`{"matcher":"clear","hooks":[{"type":"command","command":"/a/session-end-archive"}]}`}, []string{"/a/session-end-archive"}},
		"Windows path, no escape": {[]string{entry(`C:\Tools\session-end-archive.exe`)}, []string{mine}},
	} {
		t.Run(name, func(t *testing.T) {
			before := "{\n  \"hooks\": {\"SessionEnd\": [\n    " + strings.Join(test.groups, ",\n    ") + "\n  ]}, // hooks\n  \"model\": \"opus\"\n}\n"
			after, _, err := add([]byte(before), wired)
			if err != nil {
				t.Fatal(err)
			}
			d, err := parse(after)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range d.hooks() {
				got = append(got, h.Command)
				if h.Ours() && h.Plain && !h.limited() && h.Timeout != "60" {
					t.Errorf("timeout %q of %s", h.Timeout, h.Command)
				}
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("commands\n%s\nwant\n%s\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"), after)
			}
			if !strings.HasSuffix(string(after), ", // hooks\n  \"model\": \"opus\"\n}\n") {
				t.Errorf("the rest changed:\n%s", after)
			}
			again, _, err := add(after, wired)
			if err != nil || string(again) != string(after) {
				t.Errorf("not idempotent: %v\n%s", err, again)
			}
			// IN-14: nothing of ours stays, wrappers neither.
			gone, _, err := strip(after, nil)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(strings.ReplaceAll(string(gone), "session-end-archive.sh", ""), "session-end-archive") {
				t.Errorf("left over:\n%s", gone)
			}
		})
	}
}

// SE-07, SS-22: a timeout in milliseconds is corrected, one that the user
// chose and the client honours stays.
func TestTimeout(t *testing.T) {
	for value, want := range map[string]string{"60": "60", "5": "5", "1.5": "1.5", "60000": "60", "0": "60", "-1": "60", `"60"`: "60", "null": "60"} {
		before := `{"hooks":{"SessionEnd":[{"hooks":[{"type":"command","command":"/a/session-end-archive","timeout":` + value + `}]}]}}`
		after, _, err := add([]byte(before), wired)
		if err != nil {
			t.Fatal(err)
		}
		d, err := parse(after)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.ours("")[0].Timeout; got != want {
			t.Errorf("timeout %s became %s, want %s", value, got, want)
		}
	}
}

// What another tool adds around our entry stays when ours goes.
func TestStripAfterOthersChanged(t *testing.T) {
	after, rec, err := add([]byte("{\n  \"model\": \"opus\"\n}\n"), wired)
	if err != nil {
		t.Fatal(err)
	}
	other := wiring{command: "save.sh", events: []string{"SessionEnd"}}
	d, err := parse(after)
	if err != nil {
		t.Fatal(err)
	}
	if d, err = other.insert(d, "SessionEnd", &Record{}); err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(d.text, "opus", "sonnet", 1)
	back, _, err := strip([]byte(changed), rec)
	if err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"model\": \"sonnet\",\n  \"hooks\": {\n    \"SessionEnd\": [\n      {\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"save.sh\",\n            \"timeout\": 60\n          }\n        ]\n      }\n    ]\n  }\n}\n"
	if string(back) != want {
		t.Errorf("got\n%s\nwant\n%s", back, want)
	}
}

// A line comment keeps the newline that ends it, wherever our entry stood.
func TestStripBehindLineComment(t *testing.T) {
	before := "{\"hooks\": {\"SessionEnd\": [ // saves\n" + entry("/a/session-end-archive") + ", " + entry("x") + "]}}"
	back, _, err := strip([]byte(before), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hujson.Parse(back); err != nil {
		t.Fatalf("%v\n%s", err, back)
	}
	if want := "{\"hooks\": {\"SessionEnd\": [ // saves\n " + entry("x") + "]}}"; string(back) != want {
		t.Errorf("got %q want %q", back, want)
	}
}

// Several events, removed in any order, give the same bytes back.
func TestEvents(t *testing.T) {
	w := wired
	w.events = []string{"SessionEnd", "Stop", "StopFailure"}
	for name, before := range layouts {
		after, rec, err := add([]byte(before), w)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		d, err := parse(after)
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range w.events {
			if n := len(d.ours(event)); n != 1 {
				t.Errorf("%s: %d entries for %s", name, n, event)
			}
		}
		back, _, err := strip(after, rec)
		if err != nil || string(back) != before {
			t.Errorf("%s: %v\nbefore %q\nback   %q", name, err, before, back)
		}
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{"/a b/c": "'/a b/c'", "/it's/x": `'/it'\''s/x'`, "$HOME": "'$HOME'"} {
		if got := Quote(in); got != want {
			t.Errorf("Quote(%q) = %q, want %q", in, got, want)
		}
		words := shellWords(ShellCommand(in))
		if len(words) != 4 || words[0].text != in {
			t.Errorf("shellWords(%q) = %v", ShellCommand(in), words)
		}
	}
}
