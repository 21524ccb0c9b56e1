package transcript

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unicode/utf16"
)

const (
	maxFolder = 200 // UTF-16 units of a folder name before its hash
	// headBytes bounds what is read of a transcript to learn its working directory.
	headBytes = 1 << 20
	// maxHeads bounds how many transcripts of a folder are asked for theirs.
	maxHeads = 32
)

// FolderName returns the name of the folder below projects/ that the client makes
// for a working directory: the real path as the client sees it, taken as it is,
// without cleaning or Unicode normalisation.
//
// Every UTF-16 unit outside [A-Za-z0-9] becomes a dash. If that is longer than 200
// units, its first 200, a dash, and a hash of the path follow (observed on 2.1.332).
// Different directories may share a name; it cannot be turned back into a path.
func FolderName(dir string) string {
	units := unitsOf(dir)
	name := dashed(units)
	if len(name) <= maxFolder {
		return name
	}
	return name[:maxFolder] + "-" + suffix31(units)
}

// olderFolderName is the name that older builds of the client made of a long path:
// with another hash. It is "" for a short one.
func olderFolderName(dir string) string {
	name := dashed(unitsOf(dir))
	if len(name) <= maxFolder {
		return ""
	}
	return name[:maxFolder] + "-" + strconv.FormatUint(wyhash([]byte(dir)), 36)
}

// unitsOf returns the UTF-16 units of a path. One that is no UTF-8 is taken as the
// client takes such text in records; for paths this was not observed.
func unitsOf(path string) []uint16 {
	units := make([]uint16, 0, len(path))
	for b := []byte(path); len(b) > 0; {
		r, n := decodeRune(b)
		units = utf16.AppendRune(units, r)
		b = b[n:]
	}
	return units
}

// dashed encodes a path; the result has one byte for each unit.
func dashed(units []uint16) string {
	name := make([]byte, len(units))
	for i, u := range units {
		switch {
		case 'a' <= u && u <= 'z', 'A' <= u && u <= 'Z', '0' <= u && u <= '9':
			name[i] = byte(u)
		default:
			name[i] = '-'
		}
	}
	return string(name)
}

// suffix31 is the absolute value in base 36 of the signed 32-bit hash h = 31*h + unit.
func suffix31(units []uint16) string {
	var h int32
	for _, u := range units {
		h = 31*h + int32(u)
	}
	abs := int64(h)
	if abs < 0 {
		abs = -abs
	}
	return strconv.FormatInt(abs, 36)
}

// ValidProjectDirName reports whether s may stand in CLAUDE_CODE_PROJECT_DIR_NAME:
// 1 to 64 of [A-Za-z0-9_-] (documented; it holds only together with
// CLAUDE_CONFIG_DIR).
func ValidProjectDirName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// Folder returns the name of the project folder below configDir for a working
// directory: ProjectDirName if that is in force, else what FindFolder finds.
func (l *Locator) Folder(configDir, dir string) (string, error) {
	if l.ProjectDirName != "" {
		if !ValidProjectDirName(l.ProjectDirName) {
			return "", fmt.Errorf("project folder name %.64q is not 1 to 64 of A-Z a-z 0-9 _ -", l.ProjectDirName)
		}
		return l.ProjectDirName, nil
	}
	return FindFolder(filepath.Join(configDir, projectsDir), dir)
}

// FindFolder returns the name of the project folder for a working directory below
// projectsRoot: one that exists, else the one that the client would make. A folder
// of a long path is also found by the hash of older clients, or by the first 200
// units of its name if a transcript in it was recorded in dir.
func FindFolder(projectsRoot, dir string) (string, error) {
	name := FolderName(dir)
	entries, err := os.ReadDir(projectsRoot)
	if errors.Is(err, fs.ErrNotExist) {
		return name, nil
	}
	if err != nil {
		return "", fmt.Errorf("list project folders: %w", err)
	}
	older := olderFolderName(dir)
	var byHash string
	var alike []string
	for _, e := range entries {
		switch n := e.Name(); {
		case sameFolder(n, name, runtime.GOOS):
			return n, nil
		case older == "":
		case sameFolder(n, older, runtime.GOOS):
			byHash = n
		case len(n) >= maxFolder && sameFolder(n[:maxFolder], name[:maxFolder], runtime.GOOS):
			alike = append(alike, n)
		}
	}
	if byHash != "" {
		return byHash, nil
	}
	for _, n := range alike {
		if holdsDir(filepath.Join(projectsRoot, n), dir) {
			return n, nil
		}
	}
	return name, nil
}

// sameFolder compares two folder names as the system's file system does: Windows
// knows no case, and drive letters come in both.
func sameFolder(a, b, goos string) bool {
	if goos == "windows" {
		return strings.EqualFold(a, b)
	}
	return a == b
}

// SameDir reports whether two working directories, as records give them, are the
// same one on that system (runtime.GOOS): byte for byte, on Windows without regard
// to case and kind of slash. A drive letter and the network path behind it are not
// recognised as the same, nor are spellings that only the file system knows to be.
func SameDir(a, b, goos string) bool {
	if goos == "windows" {
		slashes := strings.NewReplacer(`/`, `\`)
		return strings.EqualFold(slashes.Replace(a), slashes.Replace(b))
	}
	return a == b
}

// holdsDir reports whether a transcript in the folder was recorded in dir.
func holdsDir(folder, dir string) bool {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return false
	}
	heads := 0
	for _, e := range entries {
		id := sessionOf(e.Name())
		if id == "" {
			continue
		}
		if heads++; heads > maxHeads {
			return false
		}
		f, _, err := openTranscript(filepath.Join(folder, e.Name()), id)
		if err != nil {
			continue
		}
		h, err := ReadHead(f, headBytes)
		f.Close()
		if err == nil && SameDir(h.Cwd, dir, runtime.GOOS) {
			return true
		}
	}
	return false
}
