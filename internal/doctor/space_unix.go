//go:build linux || darwin || freebsd

package doctor

import "syscall"

// freeBytes is what an ordinary user can still write to the disk under path.
func freeBytes(path string) (uint64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, err
	}
	return uint64(st.Bavail) * uint64(st.Bsize), nil //nolint:unconvert // types differ between systems
}
