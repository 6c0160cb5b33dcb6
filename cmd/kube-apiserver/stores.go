package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/follow"
)

// stores are the generic stores of all stored resources.
type stores struct {
	byResource map[schema.GroupResource]*registry.Generic
	source     follow.Source
}

var _ registry.Stores = (*stores)(nil)

// newStores makes a store per stored row. A view shares the store of the row behind it.
func newStores(all []resources.Row, backend storage.Interface, facts *storage.FactsTable, admit registry.Admitter) (*stores, error) {
	s := &stores{byResource: map[schema.GroupResource]*registry.Generic{}, source: backend}
	byPath := map[string]*registry.Generic{}
	for i := range all {
		row := &all[i]
		if row.NotStored {
			continue
		}
		if row.Stored != nil {
			if byPath[row.StoragePath] == nil {
				return nil, fmt.Errorf("resource %s is a view of %s, which comes later or is missing", row.GroupResource(), row.StoragePath)
			}
			s.byResource[row.GroupResource()] = byPath[row.StoragePath]
			continue
		}
		g, err := registry.NewGeneric(registry.Config{Row: row, Storage: backend, Admission: admit})
		if err != nil {
			return nil, err
		}
		facts.Register(registry.Prefix(row), g.Codec().FactsOf)
		byPath[row.StoragePath], s.byResource[row.GroupResource()] = g, g
	}
	return s, nil
}

// Store implements registry.Stores.
func (s *stores) Store(gr schema.GroupResource) registry.Store {
	if g := s.byResource[gr]; g != nil {
		return g
	}
	return nil
}

// of returns the store of a resource that is known to be served.
func (s *stores) of(group, resource string) *registry.Generic {
	return s.byResource[schema.GroupResource{Group: group, Resource: resource}]
}

// follow says where the objects of a resource are, for readers inside the server.
func (s *stores) follow(group, resource string) follow.Resource {
	g := s.of(group, resource)
	return follow.Resource{Source: s.source, Prefix: registry.Prefix(g.Row), Decode: g.Decode}
}

// lateAdmitter lets stores be made before the admission plug-ins that read them.
type lateAdmitter struct{ registry.Admitter }

func (l *lateAdmitter) Admit(ctx context.Context, a *admission.Attributes) error {
	if l.Admitter == nil {
		return nil
	}
	return l.Admitter.Admit(ctx, a)
}

func (l *lateAdmitter) Validate(ctx context.Context, a *admission.Attributes) error {
	if l.Admitter == nil {
		return nil
	}
	return l.Admitter.Validate(ctx, a)
}
