// Package patch applies the patch formats of the API to an object's JSON: JSON patch (RFC 6902), merge patch (RFC 7386)
// and Kubernetes' strategic merge patch, which merges lists by the keys that the Go types' tags name.
package patch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	sigsjson "sigs.k8s.io/json"
)

// Errors that callers tell apart; every other error of an Applier means that the patch is malformed (HTTP 400).
var (
	// errUnsupported: no patch type of this server (HTTP 415).
	errUnsupported = errors.New("patch type is not supported")
	// ErrNotApplicable: the patch is well-formed but does not fit the object: a failed test, a missing path (HTTP 422).
	ErrNotApplicable = errors.New("patch does not apply")
	// ErrDirective: a strategic merge patch orders what cannot be done: an unknown $patch, a list item without its
	// merge key (HTTP 500, with the cause as message, as Kubernetes answers).
	ErrDirective = errors.New("strategic merge patch cannot be merged")
	// ErrTooLarge: the patch has too many operations (HTTP 413).
	ErrTooLarge = errors.New("The allowed maximum operations in a JSON patch is 10000")
	// ErrLongList: a list of a strategic merge patch is too long (HTTP 413).
	ErrLongList = errors.New("The allowed maximum items in a list of a strategic merge patch is 5000")
)

// maxOperations bounds a JSON patch; maxCopied bounds what its copy operations may add to a document, in bytes. An
// operation may cost as much as the whole document: after each atOnce of them it is seen whether anybody still waits
// for the answer, and whether the document is longer than maxPatched bytes by now. maxItems bounds the lists of a
// strategic merge patch: merging by keys compares each item with each of the object's.
const (
	maxOperations = 10000
	atOnce        = 100
	maxCopied     = 3 << 20
	maxPatched    = 6 << 20
	maxItems      = 5000
)

// limitCopies sets the bound of copy operations, which the library only has for the whole process.
var limitCopies = sync.OnceFunc(func() { jsonpatch.AccumulatedCopySizeLimit = maxCopied })

// Applier is one patch that has been read.
type Applier struct {
	// Duplicates are the fields that the patch names twice; the last one counts.
	Duplicates []error
	// Shown is how error messages show what cannot be read as an object: the patched document of a JSON or merge patch,
	// the patch itself of a strategic one.
	Shown func(patched []byte) string
	// Empty tells that a JSON patch has no operation.
	Empty bool

	apply func(ctx context.Context, current []byte) ([]byte, error)
	merge changes // of a merge patch
}

// Spliced is To of a merge patch on compact JSON, at once: the library takes the whole document apart and puts it
// together again. The fields come in another order, which errors would show. ok is false for other patches, and what
// takes the library to do.
func (a *Applier) Spliced(current []byte) (patched []byte, ok bool) {
	if a.merge == nil {
		return nil, false
	}
	return a.merge.splice(make([]byte, 0, len(current)+512), current)
}

// Cause is what an error that is an ErrNotApplicable says without that.
func Cause(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && errors.Is(err, ErrNotApplicable) {
		all := joined.Unwrap()
		return all[len(all)-1]
	}
	return err
}

// To returns current changed by the patch; it does not keep current. The end of ctx ends the work with the error of
// ctx.
func (a *Applier) To(ctx context.Context, current []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return a.apply(ctx, current)
}

// Read reads a patch of type t for objects like sample (its Go type has the strategic merge tags).
func Read(t types.PatchType, patch []byte, sample any) (*Applier, error) {
	switch t {
	case types.JSONPatchType:
		return readJSON(patch)
	case types.MergePatchType:
		return readMerge(patch)
	case types.StrategicMergePatchType:
		return readStrategic(patch, sample)
	}
	return nil, fmt.Errorf("%w: %s", errUnsupported, t)
}

// operation is what is looked at of a JSON patch's operations to find fields that are given twice.
type operation struct {
	Op    string `json:"op"`
	From  string `json:"from"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func readJSON(patch []byte) (*Applier, error) {
	limitCopies()
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, fmt.Errorf("error decoding patch: %w", err)
	}
	if len(decoded) > maxOperations {
		return nil, fmt.Errorf("%w, got %d", ErrTooLarge, len(decoded))
	}
	a := &Applier{Shown: patchedDocument, Empty: len(decoded) == 0,
		apply: func(ctx context.Context, current []byte) ([]byte, error) {
			return applyOperations(ctx, decoded, current)
		}}
	var operations []operation
	for _, d := range duplicates(patch, &operations) {
		a.Duplicates = append(a.Duplicates, fmt.Errorf("json patch %w", d))
	}
	return a, nil
}

func applyOperations(ctx context.Context, all jsonpatch.Patch, doc []byte) ([]byte, error) {
	if len(all) == 0 {
		return doc, nil
	}
	for some := range slices.Chunk(all, atOnce) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out, err := guarded(func() ([]byte, error) { return some.Apply(doc) })
		if err == nil && len(out) > maxPatched {
			err = fmt.Errorf("the patched document is longer than %d bytes", maxPatched)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotApplicable, err)
		}
		doc = out
	}
	return doc, nil
}

func readMerge(patch []byte) (*Applier, error) {
	var doc map[string]any
	if err := json.Unmarshal(patch, &doc); err != nil {
		return nil, fmt.Errorf("error decoding patch: %w", err)
	}
	if doc == nil {
		return nil, errors.New("Invalid JSON Patch")
	}
	merge, err := readChanges(patch)
	if err != nil {
		return nil, err
	}
	return &Applier{merge: merge, Duplicates: duplicates(patch, &map[string]any{}), Shown: patchedDocument,
		apply: func(_ context.Context, current []byte) ([]byte, error) {
			return guarded(func() ([]byte, error) { return jsonpatch.MergePatch(current, patch) })
		}}, nil
}

func patchedDocument(patched []byte) string { return string(patched) }

// duplicates are the fields that doc names twice.
func duplicates(doc []byte, into any) []error {
	strict, err := sigsjson.UnmarshalStrict(doc, into, sigsjson.DisallowDuplicateFields)
	if err != nil {
		return nil // the reader has its own message for that
	}
	return strict
}

func readStrategic(patch []byte, sample any) (*Applier, error) {
	schema, err := strategicpatch.NewPatchMetaFromStruct(sample)
	if err != nil {
		return nil, fmt.Errorf("strategic merge patch of %T: %w", sample, err)
	}
	var doc map[string]any
	if err := json.Unmarshal(patch, &doc); err != nil {
		return nil, err
	}
	if longList(doc) {
		return nil, ErrLongList
	}
	shown := func([]byte) string { return fmt.Sprint(doc) }
	return &Applier{Duplicates: duplicates(patch, &map[string]any{}), Shown: shown,
		apply: func(_ context.Context, current []byte) ([]byte, error) {
			out, err := guarded(func() ([]byte, error) {
				return strategicpatch.StrategicMergePatchUsingLookupPatchMeta(current, patch, schema)
			})
			if errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList) ||
				errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys) ||
				errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList) ||
				errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat) {
				return nil, err
			}
			if err != nil {
				return nil, &directiveError{err}
			}
			return out, nil
		}}, nil
}

// longList reports whether a list anywhere in v has more than maxItems.
func longList(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if longList(e) {
				return true
			}
		}
	case []any:
		return len(v) > maxItems || slices.ContainsFunc(v, longList)
	}
	return false
}

// guarded makes an error of a library's panic: they panic on some patches that only a tester sends, such as a JSON
// patch that tests the whole document against no value, or a strategic one with a list for a merge key.
func guarded(apply func() ([]byte, error)) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("unable to apply the patch: %v", p)
		}
	}()
	return apply()
}

// directiveError is an ErrDirective whose message is the library's alone: clients see it.
type directiveError struct{ cause error }

func (e *directiveError) Error() string        { return e.cause.Error() }
func (e *directiveError) Unwrap() error        { return e.cause }
func (e *directiveError) Is(target error) bool { return target == ErrDirective }
