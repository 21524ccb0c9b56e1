package spool

import (
	"os"
	"runtime"
	"slices"
	"strings"
)

// Start starts binary as a worker that outlives this process, whatever becomes
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
func Start(binary string, args ...string) error {
	return start(binary, args, workerEnv(os.Environ(), runtime.GOOS))
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
		return !slices.Contains(names, name) &&
			!slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	})
}
