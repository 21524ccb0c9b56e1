package briefing

import (
	"reflect"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
)

func TestSimpleTOML(t *testing.T) {
	for _, front := range []string{
		"", "\n# remark\n \t\n", "title = \"a # b\" # c\r\nonce=true", "projects = [ \"~/a\" , \"/b/**\", ]#x\n",
		"branches = []\npriority = -12\nexpires = 2027-01-31 # soon\nprint = false", "priority = 0\n",
	} {
		got, ok := simpleTOML(front)
		if !ok {
			t.Errorf("%q is not taken for simple", front)
			continue
		}
		againstLibrary(t, front, got)
	}
	for _, front := range []string{
		"title = 'a'", "title = \"a\\n\"", "title = \"\"\"\"\"\"", "title = \"a", "title = \"a\" \"b\"", "a.b = 1", "\"a\" = 1", "a", "= 1", "a =",
		"a = 1\na = 2", "a = 01", "a = -0", "a = 1_000", "a = 1.5", "a = 0x10", "a = --1", "a = [1]", "a = [\"b\" \"c\"]", "a = [,]", "a = [\"b\"",
		"a = [\n\"b\"]", "a = {}", "[a]", "a = 2027-01-31T10:00:00", "a = 2027-01-31 10:00:00", "a = 2027-13-01", "a = truex", "# \x01", "a = \"\x7f\"", "a = \"\xff\"", "a = +1",
	} {
		if got, ok := simpleTOML(front); ok {
			t.Errorf("%q is taken for simple: %v", front, got)
		}
	}
}

// againstLibrary checks that the library reads front as the same.
func againstLibrary(t *testing.T, front string, got map[string]any) {
	t.Helper()
	want := map[string]any{}
	if _, err := toml.Decode(front, &want); err != nil {
		t.Fatalf("%q is no TOML: %v", front, err)
	}
	for key, value := range want {
		if a, ok := value.(time.Time); ok {
			if b, ok := got[key].(time.Time); ok && a.Format(time.DateTime) == b.Format(time.DateTime) && a.Location().String() == b.Location().String() {
				got[key] = a
			}
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: got %v, want %v", front, got, want)
	}
}

// FuzzSimpleTOML: what is read without the library, the library reads as the same.
func FuzzSimpleTOML(f *testing.F) {
	for _, seed := range []string{"title = \"a\"\nonce = true # x\n", "a = [\"b\", \"c\"]\r\nn = -5", "expires = 2027-01-31\n", "a = 0000-01-01"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, front string) {
		if got, ok := simpleTOML(front); ok {
			againstLibrary(t, front, got)
		}
	})
}
