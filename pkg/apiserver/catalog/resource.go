package catalog

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

// Entry is a resource to be served: its row and what answers for it.
type Entry struct {
	// Row is required, and is not changed any more.
	Row *resources.Row
	// Store answers for a stored resource. A view has none: it gets the one of the row behind it, under its own rules.
	Store *registry.Generic
	Answers
	// Handle makes what answers the requests of a route. Required.
	Handle func(*Route) (Handler, error)
}

// Answers are what answers for a resource beside its store.
type Answers struct {
	// Creater answers for a resource that is not stored (reviews, bindings).
	Creater registry.Creater
	// Lister answers for one that is observed (componentstatuses).
	Lister registry.Lister
	// Subresources answer for the subresources without a strategy in the row, by name.
	Subresources map[string]registry.Answerer
}

// Handler answers the requests of one route; info is what the request asks for.
type Handler interface {
	Serve(w http.ResponseWriter, r *http.Request, info *request.Info)
}

// Resource is a resource that is served, or was. It does not change.
type Resource struct {
	Entry
	routes []*Route
	subs   map[string]*Subresource
	ctx    context.Context
	end    context.CancelFunc
}

// Route is a resource in one of the versions it is served in.
type Route struct {
	*Resource
	// GVK is the kind as clients of this version know it.
	GVK     schema.GroupVersionKind
	Version resources.Version
	Handler Handler
}

// Subresource is a subresource of the row and what answers for it; the Answerer is zero where the store does.
type Subresource struct {
	*resources.Subresource
	Answerer registry.Answerer
}

// Routes are the resource in all versions that are served, preferred first. The slice is shared.
func (r *Resource) Routes() []*Route { return r.routes }

// Context ends when the resource is not served any more.
func (r *Resource) Context() context.Context { return r.ctx }

// Subresource returns the named one, nil if there is none.
func (r *Resource) Subresource(name string) *Subresource { return r.subs[name] }

// GVR is where clients find the route.
func (rt *Route) GVR() schema.GroupVersionResource {
	return rt.GVK.GroupVersion().WithResource(rt.Row.Resource)
}

// admit checks that e fits to what is there and makes a resource of it. The caller ends it if it is not served after
// all.
func (c *Catalog) admit(all []*Resource, e Entry) (*Resource, error) {
	if err := vacant(all, e.Row); err != nil {
		return nil, err
	}
	if err := e.Row.CheckVersions(); err != nil {
		return nil, err
	}
	r := &Resource{Entry: e, subs: make(map[string]*Subresource, len(e.Row.Subresources))}
	if e.Row.Stored != nil {
		behind := stored(all, e.Row)
		if behind == nil {
			return nil, fmt.Errorf("it is a view of %s, which is not served", e.Row.StoragePath)
		}
		r.Store = behind.Store.View(e.Row)
	}
	if err := r.answered(); err != nil {
		return nil, err
	}
	r.ctx, r.end = context.WithCancel(c.ctx)
	for _, v := range e.Row.ServedVersions() {
		rt := &Route{Resource: r, GVK: e.Row.GVK.GroupKind().WithVersion(v.Name), Version: v}
		if !e.Row.Dynamic() && c.cfg.Off(rt.GVR()) {
			continue
		}
		var err error
		if rt.Handler, err = e.Handle(rt); err != nil {
			r.end()
			return nil, err
		}
		r.routes = append(r.routes, rt)
	}
	return r, nil
}

// stored returns the resource whose objects a view shows.
func stored(all []*Resource, view *resources.Row) *Resource {
	for _, r := range all {
		if r.Store != nil && r.Row.Stored == nil && r.Row.StoragePath == view.StoragePath {
			return r
		}
	}
	return nil
}

// vacant refuses a name that is taken, and a place in storage that is, or that another resource's objects lie in.
func vacant(all []*Resource, row *resources.Row) error {
	for _, r := range all {
		if r.Row.GroupResource() == row.GroupResource() {
			return errors.New("the name is taken")
		}
		if row.NotStored || r.Row.NotStored || row.Stored != nil || r.Row.Stored != nil {
			continue
		}
		if within(row.StoragePath, r.Row.StoragePath) || within(r.Row.StoragePath, row.StoragePath) {
			return fmt.Errorf("its path %q in storage is taken by %s", row.StoragePath, r.Row.GroupResource())
		}
	}
	return nil
}

// within reports whether path is root or lies in it.
func within(path, root string) bool { return strings.HasPrefix(path+"/", root+"/") }

// answered checks that everything the row promises has exactly one answerer, and that nobody waits for requests that
// cannot come.
func (r *Resource) answered() error {
	switch {
	case r.Row.Observed && !r.Row.NotStored:
		return errors.New("it is stored, so it cannot be observed")
	case r.Row.Observed != (r.Lister != nil):
		return errors.New("what is observed, and only that, has a lister")
	case r.Row.Observed && r.Creater != nil:
		return errors.New("it is observed, but has a creater")
	case r.Row.NotStored && !r.Row.Observed && r.Creater == nil:
		return errors.New("it is not stored, and nobody answers its create")
	case r.Row.NotStored && r.Store != nil:
		return errors.New("it is not stored, but has a store")
	case !r.Row.NotStored && r.Store == nil:
		return errors.New("it is stored, and has no store")
	case !r.Row.NotStored && r.Creater != nil:
		return errors.New("its store answers, and so does a creater")
	}
	for i := range r.Row.Subresources {
		sub := &r.Row.Subresources[i]
		answerer, given := r.Subresources[sub.Name]
		r.subs[sub.Name] = &Subresource{Subresource: sub, Answerer: answerer}
		byStore := sub.Strategy != nil && r.Store != nil
		switch {
		case byStore && given:
			return fmt.Errorf("its store answers for the subresource %q, and so does another", sub.Name)
		case byStore:
		case !given:
			return fmt.Errorf("nobody answers for its subresource %q", sub.Name)
		default:
			if err := answerer.Check(); err != nil {
				return fmt.Errorf("its subresource %q: %w", sub.Name, err)
			}
		}
	}
	for name := range r.Subresources {
		if r.subs[name] == nil {
			return fmt.Errorf("there is an answerer for %q, which is no subresource of it", name)
		}
	}
	return nil
}
