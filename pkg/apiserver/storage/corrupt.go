package storage

import (
	"errors"
	"fmt"
)

// ErrReadable: Discard was asked to remove a value that can be read.
var ErrReadable = errors.New("storage: the value can be read")

// CorruptError is the error of a stored value that cannot be read: nothing here decrypts it, or it is no object.
type CorruptError struct {
	// Key is the value's place in the storage, such as "/registry/secrets/default/a".
	Key string
	// Revision is that of a value that is no object; 0 of one that cannot be decrypted.
	Revision int64
	// Err says why. It has no part of the value in it.
	Err error
}

// Error implements error, in Kubernetes' words.
func (e *CorruptError) Error() string {
	if e.Revision == 0 {
		return fmt.Sprintf("data from the storage is not transformable revision=0: %v", e.Err)
	}
	return fmt.Sprintf("object not decodable revision=%d: %v", e.Revision, e.Err)
}

// Unwrap is for package errors.
func (e *CorruptError) Unwrap() error { return e.Err }

// Unreadable is the error of a value whose facts cannot be read, because of err or because nothing decrypts it here.
func Unreadable(key string, value []byte, revision int64, err error) *CorruptError {
	if Encrypted(value) {
		return &CorruptError{Key: key, Err: ErrEncrypted}
	}
	return &CorruptError{Key: key, Revision: revision, Err: err}
}

// maxCorrupt bounds the values that the error of a list names.
const maxCorrupt = 100

// CorruptListError is the error of a list that came upon values that cannot be read. It has one or more.
type CorruptListError struct {
	Values []*CorruptError
	// Truncated: there may be more of them.
	Truncated bool
}

// Error implements error.
func (e *CorruptListError) Error() string {
	return fmt.Sprintf("%d values cannot be read, the first under %s: %v", len(e.Values), e.Values[0].Key, e.Values[0])
}

// Unwrap is for package errors.
func (e *CorruptListError) Unwrap() error { return e.Values[0] }

// Corrupted gathers the values of a list that cannot be read. The zero value has none.
type Corrupted struct{ list CorruptListError }

// Add notes err, and reports whether the list may go on to find more of them. Only a CorruptError lets it.
func (c *Corrupted) Add(err error) bool {
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) {
		return false
	}
	if len(c.list.Values) == maxCorrupt {
		c.list.Truncated = true
		return false
	}
	c.list.Values = append(c.list.Values, corrupt)
	return true
}

// Err is the error of the list that ended with err, nil for one that came to its end: the values that were noted, or
// err if it is another than theirs.
func (c *Corrupted) Err(err error) error {
	var corrupt *CorruptError
	if len(c.list.Values) == 0 || err != nil && !errors.As(err, &corrupt) {
		return err
	}
	return &c.list
}
