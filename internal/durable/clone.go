package durable

import "errors"

// ErrNoClone says that the file system cannot make a snapshot of a file.
var ErrNoClone = errors.New("file system has no clones")
