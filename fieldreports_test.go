package sessionkeeper_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reports is how many failures that people reported there are in each group.
var reports = map[string]int{
	"SE": 21, "TP": 10, "FL": 6, "NW": 4, "SS": 22, "PC": 16, "IO": 6, "RE": 2, "LL": 11, "DL": 8, "UN": 10,
	"JF": 2, "CH": 11, "CO": 2, "ID": 4, "OS": 5, "US": 6, "IM": 4, "PR": 5, "FK": 5, "RS": 6, "SA": 7, "LI": 9,
	"TI": 6, "RM": 3, "CL": 8, "PA": 11, "FS": 7, "AR": 12, "SM": 7, "EX": 3, "PL": 15, "IN": 13,
}

// toCome are the parts that a report may still be waiting for.
var toCome = []string{"compaction", "library", "search", "plugin", "store"}

var reportCode = regexp.MustCompile(`^[A-Z]{2}-[0-9]{2}$`)

// testdata/field-reports.txt names for each failure that people have reported
// the tests that would catch it, or the part that is to come.
func TestFieldReports(t *testing.T) {
	data, err := os.ReadFile("testdata/field-reports.txt")
	if err != nil {
		t.Fatal(err)
	}
	covered := map[string][]string{}
	for n, line := range strings.Split(string(data), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		code, what, ok := strings.Cut(line, " ")
		if what = strings.TrimSpace(what); !ok || what == "" || !reportCode.MatchString(code) || reports[code[:2]] == 0 {
			t.Errorf("line %d: %q", n+1, line)
			continue
		}
		if slices.Contains(covered[code], what) {
			t.Errorf("line %d: %s twice", n+1, line)
		}
		covered[code] = append(covered[code], what)
		if part, later := strings.CutPrefix(what, "later: "); later {
			if word, _, _ := strings.Cut(part, ","); !slices.Contains(toCome, word) {
				t.Errorf("line %d: waits for %q", n+1, word)
			}
			continue
		}
		if err := namesTest(code, what); err != "" {
			t.Errorf("line %d: %s: %s: %s", n+1, code, what, err)
		}
	}
	have := map[string]int{}
	for code := range covered {
		have[code[:2]]++
	}
	for group, want := range reports {
		if have[group] != want {
			t.Errorf("%s: %d of %d reports are listed", group, have[group], want)
		}
	}
}

// namesTest tells what is wrong with "file:Test" or "script.txtar" as the place
// of a report's test; a file that is named must speak of the report.
func namesTest(code, what string) (wrong string) {
	file, name, _ := strings.Cut(what, ":")
	data, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		return err.Error()
	}
	if !strings.Contains(string(data), code) {
		return "the file does not speak of it"
	}
	if filepath.Ext(file) == ".txtar" {
		if name != "" {
			return "a script has no tests by name"
		}
		return ""
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, data, parser.SkipObjectResolution)
	if err != nil {
		return err.Error()
	}
	name, _, _ = strings.Cut(name, "/")
	if !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz") {
		return "no test's name"
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == name {
			return ""
		}
	}
	return "there is no such test"
}
