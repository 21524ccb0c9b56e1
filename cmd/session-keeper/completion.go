package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/session-keeper/session-keeper/internal/sessions"
)

const (
	// completionPatience bounds how long a shell waits for titles; after it ids
	// alone are offered.
	completionPatience = 2 * time.Second
	// maxCompletionTitle cuts the title beside an id, in cells.
	maxCompletionTitle = 60
)

// kept and anySession say which sessions a completion offers.
func kept(s *sessions.Session) bool     { return s.Kept != nil }
func anySession(*sessions.Session) bool { return true }
func live(s *sessions.Session) bool     { return s.Live != nil || s.Traces != nil }

// completeID completes a session's id, with its title beside it, newest first.
// otherwise is what the shell does besides.
func (a *app) completeID(takes func(*sessions.Session) bool, most int, otherwise cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		d, err := a.openDesk()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		var found []cobra.Completion
		offer := func(id, title string) {
			if strings.HasPrefix(id, typed) {
				if title != "" {
					id = cobra.CompletionWithDesc(id, title)
				}
				found = append(found, id)
			}
		}
		offer(sessions.LastWord, "the session with the newest message")
		wait, cancel := context.WithTimeout(ctx, completionPatience)
		defer cancel()
		list, err := d.catalog.Load(wait)
		if err == nil {
			for _, s := range list.Sessions {
				if takes(s) {
					offer(s.ID, fit(oneLine(s.Title()), maxCompletionTitle))
				}
			}
			return found, otherwise | cobra.ShellCompDirectiveKeepOrder
		}
		bundles, _, err := d.catalog.Locator.Sessions(ctx)
		if err != nil {
			return found, cobra.ShellCompDirectiveError
		}
		seen := map[string]bool{}
		for i := range bundles {
			seen[bundles[i].SessionID] = true
			offer(bundles[i].SessionID, "")
		}
		if d.store != nil {
			ids, err := d.store.Sessions(ctx)
			if err != nil {
				return found, cobra.ShellCompDirectiveError
			}
			for _, id := range ids {
				if !seen[id] {
					offer(id, "")
				}
			}
		}
		return found, otherwise | cobra.ShellCompDirectiveKeepOrder
	}
}
