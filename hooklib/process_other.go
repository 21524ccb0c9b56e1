//go:build !linux && !darwin

package hooklib

// processHas cannot look into another process on this platform.
func processHas(int, string) (has, known bool) { return false, false }
