package spool

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/session-keeper/session-keeper/internal/durable"
)

// Start starts binary as a worker of the spool dir that outlives this process, whatever becomes
// of it: no descendant of it a moment after Start returned, in a session of its own, in
// the root folder, with null for its standard streams and no other descriptor.
// The worker sees only the part of the environment that tells it where things
// are; the rest may hold secrets.
//
// On Unix a shell in between starts the worker in the background, at a lower
// priority, and ends at once. It is not waited for: Start is made for a
// process that is about to end, and in one that is not, the dead shell stays
// in the process table. Without a shell the worker itself is the child. On
// Windows the worker is detached, in a process group of its own, and leaves
// the job of its parent if that lets it.
//
// ErrBusy says that a worker waits for its turn already (see [Turn]): it will
// see what is in the spool now, and no other is started. Else the worker has
// the turn from the start, or, where a lock cannot be handed on, takes it
// itself.
func Start(dir, binary string, args ...string) error {
	turn, err := durable.LockToHandOn(filepath.Join(dir, turnFile))
	if errors.Is(err, durable.ErrLocked) {
		return ErrBusy
	}
	// Without a turn to hand on, for whatever reason, the worker is started
	// all the same: one too many is better than none.
	env := workerEnv(os.Environ(), runtime.GOOS)
	if err == nil {
		env = append(env, turnEnv+"=1")
		defer turn.Close() // not unlocked: the worker holds it
	}
	return start(binary, args, env, turn)
}

// workerEnv is the part of an environment that a worker needs.
func workerEnv(env []string, goos string) []string {
	names := []string{"PATH", "HOME", "TMPDIR", "LANG", "TZ", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_PROJECT_DIR_NAME"}
	prefixes := []string{"XDG_", "LC_", "SESSION_KEEPER_"}
	if goos == "windows" {
		names = append(names, "SYSTEMROOT", "SYSTEMDRIVE", "LOCALAPPDATA", "APPDATA", "USERPROFILE", "TEMP", "TMP")
	}
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		if goos == "windows" {
			name = strings.ToUpper(name)
		}
		return name == turnEnv || !slices.Contains(names, name) &&
			!slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	})
}
