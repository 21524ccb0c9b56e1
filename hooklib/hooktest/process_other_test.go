//go:build !linux && !darwin

package hooktest

func ignoreTerm() {} // nothing here is tested that needs it
