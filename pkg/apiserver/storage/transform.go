package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// Transformer changes values on their way into the storage and back, as encryption at rest does. Its methods are safe
// for concurrent use. No error has any part of a value in it.
type Transformer interface {
	// Seal returns what the storage keeps of value under path, the value's place in etcd.
	Seal(ctx context.Context, path, value []byte) ([]byte, error)
	// Open returns the value of what the storage keeps under path, in memory of its own or in that of stored. stale
	// reports that Seal would use another key, or another way, than the one that stored was made by.
	Open(ctx context.Context, path, stored []byte) (value []byte, stale bool, err error)
	// AtHand reports whether Open can open stored without asking another process.
	AtHand(stored []byte) bool
}

// TransformError is the error of a value that a Transformer could not seal. Clients see it, as they do in
// Kubernetes.
type TransformError struct {
	Key string
	Err error
}

// Error implements error, in Kubernetes' words.
func (e *TransformError) Error() string {
	return fmt.Sprintf("unable to transform key %q: %v", e.Key, e.Err)
}

// Unwrap is for package errors.
func (e *TransformError) Unwrap() error { return e.Err }

// ErrSealed: an item is still as the storage keeps it, because it could not be opened.
var ErrSealed = errors.New("storage: the value could not be opened")

// ErrEncrypted is the error of an encrypted value that is read without the configuration for it, in Kubernetes' words.
var ErrEncrypted = errors.New("identity transformer tried to read encrypted data")

// encryptedPrefix is how all encrypted values begin.
const encryptedPrefix = "k8s:enc:"

// Encrypted reports whether stored is an encrypted value.
func Encrypted(stored []byte) bool { return bytes.HasPrefix(stored, []byte(encryptedPrefix)) }

// NewSealed returns an item that is not opened yet: its value is what the storage keeps. It has no facts.
func NewSealed(key string, stored []byte, revision int64) *Item {
	return &Item{Key: key, Revision: revision, own: stored, sealed: true}
}

// Sealed reports whether the item is not opened. No reader may be given such an item.
func (i *Item) Sealed() bool { return i.sealed }
