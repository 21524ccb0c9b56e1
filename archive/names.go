package archive

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Names in the store's root. FORMAT.md lists them; packs and briefings are
// reserved for later.
const (
	formatName   = "format"
	segmentsName = "segments"
	sessionsName = "sessions"
	removedName  = "removed"
	locksName    = "locks"
	tmpName      = "tmp"
	ignoreName   = ".gitignore"
	packsName    = "packs"
	briefings    = "briefings"
)

const (
	hashLen      = 2 * sha256.Size // hex digits of a hash
	maxPathBytes = 4096
	maxFamily    = 64
)

// validHash reports whether s is a SHA-256 in lower-case hex.
func validHash(s string) bool {
	if len(s) != hashLen {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// validUUID reports whether s is a UUID in canonical form: lower-case hex,
// 8-4-4-4-12. Session ids of the client have this form, and files named
// otherwise are not found by it.
func validUUID(s string) bool {
	u, err := uuid.Parse(s)
	return err == nil && u.String() == s
}

// checkFamily accepts [a-z-]+, within a bound.
func checkFamily(s string) error {
	if s == "" || len(s) > maxFamily {
		return fmt.Errorf("bad family %s", quote(s))
	}
	for i := range len(s) {
		if c := s[i]; c != '-' && (c < 'a' || c > 'z') {
			return fmt.Errorf("bad family %s", quote(s))
		}
	}
	return nil
}

// checkPath accepts a path that names something below the folder it is joined
// to, on every system: relative, cleaned, slashes only, no drive letter, no
// control characters, valid UTF-8 (JSON holds nothing else).
func checkPath(p string) error {
	why := ""
	switch {
	case p == "":
		why = "is empty"
	case len(p) > maxPathBytes:
		why = "is too long"
	case !utf8.ValidString(p):
		why = "is not valid UTF-8"
	case strings.ContainsFunc(p, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		why = "holds a control character"
	case strings.Contains(p, `\`):
		why = "holds a backslash"
	case p[0] == '/':
		why = "is absolute"
	case len(p) >= 2 && p[1] == ':' && isLetter(p[0]):
		why = "begins with a drive letter"
	default:
		for e := range strings.SplitSeq(p, "/") {
			switch e {
			case "":
				why = "holds an empty element"
			case ".", "..":
				why = "holds a dot element"
			}
		}
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("path %s %s", quote(p), why)
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// segmentPath is where a segment lies below the root.
func segmentPath(hash string) string {
	return segmentsName + "/" + hash[:2] + "/" + hash + segmentExt
}

const segmentExt = ".zst"

// manifestName is a manifest's file name. The number is for people who look
// at the folder; order comes from the parents.
func manifestName(number int, hash string) string {
	return fmt.Sprintf("%06d-%s.json", number, hash)
}

var errManifestName = errors.New("not a manifest's name")

// parseManifestName undoes manifestName.
func parseManifestName(name string) (number int, hash string, err error) {
	digits, rest, ok := strings.Cut(name, "-")
	hash, ok2 := strings.CutSuffix(rest, ".json")
	if !ok || !ok2 || !validHash(hash) || len(digits) < 6 || strings.TrimLeft(digits, "0123456789") != "" {
		return 0, "", errManifestName
	}
	number, err = strconv.Atoi(digits)
	if err != nil || number < 1 || manifestName(number, hash) != name {
		return 0, "", errManifestName
	}
	return number, hash, nil
}

// keyedHash names a session where its id must not be readable: HMAC-SHA256 of
// the id, keyed with the store's id as text.
func keyedHash(store uuid.UUID, sessionID string) string {
	m := hmac.New(sha256.New, []byte(store.String()))
	m.Write([]byte(sessionID))
	return hex.EncodeToString(m.Sum(nil))
}
