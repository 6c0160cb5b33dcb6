// Package registrytest has Stores that live in a map, for the tests of behaviours that use them.
package registrytest

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiserver/registry"
)

// Stores are stores by resource, as in "deployments.apps". They are for one goroutine.
type Stores map[string]*Store

var _ registry.Stores = Stores(nil)

// Store returns the store of gr, nil if the map has none.
func (s Stores) Store(gr schema.GroupResource) registry.Store {
	if st, ok := s[gr.String()]; ok {
		st.gr = gr
		return st
	}
	return nil
}

// Store keeps objects as they are: no admission, no strategy, no validation.
type Store struct {
	gr      schema.GroupResource
	Objects []runtime.Object
	// Subresources notes the subresource of each Update, Deleted the options of each Delete.
	Subresources []string
	Deleted      []*metav1.DeleteOptions
}

// Of returns a store of objs, each with a UID "uid-NAME" and resourceVersion 1 if it has none.
func Of(objs ...runtime.Object) *Store {
	for _, o := range objs {
		m := o.(metav1.Object)
		if m.GetUID() == "" {
			m.SetUID(types.UID("uid-" + m.GetName()))
		}
		if m.GetResourceVersion() == "" {
			m.SetResourceVersion("1")
		}
	}
	return &Store{Objects: objs}
}

func (s *Store) find(ns, name string) (int, error) {
	i := slices.IndexFunc(s.Objects, func(o runtime.Object) bool {
		m := o.(metav1.Object)
		return m.GetNamespace() == ns && m.GetName() == name
	})
	if i < 0 {
		return 0, apierrors.NewNotFound(s.gr, name)
	}
	return i, nil
}

// New returns nothing useful: behaviours do not ask for it.
func (s *Store) New() runtime.Object { return nil }

// Get returns a copy.
func (s *Store) Get(_ context.Context, ns, name string) (runtime.Object, error) {
	i, err := s.find(ns, name)
	if err != nil {
		return nil, err
	}
	return s.Objects[i].DeepCopyObject(), nil
}

// GetCached is Get.
func (s *Store) GetCached(ctx context.Context, ns, name string) (runtime.Object, error) {
	return s.Get(ctx, ns, name)
}

// List returns copies.
func (s *Store) List(_ context.Context, ns, selector string) ([]runtime.Object, error) {
	sel, err := labels.Parse(selector)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", s.gr, err)
	}
	var out []runtime.Object
	for _, o := range s.Objects {
		m := o.(metav1.Object)
		if (ns == "" || m.GetNamespace() == ns) && sel.Matches(labels.Set(m.GetLabels())) {
			out = append(out, o.DeepCopyObject())
		}
	}
	return out, nil
}

// Create adds obj.
func (s *Store) Create(_ context.Context, ns string, obj runtime.Object, _ *metav1.CreateOptions) (runtime.Object, error) {
	obj.(metav1.Object).SetNamespace(ns)
	s.Objects = append(s.Objects, Of(obj).Objects...)
	return obj.DeepCopyObject(), nil
}

// Update replaces the object by what change makes of a copy, unless it is a dry run.
func (s *Store) Update(_ context.Context, ns, name, subresource string, change func(runtime.Object) (runtime.Object, error), opts *metav1.UpdateOptions) (runtime.Object, error) {
	i, err := s.find(ns, name)
	if err != nil {
		return nil, err
	}
	obj, err := change(s.Objects[i].DeepCopyObject())
	if err != nil {
		return nil, err
	}
	if opts == nil || len(opts.DryRun) == 0 {
		rv, _ := strconv.Atoi(obj.(metav1.Object).GetResourceVersion())
		obj.(metav1.Object).SetResourceVersion(strconv.Itoa(rv + 1))
		s.Objects[i] = obj
		s.Subresources = append(s.Subresources, subresource)
	}
	return obj.DeepCopyObject(), nil
}

// Admitted returns s, which has no admission.
func (s *Store) Admitted() registry.Store { return s }

// Delete removes the object, unless it is a dry run.
func (s *Store) Delete(_ context.Context, ns, name string, opts *metav1.DeleteOptions) (runtime.Object, bool, error) {
	i, err := s.find(ns, name)
	if err != nil {
		return nil, false, err
	}
	obj := s.Objects[i]
	s.Deleted = append(s.Deleted, opts)
	if opts == nil || len(opts.DryRun) == 0 {
		s.Objects = slices.Delete(s.Objects, i, i+1)
	}
	return obj, true, nil
}
