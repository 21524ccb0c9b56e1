//go:build unix

package briefing

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Files are 0600 and folders 0700 whatever the umask. SM-06
func TestModes(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o277} {
		if mask == 0o277 && os.Getuid() != 0 {
			mask = 0o177 // of files alone; others could not enter their own folder for a moment
		}
		top := t.TempDir()
		old := syscall.Umask(mask)
		_, err := SaidFolder(filepath.Join(top, "state", "said")).Claim("s", "a")
		if err == nil {
			_, err = AddTrust(t.Context(), filepath.Join(top, "config", "trusted.json"), top)
		}
		syscall.Umask(old)
		if err != nil {
			t.Fatalf("%o: %v", mask, err)
		}
		count := 0
		err = filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			if err != nil || path == top {
				return err
			}
			count++
			info, err := e.Info()
			if err != nil {
				return err
			}
			want := fs.FileMode(0o600)
			if e.IsDir() {
				want = fs.ModeDir | 0o700
			}
			if info.Mode() != want {
				t.Errorf("umask %o: %s is %v", mask, path, info.Mode())
			}
			return nil
		})
		if err != nil || count < 6 {
			t.Errorf("%d files, %v", count, err)
		}
	}
}
