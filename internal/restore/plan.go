package restore

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"github.com/session-keeper/session-keeper/transcript"
)

// familyTranscript is the family of the transcript itself.
const familyTranscript = "transcript"

// sharedFamilies are those whose files more than one session may use: a
// differing one is left as it is and named.
var sharedFamilies = map[string]bool{"plans": true, "todos": true}

const (
	// maxFileMode leaves the owner what the archived mode gave, a program's
	// bit included, and others nothing.
	maxFileMode = fs.FileMode(0o700)
	// transcriptMode lets the client append.
	transcriptMode = fs.FileMode(0o600)
)

// Make works out what restoring would do. It writes nothing. A *ConflictError
// says that files are in the way; the plan given with it is complete but for
// those.
func Make(r Request) (*Plan, error) {
	if !transcript.ValidSessionID(r.SessionID) {
		return nil, fmt.Errorf("not a session id: %.64q", r.SessionID)
	}
	if r.Retention <= 0 {
		r.Retention = DefaultRetention
	}
	projects := filepath.Join(r.ConfigDir, "projects")
	p := &Plan{SessionID: r.SessionID, ConfigDir: r.ConfigDir}
	if err := p.choose(r); err != nil {
		return nil, err
	}
	conflicts, err := p.lookElsewhere(r, projects)
	if err != nil {
		return nil, err
	}
	p.ProjectDir = filepath.Join(projects, p.Folder)
	if p.ResumeDir != "" && filepath.IsAbs(p.ResumeDir) {
		fi, err := os.Stat(p.ResumeDir)
		p.ResumeDirExists = err == nil && fi.IsDir()
	}

	newest, err := newestOther(p.ProjectDir, r.SessionID)
	if err != nil {
		return nil, fmt.Errorf("read the project folder: %w", err)
	}
	items := append([]Item(nil), r.Items...)
	sort.SliceStable(items, func(i, j int) bool { return items[i].name() < items[j].name() })
	left := 0
	for _, item := range items {
		if item.Gone && r.AsWas {
			left++
			continue
		}
		step, conflict := p.step(r, item)
		if conflict != nil {
			conflicts = append(conflicts, *conflict)
			continue
		}
		if item.Family != familyTranscript {
			p.Side = append(p.Side, step)
			continue
		}
		if step.Path == "" {
			return nil, fmt.Errorf("there is no place for the transcript in the project folder %.64q: %s", p.Folder, step.Reason)
		}
		if p.Transcript != nil {
			return nil, fmt.Errorf("the archive names two transcripts for %s", r.SessionID)
		}
		if step.Action == Write {
			var over bool
			step.ModTime, over = transcriptTime(item.ModTime, r.Now, r.Retention, newest)
			if over {
				p.note("continue-changes", "claude --continue will continue this session: the newest other one of the folder is about to be cleaned up, and a restored one below it would go with it")
			}
		}
		p.Transcript = &step
	}
	if left > 0 {
		p.note("left-out", "left out, since they were gone when this generation was taken: %d of %d files", left, len(items))
	}
	p.describe(r)
	if len(conflicts) > 0 {
		return p, &ConflictError{conflicts}
	}
	return p, nil
}

// choose settles the project folder and the directory to resume in.
func (p *Plan) choose(r Request) error {
	locator := &transcript.Locator{ConfigDirs: []string{r.ConfigDir}, ProjectDirName: r.ProjectDirName}
	if r.Project != "" {
		dir, err := realDir(r.Project)
		if err != nil {
			return fmt.Errorf("find the project's directory: %w", err)
		}
		p.ResumeDir = dir
		p.Folder, err = locator.Folder(r.ConfigDir, dir)
		if err != nil {
			return fmt.Errorf("list the project folders: %w", err)
		}
	} else {
		p.Folder = r.Folder
		if p.Folder == "" {
			if p.ResumeDir = resumeDir("", r.Cwds); p.ResumeDir == "" {
				return errors.New("the archive knows no directory for this session: name one with --project DIR")
			}
			var err error
			p.Folder, err = locator.Folder(r.ConfigDir, p.ResumeDir)
			if err != nil {
				return fmt.Errorf("list the project folders: %w", err)
			}
		} else {
			p.ResumeDir = resumeDir(p.Folder, r.Cwds)
		}
	}
	unprintable := strings.ContainsFunc(p.Folder, func(r rune) bool { return r < ' ' || r == 0x7f })
	if unprintable || p.Folder != filepath.Base(p.Folder) || p.Folder == "." || p.Folder == ".." || strings.ContainsAny(p.Folder, `/\`) {
		return fmt.Errorf("not a project folder's name: %.64q: name a directory with --project DIR", p.Folder)
	}
	return nil
}

// lookElsewhere finds the session in other project folders. With one more copy
// in the chosen folder the client would find neither, or another one than the
// restored. Where the session has one place already, and the user asked for no
// other, that is where it belongs: the client itself moves sessions.
func (p *Plan) lookElsewhere(r Request, projects string) ([]Conflict, error) {
	all, err := Locations(projects, r.SessionID)
	if err != nil {
		return nil, fmt.Errorf("look for the session in other project folders: %w", err)
	}
	here := filepath.Join(projects, p.Folder, r.SessionID+".jsonl")
	occupied := false
	for _, path := range all {
		if path == here || sameFile(path, here) {
			occupied = true
			continue
		}
		conversation, _, err := Resumable(path)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if !conversation {
			p.note("shell-elsewhere", "%s holds no conversation and is left as it is", path)
			continue
		}
		p.Found = append(p.Found, path)
	}
	hasTranscript := false
	for _, item := range r.Items {
		hasTranscript = hasTranscript || item.Family == familyTranscript
	}
	if len(p.Found) == 0 || !hasTranscript {
		return nil, nil
	}
	if len(p.Found) == 1 && r.Project == "" && !occupied {
		p.note("other-folder", "the session lies in another project folder than the archived one: the client has moved it")
		p.Folder = filepath.Base(filepath.Dir(p.Found[0]))
		p.ResumeDir = resumeDir(p.Folder, r.Cwds)
		p.Found = nil
		return nil, nil
	}
	var conflicts []Conflict
	for _, path := range p.Found {
		conflicts = append(conflicts, Conflict{path, "this session lies here already; with a second one in " + p.Folder + " the client would not know which to resume"})
	}
	return conflicts, nil
}

// Locations lists the session's transcripts in all project folders; empty
// files do not count, as they do not for the client (observed on 2.1.332).
func Locations(projects, sessionID string) ([]string, error) {
	entries, err := os.ReadDir(projects)
	if err != nil {
		if os.IsNotExist(err) {
			return nil, nil
		}
		return nil, err
	}
	var found []string
	for _, e := range entries {
		path := filepath.Join(projects, e.Name(), sessionID+".jsonl")
		fi, err := os.Stat(path)
		if err != nil || !fi.Mode().IsRegular() || fi.Size() == 0 {
			continue // most folders do not have it
		}
		twice := false
		for _, f := range found {
			twice = twice || sameFile(f, path)
		}
		if !twice {
			found = append(found, path)
		}
	}
	return found, nil
}

func sameFile(a, b string) bool {
	fa, err := os.Stat(a)
	if err != nil {
		return false
	}
	fb, err := os.Stat(b)
	return err == nil && os.SameFile(fa, fb)
}

// step decides about one file.
func (p *Plan) step(r Request, item Item) (Step, *Conflict) {
	step := Step{Item: item, Action: Write, Mode: item.Mode.Perm() & maxFileMode}
	if item.Family == familyTranscript {
		step.Mode = transcriptMode
	}
	place, err := transcript.Place(r.ConfigDir, p.Folder, r.SessionID, item.Family, item.Path)
	if err != nil {
		step.Action, step.Reason = Skip, fmt.Sprintf("no place for it: %v", err)
		p.note("no-place", "%s is not restored: %v (session-keeper cat shows it)", item.name(), err)
		return step, nil
	}
	step.Path = place
	step.ModTime = freshTime(item.ModTime, r.Now, r.Retention)
	if link := linkAbove(r.ConfigDir, p.Folder, place); link != "" {
		return step, &Conflict{link, "is a symbolic link where the session's own folder belongs"}
	}
	fi, err := os.Stat(place)
	if errors.Is(err, fs.ErrNotExist) {
		if _, lerr := os.Lstat(place); lerr == nil {
			return step, &Conflict{place, "is a symbolic link to nothing"}
		}
		return step, nil
	}
	if err != nil {
		return step, &Conflict{place, fmt.Sprintf("cannot be looked at: %v", err)}
	}
	if !fi.Mode().IsRegular() {
		return step, &Conflict{place, "is no file"}
	}
	same, err := sameBytes(place, fi.Size(), item)
	switch {
	case err != nil:
		return step, &Conflict{place, fmt.Sprintf("cannot be read: %v", err)}
	case same:
		step.Action = Keep
		if item.Family != familyTranscript && !sharedFamilies[item.Family] && fi.ModTime().Before(step.ModTime) {
			step.Action = Refresh
		}
		return step, nil
	case sharedFamilies[item.Family]:
		step.Action, step.Reason = Skip, "another version lies there, and other sessions may use it"
		p.note("shared-differs", "%s differs from the archived one and is left as it is: other sessions may use it", place)
		return step, nil
	case item.Family == familyTranscript:
		text, err := compare(place, fi.Size(), item)
		if err != nil {
			text = fmt.Sprintf("differs from the archived one (%v)", err)
		}
		return step, &Conflict{place, text}
	}
	return step, &Conflict{place, "differs from the archived one"}
}

// linkAbove gives the first folder between the session's own folders and the
// file that is a symbolic link. Links further up are the user's arrangement
// and are followed, as the client does.
func linkAbove(configDir, folder, place string) string {
	rel, err := filepath.Rel(configDir, place)
	if err != nil {
		return place
	}
	parts := strings.Split(rel, string(filepath.Separator))
	own := 1 // below configDir/<family>
	if parts[0] == "projects" {
		own = 2 // below configDir/projects/<folder>
	}
	dir := filepath.Join(append([]string{configDir}, parts[:min(own, len(parts)-1)]...)...)
	for _, part := range parts[min(own, len(parts)-1) : len(parts)-1] {
		dir = filepath.Join(dir, part)
		if fi, err := os.Lstat(dir); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return dir
		}
	}
	return ""
}

func sameBytes(path string, size int64, item Item) (bool, error) {
	if size != item.Size {
		return false, nil
	}
	f, _, err := transcript.OpenRegular(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return false, err
	}
	return hex.EncodeToString(h.Sum(nil)) == item.SHA256, nil
}

// compare tells how a live transcript and the archived one differ.
func compare(path string, size int64, item Item) (string, error) {
	live, _, err := transcript.OpenRegular(path)
	if err != nil {
		return "", err
	}
	defer live.Close()
	kept, err := item.Open()
	if err != nil {
		return "", err
	}
	defer kept.Close()
	at, err := firstDifference(bufio.NewReaderSize(live, copyBuffer), bufio.NewReaderSize(kept, copyBuffer))
	switch {
	case err != nil:
		return "", err
	case at == item.Size && size > item.Size:
		return fmt.Sprintf("holds all of the archived transcript and %d bytes more: nothing of this session is missing here", size-item.Size), nil
	case at == size && item.Size > size:
		return fmt.Sprintf("holds only the first %d of the archived %d bytes: move it away to restore the whole", size, item.Size), nil
	}
	return fmt.Sprintf("differs from the archived transcript from byte %d on (%d bytes here, %d archived)", at, size, item.Size), nil
}

// firstDifference counts the bytes that a and b begin with together.
func firstDifference(a, b *bufio.Reader) (int64, error) {
	var at int64
	for {
		ca, ea := a.ReadByte()
		cb, eb := b.ReadByte()
		if ea != nil && ea != io.EOF {
			return at, ea
		}
		if eb != nil && eb != io.EOF {
			return at, eb
		}
		if ea != nil || eb != nil || ca != cb {
			return at, nil
		}
		at++
	}
}

// Resumable reports whether a transcript holds a conversation, and whether the
// client finds it from every directory: outside the folder of the directory it
// is started in, it looks for the text "type":"user" or "type":"assistant",
// written without a space (observed on 2.1.332).
func Resumable(path string) (conversation, anywhere bool, err error) {
	f, _, err := transcript.OpenRegular(path)
	if err != nil {
		return false, false, err
	}
	defer f.Close()
	return resumable(f)
}

func resumable(r io.Reader) (conversation, anywhere bool, err error) {
	sc := transcript.NewScanner(r)
	for sc.Scan() {
		raw := sc.Line().Raw
		if bytes.Contains(raw, []byte(`"type":"user"`)) || bytes.Contains(raw, []byte(`"type":"assistant"`)) {
			anywhere = true
		}
		if !conversation {
			fields, err := transcript.ParseFields(raw)
			conversation = err == nil && !fields.IsSidechain.True() && (fields.Type.Is("user") || fields.Type.Is("assistant"))
		}
		if conversation && anywhere {
			return true, true, nil
		}
	}
	return conversation, anywhere, sc.Err()
}

// describe adds what a plan's reader should know.
func (p *Plan) describe(r Request) {
	if p.Transcript == nil {
		p.note("agents-only", "this session has no transcript in the archive, only files of its agents: nothing can be resumed")
		return
	}
	switch {
	case p.ResumeDir == "":
		p.note("no-directory", "the archive does not know in which directory this session ran")
	case foreign(p.ResumeDir, r.GOOS):
		p.note("foreign-directory", "the session ran in %s, a path of another system: restore --project DIR maps it to a directory here", p.ResumeDir)
	case !p.ResumeDirExists && r.Project != "":
		p.note("directory-missing", "%s does not exist yet: make it before you resume", p.ResumeDir)
	case !p.ResumeDirExists && worktree(p.ResumeDir):
		p.note("worktree-gone", "the worktree %s is gone: the client will say so and go on in the directory where you resume", p.ResumeDir)
	case !p.ResumeDirExists:
		p.note("directory-gone", "the directory %s is gone: make it again, or restore with --project DIR to continue elsewhere", p.ResumeDir)
	}
	if home := otherHome(r.Cwds, r.Home); home != "" {
		p.note("other-home", "the session's records name paths under %s, which is not your home: the conversation keeps them as they are", home)
	}
	if r.Project != "" && len(r.Cwds) > 0 && r.Cwds[0] != p.ResumeDir {
		p.note("moved", "the records keep their old directory, %s", r.Cwds[0])
	}
	for _, s := range p.Side {
		if s.Item.Family == "image-cache" {
			p.note("image-cache", "the client deletes the image cache of other sessions at each clean-up; the conversation does not need it")
			break
		}
	}
}

// worktree reports whether dir is one that the client itself made for a
// session (observed on 2.1.332).
func worktree(dir string) bool {
	return strings.Contains(filepath.ToSlash(dir), "/.claude/worktrees/")
}

// foreign reports whether dir is a path of another kind of system.
func foreign(dir, goos string) bool {
	drive := len(dir) >= 2 && dir[1] == ':'
	unc := strings.HasPrefix(dir, `\\`)
	if goos == "windows" {
		return !drive && !unc
	}
	return drive || unc || !path.IsAbs(dir)
}

// otherHome gives the home folder of another user that one of the directories
// lies in.
func otherHome(dirs []string, home string) string {
	for _, dir := range dirs {
		parts := strings.Split(dir, "/")
		if len(parts) < 3 || parts[0] != "" || (parts[1] != "home" && parts[1] != "Users") {
			continue
		}
		other := "/" + parts[1] + "/" + parts[2]
		if home != "" && other != home && !strings.HasPrefix(home, other+"/") && !strings.HasPrefix(dir+"/", home+"/") {
			return other
		}
	}
	return ""
}

// ResumeCommand is the line for a shell that continues the session, "" when
// there is nothing to resume. env is put before the command as it is.
func (p *Plan) ResumeCommand(env string) string {
	if p.Transcript == nil {
		return ""
	}
	command := "claude --resume " + p.SessionID
	if env != "" {
		command = env + " " + command
	}
	if !p.ResumeDirExists {
		return command
	}
	return "cd " + Quote(p.ResumeDir) + " && " + command
}

// Quote writes s as one word of a POSIX shell.
func Quote(s string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("/._-+:@%,=", c)
	}
	if s != "" && strings.IndexFunc(s, func(c rune) bool { return !plain(c) }) < 0 && !strings.HasPrefix(s, "-") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
