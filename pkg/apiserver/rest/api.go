package rest

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/docbounds"
	"bonsai/pkg/trace"
)

// Config is what the API is made of.
type Config struct {
	// Scheme knows all kinds of bodies.
	Scheme *runtime.Scheme
	// Admission is asked about subresources; the stores have their own. May be nil.
	Admission registry.Admitter
	// Fields keeps the managedFields of what no store keeps, as the stores do of theirs, and applies to it. Nil: there
	// are none.
	Fields registry.FieldManager
	// Hold is asked before an answer takes memory of its own: a table, an indented list, the buffers of a stream; what
	// lies in the caches anyway does not count. The answer releases it when it is written, or is refused with the
	// error. Nil: no bound.
	Hold func(w http.ResponseWriter, r *http.Request, bytes int) (release func(), err error)
	// Authorizer is asked about what shows only while a request is served: a PUT that creates. Nil allows it to who may
	// update.
	Authorizer authz.Authorizer
	// MinWatch is the least duration of a watch without timeoutSeconds; each gets up to twice as much. 0: 30 minutes.
	MinWatch time.Duration
	// MaxValues bounds the values in the body of a request: objects, lists and scalars. 0: DefaultValues.
	MaxValues int
	// Tracer records the making of objects; nil: nothing is recorded.
	Tracer *trace.Tracer
	// Metrics takes what watches send; nil: nobody sees it.
	Metrics prometheus.Registerer
	Log     *slog.Logger
	// Now is the clock of ages in tables; nil: time.Now.
	Now func() time.Time
}

// API answers resource requests, as its http.Handler; the request's Info, with what is served, must be in its context.
type API struct {
	Config
	messages docbounds.Messages
	watches  *watchMetrics
}

// resource is a route with what its answers need, made once.
type resource struct {
	*catalog.Route
	api      *API
	codec    registry.Codec             // of its items; nil if it has none: it is neither stored nor observed
	full     *representation            // nil if there are no items
	media    []string                   // of whole objects, as the codec has them
	plain    map[string]*resources.Row  // of the kinds that no store keeps, by subresource
	metadata map[string]*representation // by version of meta.k8s.io
	tables   map[tableRows]*shared
}

// New returns the API.
func New(cfg Config) (*API, error) {
	if cfg.Scheme == nil || cfg.Log == nil {
		return nil, fmt.Errorf("new API: a scheme and a logger are needed")
	}
	if cfg.MinWatch == 0 {
		cfg.MinWatch = 30 * time.Minute
	}
	if cfg.Hold == nil {
		cfg.Hold = func(http.ResponseWriter, *http.Request, int) (func(), error) { return func() {}, nil }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &API{Config: cfg, watches: newWatchMetrics(cfg.Metrics)}, nil
}

// Handler is the catalog.Entry.Handle of every resource that the API answers for.
//
// It runs when the catalog adds or replaces a resource, and not for each request: representations and what watchers
// share must be the same for all requests of a route.
func (a *API) Handler(rt *catalog.Route) (catalog.Handler, error) {
	res := &resource{Route: rt, api: a, plain: map[string]*resources.Row{"": rt.Row}}
	for i := range rt.Row.Subresources {
		sub := rt.Subresource(rt.Row.Subresources[i].Name)
		switch answers := sub.Answerer; {
		case sub.GVK == nil:
		case answers.ReadWriter != nil:
			res.plain[sub.Name] = &resources.Row{GVK: *sub.GVK, Resource: rt.Row.Resource, New: answers.ReadWriter.New}
		case answers.Creater != nil:
			res.plain[sub.Name] = &resources.Row{GVK: *sub.GVK, Resource: rt.Row.Resource, New: answers.Creater.New}
		}
	}
	switch {
	case rt.Store != nil:
		res.codec = rt.Store.Codec()
	case rt.Row.Observed:
		res.codec = registry.NewCodec(rt.Row)
	}
	if res.codec != nil {
		res.full = fullRepresentation(rt, res.codec)
		res.media = res.full.codec.MediaTypes()
		res.metadata = map[string]*representation{"v1": metadataRepresentation(res.codec, "v1"),
			"v1beta1": metadataRepresentation(res.codec, "v1beta1")}
		res.tables = everyTableRows()
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
	rt := routeOf(info)
	// Authorization has passed by now, so a path of another shape must not reach an object (place.go).
	if rt == nil || !hasPlace(rt.Row, info) {
		a.notFound(w, r, info)
		return
	}
	rt.Handler.Serve(w, r, info)
}

// routeOf returns the route for info, nil if nothing serves it. The snapshot in info decides, so a request sees one set
// of resources throughout.
func routeOf(info *request.Info) *catalog.Route {
	return catalog.Of(info).Route(
		schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource})
}

// Serve implements catalog.Handler. It is the one place where errors become answers: the functions below it return an
// error only while nothing has been written.
func (res *resource) Serve(w http.ResponseWriter, r *http.Request, info *request.Info) {
	if r.Method == http.MethodHead && info.Subresource != proxy && !res.Version.Dynamic() {
		res.api.WriteError(w, r, ErrMethod())
		return
	}
	x := &exchange{API: res.api, w: w, r: r, info: info, res: res}
	switch err := x.serve(); {
	case errors.Is(err, errNoPath):
		http.NotFound(w, r)
	case err != nil:
		res.api.WriteError(w, r, err)
	}
}

// notFound answers 404 for a resource that is not served. In a group that exists the answer is a Status, otherwise
// plain text, as upstream's.
func (a *API) notFound(w http.ResponseWriter, r *http.Request, info *request.Info) {
	if catalog.Of(info).HasGroup(info.APIGroup) {
		a.WriteError(w, r, errNoResource())
		return
	}
	http.NotFound(w, r)
}

func errNoResource() error {
	return statusError(http.StatusNotFound, metav1.StatusReasonNotFound,
		"the server could not find the requested resource")
}

// watchTimeout returns how long a watch without timeoutSeconds lasts. It is random, so that clients do not all
// reconnect at once.
func (a *API) watchTimeout() time.Duration {
	return a.MinWatch + rand.N(a.MinWatch)
}

// Deprecated reports whether the resource of info exists and is deprecated, itself or in its version.
func (a *API) Deprecated(info *request.Info) bool {
	rt := routeOf(info)
	return rt != nil && (rt.Row.Deprecated != "" || rt.Version.Deprecated != "")
}

// Serves reports whether the resource and the subresource of info exist. Metrics use it, so that made-up names do not
// become labels.
func (a *API) Serves(info *request.Info) bool {
	rt := routeOf(info)
	return rt != nil && (info.Subresource == "" ||
		rt.Subresource(info.Subresource) != nil && rt.Version.Has(info.Subresource))
}
