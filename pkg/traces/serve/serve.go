// Package serve answers for the API group traces.bonsai.io behind the aggregator: discovery, schemas, and get and list
// of traces, as JSON and as tables. Who may ask is decided before: by Attributes, as for any resource of Kubernetes.
package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authzv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	api "bonsai/api/traces"
	"bonsai/pkg/delegated"
	"bonsai/pkg/fairshare"
	"bonsai/pkg/traces"
)

// Reader has the traces.
type Reader interface {
	// Get returns the trace of an object with its spans. It reports whether there is one.
	Get(uid types.UID) (*api.Trace, bool)
	List(q traces.Query) traces.Page
	// Resources returns the resources of the objects that List would select without a limit, the most frequent first.
	Resources(q traces.Query) []schema.GroupResource
}

// MaySee reports whether the caller of a request may get or list a resource: in a namespace, in all of them or in none.
// A trace has its object's name, and so does not show to those who may not see the object: a viewer of a namespace sees
// no Secrets. Without a resource it is about all of them.
type MaySee func(r *http.Request, verb string, resource schema.GroupResource, namespace string) (bool, error)

// Caller returns the name for whose share of the turns a request counts.
type Caller func(r *http.Request) string

// How many answers with traces are written at once, in all and for one caller: each may take megabytes. When there are
// maxTurns, an older answer than youngAnswer may end for a caller with fewer of them, and one older than oldAnswer for
// any other.
const (
	maxTurns       = 8
	maxCallerTurns = 4
	youngAnswer    = time.Second
	oldAnswer      = 10 * time.Second
)

// Handler answers for the group. It is safe for concurrent use. Make it with New.
type Handler struct {
	traces Reader
	now    func() time.Time
	maySee MaySee
	caller Caller

	turns    *fairshare.Places[string]
	patience time.Duration // for a piece of an answer
}

// New returns a handler that writes up to maxTurns answers at once.
func New(reader Reader, maySee MaySee, caller Caller, now func() time.Time) *Handler {
	return &Handler{traces: reader, maySee: maySee, caller: caller, now: now, patience: piecePatience,
		turns: fairshare.New[string](
			fairshare.Config{Most: maxTurns, Part: maxCallerTurns, Young: youngAnswer, Old: oldAnswer})}
}

const (
	groupPath   = "/apis/" + "traces.bonsai.io"
	versionPath = groupPath + "/v1alpha1"
	// SpansPath is where spans are created. It is no resource that anybody could read, and so not in the discovery.
	SpansPath = versionPath + "/spans"
)

// Paths returns the handlers by path.
func (h *Handler) Paths() map[string]http.Handler {
	return map[string]http.Handler{
		"/apis":                     http.HandlerFunc(groups),
		groupPath:                   http.HandlerFunc(group),
		versionPath:                 http.HandlerFunc(resources),
		versionPath + "/":           http.HandlerFunc(h.resource),
		"/openapi/v3":               http.HandlerFunc(schemaIndex),
		"/openapi/v3" + versionPath: http.HandlerFunc(schemas),
	}
}

// target is what the path of a request names. resource "" is none of ours.
type target struct{ namespace, resource, name, more string }

// targetOf reads a path below versionPath.
func targetOf(path string) target {
	rest, ok := strings.CutPrefix(path, versionPath+"/")
	if !ok {
		return target{}
	}
	parts := strings.SplitN(strings.TrimSuffix(rest, "/"), "/", 5)
	var t target
	if parts[0] == "namespaces" && len(parts) > 2 {
		t.namespace, parts = parts[1], parts[2:]
	}
	t.resource = parts[0]
	if len(parts) > 1 {
		t.name = parts[1]
	}
	t.more = strings.Join(parts[min(len(parts), 2):], "/")
	return t
}

// Attributes returns what a request wants to do: something with a resource, or with a path that is none.
func Attributes(r *http.Request) delegated.Attributes {
	t := targetOf(r.URL.Path)
	if t.resource == "" {
		return delegated.Attributes{Path: &authzv1.NonResourceAttributes{Path: r.URL.Path,
			Verb: strings.ToLower(r.Method)}}
	}
	name := t.name
	if name == "" && r.Method == http.MethodGet {
		// As in Kubernetes, somebody who may list one object by its name need not be allowed to list all.
		if selector, err := selectorOf(r.URL.Query()); err == nil {
			name = selector[selectName]
		}
	}
	return delegated.Attributes{Resource: &authzv1.ResourceAttributes{Namespace: t.namespace, Verb: verb(r, t),
		Group: api.GroupVersion.Group, Version: api.GroupVersion.Version, Resource: t.resource, Subresource: t.more,
		Name: name}}
}

// verb is what a request does, in the words of RBAC.
func verb(r *http.Request, t target) string {
	switch {
	case r.Method == http.MethodPost:
		return "create"
	case r.Method == http.MethodPut:
		return "update"
	case r.Method == http.MethodPatch:
		return "patch"
	case r.Method == http.MethodDelete && t.name == "":
		return "deletecollection"
	case r.Method == http.MethodDelete:
		return "delete"
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return strings.ToLower(r.Method)
	case watches(r):
		return "watch"
	case t.name == "":
		return "list"
	}
	return "get"
}

// watches reports whether a request wants to see changes.
func watches(r *http.Request) bool {
	w := r.URL.Query().Get("watch")
	return w == "true" || w == "1"
}

// resource answers for traces and clustertraces.
func (h *Handler) resource(w http.ResponseWriter, r *http.Request) {
	t := targetOf(r.URL.Path)
	gr := schema.GroupResource{Group: api.GroupVersion.Group, Resource: t.resource}
	cluster := t.resource == api.ClusterResource
	if t.resource != api.Resource && !cluster || t.more != "" || cluster && t.namespace != "" ||
		!cluster && t.namespace == "" && t.name != "" {
		refuse(w, apierrors.NewGenericServerResponse(http.StatusNotFound, "", gr, "",
			"the server could not find the requested resource", 0, true))
		return
	}
	if v := verb(r, t); v != "get" && v != "list" {
		refuse(w, apierrors.NewMethodNotSupported(gr, v))
		return
	}
	as, ok := accepted(r)
	if !ok {
		refuse(w, apierrors.NewGenericServerResponse(http.StatusNotAcceptable, "", gr, "",
			"only the following media types are accepted: application/json, application/json;as=Table;v=v1;g=meta.k8s.io",
			0, true))
		return
	}
	out := newPaced(w, h.patience)
	leave, ok := h.turns.Take(h.caller(r), out.end)
	if !ok {
		refuse(w, apierrors.NewTooManyRequests("too many traces are read at once, try again", 1))
		return
	}
	defer leave()
	if t.name != "" {
		h.get(out, r, t, gr, as)
		return
	}
	h.list(out, r, t, gr, as)
}

func (h *Handler) get(w http.ResponseWriter, r *http.Request, t target, gr schema.GroupResource, as form) {
	trace, ok := h.traces.Get(types.UID(t.name))
	if !ok || trace.Namespace != t.namespace || trace.Name != t.name { // a UID without its dashes is another name
		refuse(w, apierrors.NewNotFound(gr, t.name))
		return
	}
	of := schema.GroupResource{Group: trace.Object.Group, Resource: trace.Object.Resource}
	if may, err := h.maySee(r, "get", of, t.namespace); err != nil {
		refuse(w, apierrors.NewInternalError(errReview))
		return
	} else if !may {
		refuse(w, apierrors.NewForbidden(gr, t.name, fmt.Errorf("the trace is for those who may get %s", of)))
		return
	}
	if as.table {
		write(w, h.table([]api.Trace{*trace}, metav1.ListMeta{}, as))
		return
	}
	trace.TypeMeta = typeMeta(t.resource, "")
	write(w, trace)
}

// errReview is shown for an error that is the cluster's own matter.
var errReview = errors.New("the API server does not say who may see this")

func (h *Handler) list(w http.ResponseWriter, r *http.Request, t target, gr schema.GroupResource, as form) {
	q, err := h.query(r.URL.Query(), t)
	if err != nil {
		refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	var page traces.Page
	if q != nil {
		if q.Hidden, err = h.hidden(r, *q, t.namespace); err != nil {
			refuse(w, apierrors.NewInternalError(errReview))
			return
		}
		page = h.traces.List(*q)
	}
	meta := metav1.ListMeta{}
	if n := len(page.Traces); n > 0 && page.Remaining > 0 && q.Slowest == 0 {
		last := page.Traces[n-1].Object
		remaining := int64(page.Remaining)
		meta.Continue, meta.RemainingItemCount = tokenOf(traces.Position{Namespace: last.Namespace, Name: last.Name,
			UID: string(last.UID)}), &remaining
	}
	if as.table {
		write(w, h.table(page.Traces, meta, as))
		return
	}
	list := api.TraceList{TypeMeta: typeMeta(t.resource, "List"), ListMeta: meta, Items: page.Traces}
	if list.Items == nil {
		list.Items = []api.Trace{}
	}
	for i := range list.Items {
		list.Items[i].TypeMeta = typeMeta(t.resource, "")
	}
	write(w, list)
}

// maxReviews is about how many resources a list asks one by one: each is a request to the API server. No cluster has so
// many with traces, but spans say what they like.
const maxReviews = 200

// hidden are the resources whose objects the caller may not list. The rarest, beyond maxReviews, are for those who may
// list all.
func (h *Handler) hidden(r *http.Request, q traces.Query, namespace string) (map[schema.GroupResource]bool, error) {
	hidden := map[schema.GroupResource]bool{}
	resources := h.traces.Resources(q)
	for _, of := range resources[:min(len(resources), maxReviews)] {
		may, err := h.maySee(r, "list", of, namespace)
		if err != nil {
			return nil, err
		}
		hidden[of] = !may
	}
	if len(resources) <= maxReviews {
		return hidden, nil
	}
	may, err := h.maySee(r, "list", schema.GroupResource{}, namespace)
	for _, of := range resources[maxReviews:] {
		hidden[of] = !may
	}
	return hidden, err
}

// The kinds of the two resources. They have one Go type; clients find a resource by its kind, so that each has its own.
const (
	kind        = "Trace"
	clusterKind = "ClusterTrace"
)

func typeMeta(resource, suffix string) metav1.TypeMeta {
	name := kind
	if resource == api.ClusterResource {
		name = clusterKind
	}
	return metav1.TypeMeta{Kind: name + suffix, APIVersion: api.GroupVersion.String()}
}

// write answers with an object.
func write(w http.ResponseWriter, object any) { answer(w, http.StatusOK, "application/json", object) }

// refuse answers with an error, as a Status object.
func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	answer(w, int(status.Code), "application/json", status)
}

func answer(w http.ResponseWriter, code int, media string, object any) {
	w.Header().Set("Cache-Control", "no-cache, private")
	w.Header().Set("Content-Type", media)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	// A failed write means that the client is gone.
	_ = json.NewEncoder(w).Encode(object)
}
