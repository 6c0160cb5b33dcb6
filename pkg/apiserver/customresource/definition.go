package customresource

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/apiextensions"
	"bonsai/api/apiextensions/customresource"
)

// definition is a CustomResourceDefinition as it is kept: without its schemas, which are decoded again from its stored
// bytes when somebody uses its objects. It is a runtime.Object only to be what a follower hands on, and is not changed.
type definition struct {
	crd *v1.CustomResourceDefinition // Schema and managedFields are nil
	// nonStructural is what NonStructural says of the whole definition.
	nonStructural string
	// mark is another one for everything that changes how the objects are served.
	mark string
	// schemas are the marks of what is published of the versions' objects, by version: their schemas and selectable
	// fields.
	schemas map[string]string
	load    func() (*v1.CustomResourceDefinition, error)
}

// newDefinition keeps crd, which it takes apart; load makes it again.
func newDefinition(crd *v1.CustomResourceDefinition, load func() (*v1.CustomResourceDefinition, error)) (*definition,
	error) {
	d := &definition{crd: crd, nonStructural: apiextensions.NonStructural(crd), schemas: map[string]string{},
		load: load}
	spec, err := crd.Spec.Marshal()
	if err != nil {
		return nil, fmt.Errorf("definition %s: %w", crd.Name, err)
	}
	names, err := crd.Status.AcceptedNames.Marshal()
	if err != nil {
		return nil, fmt.Errorf("definition %s: %w", crd.Name, err)
	}
	d.mark = markOf([]byte(crd.UID), spec, names)
	crd.ManagedFields = nil
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if v.Schema != nil {
			b, err := v.Schema.Marshal()
			if err != nil {
				return nil, fmt.Errorf("definition %s: %w", crd.Name, err)
			}
			d.schemas[v.Name] = markOf(b, fmt.Append(nil, v.SelectableFields))
			v.Schema = nil
		}
	}
	return d, nil
}

func markOf(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d ", len(p))
		h.Write(p)
	}
	return base64.RawStdEncoding.EncodeToString(h.Sum(nil)[:18])
}

// group, resource and terminating are what everything here asks.
func (d *definition) group() string { return d.crd.Spec.Group }

func (d *definition) resource() schema.GroupResource {
	return schema.GroupResource{Group: d.crd.Spec.Group, Resource: d.crd.Spec.Names.Plural}
}

func (d *definition) terminating() bool { return d.crd.DeletionTimestamp != nil }

// typeOf returns what a version says of its objects, made when it is first asked for.
func (d *definition) typeOf(version string) *customresource.Lazy {
	return customresource.NewLazy(d.load, version)
}

// GetObjectKind implements runtime.Object.
func (d *definition) GetObjectKind() schema.ObjectKind { return d.crd.GetObjectKind() }

// DeepCopyObject implements runtime.Object.
func (d *definition) DeepCopyObject() runtime.Object { return d }
