package customresource

import (
	"fmt"
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"bonsai/api/apiextensions/customresource"
	"bonsai/api/resources"
)

// ending is resources.Row.Ending of a definition that is being deleted.
const ending = "custom resource definition is terminating"

// served is a definition that is served: its row, and what its versions have made of their schemas.
type served struct {
	of   *definition
	row  *resources.Row
	lazy map[string]*customresource.Lazy // by version
}

// sweep lets go of what nobody has asked for since the last sweep.
func (s *served) sweep() {
	for _, l := range s.lazy {
		l.Sweep()
	}
}

// newServed makes the row of a definition, in the versions that are shown; nil if there are none.
func newServed(d *definition, c converter, shown func(*v1.CustomResourceDefinitionVersion) bool) *served {
	crd := d.crd
	s := &served{of: d, lazy: map[string]*customresource.Lazy{}}
	names := &crd.Status.AcceptedNames
	row := &resources.Row{
		Resource: names.Plural, Singular: names.Singular, ListKind: names.ListKind, ShortNames: names.ShortNames,
		Categories: names.Categories,
		Namespaced: crd.Spec.Scope == v1.NamespaceScoped, StoragePath: crd.Spec.Group + "/" + names.Plural,
		PlainFinalizers: true,
		New:             func() runtime.Object { return &unstructured.Unstructured{Object: map[string]any{}} },
	}
	if d.terminating() {
		row.Ending = ending
	}
	var hub *v1.CustomResourceDefinitionVersion
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		s.lazy[v.Name] = d.typeOf(v.Name)
		if v.Storage {
			hub = v
		}
	}
	if hub == nil {
		return nil
	}
	row.GVK = schema.GroupVersionKind{Group: crd.Spec.Group, Version: hub.Name, Kind: names.Kind}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if shown(v) {
			row.Versions = append(row.Versions, s.version(v, row.GVK.GroupKind().WithVersion(v.Name), row, c))
		}
	}
	if len(row.Versions) == 0 {
		return nil
	}
	slices.SortStableFunc(row.Versions, func(a, b resources.Version) int {
		return version.CompareKubeAwareVersionStrings(b.Name, a.Name)
	})
	stored := s.lazy[hub.Name]
	row.Decoded = func(obj runtime.Object) {
		if l := s.lazy[obj.GetObjectKind().GroupVersionKind().Version]; l != nil {
			fit(l, obj)
		}
	}
	row.Upgrade = c.upgrade(row.GVK)
	row.Strategy = strategy(c.ctx, stored)
	row.Fields, row.FieldNames = selectable(hub, crd.Spec.Versions...)
	for _, name := range []string{"status", "scale"} {
		if !slices.ContainsFunc(row.Versions, func(v resources.Version) bool {
			return slices.Contains(v.Subresources, name)
		}) {
			continue
		}
		if name == "status" {
			row.Subresources = append(row.Subresources, resources.Status(statusStrategy(c.ctx, stored)))
		} else {
			row.Subresources = append(row.Subresources, resources.Scale())
		}
	}
	s.row = row
	return s
}

// version is one of the versions in which the objects are served. As upstream's, they are read as the schema
// of the version that they are stored in says; its own says what clients may write.
func (s *served) version(v *v1.CustomResourceDefinitionVersion, gvk schema.GroupVersionKind, row *resources.Row,
	c converter) resources.Version {
	lazy := s.lazy[v.Name]
	out := resources.Version{Name: v.Name, New: row.New, SchemaMark: s.of.schemas[v.Name],
		Deprecated: deprecation(v, s.of.crd.Spec.Versions, gvk), Subresources: []string{}}
	out.Prune = func(obj runtime.Object) ([]string, error) {
		t, err := lazy.Get()
		if err != nil {
			return nil, err
		}
		return t.Prune(obj.(*unstructured.Unstructured))
	}
	if v.Subresources != nil && v.Subresources.Status != nil {
		out.Subresources = append(out.Subresources, "status")
	}
	if v.Subresources != nil && v.Subresources.Scale != nil {
		out.Subresources = append(out.Subresources, "scale")
	}
	name, load := v.Name, s.of.load
	out.Schema = func() (*spec.Schema, error) {
		crd, err := load()
		if err != nil {
			return nil, err
		}
		return customresource.OpenAPI(crd, name)
	}
	out.Columns, out.Cells = columns(v)
	if gvk == row.GVK {
		return out
	}
	out.Default = func(obj runtime.Object) { complete(lazy, obj) }
	out.ToHub, out.FromHub, out.FromHubAll = c.to(row.GVK, nil), c.to(gvk, lazy), c.allTo(gvk, lazy)
	out.Validate = func(subresource string, obj, old runtime.Object) (field.ErrorList, []string) {
		return validate(c.ctx, lazy, subresource, obj, old)
	}
	out.FieldNames = fieldNames(v)
	if out.Remote = c.hook != nil; out.Remote {
		out.Fields, _ = selectable(v)
	}
	return out
}

// deprecation is the warning that requests for a version, one of all, are answered with: by default it names the newest
// version that is to be used instead.
func deprecation(v *v1.CustomResourceDefinitionVersion, all []v1.CustomResourceDefinitionVersion,
	gvk schema.GroupVersionKind) string {
	switch {
	case !v.Deprecated:
		return ""
	case v.DeprecationWarning != nil:
		return *v.DeprecationWarning
	}
	text := fmt.Sprintf("%s %s is deprecated", gvk.GroupVersion(), gvk.Kind)
	newest := v.Name
	for i := range all {
		if o := &all[i]; o.Served && !o.Deprecated && version.CompareKubeAwareVersionStrings(o.Name, newest) > 0 {
			newest = o.Name
		}
	}
	if newest == v.Name {
		return text
	}
	return fmt.Sprintf("%s; use %s %s", text, schema.GroupVersion{Group: gvk.Group, Version: newest}, gvk.Kind)
}
