package resources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Version is one of the versions that a resource is served in. What is not set is as the row has it.
type Version struct {
	// Name is "v1beta1".
	Name string
	// New makes an empty object of this version; nil: of the stored kind.
	New func() runtime.Object
	// ToHub and FromHub convert an object of this version to the stored kind and from it, not a list; both nil for the
	// version that is stored. They are given the object for good: the result may share memory with it, or be it, and
	// has its kind set. One that asks others (a webhook) may fail; it ends with ctx.
	ToHub, FromHub func(ctx context.Context, obj runtime.Object) (runtime.Object, error)
	// Remote tells that another server converts (a webhook): what it makes is kept, as it is slow and may be out of
	// reach.
	Remote bool
	// FromHubAll is FromHub for a page of objects where that costs less than one by one; may be nil.
	FromHubAll func(ctx context.Context, objs []runtime.Object) ([]runtime.Object, error)
	// Schema, for a kind without a Go type (New makes a runtime.Unstructured), makes what its objects have beyond
	// apiVersion, kind and metadata, in OpenAPI v3; nil: nothing is known of them. SchemaMark is another one for every
	// other schema: who only asks whether it has changed need not have it made.
	Schema     func() (*spec.Schema, error)
	SchemaMark string
	// Validate, if not nil, checks what clients of this version write, on objects of this version. It replaces the
	// rules of the row's strategies, and the stored kind's defaults are then left out, too. It returns what
	// Strategy.ValidateUpdate returns; old is nil at a create.
	Validate func(subresource string, obj, old runtime.Object) (faults field.ErrorList, kept []string)
	// Prune, for such a kind, drops from an object what the schema does not know. It returns the dropped paths in their
	// order, as warnings show them (spec.x[0].y); nil: everything is kept. An error is why it is no object of the kind.
	Prune func(obj runtime.Object) ([]string, error)
	// Default fills in what clients of this version left out, before ToHub; it must be idempotent. The row's Strategy
	// fills in what the stored kind needs besides.
	Default func(obj runtime.Object)
	// Deprecated, if not empty, is the warning that every request for this version is answered with.
	Deprecated string
	// Subresources are those of the row's that this version has; nil: all.
	Subresources []string
	// FieldNames maps the names that clients of this version select by to those of the row's Fields; nil: they are the
	// row's.
	FieldNames map[string]string
	// Fields reads what clients of this version select by, of objects of this version, where it cannot be read of
	// stored ones (a webhook converts them); nil: the row's Fields tell it.
	Fields func(obj runtime.Object) fields.Set
	// Columns and Cells make the tables of this version, of objects of this version; a nil Cells: the row's do, of
	// stored ones.
	Columns []metav1.TableColumnDefinition
	Cells   func(obj runtime.Object, now time.Time) []any

	dynamic bool // what New makes has no Go type
}

// Dynamic tells that the objects of this version have no Go type. v must be one of Row.ServedVersions, which asked New:
// each request asks this, and an object is not made for nothing.
func (v *Version) Dynamic() bool { return v.dynamic }

// Has reports whether the version has a subresource of the row's.
func (v *Version) Has(subresource string) bool {
	return v.Subresources == nil || slices.Contains(v.Subresources, subresource)
}

// ServedVersions are all versions that clients can ask for, preferred first, each with its New.
func (r *Row) ServedVersions() []Version {
	out := slices.Clone(r.Versions)
	if len(out) == 0 {
		out = []Version{{Name: r.GVK.Version}}
	}
	for i := range out {
		if out[i].New == nil {
			out[i].New = r.New
		}
		_, out[i].dynamic = out[i].New().(runtime.Unstructured)
	}
	return out
}

// CheckVersions tells what is wrong with the row's versions.
func (r *Row) CheckVersions() error {
	names := map[string]bool{}
	dynamic := r.Dynamic()
	for _, v := range r.ServedVersions() {
		if v.Dynamic() != dynamic {
			return fmt.Errorf("version %s and the stored one are not both of Go types or both of none", v.Name)
		}
		hub := v.Name == r.GVK.Version && r.Stored == nil
		switch {
		case v.Name == "":
			return errors.New("a version has no name")
		case names[v.Name]:
			return fmt.Errorf("version %s is there twice", v.Name)
		case (v.ToHub == nil) != (v.FromHub == nil):
			return fmt.Errorf("version %s converts in one direction only", v.Name)
		case hub && v.ToHub != nil:
			return fmt.Errorf("version %s is the stored one and converts", v.Name)
		case !hub && !r.NotStored && v.ToHub == nil:
			return fmt.Errorf("version %s is not the stored one and does not convert", v.Name)
		}
		names[v.Name] = true
	}
	return nil
}

// Convert adapts a conversion that cannot fail: the ToHub or FromHub of a Version.
func Convert[From, To runtime.Object](convert func(From) To) func(context.Context, runtime.Object) (runtime.Object,
	error) {
	return func(_ context.Context, obj runtime.Object) (runtime.Object, error) { return convert(obj.(From)), nil }
}

// InternalPackage is what upstream calls the package of a group's internal types, which errors name.
func InternalPackage(group string) string {
	name, _, _ := strings.Cut(group, ".")
	return cmp.Or(name, "core")
}
