package storage

import "errors"

// keyError says of an error at which key, or prefix of keys, of the storage it happened. That is for logs: no client
// needs to know how objects are stored.
type keyError struct {
	Doing, Key string
	Err        error
}

// At returns a keyError: "doing key: err".
func At(doing, key string, err error) error { return &keyError{doing, key, err} }

// Error implements error.
func (e *keyError) Error() string { return e.Doing + " " + e.Key + ": " + e.Err.Error() }

// Unwrap is for package errors.
func (e *keyError) Unwrap() error { return e.Err }

// Cause returns what is wrong without any key: what the innermost keyError in err wraps, or err itself.
func Cause(err error) error {
	for at := (*keyError)(nil); errors.As(err, &at); {
		err = at.Err
	}
	return err
}
