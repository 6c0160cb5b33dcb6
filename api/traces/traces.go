// Package traces has the types of the API group traces.bonsai.io: what a cluster did for an object, as timed spans.
//
// bonsai-traces serves the group, as JSON only, behind the aggregator. kubectl-trace and the console read it. The API
// server itself does not know these types: they are no rows of ours, and no other component reads them.
//
// A trace belongs to one object and has its UID: a UUID has 16 bytes, as a W3C trace-id has
// (https://www.w3.org/TR/trace-context/). Requests have traces of their own, which clients choose. A Link joins an
// object's trace with the request that made the object, and with the trace of its owner.
package traces

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// GroupVersion is the group and the version of the types. Its paths are
// /apis/traces.bonsai.io/v1alpha1/namespaces/NAMESPACE/traces for objects in namespaces, and …/v1alpha1/clustertraces
// for others.
var GroupVersion = schema.GroupVersion{Group: "traces.bonsai.io", Version: "v1alpha1"}

// Resource is the resource of traces of objects in namespaces, ClusterResource that of all others.
const (
	Resource        = "traces"
	ClusterResource = "clustertraces"
)

// Trace is all that is known about one object. Its name is the object's UID. Its creationTimestamp is the start of its
// first span.
type Trace struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	// Object is what the trace is about.
	Object Object `json:"object"`
	// Owner is the object's controller, nil if it has none or if no span said so.
	Owner *Object `json:"owner,omitempty"`
	// Spans of the object, and of the requests and rounds that they link to, by start, then by ID. In lists they are
	// left out.
	Spans []Span `json:"spans,omitempty"`
	// SpanCount is how many spans are kept, in lists too.
	SpanCount int `json:"spanCount"`
	// DroppedSpans is how many spans of the object the store had to drop, because the object had too many.
	DroppedSpans int `json:"droppedSpans,omitempty"`
	// LastSeen is the end of the span that ended last.
	LastSeen time.Time `json:"lastSeen"`
}

// TraceList is the answer to a list. Its continue token leads to the next page, as in every list of Kubernetes.
type TraceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Trace `json:"items"`
}

// Object names an object of the cluster.
type Object struct {
	Group     string    `json:"group,omitempty"`
	Resource  string    `json:"resource,omitempty"` // pods
	Kind      string    `json:"kind,omitempty"`     // Pod
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
}

// Span is one timed step.
type Span struct {
	// TraceID is the trace that the span was sent with, 32 hex digits: the object's, or that of a linked request.
	TraceID string `json:"traceID"`
	// ID is 16 hex digits, unique in its trace. Parent is the ID of the enclosing span, "" if there is none; the parent
	// need not have arrived.
	ID     string `json:"id"`
	Parent string `json:"parent,omitempty"`
	// Name is low in cardinality: kubelet.sandbox, or for requests the method and the route.
	Name string `json:"name"`
	// Component is the program, as service.name has it: kubelet. Instance is the node or host where it runs.
	Component string `json:"component"`
	Instance  string `json:"instance,omitempty"`
	// Start and Duration have the resolution of nanoseconds.
	Start    time.Time     `json:"start"`
	Duration time.Duration `json:"duration"`
	// Attributes are those of OpenTelemetry's semantic conventions, their values as text.
	Attributes map[string]string `json:"attributes,omitempty"`
	// Error is why the step failed, "" if it did not.
	Error string `json:"error,omitempty"`
	Links []Link `json:"links,omitempty"`
}

// End is when the step ended.
func (s *Span) End() time.Time { return s.Start.Add(s.Duration) }

// Link points at another trace: the request that made the object, or its owner.
type Link struct {
	TraceID string `json:"traceID"`
	SpanID  string `json:"spanID,omitempty"`
	// Relation is RelationRequest or RelationOwner.
	Relation string `json:"relation,omitempty"`
}

// Relations of links, which spans carry in the attribute bonsai.link.relation.
const (
	RelationRequest = "request"
	RelationOwner   = "owner"
)
