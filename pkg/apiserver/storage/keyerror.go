package storage

import "errors"

// KeyError says of an error at which key, or prefix of keys, of the storage it happened. That is for logs: no client
// needs to know how objects are stored.
type KeyError struct {
	Doing, Key string
	Err        error
}

// At returns a KeyError: "doing key: err".
func At(doing, key string, err error) error { return &KeyError{doing, key, err} }

// Error implements error.
func (e *KeyError) Error() string { return e.Doing + " " + e.Key + ": " + e.Err.Error() }

// Unwrap is for package errors.
func (e *KeyError) Unwrap() error { return e.Err }

// Cause returns what is wrong without any key: what the innermost KeyError in err wraps, or err itself.
func Cause(err error) error {
	for at := (*KeyError)(nil); errors.As(err, &at); {
		err = at.Err
	}
	return err
}
