package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/session-keeper/session-keeper/internal/durable"
)

const (
	// tombstoneText is the same in every tombstone, so that writing one again
	// is no change, and says nothing of the session.
	tombstoneText = "session-keeper tombstone 1\n"
	// pendingExt marks the list of segments that a Forget has yet to remove.
	pendingExt = ".pending"
	// unlinkBatch bounds how long the store's lock is held exclusively.
	unlinkBatch = 64
	// strayAge is when a temporary counts as left behind although its maker
	// could be alive: no generation takes so long.
	strayAge = 24 * time.Hour
	// anyAge is for temporaries that can have no living maker.
	anyAge = -time.Hour
)

// Forget removes a session from the store for good, and writes a tombstone so
// that it stays out. It may be called for a session that the store does not
// hold.
//
// The tombstone comes first: from then on nobody archives or reads the
// session. Then go the index entry, the manifests, and the segments that no
// manifest names any more or yet. If Forget is cut off, calling it again or
// Sweep finishes. Nothing that is left has the session's id in it, or a hash
// of its contents.
func (s *Store) Forget(ctx context.Context, sessionID string, o ForgetOptions) (rep ForgetReport, err error) {
	if !validUUID(sessionID) {
		return rep, fmt.Errorf("forget: %w: %s is no session id", ErrNoSession, quote(sessionID))
	}
	if err := s.format.writable(s.root); err != nil {
		return rep, err
	}
	pending := s.tombstone(sessionID) + pendingExt
	rep.Generations, err = s.forgetManifests(ctx, sessionID, pending, o)
	if err != nil {
		return rep, fmt.Errorf("forget: %w", err)
	}
	if err := s.finishForget(ctx, pending, &rep); err != nil {
		return rep, fmt.Errorf("forget: %w", err)
	}
	return rep, nil
}

// forgetManifests does all of Forget but the segments, whose hashes it leaves
// in the pending file.
func (s *Store) forgetManifests(ctx context.Context, sessionID, pending string, o ForgetOptions) (n int, err error) {
	if err := ensureDir(s.path(removedName)); err != nil {
		return 0, err
	}
	unlock, err := s.lock(ctx, durable.Shared, sessionID)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := durable.WriteFile(s.tombstone(sessionID), []byte(tombstoneText)); err != nil {
		return 0, err
	}
	if o.IndexDir != "" {
		file := s.indexFile(o.IndexDir, sessionID)
		if err := errors.Join(removeIfThere(file), removeIfThere(file+indexNewExt)); err != nil {
			return 0, err
		}
	}
	dir := s.path(sessionsName, sessionID)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	hashes, err := readPending(pending)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		err := scanHashes(filepath.Join(dir, e.Name()), func(h string) { hashes[h] = true })
		if err != nil {
			return 0, err
		}
	}
	if len(hashes) > 0 {
		list := strings.Join(slices.Sorted(maps.Keys(hashes)), "\n") + "\n"
		if err := durable.ReplaceFile(pending, []byte(list)); err != nil {
			return 0, err
		}
	}
	// The last numbers first, so that what is still there keeps its bases.
	for _, e := range slices.Backward(entries) {
		if err := durable.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, err
		}
		if _, _, err := parseManifestName(e.Name()); err == nil {
			n++
		}
	}
	if err := durable.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return n, err
	}
	return n, durable.SyncDir(s.path(sessionsName))
}

// finishForget removes the segments that a pending file lists, unless a
// manifest names them, and then the pending file.
func (s *Store) finishForget(ctx context.Context, pending string, rep *ForgetReport) error {
	hashes, err := readPending(pending)
	if err != nil {
		return err
	}
	// Archiving that was cut off may have left segments that no manifest names
	// yet. Nobody knows whose they are, so all such go, too, provided that
	// nothing is amiss that might have named them.
	if sound, err := s.sound(ctx); err != nil {
		return err
	} else if sound {
		err := s.eachSegment(ctx, func(hash string, _ fs.DirEntry) error {
			hashes[hash] = true
			return nil
		})
		if err != nil {
			return err
		}
	}
	seen := make(map[string]bool)
	if len(hashes) > 0 {
		// Most of the looking happens here, without a lock.
		if err := s.keepReachable(ctx, hashes, seen); err != nil {
			return err
		}
	}
	for {
		if err := s.unlinkBatch(ctx, hashes, seen, rep); err != nil {
			return err
		}
		if len(hashes) == 0 {
			break
		}
	}
	if err := durable.Remove(pending); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.SyncDir(s.path(removedName))
}

// sound reports whether every manifest of every session can be read.
func (s *Store) sound(ctx context.Context) (bool, error) {
	ids, err := s.Sessions(ctx)
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		h, err := s.History(ctx, id)
		if errors.Is(err, ErrForgotten) || errors.Is(err, ErrNoSession) {
			continue
		}
		if err != nil {
			return false, err
		}
		if len(h.Problems) > 0 {
			return false, nil
		}
	}
	return true, nil
}

// unlinkBatch removes some of the segments, under the store's exclusive lock:
// no archiver is then between finding a segment and naming it. What was named
// since the last look is kept.
func (s *Store) unlinkBatch(ctx context.Context, hashes, seen map[string]bool, rep *ForgetReport) (err error) {
	unlock, err := s.lock(ctx, durable.Exclusive, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	// Temporaries hold conversation, too, and here they have no living maker.
	if err := s.sweepTemps(anyAge); err != nil {
		return err
	}
	if len(hashes) == 0 {
		return nil
	}
	if err := s.keepReachable(ctx, hashes, seen); err != nil {
		return err
	}
	dirs := make(map[string]bool)
	for i, h := range slices.Sorted(maps.Keys(hashes)) {
		if i == unlinkBatch {
			break
		}
		name := s.path(segmentPath(h))
		fi, err := os.Lstat(name)
		if err == nil {
			if err := durable.Remove(name); err != nil {
				return err
			}
			dirs[filepath.Dir(name)] = true
			rep.Segments++
			rep.Bytes += fi.Size()
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		delete(hashes, h)
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if err := durable.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// keepReachable takes from hashes all that a manifest names. It reads those
// that are not in seen, and adds them to it. Manifests are not parsed but
// searched for anything that looks like a hash: what a damaged one names is
// kept, too.
func (s *Store) keepReachable(ctx context.Context, hashes, seen map[string]bool) error {
	sessions, err := os.ReadDir(s.path(sessionsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, d := range sessions {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !d.IsDir() {
			continue
		}
		files, err := os.ReadDir(s.path(sessionsName, d.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, f := range files {
			name := s.path(sessionsName, d.Name(), f.Name())
			if seen[name] {
				continue
			}
			err := scanHashes(name, func(h string) { delete(hashes, h) })
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				// Who cannot look must not remove.
				return err
			}
			seen[name] = true
		}
	}
	return nil
}

// scanHashes calls f for everything in a file that could be a hash: each run
// of exactly 64 lower-case hex digits.
func scanHashes(name string, f func(hash string)) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 64<<10)
	run := make([]byte, 0, hashLen+1)
	for {
		c, err := r.ReadByte()
		if err != nil || (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			if len(run) == hashLen {
				f(string(run))
			}
			run = run[:0]
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			continue
		}
		if len(run) <= hashLen {
			run = append(run, c)
		}
	}
}

func readPending(name string) (map[string]bool, error) {
	hashes := make(map[string]bool)
	err := scanHashes(name, func(h string) { hashes[h] = true })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return hashes, nil
}

// Sweep removes what killed processes left behind: temporaries, and what is
// left of sessions whose Forget was cut off. Only for the latter it waits for
// archivers at work.
func (s *Store) Sweep(ctx context.Context) error {
	if err := s.format.writable(s.root); err != nil {
		return err
	}
	if err := ensureDir(s.path(locksName)); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	age := strayAge
	unlock, err := durable.TryLock(s.path(locksName, "store"), durable.Exclusive)
	switch {
	case err == nil:
		age = anyAge // nobody is at work
	case !errors.Is(err, durable.ErrLocked):
		return fmt.Errorf("sweep: %w", err)
	}
	var errs []error
	errs = append(errs, s.sweepTemps(age))
	if unlock != nil {
		errs = append(errs, unlock())
	}
	// Here temporaries are made without the store's lock.
	for _, dir := range []string{"", locksName} {
		_, err := durable.Sweep(s.path(dir), strayAge, time.Now())
		errs = append(errs, err)
	}
	errs = append(errs, s.finishForgets(ctx))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	return nil
}

// sweepTemps removes the temporaries that are made under the store's lock.
func (s *Store) sweepTemps(age time.Duration) error {
	var errs []error
	for _, dir := range []string{tmpName, removedName} {
		_, err := durable.Sweep(s.path(dir), age, time.Now())
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// finishForgets goes on with every Forget that was cut off.
func (s *Store) finishForgets(ctx context.Context) error {
	sessions, err := os.ReadDir(s.path(sessionsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, d := range sessions {
		if !validUUID(d.Name()) {
			continue
		}
		gone, err := s.forgotten(d.Name())
		if err != nil {
			return err
		}
		if gone {
			if _, err := s.Forget(ctx, d.Name(), ForgetOptions{}); err != nil {
				return err
			}
		}
	}
	removed, err := os.ReadDir(s.path(removedName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range removed {
		if strings.HasSuffix(e.Name(), pendingExt) {
			var rep ForgetReport
			if err := s.finishForget(ctx, s.path(removedName, e.Name()), &rep); err != nil {
				return err
			}
		}
	}
	return nil
}
