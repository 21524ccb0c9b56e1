package briefing

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Working trees as Git makes them, and what only looks like one.
func TestFindRepository(t *testing.T) {
	top := RealDir(t.TempDir())
	at := func(path string) string { return filepath.Join(top, filepath.FromSlash(path)) }
	for path, text := range map[string]string{
		"plain/.git/HEAD":               "ref: refs/heads/main\n",
		"plain/a/b/file":                "",
		"plain/inner/.git/HEAD":         "ref: refs/heads/feature/x\n",
		"plain/.git/worktrees/wt/HEAD":  "ref: refs/heads/side\n",
		"wt/.git":                       "gitdir: " + filepath.ToSlash(at("plain/.git/worktrees/wt")) + "\n",
		"wt/deep/file":                  "",
		"plain/sub/.git":                "gitdir: ../.git/modules/sub\r\n",
		"plain/.git/modules/sub/HEAD":   "ref: refs/heads/main\r\n",
		"plain/stale/.git":              "gitdir: /none/at/all\n",
		"plain/odd/.git":                "no such line\n",
		"plain/empty/.git/config":       "",
		"plain/spaces/.git":             "gitdir:   ../.git/modules/with space  \n",
		"plain/.git/modules/with space": "",
		"detached/.git/HEAD":            "0123456789abcdef0123456789abcdef01234567\n",
		"reftable/.git/HEAD":            "ref: refs/heads/.invalid\n",
		"tag/.git/HEAD":                 "ref: refs/tags/v1\n",
		"unborn/.git/HEAD":              "ref: refs/heads/new",
		"blank/.git/HEAD":               "",
		"bytes/.git/HEAD":               "ref: refs/heads/\xff\x01\n",
		"long/.git/HEAD":                "ref: refs/heads/" + strings.Repeat("x", 1<<20),
		"headless/.git/HEAD/x":          "",
		"nothing/a/file":                "",
	} {
		if strings.HasSuffix(path, "with space") {
			path += "/HEAD"
			text = "ref: refs/heads/spaced\n"
		}
		put(t, at(path), text)
	}
	link(t, "plain", at("linked"))
	link(t, filepath.Join("..", "plain", ".git"), at("nothing/.git"))

	for _, test := range []struct{ dir, root, branch string }{
		{"plain", "plain", "main"},
		{"plain/a/b", "plain", "main"},
		{"plain/.git", "plain", "main"},
		{"plain/inner", "plain/inner", "feature/x"},
		{"linked/a", "plain", "main"},
		{"wt/deep", "wt", "side"},
		{"plain/sub", "plain/sub", "main"},
		{"plain/spaces", "plain/spaces", "spaced"},
		{"plain/stale", "plain/stale", ""},
		{"plain/odd", "plain", "main"},
		{"plain/empty", "plain", "main"},
		{"detached", "detached", ""},
		{"reftable", "reftable", ""},
		{"tag", "tag", ""},
		{"unborn", "unborn", "new"},
		{"blank", "blank", ""},
		{"bytes", "bytes", "\xff\x01"},
		{"long", "long", strings.Repeat("x", 4096-len("ref: refs/heads/"))},
		{"headless", "headless", ""},
		{"nothing/a", "nothing", "main"},
		{"plain/none", "plain", "main"},
	} {
		root, branch := FindRepository(at(test.dir))
		if root != at(test.root) || branch != test.branch {
			t.Errorf("%s: %s, %.40q", test.dir, root, branch)
		}
	}
	if root, branch := FindRepository(""); root != "" || branch != "" {
		t.Errorf("of no directory: %q, %q", root, branch)
	}
	if root, _ := FindRepository(filepath.VolumeName(top) + string(filepath.Separator)); root != filepath.VolumeName(top)+string(filepath.Separator) {
		t.Errorf("of the root: %q", root)
	}
}

// Folders are looked into upwards to a bound.
func TestFindRepositoryIsBounded(t *testing.T) {
	top := RealDir(t.TempDir())
	put(t, filepath.Join(top, ".git", "HEAD"), "ref: refs/heads/main\n")
	deep := top
	for range maxClimb - 1 {
		deep = filepath.Join(deep, "d")
	}
	if err := os.MkdirAll(filepath.Join(deep, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if root, branch := FindRepository(deep); root != top || branch != "main" {
		t.Errorf("%q, %q", root, branch)
	}
	below := filepath.Join(deep, "d")
	if root, branch := FindRepository(below); root != below || branch != "" {
		t.Errorf("%q, %q", root, branch)
	}
}
