package sessions

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sort"
	"sync"
	"time"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/transcript"
)

// A Catalog knows the sessions of one store and of the client's folders.
type Catalog struct {
	Store     *archive.Store // nil: there is none yet
	Locator   *transcript.Locator
	CacheFile string // "": no cache
	Now       time.Time

	// Alive tells whether a process runs.
	Alive func(pid int) bool
	// Forgotten tells whether a session was forgotten. Nothing of one that
	// was is cached.
	Forgotten func(id string) (bool, error)
	// KeptOut tells whether the user keeps a session out of the archive: one
	// that ran in dirs and was last active at last.
	KeptOut func(id string, dirs []string, last time.Time) (bool, error)
	// Retention gives the client's clean-up period in days for a session of
	// a config folder that ran in cwd.
	Retention func(configDir, cwd string) int64

	// Progress gets the number of sessions read, of all.
	Progress func(done, total int64)
}

// A List is the outcome of Load.
type List struct {
	Sessions []*Session // newest activity first
	Skipped  []transcript.Skipped
	Problems []error // of the store, the cache, the client's folders
}

// Load reads all sessions.
func (c *Catalog) Load(ctx context.Context) (*List, error) {
	live, skipped, err := c.Locator.Sessions(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for sessions: %w", err)
	}
	list := &List{Skipped: skipped}
	byID := map[string]*transcript.Bundle{}
	var ids []string
	for i := range live {
		byID[live[i].SessionID] = &live[i]
		ids = append(ids, live[i].SessionID)
	}
	if c.Store != nil {
		kept, err := c.Store.Sessions(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the archive: %w", err)
		}
		for _, id := range kept {
			if byID[id] == nil {
				ids = append(ids, id)
			}
		}
	}
	cache, err := readCache(c.CacheFile)
	if err != nil {
		list.Problems = append(list.Problems, err)
	}
	running, problems := c.running()
	list.Problems = append(list.Problems, problems...)

	sessions := make([]*Session, len(ids))
	err = c.each(ctx, len(ids), func(i int) error {
		s, err := c.session(ctx, ids[i], byID[ids[i]], running, cache)
		sessions[i] = s
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, s := range sessions {
		if s != nil {
			list.Sessions = append(list.Sessions, s)
		}
	}
	Sort(list.Sessions)
	found := make(map[string]*Session, len(list.Sessions))
	for _, s := range list.Sessions {
		found[s.ID] = s
	}
	for _, s := range list.Sessions {
		s.inherit(func(id string) *Session { return found[id] })
	}
	cache.keep(ids)
	if err := cache.write(c.CacheFile); err != nil {
		list.Problems = append(list.Problems, err)
	}
	return list, nil
}

// each runs f for 0 to n-1, on as many processors as reading can use.
func (c *Catalog) each(ctx context.Context, n int, f func(i int) error) error {
	const most = 8
	workers := min(n, most, runtime.GOMAXPROCS(0))
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		next  int
		done  int64
		first error
	)
	for range workers {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				stop := first != nil || i >= n
				mu.Unlock()
				if stop {
					return
				}
				err := ctx.Err()
				if err == nil {
					err = f(i)
				}
				mu.Lock()
				if err != nil && first == nil {
					first = err
				}
				done++
				if c.Progress != nil {
					c.Progress(done, int64(n))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return first
}

// Sort orders by last activity, the newest first; the id decides a tie.
func Sort(list []*Session) {
	sort.Slice(list, func(i, j int) bool {
		if !list[i].Last.Equal(list[j].Last) {
			return list[i].Last.After(list[j].Last)
		}
		return list[i].ID < list[j].ID
	})
}

// Get reads one session; transcript.ErrNotFound if there is nothing of it.
func (c *Catalog) Get(ctx context.Context, id string) (*Session, error) {
	var bundle *transcript.Bundle
	b, err := c.Locator.Locate(id, "")
	switch {
	case err == nil:
		bundle = &b
	case !errors.Is(err, transcript.ErrNotFound):
		return nil, fmt.Errorf("look for session %s: %w", id, err)
	}
	// A damaged cache is no reason to fail; the next full list mends it.
	cache, _ := readCache(c.CacheFile)
	running, _ := c.running()
	s, err := c.session(ctx, id, bundle, running, cache)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, fmt.Errorf("%w: %s", transcript.ErrNotFound, id)
	}
	s.inherit(func(id string) *Session {
		var bundle *transcript.Bundle
		if b, err := c.Locator.Locate(id, ""); err == nil {
			bundle = &b
		}
		from, err := c.session(ctx, id, bundle, running, cache)
		if err != nil {
			return nil // cancelled, which the caller sees
		}
		return from
	})
	return s, ctx.Err()
}

// running gives the sessions that are open in a client.
func (c *Catalog) running() (map[string]bool, []error) {
	open := map[string]bool{}
	var problems []error
	for _, dir := range c.Locator.ConfigDirs {
		processes, skipped := transcript.Processes(dir, c.Alive)
		for _, p := range processes {
			open[p.SessionID] = true
		}
		for _, s := range skipped {
			problems = append(problems, fmt.Errorf("%s: %s", s.Path, s.Reason))
		}
	}
	return open, problems
}

// session joins what is known of one session; nil if there is nothing.
// The error is only ever that of a cancelled context.
func (c *Catalog) session(ctx context.Context, id string, bundle *transcript.Bundle, running map[string]bool, cache *cache) (*Session, error) {
	s := &Session{ID: id}
	if bundle != nil && bundle.Transcript != "" {
		s.Live = bundle
	} else if bundle != nil {
		s.Traces = bundle
	}
	if c.Forgotten != nil {
		var err error
		if s.Forgotten, err = c.Forgotten(id); err != nil {
			s.Errors = append(s.Errors, fmt.Errorf("see whether %s was forgotten: %w", id, err))
		}
	}
	if c.Store != nil {
		g, err := c.Store.Latest(ctx, id)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil:
			s.Kept = g
		case errors.Is(err, archive.ErrForgotten):
			s.Forgotten = true
		case !errors.Is(err, archive.ErrNoSession):
			s.Errors = append(s.Errors, fmt.Errorf("read the archive of %s: %w", id, err))
		}
	}
	if s.Live == nil && s.Traces == nil && s.Kept == nil && len(s.Errors) == 0 {
		return nil, nil
	}
	if s.Forgotten {
		cache = newCache() // used for this session and thrown away
	}

	var live liveFacts
	if s.Live != nil {
		var err error
		live, err = c.liveFacts(ctx, *s.Live, cache)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			s.Errors = append(s.Errors, fmt.Errorf("read %s: %w", s.Live.Transcript, err))
		}
		s.Facts, s.Size = live.Facts, s.Live.Size
	}
	kept := keptTranscript(s.Kept)
	if kept != nil && (s.Live == nil || s.Live.Size < kept.Size) {
		facts, err := c.keptFacts(ctx, s.Kept, *kept, cache)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			s.Errors = append(s.Errors, fmt.Errorf("read the archived transcript of %s: %w", id, err))
		}
		// A live file may have been cut short or begun anew; the session
		// is what the archive still has of it then.
		if s.Live == nil || Messages(facts) > Messages(s.Facts) {
			s.Facts, s.Size, s.FactsOf = facts, kept.Size, s.Kept.Hash
		}
	}
	if s.Facts.Empty && s.Kept != nil && s.Kept.Parent != "" {
		if err := c.olderFacts(ctx, s, cache); err != nil {
			return nil, err
		}
	}
	s.Kind = classify(s.Facts, s.Live == nil && kept == nil)
	s.Last = s.Facts.Last
	if s.Last.IsZero() {
		switch {
		case s.Live != nil:
			s.Last = s.Live.ModTime
		case kept != nil:
			s.Last = kept.ModTime
		case s.Traces != nil:
			s.Last = s.Traces.ModTime
		case s.Kept != nil:
			s.Last = s.Kept.Taken
		}
	}
	c.states(ctx, s, live, running[id])
	return s, ctx.Err()
}

// olderFacts takes the facts of a session whose newest state holds no message
// from the older lineage with the most: a file that was begun anew is no reason
// to take a conversation for empty. The error is that of a cancelled context.
func (c *Catalog) olderFacts(ctx context.Context, s *Session, cache *cache) error {
	h, err := c.Store.History(ctx, s.ID)
	if err != nil {
		if ctx.Err() == nil {
			s.Errors = append(s.Errors, fmt.Errorf("read older generations of %s: %w", s.ID, err))
		}
		return ctx.Err()
	}
	for _, l := range h.Lineages() {
		g := l.Latest()
		kept := keptTranscript(g)
		if g.Hash == s.Kept.Hash || kept == nil {
			continue
		}
		facts, err := c.keptFacts(ctx, g, *kept, cache)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && Messages(facts) > Messages(s.Facts) { // verify tells of damage
			s.Facts, s.Size, s.FactsOf = facts, kept.Size, g.Hash
		}
	}
	return nil
}

// states works out which states hold.
func (c *Catalog) states(ctx context.Context, s *Session, live liveFacts, running bool) {
	hold := map[State]bool{}
	hold[Lost] = s.Live == nil && s.Kept == nil && len(s.Errors) == 0 && !running
	hold[KeptOut] = s.Forgotten
	if c.KeptOut != nil && !s.Forgotten {
		out, err := c.KeptOut(s.ID, s.Dirs(), s.Last)
		if err != nil {
			s.Errors = append(s.Errors, fmt.Errorf("see whether %s is kept out: %w", s.ID, err))
		}
		hold[KeptOut] = out
	}
	hold[Live] = running && (s.Live != nil || s.Traces != nil)
	// Of a session without a transcript the side files are all there ever was.
	traces := s.Traces != nil && s.Kept != nil && keptTranscript(s.Kept) == nil
	hold[Gone] = s.Live == nil && s.Kept != nil && !traces
	if s.Live != nil || traces {
		behind, err := c.behind(ctx, s, live)
		if err != nil {
			s.Errors = append(s.Errors, err)
		}
		hold[Behind] = behind
	}
	if s.Live != nil {
		if c.Retention != nil {
			if t, ok := transcript.Expiry(s.Live.ModTime, c.Retention(s.Live.ConfigDir, s.Project())); ok {
				s.Expires = t
			}
		}
		hold[Expiring] = hold[Behind] && !s.Expires.IsZero() && s.Expires.Before(c.Now.Add(ExpiringWithin))
		// A session that is kept out is not behind: it is meant to be so.
		if hold[KeptOut] && s.Kept == nil {
			hold[Behind], hold[Expiring] = false, false
		}
	}
	hold[Archived] = s.Kept != nil && !hold[Behind]
	hold[Unclean] = !running && s.Kind != Husk && s.Kind != Empty && unclean(s)
	for _, state := range order {
		if hold[state] {
			s.States = append(s.States, state)
		}
	}
	for _, state := range s.States {
		// What is in the archive whole is no less so for being kept out now.
		if state != KeptOut || !hold[Archived] {
			s.State = state
			break
		}
	}
}

// unclean reports whether the session's client ended without closing it. An
// end that a hook saw counts, whatever the file looks like.
func unclean(s *Session) bool {
	if s.Kept != nil {
		for _, e := range s.Kept.Events {
			// The hook's clock and the records' are the same machine's.
			if e.Name == "SessionEnd" && !e.Time.Before(s.Facts.Last) {
				return false
			}
		}
	}
	switch s.Facts.End {
	case transcript.EndOpen, transcript.EndTool, transcript.EndTorn:
		return true
	}
	return false
}

// behind reports whether the source has bytes that the archive lacks.
func (c *Catalog) behind(ctx context.Context, s *Session, live liveFacts) (bool, error) {
	source := s.Traces
	if s.Live != nil {
		source = s.Live
		kept := keptTranscript(s.Kept)
		if kept == nil || live.SHA256 != kept.SHA256 || s.Live.Size != kept.Size {
			if kept == nil || !onlyCosts(s.Live.Transcript, kept.Size, s.Live.Size) {
				return true, nil
			}
		}
	}
	files, _, err := source.ListFiles(ctx, transcript.FilesOptions{NoReads: true, Slugs: live.Facts.Slugs})
	if err != nil {
		return false, fmt.Errorf("list the files of %s: %w", s.ID, err)
	}
	type name struct{ family, path string }
	known := map[name]archive.File{}
	for _, f := range s.Kept.Files {
		known[name{f.Family, f.Path}] = f
	}
	leftOut := map[name]bool{}
	for _, f := range s.Kept.LeftOut {
		leftOut[name{f.Family, f.Path}] = true
	}
	for _, f := range files {
		n := name{f.Family, f.Rel}
		if f.Family == transcript.FamilyTranscript || leftOut[n] {
			continue
		}
		k, ok := known[n]
		switch {
		case !ok || k.Size != f.Size:
			return true, nil
		case !k.ModTime.Equal(f.ModTime):
			// Touched, as whole folders are now and then: the bytes decide.
			sum, err := hashFile(f.Path)
			if err != nil {
				return false, fmt.Errorf("read %s: %w", f.Path, err)
			}
			if sum != k.SHA256 {
				return true, nil
			}
		}
	}
	return false, nil
}

// maxCosts bounds what is looked at after the end of what is archived. One
// record of costs takes under a kilobyte.
const maxCosts = 16 << 10

// onlyCosts tells whether all that a transcript has from an offset on are the
// client's notes of what the session cost. It writes one when it leaves a session
// for another, after the hooks (observed on 2.1.332: up to seconds later), and
// nobody misses it: a session is not behind for that. The next thing that happens
// to the session has it archived all the same.
func onlyCosts(path string, from, to int64) bool {
	if from < 1 || to <= from || to-from > maxCosts {
		return false
	}
	f, _, err := transcript.OpenRegular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	tail := make([]byte, to-from+1) // with the line feed before
	if _, err := f.ReadAt(tail, from-1); err != nil || tail[0] != '\n' {
		return false
	}
	scanner := transcript.NewScanner(bytes.NewReader(tail[1:]))
	for scanner.Scan() {
		fields, err := transcript.ParseFields(scanner.Line().Raw)
		if err != nil || !fields.Type.Is("cost-state") {
			return false
		}
	}
	return scanner.Err() == nil
}

func hashFile(path string) (string, error) {
	f, _, err := transcript.OpenRegular(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// keptTranscript gives the transcript of a generation, nil if it has none.
func keptTranscript(g *archive.Generation) *archive.File {
	if g == nil {
		return nil
	}
	for i := range g.Files {
		if g.Files[i].Family == archive.Transcript {
			return &g.Files[i]
		}
	}
	return nil
}

// KeptTranscript gives the transcript of a generation, nil if it has none.
func KeptTranscript(g *archive.Generation) *archive.File { return keptTranscript(g) }

// liveFacts reads a live transcript, or finds it unchanged in the cache.
func (c *Catalog) liveFacts(ctx context.Context, b transcript.Bundle, cache *cache) (liveFacts, error) {
	f, fi, err := b.Open()
	if err != nil {
		return liveFacts{}, err
	}
	defer f.Close()
	side := b.SidecarTitle()
	key := b.Transcript
	if have, ok := cache.live(key, stampOf(fi), side); ok {
		return have, nil
	}
	facts, sum, err := readFacts(ctx, f, side)
	if err != nil {
		return liveFacts{}, err
	}
	facts.SessionIDs = c.others(facts.SessionIDs, b.SessionID)
	got := liveFacts{ID: b.SessionID, Stamp: stampOf(fi), Side: side, SHA256: sum, Facts: facts}
	// The file may have grown meanwhile: only what is as it was is kept.
	after, err := f.Stat()
	if err == nil && stampOf(after) == got.Stamp && settled(fi, c.Now) {
		cache.putLive(key, got)
	}
	return got, nil
}

// others keeps the ids of sessions other than id, without those that were
// forgotten: they must not live on in what is cached of another one.
func (c *Catalog) others(ids []string, id string) []string {
	var others []string
	for _, other := range ids {
		if other == id || !transcript.ValidSessionID(other) {
			continue
		}
		if c.Forgotten != nil {
			if forgotten, err := c.Forgotten(other); forgotten || err != nil {
				continue
			}
		}
		others = append(others, other)
	}
	return others
}

// settled reports whether the file is older than the clock of any file system
// is coarse: a write within the same tick would not show in its time.
func settled(fi os.FileInfo, now time.Time) bool {
	const coarsestClock = 2 * time.Second
	return fi.ModTime().Before(now.Add(-coarsestClock))
}

// readFacts reads to the end, so that the hash is that of all bytes.
func readFacts(ctx context.Context, r io.Reader, side string) (transcript.Facts, string, error) {
	h := sha256.New()
	tee := io.TeeReader(r, h)
	facts, err := transcript.ReadFacts(ctx, tee, side)
	if err != nil {
		return facts, "", err
	}
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return facts, "", err
	}
	return facts, hex.EncodeToString(h.Sum(nil)), nil
}

// keptFacts reads an archived transcript, or finds its generation in the cache.
func (c *Catalog) keptFacts(ctx context.Context, g *archive.Generation, f archive.File, cache *cache) (transcript.Facts, error) {
	if facts, ok := cache.kept(g.Hash); ok {
		return facts, nil
	}
	facts, err := KeptFacts(ctx, c.Store, g)
	if err != nil {
		return facts, err
	}
	facts.SessionIDs = c.others(facts.SessionIDs, g.SessionID)
	cache.putKept(g.Hash, keptEntry{ID: g.SessionID, Facts: facts})
	return facts, nil
}

// KeptFacts reads the transcript of a generation.
func KeptFacts(ctx context.Context, store *archive.Store, g *archive.Generation) (transcript.Facts, error) {
	f := keptTranscript(g)
	if f == nil {
		return transcript.Facts{Empty: true}, nil
	}
	r, err := store.OpenFile(g, *f)
	if err != nil {
		return transcript.Facts{}, err
	}
	defer r.Close()
	facts, _, err := readFacts(ctx, r, keptTitle(store, g))
	return facts, err
}

// keptTitle reads the title in a generation's custom-title.json, as
// transcript.Bundle.SidecarTitle does for a live one.
func keptTitle(store *archive.Store, g *archive.Generation) string {
	const most = 64 << 10 // bytes; a title has at most 200 characters
	for _, f := range g.Files {
		if f.Family != transcript.FamilySession || f.Path != "custom-title.json" || f.Size > most {
			continue
		}
		r, err := store.OpenFile(g, f)
		if err != nil {
			return "" // verify tells of the damage; a list goes on without
		}
		defer r.Close()
		data, err := io.ReadAll(r)
		if err != nil {
			return ""
		}
		return transcript.ParseSidecarTitle(data)
	}
	return ""
}
