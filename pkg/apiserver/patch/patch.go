// Package patch applies the patch formats of the API to an object's JSON: JSON patch (RFC 6902), merge patch (RFC 7386) and
// Kubernetes' strategic merge patch, which merges lists by the keys that the Go types' tags name.
package patch

import (
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// Errors that callers tell apart; every other error of a Func means that the patch is malformed (HTTP 400).
var (
	// ErrUnsupported: no patch type of this server (HTTP 415).
	ErrUnsupported = errors.New("patch type is not supported")
	// ErrNotApplicable: the patch is well-formed but does not fit the object: a failed test, a missing path (HTTP 422).
	ErrNotApplicable = errors.New("patch does not apply")
	// ErrTooLarge: the patch has too many operations (HTTP 413).
	ErrTooLarge = errors.New("the allowed maximum operations in a JSON patch is 10000")
)

// maxOperations bounds a JSON patch; maxCopied bounds what its copy operations may add to a document, in bytes.
const (
	maxOperations = 10000
	maxCopied     = 3 << 20
)

// Func returns current changed by patch; it keeps neither.
type Func func(current, patch []byte) ([]byte, error)

// For returns how to apply a patch of type t to objects like sample (its Go type has the strategic merge tags).
func For(t types.PatchType, sample any) (Func, error) {
	switch t {
	case types.JSONPatchType:
		return applyJSON, nil
	case types.MergePatchType:
		return applyMerge, nil
	case types.StrategicMergePatchType:
		return strategic(sample)
	}
	return nil, fmt.Errorf("%w: %s", ErrUnsupported, t)
}

func applyJSON(current, patch []byte) ([]byte, error) {
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, fmt.Errorf("error decoding patch: %w", err)
	}
	if len(decoded) > maxOperations {
		return nil, fmt.Errorf("%w, got %d", ErrTooLarge, len(decoded))
	}
	options := jsonpatch.NewApplyOptions()
	options.AccumulatedCopySizeLimit = maxCopied
	out, err := decoded.ApplyWithOptions(current, options)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotApplicable, err)
	}
	return out, nil
}

func applyMerge(current, patch []byte) ([]byte, error) {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(patch, &doc); err != nil {
		return nil, fmt.Errorf("error decoding patch: %w", err)
	}
	return jsonpatch.MergePatch(current, patch)
}

func strategic(sample any) (Func, error) {
	schema, err := strategicpatch.NewPatchMetaFromStruct(sample)
	if err != nil {
		return nil, fmt.Errorf("strategic merge patch of %T: %w", sample, err)
	}
	return func(current, patch []byte) ([]byte, error) {
		var doc map[string]any
		if err := json.Unmarshal(patch, &doc); err != nil {
			return nil, err
		}
		out, err := strategicpatch.StrategicMergePatchUsingLookupPatchMeta(current, patch, schema)
		if errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList) || errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys) ||
			errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList) || errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat) {
			return nil, err
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotApplicable, err)
		}
		return out, nil
	}, nil
}
