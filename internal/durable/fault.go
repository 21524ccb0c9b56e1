package durable

import "sync/atomic"

// A FaultFunc stands at the hook point: it is called before an operation and,
// if that succeeded, again after it. An error before it keeps the operation
// from happening; one after it reports a failure although the operation took
// place, as a lost answer would.
//
// Operations are create, write, sync, rename, link, remove, mkdir, syncdir,
// clone and lock. The path is the one that changes: for rename and link the
// new name.
type FaultFunc func(op, path string, after bool) error

var fault atomic.Pointer[FaultFunc]

// SetFault installs f at the hook point, for tests only, and returns the
// function that puts back what was there before.
func SetFault(f FaultFunc) (restore func()) {
	var p *FaultFunc
	if f != nil {
		p = &f
	}
	old := fault.Swap(p)
	return func() { fault.Store(old) }
}

// step does one operation that changes the disk, with the hook point on both
// sides of it.
func step(op, path string, do func() error) error {
	killpoint(op, path, false)
	f := fault.Load()
	if f != nil {
		if err := (*f)(op, path, false); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	killpoint(op, path, true)
	if f != nil {
		return (*f)(op, path, true)
	}
	return nil
}
