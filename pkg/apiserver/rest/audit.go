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

// auditObject notes the object that a client sent for the audit log: as it was decoded, with its defaults, and before
// anything else is made of it.
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

// defaults complete what clients of the route's version send.
func (x *exchange) defaults() func(runtime.Object) {
	if v := &x.res.Version; v.Default != nil || v.ToHub != nil {
		return v.Default
	}
	if sub := x.res.Subresource(x.info.Subresource); sub != nil && sub.Strategy != nil && sub.Strategy.Default != nil {
		return sub.Strategy.Default
	}
	return x.res.Row.Strategy.Default
}

// auditPatch notes a patch as the client sent it. One that is no JSON is not shown.
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

// auditDeletion notes the options in the body of a DELETE, under the kind that upstream's log gives them.
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

// audited lets the audit log see what is written of an answer in pieces.
func (x *exchange) audited(media string, to io.Writer) io.Writer {
	if x.info.Audit == nil {
		return to
	}
	if _, wanted := x.info.Audit.Bodies(); !wanted {
		return to
	}
	return noted{to, func(piece []byte) { x.info.Audit.Respond(media, piece) }}
}

// noted is a writer whose pieces somebody else hears of.
type noted struct {
	to   io.Writer
	note func([]byte)
}

func (n noted) Write(b []byte) (int, error) {
	n.note(b)
	return n.to.Write(b)
}
