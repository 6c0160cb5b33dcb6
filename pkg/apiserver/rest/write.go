package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/plainjson"
	"bonsai/pkg/safetext"
)

// internal returns the 500 for err. An error that is already a Status stays.
func internal(err error) error {
	if isStatus(err) {
		return err
	}
	return apierrors.NewInternalError(err)
}

// writeStored answers with one item in the agreed form, tables included. The document is made in a lent buffer, which
// goes back when the body is written: a get of a small object needs no memory of its own.
func (x *exchange) writeStored(a accepted, code int, item *storage.Item) error {
	f := x.representation(a)
	if f == nil {
		list := metav1.ListMeta{}
		if item.Revision != 0 { // not that of a dry run
			list.ResourceVersion = strconv.FormatInt(item.Revision, 10)
		}
		return writeTable(x, a, code, []*storage.Item{item}, false, list)
	}
	lent := chunks.Get().(*[]byte)
	defer giveBack(lent)
	b, err := f.appendDocument(x.r.Context(), *lent, item, a.media)
	if err != nil {
		return internal(err)
	}
	*lent = b[:0]
	if a.media == typeProtobuf {
		return x.writeBytes(code, a.media, b)
	}
	return x.writeJSON(a, code, b)
}

// writePart answers with the object of a subresource, in the agreed form.
func (x *exchange) writePart(rw registry.ReadWriter, a accepted, obj runtime.Object) error {
	if a.as == "" {
		return x.writeObject(a, http.StatusOK, obj)
	}
	obj.GetObjectKind().SetGroupVersionKind(x.res.plain[x.info.Subresource].GVK)
	access, err := meta.Accessor(obj)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if a.as != "Table" {
		return x.writeObject(a, http.StatusOK, metadataOnly(access, a.version))
	}
	t, err := newTable(x, a)
	if err != nil {
		return err
	}
	t.columns, t.cells, t.conditions = rw.Columns(), rw.Cells, nil
	b, err := t.begin(nil, metav1.ListMeta{ResourceVersion: access.GetResourceVersion()})
	if err != nil {
		return internal(err)
	}
	row, err := t.encode(metav1.TableRow{Cells: t.cells(obj, x.Now())}, obj)
	if err != nil {
		return internal(err)
	}
	return x.writeJSON(a, http.StatusOK, append(append(b, row...), tableEnd...))
}

// writeObject answers with any object whose kind is set.
func (x *exchange) writeObject(a accepted, code int, obj runtime.Object) error {
	return x.API.writeObject(x.w, x.r, a, code, obj)
}

func (a *API) writeObject(w http.ResponseWriter, r *http.Request, as accepted, code int, obj runtime.Object) error {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		kinds, _, err := a.Scheme.ObjectKinds(obj)
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("answer with %T: %w", obj, err))
		}
		gvk = kinds[0]
		obj.GetObjectKind().SetGroupVersionKind(gvk)
	}
	if status, ok := obj.(*metav1.Status); ok {
		if audit := request.AuditOf(r.Context()); audit != nil {
			audit.Status(status)
		}
	}
	if m, ok := obj.(registry.Message); ok && as.media == typeProtobuf {
		b, err := registry.Envelop(registry.EnvelopeHead(gvk), m)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		return writeBody(w, r, code, typeProtobuf, b, "")
	}
	b, err := json.Marshal(obj)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("answer with %s: %w", gvk, err))
	}
	return writeJSONBody(w, r, as, code, b)
}

// writeJSON answers with one JSON document, as YAML or indented if that was agreed.
func (x *exchange) writeJSON(a accepted, code int, b []byte) error {
	return writeJSONBody(x.w, x.r, a, code, b)
}

func writeJSONBody(w http.ResponseWriter, r *http.Request, a accepted, code int, b []byte) error {
	switch {
	case a.media == typeYAML:
		y, err := yaml.JSONToYAML(plainjson.Escape(b))
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		return writeBody(w, r, code, typeYAML, y, "")
	case a.pretty:
		var out bytes.Buffer
		if err := json.Indent(&out, b, "", "  "); err != nil {
			return apierrors.NewInternalError(err)
		}
		return writeBody(w, r, code, typeJSON, bytes.TrimSuffix(out.Bytes(), []byte(newline)), "")
	}
	return writeBody(w, r, code, typeJSON, b, newline)
}

func (x *exchange) writeBytes(code int, media string, b []byte) error {
	return writeBody(x.w, x.r, code, media, b, "")
}

// writeBody sends a whole body, followed by end. It does not change b, which may be an encoding that others share. An
// uncompressed body has its length in the header, so a client sees if the connection was cut. A large one is compressed
// while it is sent, for clients that want that (acceptsGzip).
func writeBody(w http.ResponseWriter, r *http.Request, code int, media string, b []byte, end string) error {
	auditAnswer(r, media, b)
	h := w.Header()
	h["Content-Type"] = []string{media}
	if len(b) > gzipFrom && acceptsGzip(r) {
		z := newGzip(w)
		w.WriteHeader(code)
		_, err := z.Write(b)
		_, last := io.WriteString(z, end)
		return ignoreClient(errors.Join(err, last, z.Close()))
	}
	h["Content-Length"] = []string{strconv.Itoa(len(b) + len(end))}
	w.WriteHeader(code)
	_, err := w.Write(b)
	if end != "" && err == nil {
		_, err = io.WriteString(w, end)
	}
	return ignoreClient(err)
}

// newline ends compact JSON and nothing else, as upstream's answers do.
const newline = "\n"

// ignoreClient drops the error of writing to a client that has left. No answer can reach it any more, and an error that
// a handler returned would be answered again (resource.Serve).
func ignoreClient(error) error { return nil }

// WriteError answers with the Status of err. Faults of the server (5xx) are logged, unless the request ended first: its
// error is then a consequence.
func (a *API) WriteError(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	if status.Code >= http.StatusInternalServerError && r.Context().Err() == nil {
		told := err
		if fault := (*registry.Fault)(nil); errors.As(err, &fault) {
			told = fault.Err
		}
		a.Log.Error("request failed", "method", safetext.Text(r.Method),
			"path", safetext.Text(r.URL.Path), "code", status.Code, "err", told)
	}
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	as, negotiateErr := negotiate(r, forPlain, allTypes())
	if negotiateErr != nil {
		as = accepted{media: typeJSON, pretty: true} // as Kubernetes does for who takes nothing that it has
	}
	if err := a.writeObject(w, r, as, int(status.Code), status); err != nil {
		a.Log.Error("cannot answer", "path", safetext.Text(r.URL.Path), "err", err)
	}
}

// statusOf returns the Status that describes err to a client. Errors of the storage lose the keys that objects have in
// etcd (storage.Cause).
func statusOf(err error) *metav1.Status {
	var known apierrors.APIStatus
	var out metav1.Status
	switch {
	case errors.As(err, &known):
		out = known.Status()
	case errors.Is(err, context.DeadlineExceeded):
		out = apierrors.NewTimeoutError("request did not complete within requested timeout - context deadline exceeded",
			0).Status()
	default:
		out = metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: storage.Cause(err).Error()}
	}
	out.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Status"})
	if out.Status == "" {
		out.Status = metav1.StatusFailure
	}
	if out.Code == 0 {
		out.Code = http.StatusInternalServerError
	}
	return &out
}
