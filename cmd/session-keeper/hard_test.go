package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/session-keeper/session-keeper/internal/restore"
	"github.com/session-keeper/session-keeper/transcript"
)

// hardID is the session of these tests.
const hardID = "0a1b2c3d-0000-4000-8000-0000000000ff"

func (m *machine) put(name, content string) string {
	m.t.Helper()
	path := filepath.Join(m.home, ".claude", "projects", transcript.FolderName(m.home), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		m.t.Fatal(err)
	}
	return path
}

// must runs a command that has to succeed, without a word on stderr.
func (m *machine) must(args ...string) string {
	m.t.Helper()
	code, out, errs := m.run("", args...)
	if code != 0 || errs != "" {
		m.t.Fatalf("%q: exit code %d\n%.2000s%.2000s", args, code, out, errs)
	}
	return out
}

// through takes a transcript through every command that reads one, live and
// archived, and through the archive and back. It gives what show prints of it, live
// and archived, and what list says.
func (m *machine) through(content string) (live, kept string, listed listedSession) {
	m.t.Helper()
	path := m.put(hardID+".jsonl", content)
	live = m.must("show", hardID)
	if got := m.must("cat", hardID); got != content {
		m.t.Errorf("cat gives %d other bytes live", len(got))
	}
	var out listOutput
	if err := json.Unmarshal([]byte(m.must("list", "--all", "--json")), &out); err != nil {
		m.t.Fatal(err)
	}
	for _, s := range out.Sessions {
		if s.ID == hardID {
			listed = s
		}
	}
	if listed.ID == "" {
		m.t.Fatal("the session is not listed")
	}
	m.must("list")
	m.must("archive", "--all")
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		m.t.Fatal(err)
	}
	kept = m.must("show", hardID)
	if got := m.must("cat", hardID); got != content {
		m.t.Errorf("cat gives %d other bytes of the archive", len(got))
	}
	m.must("verify")
	m.must("restore", hardID, "--dry-run")
	m.must("restore", hardID)
	got, err := os.ReadFile(path)
	if err != nil || string(got) != content {
		m.t.Errorf("restored %d other bytes: %v", len(got), err)
	}
	m.must("list")
	return live, kept, listed
}

func prompt(uuid, text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"type":"user","uuid":%q,"timestamp":"2026-11-20T10:00:00Z","cwd":"/p","message":{"role":"user","content":%s}}`, uuid, quoted)
}

func answerOf(uuid, id, blocks string) string {
	return fmt.Sprintf(`{"type":"assistant","uuid":%q,"timestamp":"2026-11-20T10:00:01Z","cwd":"/p","message":{"id":%q,"role":"assistant","model":"m","content":[%s],"usage":{"output_tokens":7}}}`, uuid, id, blocks)
}

func text(s string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, s) }

// What damage leaves: everything else is shown, nothing is silent, the bytes stay.
func TestDamagedTranscripts(t *testing.T) {
	before, after := prompt("b", "said before"), prompt("a", "said after")
	for _, c := range []struct {
		name    string
		lines   string // the whole file
		damaged int64
		shows   []string
		line    int // of the first damage, as sed counts
	}{
		{"DL-02 a line of NULs", before + "\n" + strings.Repeat("\x00", 512) + "\n" + after + "\n", 1, nil, 2},
		{"DL-03 a stub and a record on one line", before + "\n" + `{"type":"pr-link","sessionId":"x","prNu` + after + "\n", 1, nil, 2},
		{"DL-04 a cut line in the middle", before + "\n" + `{"type":"attachment","attachment":{"type":"fi` + "\n" + after + "\n", 1, nil, 2},
		{"DL-05 a cut end", before + "\n" + after + "\n" + `{"type":"assistant","uuid":"c","mess`, 1, []string{"cut-off"}, 3},
		{"DL-06 no records", before + "\nnull\n[]\n\"x\"\n42\n" + after + "\n", 4, nil, 2},
		{"DL-06 an empty line", before + "\n\n\n" + after + "\n", 0, nil, 0},
		{"DL-07 raw bytes of a binary", before + "\n" + strings.Replace(after, "said", "\xff\xfesaid", 1) + "\n", 1, []string{"bytes that are no UTF-8"}, 2},
		{"DL-07 escaped NULs", before + "\n" + strings.Replace(after, "said", `\u0000said`, 1) + "\n", 0, []string{"␀said after"}, 0},
		{"DL-09 a record cut in a text, and the next", before + "\n" + `{"type":"user","message":{"content":"abc` + after + "\n", 1, nil, 2},
		{"DL-09 two on one line", before + after + "\n", 1, nil, 1},
		{"DL-09 NULs before a record", before + "\n\x00\x00\x00\x00" + after + "\n", 1, nil, 2},
		{"UN-10 line separators do not count as lines", strings.Replace(before, "said", "\u2028\u2029\u0085said", 1) + "\n{\n" + after + "\n", 1, nil, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			live, kept, listed := m.through(c.lines)
			for where, out := range map[string]string{"live": live, "archived": kept} {
				for _, want := range append([]string{"said before", "said after"}, c.shows...) {
					if !strings.Contains(out, want) {
						t.Errorf("%s: no %q in\n%s", where, want, out)
					}
				}
				if c.line > 0 && !strings.Contains(out, fmt.Sprintf("the first in line %d, at byte ", c.line)) {
					t.Errorf("%s: damage in line %d is not told:\n%s", where, c.line, out)
				}
				if told := strings.Contains(out, "damaged part"); told != (c.damaged > 0) {
					t.Errorf("%s: damage told: %v\n%s", where, told, out)
				}
			}
			if listed.Damaged != c.damaged || listed.Last != "2026-11-20T10:00:00Z" {
				t.Errorf("listed with %d damaged parts, want %d; last %s", listed.Damaged, c.damaged, listed.Last)
			}
		})
	}
}

// DL-05: the cut end of a file that is being written is no damage.
func TestCutEndWhileRunning(t *testing.T) {
	m := newMachine(t)
	m.put(hardID+".jsonl", prompt("b", "said before")+"\n"+`{"type":"assistant","uuid":"c","mess`)
	m.put(filepath.Join("..", "..", "sessions", fmt.Sprintf("%d.json", os.Getpid())), fmt.Sprintf(`{"sessionId":%q}`, hardID))
	if out := m.must("show", hardID); strings.Contains(out, "damaged") || !strings.Contains(out, "said before") {
		t.Errorf("shown as\n%s", out)
	}
	if out := m.must("list", "--json"); !strings.Contains(out, `"damaged": 0`) || !strings.Contains(out, `"state": "live"`) {
		t.Errorf("listed as\n%s", out)
	}
}

// What is hard to print is printed all the same, and harmlessly; the bytes stay.
func TestHardText(t *testing.T) {
	for _, c := range []struct {
		name, line, shows string
	}{
		{"UN-01 half of an emoji", strings.Replace(prompt("u", "MARK errored"), "MARK", `cut \ud83d…`, 1), "cut �… errored"},
		{"UN-03 in a preview", strings.Replace(prompt("u", "Avatar MARK rest"), "MARK", `\ud83c\n`, 1), "Avatar �\n rest"},
		{"UN-04 in upper case, beside an escaped backslash", strings.Replace(prompt("u", "MARK!"), "MARK", `\uD83D \\ud83d`, 1), `� \ud83d!`},
		{"UN-05 a whole one", strings.Replace(prompt("u", "MARK!"), "MARK", `\ud83d\ude00`, 1), "😀!"},
		{"UN-06 a pair in the wrong order", strings.Replace(prompt("u", "MARK!"), "MARK", `\udc00\ud800`, 1), "��!"},
		{"UN-07 a byte of Latin-1", strings.Replace(prompt("u", "area 5 mMARK"), "MARK", `\udcb2`, 1), "area 5 m�"},
		{"UN-09 separators", strings.NewReplacer("MARK", "\u2028x\u2029y\u0085z").Replace(prompt("u", "aMARK!")), "a<U+2028>x<U+2029>y<U+0085>z!"},
		{"UN-09 escaped ones", strings.Replace(prompt("u", "aMARK!"), "MARK", `\u2028\r\u000b\f`, 1), "a<U+2028>␍␋␌!"},
		{"UN-11 CRLF", prompt("u", "with a return") + "\r", "with a return"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			live, kept, listed := m.through(prompt("b", "said before") + "\n" + c.line + "\n" + prompt("a", "said after") + "\n")
			for where, out := range map[string]string{"live": live, "archived": kept} {
				for _, want := range []string{"said before", c.shows, "said after"} {
					if !strings.Contains(out, want) {
						t.Errorf("%s: no %q in\n%s", where, want, out)
					}
				}
				if strings.Contains(out, "damaged") {
					t.Errorf("%s: called damaged:\n%s", where, out)
				}
			}
			if listed.Prompts != 3 {
				t.Errorf("%d prompts", listed.Prompts)
			}
		})
	}
}

// LL-01, LL-02, LL-03, LL-07: no command has a limit for a line's length.
func TestLongLines(t *testing.T) {
	for _, size := range []int{64<<10 + 1, 10<<20 + 1, 15 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			m := newMachine(t)
			result := fmt.Sprintf(`{"type":"user","uuid":"r","timestamp":"2026-11-20T10:00:02Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"%s"}]},"toolUseResult":"x"}`, strings.Repeat("y", size))
			image := fmt.Sprintf(`{"type":"user","uuid":"i","timestamp":"2026-11-20T10:00:03Z","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}}`, strings.Repeat("A", size))
			m.put(filepath.Join(hardID, "tool-results", "toolu_x.txt"), strings.Repeat("y", size))
			live, kept, listed := m.through(prompt("b", "said before") + "\n" + answerOf("c", "m1", `{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"yes"}}`) + "\n" + result + "\n" + image + "\n" + prompt("a", "said after") + "\n")
			for where, out := range map[string]string{"live": live, "archived": kept} {
				for _, want := range []string{"said before", "* Bash: yes", "[image image/png]", "said after"} {
					if !strings.Contains(out, want) {
						t.Errorf("%s: no %q", where, want)
					}
				}
				if len(out) > 4096 {
					t.Errorf("%s: %d bytes shown", where, len(out))
				}
			}
			if listed.Prompts != 3 || listed.ToolCalls != 1 {
				t.Errorf("%d prompts, %d tool calls", listed.Prompts, listed.ToolCalls)
			}
			if got := m.must("cat", hardID, "--file", "toolu_x.txt"); len(got) != size {
				t.Errorf("tool result of %d bytes", len(got))
			}
			if code, out, errs := m.run("", "forget", hardID, "--yes"); code != 0 {
				t.Errorf("forget: %d %s%s", code, out, errs)
			}
		})
	}
}

// Records as other versions and overlapping writers leave them.
func TestShowRecords(t *testing.T) {
	tool := func(id, name string) string {
		return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{"file_path":"/%s"}}`, id, name, id)
	}
	failure := func(content string) string {
		return `{"type":"user","uuid":"f","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":` + content + `}]}}`
	}
	image := func(source string) string {
		return `{"type":"user","uuid":"i","message":{"role":"user","content":[{"type":"image","source":` + source + `},{"type":"text","text":"see"}]}}`
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("not for show"), 0o600); err != nil {
		t.Fatal(err)
	}
	progress := `{"type":"progress","uuid":"p","data":{"agentId":"a","normalizedMessages":[` + answerOf("n", "n1", text("nested words")) + `]}}`
	for _, c := range []struct {
		name  string
		lines []string
		count map[string]int // how often show prints it
	}{
		{"US-03, US-04 a record for each block", []string{answerOf("1", "m", text("first words")), answerOf("2", "m", tool("t1", "Read")), answerOf("3", "m", tool("t2", "Read"))},
			map[string]int{"first words": 1, "* Read: /t1": 1, "* Read: /t2": 1, "1 answer, 2 tool calls": 1, "── claude": 1}},
		{"ID-03 the same record four times", []string{answerOf("1", "m", text("once")), answerOf("1", "m", text("once")), answerOf("1", "m", text("once")), answerOf("1", "m", text("once")), answerOf("1", "m", text("changed"))},
			map[string]int{"once\n": 2, "changed": 1, "3 records in the file more than once, shown once": 1}},
		{"ID-01 records of another session", []string{strings.Replace(prompt("1", "from there"), `"uuid"`, `"sessionId":"1111aaaa-0000-4000-8000-000000000001","uuid"`, 1), strings.Replace(prompt("2", "from here"), `"uuid"`, `"sessionId":"`+hardID+`","uuid"`, 1)},
			map[string]int{"with records of session 1111aaaa-0000-4000-8000-000000000001\n": 1, "from there\n": 2, "from here": 1}}, // the first also as the title
		{"NW-03 answers without a prompt", []string{answerOf("1", "m", text("one")), answerOf("2", "n", text("two"))},
			map[string]int{"one": 1, "two": 1, "0 prompts, 2 answers": 1, "── you": 0}},
		{"NW-02 queued and then sent", []string{`{"type":"queue-operation","operation":"enqueue","content":"do more"}`, `{"type":"queue-operation","operation":"dequeue"}`, prompt("0", "begin"), prompt("1", "do more")},
			map[string]int{"do more": 1, "never sent": 0}},
		{"LL-11, LL-12 progress", append([]string{prompt("0", "begin")}, strings.Split(strings.Repeat(progress+"\n", 500), "\n")...),
			map[string]int{"nested words": 0, "begin": 2, "0 answers": 1}},
		{"SA-06 a marker is not followed", []string{answerOf("1", "m", `{"type":"tool_use","id":"t","name":"Bash","input":{"command":"cat"}}`), failure(fmt.Sprintf(`"<persisted-output>Full output saved to: %s</persisted-output>"`, secret))},
			map[string]int{"not for show": 0, "<persisted-output>": 1}},
		{"IM-01, IM-03 an image without data", []string{image(`{"type":"base64","media_type":"image/png","data":""}`)}, map[string]int{"[image image/png]\nsee": 1}},
		{"IM-03 an image that is elsewhere", []string{image(`{"type":"url","url":"https://example.com/x.png"}`)}, map[string]int{"[image ]\nsee": 1}},
		{"IM-03 no source at all", []string{image(`null`)}, map[string]int{"see": 2}},
		{"IM-02, IM-03 an image in a result", []string{failure(`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"<svg/>"}}]`), prompt("0", "go on")}, map[string]int{"failed:": 1, "go on": 2}},
		{"US-07 an answer of the client's own", []string{prompt("0", "go"), strings.Replace(answerOf("1", "m", text("API Error: 500")), `"model":"m"`, `"model":"<synthetic>"`, 1)},
			map[string]int{"API Error: 500": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			live, kept, _ := m.through(strings.Join(c.lines, "\n") + "\n")
			for where, out := range map[string]string{"live": live, "archived": kept} {
				for text, want := range c.count {
					if got := strings.Count(out, text); got != want {
						t.Errorf("%s: %q %d times, want %d, in\n%s", where, text, got, want, out)
					}
				}
			}
		})
	}
}

// SA-04: an agent's file may begin anywhere; nothing looks into it for that.
func TestAgentFiles(t *testing.T) {
	m := newMachine(t)
	agent := `{"type":"assistant","uuid":"x","parentUuid":"nowhere","isSidechain":true,"message":{"role":"assistant","content":"done"}}` + "\n"
	path := m.put(filepath.Join(hardID, "subagents", "agent-a.jsonl"), agent)
	m.through(prompt("0", "go") + "\n")
	if got, err := os.ReadFile(path); err != nil || string(got) != agent {
		t.Errorf("restored %q, %v", got, err)
	}
	if got := m.must("cat", hardID, "--file", "agent-a.jsonl"); got != agent {
		t.Errorf("cat gives %q", got)
	}
}

// RM-04, CL-06: no command that reads changes a file of the client's, its times
// included; and all of them do with the archive alone.
func TestReadingChangesNothing(t *testing.T) {
	m := newMachine(t)
	path := m.put(hardID+".jsonl", prompt("0", "begin")+"\n"+answerOf("1", "m", text("go on"))+"\n"+`{"type":"user","uuid":"cut`)
	m.put(filepath.Join(hardID, "tool-results", "b1.txt"), "a result")
	m.put(filepath.Join("..", "..", "settings.json"), `{"cleanupPeriodDays":9}`)
	m.put(filepath.Join("..", "..", "sessions-index.json"), strings.Repeat("\x00", 300))
	m.must("archive", hardID)
	client := filepath.Join(m.home, ".claude")
	commands := [][]string{
		{"list"}, {"list", "--all", "--json"}, {"show", hardID}, {"show", "last", "--around", "begin"}, {"cat", hardID}, {"cat", "last", "--files"},
		{"cat", hardID, "--file", "b1.txt"}, {"cat", hardID, "--generation", "1"}, {"verify"}, {"verify", hardID}, {"project-dir"}, {"project-dir", "--all"},
		{"restore", hardID, "--dry-run"}, {"__complete", "show", ""}, {"version"},
	}
	tree := func() string {
		var b strings.Builder
		err := filepath.Walk(client, func(p string, fi os.FileInfo, err error) error {
			if err == nil {
				fmt.Fprintf(&b, "%s %v %d %v\n", p, fi.Mode(), fi.Size(), fi.ModTime())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	before := tree()
	for _, args := range commands {
		if code, _, errs := m.run("", args...); code != 0 {
			t.Errorf("%q: exit code %d: %s", args, code, errs)
		}
		if after := tree(); after != before {
			t.Fatalf("%q changed the client's files\n%s\n%s", args, before, after)
		}
	}
	if code, _, _ := m.run("", "doctor"); code != exitDamaged { // not wired here
		t.Errorf("doctor: exit code %d", code)
	}
	// It tries a hard link in the folder and takes it away again.
	_, before, _ = strings.Cut(before, "\n")
	if _, after, _ := strings.Cut(tree(), "\n"); after != before {
		t.Fatalf("doctor changed the client's files\n%s\n%s", before, after)
	}
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	for _, args := range commands {
		if args[0] == "project-dir" && len(args) > 1 {
			continue // its folder is gone
		}
		if code, _, errs := m.run("", args...); code != 0 {
			t.Errorf("%q from the archive: exit code %d: %s", args, code, errs)
		}
	}
}

// RS-01, RS-05: the line to continue is one command in one directory, and only
// where there is something to resume.
func TestResumeLine(t *testing.T) {
	m := newMachine(t)
	for _, c := range []struct {
		name, content, want, note string
	}{
		{"a conversation", strings.ReplaceAll(prompt("0", "begin")+"\n", `"/p"`, fmt.Sprintf("%q", m.home)), "\n  cd " + restore.Quote(m.home) + " && claude --resume " + hardID + "\n", ""},
		{"spaces between", strings.ReplaceAll(strings.ReplaceAll(prompt("0", "begin")+"\n", `":`, `": `), `"/p"`, fmt.Sprintf("%q", m.home)), "claude --resume " + hardID + "\n", "from its own directory only"},
		{"bookkeeping alone", `{"type":"mode","mode":"default"}` + "\n", "", "holds no conversation"},
		{"agents' records alone", strings.Replace(prompt("0", "begin"), `"uuid"`, `"isSidechain":true,"uuid"`, 1) + "\n", "", "holds no conversation"},
	} {
		path := m.put(hardID+".jsonl", c.content)
		m.must("archive", hardID, "--json")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		out := m.must("restore", hardID, "--generation", "latest")
		if strings.Contains(out, "--resume") != (c.want != "") || !strings.Contains(out, c.want) || !strings.Contains(out, c.note) {
			t.Errorf("%s: want %q and %q in\n%s", c.name, c.want, c.note, out)
		}
		if strings.Contains(out, "--session-id") {
			t.Errorf("%s: a flag that does not go with --resume:\n%s", c.name, out)
		}
	}
}

// TI-02: a session without a title of its own has that of the one it goes on from.
func TestInheritedTitle(t *testing.T) {
	const from = "1111aaaa-0000-4000-8000-000000000001"
	m := newMachine(t)
	m.put(from+".jsonl", prompt("0", "begin")+"\n"+`{"type":"custom-title","customTitle":"retry budget"}`+"\n")
	next := strings.Replace(prompt("1", "[Request interrupted by user for tool use]"), `"uuid"`, `"sessionId":"`+from+`","uuid"`, 1)
	m.put(hardID+".jsonl", next+"\n"+answerOf("2", "m", text("go on"))+"\n")
	m.put("2222aaaa-0000-4000-8000-000000000002.jsonl", strings.ReplaceAll(next, from, "3333aaaa-0000-4000-8000-000000000003")+"\n")
	out := m.must("list")
	if n := strings.Count(out, "retry budget"); n != 2 || strings.Contains(out, "interrupted") {
		t.Errorf("%d titles:\n%s", n, out)
	}
	for range 2 { // live, archived
		if out := m.must("show", hardID); !strings.HasPrefix(out, "retry budget\n") {
			t.Errorf("shown as\n%s", out)
		}
		m.must("archive", "--all")
		if err := os.RemoveAll(filepath.Dir(m.path())); err != nil {
			t.Fatal(err)
		}
	}
}

// PL-11: a plugin's folder goes with the next update, so no path into it is wired.
func TestInstallRefusesPluginPath(t *testing.T) {
	m := newMachine(t)
	hook := filepath.Join(m.home, ".claude", "plugins", "cache", "market", "keeper", "1.2.3", "session-end-archive")
	if err := os.MkdirAll(filepath.Dir(hook), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(m.home, "session-end-archive")
	if err := os.Symlink(hook, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{hook, link} {
		code, out, errs := m.run("", "install", "--hook", path)
		if code != exitFailed || !strings.Contains(errs, "lies in a plugin's folder") || !strings.Contains(errs, "./install.sh") {
			t.Errorf("%s: exit code %d\n%s%s", path, code, out, errs)
		}
	}
	if _, err := os.Lstat(filepath.Join(m.home, ".claude", "settings.json")); !os.IsNotExist(err) {
		t.Errorf("settings.json: %v", err)
	}
}

// The counter of verify is no writer that fails.
func TestCounter(t *testing.T) {
	var c counter
	if _, err := bytes.NewBufferString("12345").WriteTo(&c); err != nil || c.n != 5 {
		t.Errorf("%d, %v", c.n, err)
	}
}
