package rest

import (
	"encoding/json"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/apiserver/request"
)

// auditObject records the object that a client sent, if the request is audited with bodies: as it was decoded, with
// defaults, and before admission changes it. It works on a copy.
func (x *exchange) auditObject(gvk schema.GroupVersionKind, obj runtime.Object) {
	if x.info.Audit == nil {
		return
	}
	if access, err := meta.Accessor(obj); err == nil {
		x.info.Audit.Refer(access)
	}
	if wanted, _ := x.info.Audit.Bodies(); !wanted {
		return
	}
	shown := obj.DeepCopyObject()
	if gvk == x.res.GVK {
		if def := x.defaults(); def != nil {
			def(shown)
		}
	}
	shown.GetObjectKind().SetGroupVersionKind(gvk)
	if b, err := json.Marshal(shown); err == nil {
		x.info.Audit.RequestObject(b)
	}
}

// defaults returns the function that completes objects of the route's version.
func (x *exchange) defaults() func(runtime.Object) {
	if v := &x.res.Version; v.Default != nil || v.ToHub != nil {
		return v.Default
	}
	if sub := x.res.Subresource(x.info.Subresource); sub != nil && sub.Strategy != nil && sub.Strategy.Default != nil {
		return sub.Strategy.Default
	}
	return x.res.Row.Strategy.Default
}

// auditPatch records a patch as the client sent it. The log holds JSON, so an apply is converted from YAML, and what is
// not valid YAML is left out.
func (x *exchange) auditPatch(patch []byte) {
	if x.info.Audit == nil {
		return
	}
	if wanted, _ := x.info.Audit.Bodies(); !wanted {
		return
	}
	if bodyType(x.r) == typeApply {
		var err error
		if patch, err = yaml.YAMLToJSON(patch); err != nil {
			return
		}
	}
	x.info.Audit.RequestPatch(patch)
}

// auditDeletion records the options in the body of a DELETE, under the kind that upstream's log has.
func (x *exchange) auditDeletion(opts *metav1.DeleteOptions) {
	if x.info.Audit == nil {
		return
	}
	shown := opts.DeepCopy()
	shown.SetGroupVersionKind(
		schema.GroupVersionKind{Group: metav1.GroupName, Version: runtime.APIVersionInternal, Kind: "DeleteOptions"})
	if b, err := json.Marshal(shown); err == nil {
		x.info.Audit.RequestObject(b)
	}
}

// auditAnswer notes a whole answer.
func auditAnswer(r *http.Request, media string, b []byte) {
	if a := request.AuditOf(r.Context()); a != nil {
		a.Respond(media, b)
	}
}

// audited returns a writer that passes an answer on and records its pieces, for answers that are streamed. Without an
// audit record it is to itself.
func (x *exchange) audited(media string, to io.Writer) io.Writer {
	if x.info.Audit == nil {
		return to
	}
	if _, wanted := x.info.Audit.Bodies(); !wanted {
		return to
	}
	return noted{to, func(piece []byte) { x.info.Audit.Respond(media, piece) }}
}

// noted is a writer that also hands each piece to note.
type noted struct {
	to   io.Writer
	note func([]byte)
}

func (n noted) Write(b []byte) (int, error) {
	n.note(b)
	return n.to.Write(b)
}
