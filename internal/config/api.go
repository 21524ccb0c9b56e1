package config

import "fmt"

func (e *Error) Error() string   { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }
func (e *Error) Unwrap() error   { return e.Err }
func (w Warning) String() string { return fmt.Sprintf("%s:%d: %s", w.File, w.Line, w.Text) }

// SystemEnv returns this process's world.
func SystemEnv() Env { return Env{} }

// PathsFor returns the places as far as the environment decides them, without
// reading the settings file.
func PathsFor(env Env) (Paths, error) { return Paths{}, nil }

// Load reads the settings. The error is an *Error if the file is at fault.
func Load(env Env) (*Settings, error) { return nil, nil }

// RememberSpool notes that a spool exists at dir, so that workers sweep it.
func RememberSpool(state, dir string) error { return nil }

// RememberClientDir notes that a client keeps its sessions under dir.
func RememberClientDir(state, dir string) error { return nil }

// SeenSpools returns the remembered spools, the one in the state folder first.
func SeenSpools(state string) ([]string, error) { return nil, nil }

// SeenClientDirs returns the remembered config folders of clients.
func SeenClientDirs(state string) ([]string, error) { return nil, nil }
