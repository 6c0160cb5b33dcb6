package write

import (
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// Typed returns an empty object of gvk, nil if the kind has no Go type: its lists can then only be replaced as a whole.
func Typed(gvk schema.GroupVersionKind) runtime.Object {
	obj, err := scheme.Scheme.New(gvk)
	if err != nil {
		return nil
	}
	return obj
}

// keepIdentity are the fields that a patch must not change.
func keepIdentity() []mergepatch.PreconditionFunc {
	return []mergepatch.PreconditionFunc{
		mergepatch.RequireKeyUnchanged("apiVersion"), mergepatch.RequireKeyUnchanged("kind"),
		mergepatch.RequireMetadataKeyUnchanged("name"),
	}
}

// Diff is the patch from before to after, both JSON: a strategic merge patch where gvk's type is known.
func Diff(gvk schema.GroupVersionKind, before, after []byte) ([]byte, types.PatchType, error) {
	if obj := Typed(gvk); obj != nil {
		p, err := strategicpatch.CreateTwoWayMergePatch(before, after, obj, keepIdentity()...)
		return p, types.StrategicMergePatchType, err
	}
	p, err := jsonpatch.CreateMergePatch(before, after)
	return p, types.MergePatchType, err
}

// Diff3 is the patch that brings current to modified: what original had and modified has no more is removed, what only
// current has stays.
func Diff3(gvk schema.GroupVersionKind, original, modified, current []byte, overwrite bool) ([]byte, types.PatchType,
	error) {
	if obj := Typed(gvk); obj != nil {
		m, err := strategicpatch.NewPatchMetaFromStruct(obj)
		if err != nil {
			return nil, "", fmt.Errorf("creating patch metadata: %w", err)
		}
		p, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, m, overwrite, keepIdentity()...)
		return p, types.StrategicMergePatchType, err
	}
	p, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current, keepIdentity()...)
	return p, types.MergePatchType, err
}
