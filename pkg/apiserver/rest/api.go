package rest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

// Resource is one served resource: its row and what answers for it.
type Resource struct {
	Row *resources.Row
	// Store answers for a stored resource. A row that is a view is given the store of the row behind it.
	Store *registry.Generic
	// Creater answers for a resource that is not stored (reviews, bindings).
	Creater registry.Creater
	// Subresources answer for the subresources without a strategy in the row, by name: each is a registry.Creater,
	// ReadWriter or Connecter.
	Subresources map[string]any
}

// Config is what the API is made of.
type Config struct {
	// Scheme knows all kinds of bodies.
	Scheme    *runtime.Scheme
	Resources []Resource
	// Admission is asked about subresources; the stores have their own. May be nil.
	Admission registry.Admitter
	// Hold is asked before an answer takes memory of its own: a table, an indented list, the buffers of a stream; what lies in
	// the caches anyway does not count. The answer releases it when it is written, or is refused with the error. Nil: no bound.
	Hold func(ctx context.Context, bytes int) (release func(), err error)
	// Authorizer is asked about what shows only while a request is served: a PUT that creates. Nil allows it to who may update.
	Authorizer authz.Authorizer
	// MinWatch is the least duration of a watch without timeoutSeconds; each gets up to twice as much. 0: 30 minutes.
	MinWatch time.Duration
	Log      *slog.Logger
	// Now is the clock of ages in tables; nil: time.Now.
	Now func() time.Time
}

// API answers resource requests, as its http.Handler; the request's Info must be in its context.
type API struct {
	Config
	resources map[schema.GroupVersionResource]*resource
}

// resource is a Resource with what its answers need, made once.
type resource struct {
	Resource
	full     *form
	metadata map[string]*form // by version of meta.k8s.io
	subs     map[string]*resources.Subresource
}

// New checks that every resource has an answerer and returns the API.
func New(cfg Config) (*API, error) {
	if cfg.Scheme == nil || cfg.Log == nil {
		return nil, fmt.Errorf("new API: a scheme and a logger are needed")
	}
	if cfg.MinWatch == 0 {
		cfg.MinWatch = 30 * time.Minute
	}
	if cfg.Hold == nil {
		cfg.Hold = func(context.Context, int) (func(), error) { return func() {}, nil }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	a := &API{Config: cfg, resources: make(map[schema.GroupVersionResource]*resource, len(cfg.Resources))}
	for _, r := range cfg.Resources {
		res, err := newResource(r)
		if err != nil {
			return nil, fmt.Errorf("new API: %w", err)
		}
		a.resources[r.Row.GVR()] = res
	}
	return a, nil
}

func newResource(r Resource) (*resource, error) {
	res := &resource{Resource: r, subs: make(map[string]*resources.Subresource, len(r.Row.Subresources))}
	for i := range r.Row.Subresources {
		sub := &r.Row.Subresources[i]
		res.subs[sub.Name] = sub
	}
	if r.Store != nil && r.Row.Stored != nil {
		res.Store = r.Store.View(r.Row)
	}
	switch {
	case r.Store != nil:
		codec := r.Store.Codec()
		res.full = fullForm(r.Row, codec)
		res.metadata = map[string]*form{"v1": metadataForm(codec, "v1"), "v1beta1": metadataForm(codec, "v1beta1")}
	case r.Creater == nil:
		return nil, fmt.Errorf("resource %s has neither a store nor a creater", r.Row.GroupResource())
	}
	return res, nil
}

// ServeHTTP answers one resource request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info := request.InfoFrom(r.Context())
	if info == nil || !info.IsResource {
		http.NotFound(w, r)
		return
	}
	res := a.resources[schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}]
	if res == nil || !hasPlace(res.Row, info) {
		a.notFound(w, r, info)
		return
	}
	if r.Method == http.MethodHead && info.Subresource != proxy {
		a.WriteError(w, r, ErrMethod())
		return
	}
	x := &exchange{API: a, w: w, r: r, info: info, res: res}
	if err := x.serve(); err != nil {
		a.WriteError(w, r, err)
	}
}

// notFound answers for a resource that is not served: with a Status in a group that is, else plainly.
func (a *API) notFound(w http.ResponseWriter, r *http.Request, info *request.Info) {
	for gvr := range a.resources {
		if gvr.Group == info.APIGroup {
			a.WriteError(w, r, errNoResource())
			return
		}
	}
	http.NotFound(w, r)
}

func errNoResource() error {
	return statusError(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
}

// watchTimeout is how long a watch without timeoutSeconds lasts: spread, so that clients do not all come back at once.
func (a *API) watchTimeout() time.Duration {
	return a.MinWatch + rand.N(a.MinWatch)
}

// Serves tells whether info asks for a resource and subresource that there is.
func (a *API) Serves(info *request.Info) bool {
	res := a.resources[schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}]
	return res != nil && (info.Subresource == "" || res.subs[info.Subresource] != nil)
}
