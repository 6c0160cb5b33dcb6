package customresource

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/api/apiextensions/rules"
	"bonsai/api/apiextensions/structural"
)

// Type is one version of a CustomResourceDefinition. It does not change, and serves any number of goroutines.
type Type struct {
	schema *structural.Schema
	// status is the schema of the objects' status; nil when nothing is known of it.
	status *structural.Schema
	// hasStatus: the status is written by its subresource alone.
	hasStatus bool
	scale     *apiextensionsv1.CustomResourceSubresourceScale
	// rules are compiled when the first object is validated: reading needs none.
	rules func() *rules.Set
}

// compile compiles the schema of a version. It fails if the definition has no such version, or if the schema is
// invalid.
func compile(crd *apiextensionsv1.CustomResourceDefinition, version string) (*Type, error) {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == version
	})
	if i < 0 {
		return nil, fmt.Errorf("%s has no version %s", crd.Name, version)
	}
	v := &crd.Spec.Versions[i]
	var props *apiextensionsv1.JSONSchemaProps
	if v.Schema != nil {
		props = v.Schema.OpenAPIV3Schema
	}
	s, err := structural.Compile(props)
	if err != nil {
		return nil, fmt.Errorf("schema of version %s of %s: %w", version, crd.Name, err)
	}
	t := &Type{schema: s, status: s.Property("status"), rules: sync.OnceValue(func() *rules.Set {
		return rules.Compile(s)
	})}
	if sub := v.Subresources; sub != nil {
		t.hasStatus, t.scale = sub.Status != nil, sub.Scale
	}
	return t, nil
}

// Prune drops from u what the schema does not know, brings the metadata of embedded resources into its form, and drops
// nulls where none may stand. It returns the paths of unknown fields in the form of warnings for clients. It fails
// for metadata of a wrong type: such an object is not of this kind.
func (t *Type) Prune(u *unstructured.Unstructured) ([]string, error) {
	unknown := t.schema.Prune(u.Object)
	lost, errs := t.schema.CoerceEmbedded(u.Object)
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return append(unknown, lost...), nil
}

// Default fills in what u lacks and the schema has a default for. It is idempotent.
func (t *Type) Default(u *unstructured.Unstructured) { t.schema.SetDefaults(u.Object) }

// HasDefaults reports whether Default ever changes an object.
func (t *Type) HasDefaults() bool { return t.schema.HasDefaults() }

// PrepareCreate drops the status where only its subresource writes it.
func (t *Type) PrepareCreate(u *unstructured.Unstructured) {
	if t.hasStatus {
		delete(u.Object, "status")
	}
}

// PrepareUpdate keeps the status of old where only its subresource writes it.
func (t *Type) PrepareUpdate(u, old *unstructured.Unstructured) {
	if t.hasStatus {
		copyField(u, old, "status")
	}
}

// PrepareStatusUpdate restores everything from old except the status and two parts of the metadata: the resource
// version that is replaced, and the managed fields.
func (t *Type) PrepareStatusUpdate(u, old *unstructured.Unstructured) {
	for name := range u.Object {
		if name != "status" && name != "metadata" && old.Object[name] == nil {
			delete(u.Object, name)
		}
	}
	for name := range old.Object {
		if name != "status" && name != "metadata" {
			copyField(u, old, name)
		}
	}
	version, managed := u.GetResourceVersion(), u.GetManagedFields()
	copyField(u, old, "metadata")
	u.SetResourceVersion(version)
	u.SetManagedFields(managed)
}

// copyField gives u a copy of what old has in a field.
func copyField(u, old *unstructured.Unstructured, name string) {
	if v, ok := old.Object[name]; ok {
		u.Object[name] = copyOf(v)
	} else {
		delete(u.Object, name)
	}
}

// SpecChanged reports whether metadata.generation moves: by all but metadata, and the status if its subresource writes
// it.
func (t *Type) SpecChanged(u, old *unstructured.Unstructured) bool {
	counts := func(name string) bool { return name != "metadata" && !(t.hasStatus && name == "status") }
	for name, v := range u.Object {
		was, ok := old.Object[name]
		if counts(name) && (!ok || !reflect.DeepEqual(v, was)) {
			return true
		}
	}
	for name := range old.Object {
		if _, ok := u.Object[name]; counts(name) && !ok {
			return true
		}
	}
	return false
}
