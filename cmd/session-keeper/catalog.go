package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/session-keeper/session-keeper/archive"
	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/keeper"
	"github.com/session-keeper/session-keeper/internal/optout"
	"github.com/session-keeper/session-keeper/internal/sessions"
	"github.com/session-keeper/session-keeper/transcript"
)

// sessionHelp is the part of a command's help that says what ID may be.
const sessionHelp = `ID is a session's id, the beginning of one (at least 4 characters), a title,
or "last" for the session with the newest message.`

// desk is what the commands about sessions work with.
type desk struct {
	settings *config.Settings
	keeper   *keeper.Keeper
	store    *archive.Store // nil: there is none yet
	catalog  *sessions.Catalog
}

// openDesk opens the store, if there is one, and looks at nothing else yet.
func (a *app) openDesk() (*desk, error) {
	s, err := a.settings()
	if err != nil {
		return nil, err
	}
	store, err := archive.Open(s.Paths.Store)
	if errors.Is(err, archive.ErrNotStore) || errors.Is(err, os.ErrNotExist) {
		store, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	k := keeper.New(s, nil)
	k.Now = a.now
	return &desk{
		settings: s,
		keeper:   k,
		store:    store,
		catalog: &sessions.Catalog{
			Store:     store,
			Locator:   k.Locator(),
			CacheFile: sessions.CacheFile(s.Paths.Cache, s.Paths.Store),
			Now:       a.now(),
			Alive:     processAlive,
			Forgotten: func(id string) (bool, error) { return optout.IsForgotten(s.Paths.State, id) },
			KeptOut: func(id string, dirs []string, last time.Time) (bool, error) {
				decision, err := optout.CheckPast(s, id, dirs, last)
				return decision.Skip, err
			},
			Retention: func(configDir, cwd string) int64 {
				return sessions.RetentionDays(configDir, cwd, managedSettings(a.env.GOOS))
			},
		},
	}, nil
}

// managedSettings is where an administrator's settings for the client are
// (documented).
func managedSettings(goos string) string {
	switch goos {
	case "darwin":
		return "/Library/Application Support/ClaudeCode/managed-settings.json"
	case "windows":
		return `C:\Program Files\ClaudeCode\managed-settings.json`
	}
	return "/etc/claude-code/managed-settings.json"
}

// processAlive reports whether a process of this machine runs.
func processAlive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release()
	if runtime.GOOS == "windows" {
		return true // FindProcess fails there for one that has ended
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, os.ErrPermission)
}

// find gives the session that an argument names, as an error with the right
// exit code if there is none or more than one.
func (d *desk) find(ctx context.Context, name string) (*sessions.Session, error) {
	s, err := d.catalog.Find(ctx, name)
	if err == nil {
		return s, nil
	}
	var ambiguous *sessions.AmbiguousError
	switch {
	case errors.As(err, &ambiguous):
		return nil, fail(exitNotFound, ambiguousText(ambiguous), "give one of these ids, or more of it")
	case errors.Is(err, transcript.ErrNotFound):
		return nil, fail(exitNotFound, err, notFoundHint(name))
	}
	return nil, err
}

func notFoundHint(name string) string {
	if lower := strings.ToLower(name); lower != name && transcript.ValidSessionID(lower) {
		return "Claude Code writes ids in lower case: " + lower
	}
	return `"session-keeper list --all" shows every session`
}

// ambiguousText names the sessions that have the same name: titles repeat, for
// example where one session was continued in two windows.
func ambiguousText(e *sessions.AmbiguousError) error {
	const most = 20
	var b strings.Builder
	fmt.Fprintf(&b, "%q names %d sessions:", shorten(oneLine(e.Name)), len(e.Sessions))
	for i, s := range e.Sessions {
		if i == most {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Sessions)-most)
			break
		}
		fmt.Fprintf(&b, "\n  %s  %s  %s", s.ID, s.Last.Local().Format("2006-01-02 15:04"), fit(oneLine(s.Title()), 60))
	}
	return errors.New(b.String())
}

// generation gives the generation that a flag names, the latest for "".
func (d *desk) generation(ctx context.Context, s *sessions.Session, name string) (*archive.Generation, *archive.History, error) {
	if d.store == nil || s.Kept == nil {
		return nil, nil, fail(exitNotFound, fmt.Errorf("session %s is not in the archive", s.ID))
	}
	h, err := d.store.History(ctx, s.ID)
	if err != nil {
		return nil, nil, fmt.Errorf("read the archive: %w", err)
	}
	if name == "" || name == "latest" {
		if g := h.Latest(); g != nil {
			return g, h, nil
		}
		return nil, nil, fail(exitDamaged, fmt.Errorf("no generation of session %s can be read", s.ID), fmt.Sprintf("session-keeper verify %s tells what is damaged", s.ID))
	}
	g, err := h.Find(name)
	switch {
	case errors.Is(err, archive.ErrNoGeneration), errors.Is(err, archive.ErrAmbiguous):
		return nil, nil, fail(exitNotFound, fmt.Errorf("%w; there are:%s", err, generationLines(h)))
	case err != nil:
		return nil, nil, err
	}
	return g, h, nil
}

// facts gives those of a generation's transcript, without reading it again
// where they are the session's.
func (d *desk) facts(ctx context.Context, s *sessions.Session, g *archive.Generation) (transcript.Facts, error) {
	if s.FactsOf == g.Hash && len(s.Errors) == 0 {
		return s.Facts, nil
	}
	return sessions.KeptFacts(ctx, d.store, g)
}

// generationLines lists a session's generations, the newest first, a line each.
func generationLines(h *archive.History) string {
	const most = 20
	var b strings.Builder
	for i := len(h.Generations) - 1; i >= 0; i-- {
		if len(h.Generations)-i > most {
			fmt.Fprintf(&b, "\n  and %d older ones", i+1)
			break
		}
		g := h.Generations[i]
		var size int64
		if f := sessions.KeptTranscript(g); f != nil {
			size = f.Size
		}
		fmt.Fprintf(&b, "\n  %d  %.8s  %s  %s  %s", g.Number, g.Hash, g.Taken.Local().Format("2006-01-02 15:04"), g.Reason, byteSize(size))
	}
	return b.String()
}

// tilde writes a path with ~ for the user's home.
func (a *app) tilde(path string) string {
	if home := a.env.Home; home != "" && home != "/" {
		if path == home {
			return "~"
		}
		if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok {
			return "~" + string(filepath.Separator) + rest
		}
	}
	return path
}

// warnAll prints errors that stop nothing.
func (a *app) warnAll(errs []error) {
	for _, err := range errs {
		a.say("warning", oneLine(err.Error()))
	}
}
