package briefing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/durable"
)

// Trust says whether a repository's briefings may be used.
type Trust struct {
	Trusted  bool
	By       string  // "client" or "user", if trusted
	Folder   string  // the one that was marked: the repository or one above it
	Why      string  // for people
	Problems []error // records that could not be read
}

// CheckTrust tells whether the folder root, or one above it, is trusted: by the
// user in our own list, or by the client's record, where a person has answered
// its question for that folder. It is asked in print mode too, where the client
// asks nobody and takes every folder as trusted (documented). A record that
// cannot be read trusts nothing.
func CheckTrust(root, list, clientRecord string) Trust {
	root = RealDir(root)
	var problems []error
	ours, err := Trusted(list)
	if err != nil {
		problems = append(problems, err)
	}
	if folder, ok := above(root, ours); ok {
		return Trust{Trusted: true, By: "user", Folder: folder, Why: fmt.Sprintf("the user trusts %q", folder), Problems: problems}
	}
	theirs, err := clientTrusts(clientRecord)
	if err != nil {
		problems = append(problems, err)
	}
	if folder, ok := above(root, theirs); ok {
		return Trust{Trusted: true, By: "client", Folder: folder, Why: fmt.Sprintf("Claude Code trusts %q", folder), Problems: problems}
	}
	return Trust{
		Why:      fmt.Sprintf("neither Claude Code nor \"session-keeper briefing trust\" trusts %q", root),
		Problems: problems,
	}
}

// above finds root, or the nearest folder above it, in folders.
func above(root string, folders []string) (string, bool) {
	names := make(map[string]bool, len(folders))
	for _, folder := range folders {
		// What ".." after a link means only the file system could tell.
		if filepath.IsAbs(filepath.FromSlash(folder)) && !slices.Contains(strings.Split(filepath.ToSlash(folder), "/"), "..") {
			names[folderKey(folder)] = true
		}
	}
	for at := root; ; at = filepath.Dir(at) {
		if names[folderKey(at)] {
			return at, true
		}
		if at == filepath.Dir(at) {
			return "", false
		}
	}
}

// folderKey makes two spellings of a folder equal that can mean no other one.
func folderKey(path string) string {
	path = filepath.ToSlash(filepath.Clean(filepath.FromSlash(path)))
	if runtime.GOOS == "windows" {
		return strings.ToLower(path)
	}
	return path
}

// TrustList is our own list, beside the settings file: what a person decided
// outlives state and cache.
func TrustList(p config.Paths) string { return filepath.Join(filepath.Dir(p.Config), "trusted.json") }

// trustFile is the form of our list: {"folders": ["/home/ada/src"]}. A folder
// stands for itself and all below it.
type trustFile struct {
	Folders []string `json:"folders"`
}

const maxListBytes = 1 << 20

// Trusted reads our list. One that does not exist is empty.
func Trusted(list string) ([]string, error) {
	data, err := readBounded(list, maxListBytes)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, &config.Error{File: list, Err: plain(err)}
	}
	var file trustFile
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, &config.Error{File: list, Err: err}
	}
	return file.Folders, nil
}

// ErrWholeDisk says that somebody wants to trust everything there is.
var ErrWholeDisk = errors.New("the root of a file system cannot be trusted: every folder is below it")

// AddTrust puts dir, which must exist, into the list, and gives the name that
// is in it then: that of the real folder.
func AddTrust(ctx context.Context, list, dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", fmt.Errorf("%s: %w", real, errNoFolder)
	case real == filepath.Dir(real):
		return "", ErrWholeDisk
	case !utf8.ValidString(real):
		return "", fmt.Errorf("%q: the name is not valid UTF-8, which the list cannot hold", real)
	}
	return real, changeList(ctx, list, func(folders []string) []string {
		if slices.Contains(folders, real) {
			return folders
		}
		folders = append(folders, real)
		slices.Sort(folders)
		return folders
	})
}

// RemoveTrust takes dir, which need not exist any more, from the list, and
// tells whether it was in it.
func RemoveTrust(ctx context.Context, list, dir string) (bool, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return false, err
	}
	names := []string{folderKey(abs), folderKey(RealDir(abs))}
	was := false
	err = changeList(ctx, list, func(folders []string) []string {
		kept := slices.DeleteFunc(slices.Clone(folders), func(f string) bool { return slices.Contains(names, folderKey(f)) })
		was = len(kept) < len(folders)
		return kept
	})
	return was, err
}

// changeList replaces the list as one step, so that two commands at once lose
// nothing. A list that cannot be read is not replaced.
//
// Where the list is a link, as those have it who keep their settings elsewhere,
// the file that it leads to is replaced.
func changeList(ctx context.Context, list string, change func([]string) []string) (err error) {
	if real, err := filepath.EvalSymlinks(list); err == nil {
		list = real
	}
	if err := durable.MkdirAll(filepath.Dir(list)); err != nil {
		return err
	}
	unlock, err := durable.Lock(ctx, list+".lock", durable.Exclusive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	old, err := Trusted(list)
	if err != nil {
		return err
	}
	folders := change(old)
	if slices.Equal(folders, old) {
		return nil
	}
	if folders == nil {
		folders = []string{}
	}
	data, err := json.MarshalIndent(trustFile{folders}, "", "  ")
	if err != nil {
		return err
	}
	return durable.ReplaceFile(list, append(data, '\n'))
}

// ClientRecord is the file in which the client notes, among much else, which
// folders a person trusts: .claude.json in CLAUDE_CONFIG_DIR, without it in the
// home directory (observed on 2.1.332). It is "" where neither is known as an
// absolute path: a relative one would have a repository speak for itself.
func ClientRecord(env config.Env) string {
	dir := env.Home
	if configured := env.Getenv("CLAUDE_CONFIG_DIR"); configured != "" {
		dir = configured
	}
	if !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, ".claude.json")
}

// maxRecordBytes bounds the client's record. It holds a history for each
// project and grows to some megabytes.
const maxRecordBytes = 32 << 20

// clientTrusts gives the folders that the client's record marks as trusted:
//
//	{"projects": {"/real/path": {"hasTrustDialogAccepted": true}}}
//
// All else in it is passed over, whatever it is. A file that does not exist
// trusts nothing.
func clientTrusts(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	data, err := readBounded(path, maxRecordBytes)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, &config.Error{File: path, Err: plain(err)}
	}
	folders, err := parseRecord(data)
	if err != nil {
		return nil, &config.Error{File: path, Err: err}
	}
	return folders, nil
}

// readBounded reads a regular file, without a byte order mark.
func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, durable.ErrNotRegular
	}
	data := make([]byte, 0, min(info.Size(), most)+1)
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if int64(len(data)) > most {
			return nil, fmt.Errorf("larger than %d MiB", most>>20)
		}
		if errors.Is(err, io.EOF) {
			return bytes.TrimPrefix(data, []byte("\uFEFF")), nil
		}
		if err != nil {
			return nil, err
		}
		data = slices.Grow(data, 1)
	}
}
