package briefing

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxClimb bounds how many folders above a directory are looked into.
const maxClimb = 64

// FindRepository gives the root of the Git working tree that dir lies in, and
// the branch checked out there; without one, dir itself and no branch. It
// starts no program and reads two small files at most.
//
// The branch is empty when HEAD is on none, and where it lies in another form
// than a file (reftable).
//
// A folder .git without a HEAD in it is none of Git's, which looks further up
// as well.
func FindRepository(dir string) (root, branch string) {
	if dir == "" {
		return "", ""
	}
	dir = RealDir(dir)
	at := dir
	for range maxClimb {
		git := filepath.Join(at, ".git")
		if info, err := os.Stat(git); err == nil {
			switch {
			case info.IsDir():
				if _, err := os.Lstat(filepath.Join(git, "HEAD")); err == nil {
					return at, branchOf(git)
				}
			case info.Mode().IsRegular(): // a worktree or a submodule
				if target, ok := strings.CutPrefix(firstLine(git), "gitdir:"); ok {
					target = filepath.FromSlash(strings.TrimSpace(target))
					if !filepath.IsAbs(target) {
						target = filepath.Join(at, target)
					}
					return at, branchOf(target)
				}
			}
		}
		if at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
	return dir, ""
}

func branchOf(git string) string {
	ref, ok := strings.CutPrefix(firstLine(filepath.Join(git, "HEAD")), "ref:")
	if !ok {
		return ""
	}
	branch, ok := strings.CutPrefix(strings.TrimSpace(ref), "refs/heads/")
	if !ok || branch == ".invalid" {
		return ""
	}
	return branch
}

// firstLine reads the first line of a small regular file; "" if there is none.
func firstLine(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	data, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimRight(line, "\r")
}
