package restore

import (
	"os"
	"path/filepath"

	"github.com/session-keeper/session-keeper/transcript"
)

// resumeDir finds the directory whose project folder this is. The cwd of a
// record follows every cd, so the directory may be above the one recorded.
func resumeDir(folder string, cwds []string) string {
	for _, cwd := range cwds {
		if cwd == "" {
			continue
		}
		for dir := cwd; ; {
			if transcript.FolderName(dir) == folder {
				return dir
			}
			up := filepath.Dir(dir)
			if up == dir || up == "." {
				break
			}
			dir = up
		}
	}
	for _, cwd := range cwds {
		if cwd != "" {
			return cwd
		}
	}
	return ""
}

// realDir is the path by which the client knows a directory.
func realDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if os.IsNotExist(err) {
		return abs, nil
	}
	return real, err
}
