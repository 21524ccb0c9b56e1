package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// Everything in this file is about names that may have been made by somebody
// else. A name that parses is exactly what its parts format to, holds no
// separator, and so never leads out of its folder.

// A pinName names a pin or, with Snap, one of the snapshots of it. ID is the
// device and inode of the transcript, which for a snapshot are not its own.
type pinName struct {
	Store   string // store key
	Session string
	ID      durable.ID
	Snap    int // 0: the pin itself
}

const snapSuffix = ".snap"

func (n pinName) String() string {
	s := fmt.Sprintf("%s.%s.%s", n.Store, n.Session, formatID(n.ID))
	if n.Snap > 0 {
		s += "." + strconv.Itoa(n.Snap) + snapSuffix
	}
	return s
}

// base is the name of the pin that a snapshot is of.
func (n pinName) base() pinName {
	n.Snap = 0
	return n
}

func parsePinName(s string) (pinName, bool) {
	var n pinName
	parts := strings.Split(s, ".")
	if len(parts) != 3 && len(parts) != 5 {
		return n, false
	}
	id, ok := parseID(parts[2])
	if !ok || !validStoreKey(parts[0]) || !ValidSessionID(parts[1]) {
		return n, false
	}
	n = pinName{Store: parts[0], Session: parts[1], ID: id}
	if len(parts) == 5 {
		snap, err := strconv.Atoi(parts[3])
		if err != nil || snap < 1 {
			return pinName{}, false
		}
		n.Snap = snap
	}
	return n, n.String() == s
}

func formatID(id durable.ID) string { return fmt.Sprintf("%x-%x", id.Device, id.Inode) }

func parseID(s string) (durable.ID, bool) {
	dev, ino, ok := strings.Cut(s, "-")
	if !ok {
		return durable.ID{}, false
	}
	d, err1 := strconv.ParseUint(dev, 16, 64)
	i, err2 := strconv.ParseUint(ino, 16, 64)
	id := durable.ID{Device: d, Inode: i}
	return id, err1 == nil && err2 == nil && formatID(id) == s
}

func validStoreKey(s string) bool {
	return len(s) == 16 && strings.Trim(s, "0123456789abcdef") == ""
}

// ValidSessionID tells whether s is a session id in the one form that the
// client finds again: lower case, 8-4-4-4-12 hex digits.
func ValidSessionID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return false
		}
	}
	return true
}

// A jobName sorts by the time of its hand-off.
type jobName struct {
	Nanos   int64 // since 1970, never negative
	Session string
	Random  uint64
}

const jobSuffix = ".json"

func newJobName(session string, t time.Time) jobName {
	return jobName{Nanos: max(0, t.UnixNano()), Session: session, Random: rand.Uint64()}
}

func (n jobName) String() string {
	return fmt.Sprintf("%019d-%s-%016x%s", n.Nanos, n.Session, n.Random, jobSuffix)
}

func parseJobName(s string) (jobName, bool) {
	const nanos, session, random = 19, 36, 16
	rest, ok := strings.CutSuffix(s, jobSuffix)
	if !ok || len(rest) != nanos+1+session+1+random {
		return jobName{}, false
	}
	t, err1 := strconv.ParseInt(rest[:nanos], 10, 64)
	r, err2 := strconv.ParseUint(rest[nanos+1+session+1:], 16, 64)
	n := jobName{Nanos: t, Session: rest[nanos+1 : nanos+1+session], Random: r}
	ok = err1 == nil && err2 == nil && t >= 0 && ValidSessionID(n.Session) && n.String() == s
	return n, ok
}

// A treeName names the folder with the side files of one session.
type treeName struct {
	Store   string
	Session string
}

func (n treeName) String() string { return n.Store + "." + n.Session }

func parseTreeName(s string) (treeName, bool) {
	store, session, _ := strings.Cut(s, ".")
	n := treeName{store, session}
	return n, validStoreKey(store) && ValidSessionID(session)
}

var errSideName = errors.New("not a side file's name")

// sidePath gives the place of a side pin below its tree: family/rel.id, in the
// system's own form.
func sidePath(family, rel string, id durable.ID) (string, error) {
	if !validFamily(family) || !fs.ValidPath(rel) || rel == "." {
		return "", errSideName
	}
	local, err := filepath.Localize(rel)
	if err != nil {
		return "", errSideName
	}
	return filepath.Join(family, local) + "." + formatID(id), nil
}

// parseSidePath is the inverse of sidePath, for a slash-separated path.
func parseSidePath(path string) (family, rel string, id durable.ID, ok bool) {
	family, rest, _ := strings.Cut(path, "/")
	dot := strings.LastIndexByte(rest, '.')
	if dot < 0 {
		return "", "", id, false
	}
	rel = rest[:dot]
	id, ok = parseID(rest[dot+1:])
	if !ok {
		return "", "", id, false
	}
	back, err := sidePath(family, rel, id)
	if err != nil || filepath.ToSlash(back) != path {
		return "", "", durable.ID{}, false
	}
	return family, rel, id, true
}

func validFamily(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz-") == ""
}
