package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/storage"
)

// exchange is one request and its answer, on the goroutine of the request. Its methods read the request and write the
// answer. Each verb is a function on it (serveGet, serveList …), in the file of that name. It needs no lock: nothing
// else sees it.
type exchange struct {
	*API
	w     http.ResponseWriter
	r     *http.Request
	info  *request.Info
	res   *resource
	query url.Values
}

// serve routes by subresource and verb. An error that it returns has not been answered yet.
//
// The order of the checks is visible to clients: a bad name is a 400 even for a verb that does not exist, and a
// subresource is looked up before the verb.
func (x *exchange) serve() error {
	// Parsed once: URL.Query parses again with each call.
	if x.r.URL.RawQuery != "" {
		x.query = x.r.URL.Query()
	}
	for _, d := range []string{x.res.Row.Deprecated, x.res.Version.Deprecated} {
		if d != "" {
			x.warn(d)
			request.Annotate(x.r.Context(), "k8s.io/deprecated", "true")
		}
	}
	named := len(x.info.Parts) > 1
	if named {
		if bad := content.IsPathSegmentName(x.info.Name); len(bad) > 0 {
			return apierrors.NewBadRequest(
				fmt.Sprintf("Name parameter invalid: %q: %s", x.info.Name, strings.Join(bad, ", ")))
		}
	}
	if x.info.Subresource != "" {
		return serveSubresource(x)
	}
	if x.res.Version.Dynamic() {
		return serveDynamic(x, named)
	}
	if x.res.Row.Namespaced && x.info.Namespace == "" &&
		(x.info.Verb == "create" || x.info.Verb == "deletecollection") {
		return x.notSupported()
	}
	if x.res.Row.Observed {
		return serveObserved(x, named)
	}
	if x.res.Store == nil {
		if x.info.Verb == "create" && !named {
			return serveCreateWith(x, x.res.Creater, x.res.GVK, x.info.Name)
		}
		return x.notSupported()
	}
	return serveStored(x, named)
}

// serveStored serves the objects of a store; named: one of them.
func serveStored(x *exchange, named bool) error {
	switch {
	case x.info.Verb == "get" && named:
		return serveGet(x)
	case x.info.Verb == "list" && !named:
		return serveList(x)
	case x.info.Verb == "watch":
		return serveWatch(x)
	case x.info.Verb == "create" && !named:
		return serveCreate(x)
	case x.info.Verb == "update" && named:
		return serveUpdate(x, "")
	case x.info.Verb == "patch" && named:
		return servePatch(x, "")
	case x.info.Verb == "delete" && named:
		return serveDelete(x)
	case x.info.Verb == "deletecollection" && !named && !x.res.Row.NoDeleteCollection:
		return serveDeleteCollection(x)
	}
	return x.notSupported()
}

func (x *exchange) notSupported() error {
	if x.res.Version.Dynamic() {
		return apierrors.NewMethodNotSupported(x.res.Row.GroupResource(), x.info.Verb)
	}
	return ErrMethod()
}

// ErrMethod is the 405 for a method that a path does not have.
func ErrMethod() error {
	return statusError(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"the server does not allow this method on the requested resource")
}

// proxy is the only subresource that takes a path behind it and every method.
const proxy = "proxy"

// serveSubresource serves a path below one object.
func serveSubresource(x *exchange) error {
	sub := x.res.Subresource(x.info.Subresource)
	if sub == nil || !x.res.Version.Has(sub.Name) || len(x.info.Parts) > 3 && sub.Name != proxy {
		if x.res.Version.Dynamic() {
			return apierrors.NewNotFound(x.res.Row.GroupResource(), x.info.Name)
		}
		return errNoResource()
	}
	if sub.Name != proxy && !slices.Contains(sub.Verbs, x.info.Verb) {
		return x.notSupported()
	}
	// A part of the stored object, such as status: the verbs are those of the object, with the part's strategy. Others
	// below have a kind of their own, or none.
	if sub.Strategy != nil && x.res.Store != nil {
		switch x.info.Verb {
		case "get":
			return serveGet(x)
		case "update":
			return serveUpdate(x, sub.Name)
		case "patch":
			return servePatch(x, sub.Name)
		}
		return x.notSupported()
	}
	gvk := x.res.GVK
	if sub.GVK != nil {
		gvk = *sub.GVK
	}
	switch a := sub.Answerer; {
	case a.Connecter != nil:
		return serveConnect(x, a.Connecter)
	case a.Creater != nil && x.info.Verb == "create":
		return serveCreateWith(x, a.Creater, gvk, x.info.Name)
	case a.ReadWriter != nil:
		switch x.info.Verb {
		case "get":
			return serveGetFrom(x, a.ReadWriter)
		case "update":
			return serveUpdateWith(x, a.ReadWriter, gvk)
		case "patch":
			return servePatchWith(x, a.ReadWriter, gvk)
		}
	}
	return x.notSupported()
}

// serveConnect hands the connection over to a subresource such as exec, log or proxy. It returns when the stream has
// ended. Admission sees the options first, because plug-ins may forbid an exec. c writes the answer itself: an error
// from Connect must mean that nothing has been written, as Serve answers it.
func serveConnect(x *exchange, c registry.Connecter) error {
	rest := ""
	if len(x.info.Parts) > 3 {
		rest = "/" + strings.Join(x.info.Parts[3:], "/")
		// The parts have lost a final slash, which can make a difference to the server behind the proxy.
		if strings.HasSuffix(x.r.URL.Path, "/") {
			rest += "/"
		}
	}
	opts, err := c.Options(rest, x.query)
	if err != nil {
		return err
	}
	if opts != nil {
		if opts, err = x.admitConnect(opts); err != nil {
			return err
		}
	}
	return c.Connect(x.r.Context(), x.info.Namespace, x.info.Name, opts, x.w, x.r)
}

// removed reports whether the resource was removed, for example with its CustomResourceDefinition, since the request
// came. The route has a context that ends with it. Handlers ask after the storage has answered: the facts that
// selectors read go with the resource, so what they chose is not to be trusted.
func (x *exchange) removed() bool { return x.res.Context().Err() != nil }

// representation returns how to show items in the agreed form, nil for tables.
func (x *exchange) representation(a accepted) *representation {
	switch a.as {
	case "":
		return x.res.full
	case "Table":
		return nil
	}
	return x.res.metadata[a.version]
}

// body reads the request's body into a new object, with the strictness of the client's fieldValidation. The bounds come
// before the decoding, and the audit log gets what was decoded, before admission changes it.
func (x *exchange) body(gvk schema.GroupVersionKind, into runtime.Object, validation string) error {
	b, err := x.document(into)
	if err != nil {
		return err
	}
	// Warnings go into headers of this answer, whatever becomes of the request.
	if err := decode(b, bodyType(x.r), x.wanted(gvk), into, validation, x.warn); err != nil {
		if apierrors.IsInvalid(err) { // it is an object, of another kind
			x.auditObject(into.GetObjectKind().GroupVersionKind(), into)
		}
		return err
	}
	x.auditObject(gvk, into)
	return nil
}

// bodyAs is body for a subresource that also accepts older versions of its kind, such as policy/v1beta1 evictions. into
// has the version gvk afterwards.
func (x *exchange) bodyAs(gvk schema.GroupVersionKind, into runtime.Object, validation string) error {
	sub := x.res.Subresource(x.info.Subresource)
	if sub == nil || len(sub.Accepts) == 0 {
		return x.body(gvk, into, validation)
	}
	b, err := x.document(into)
	if err != nil {
		return err
	}
	as := gvk
	if named := namedVersion(x, b).WithKind(gvk.Kind); slices.Contains(sub.Accepts, named) {
		as = named
	}
	if err = decode(b, bodyType(x.r), x.wanted(as), into, validation, x.warn); err == nil {
		x.auditObject(as, into)
	}
	into.GetObjectKind().SetGroupVersionKind(gvk)
	return err
}

// context returns the request's context with the caller, for the stores. The stores have no access to the request: they
// write managedFields under the caller's name, and warn through it. warn is not safe for several goroutines, so a store
// that uses more than one must serialize it (registry.warnOneByOne).
func (x *exchange) context() context.Context {
	return registry.WithCaller(x.r.Context(),
		registry.Caller{Kind: x.res.GVK, Manager: registry.ManagerOf(x.r.UserAgent()), Warn: x.warn})
}

// warn adds a Warning header (RFC 7234, code 299) to an answer that has not begun. A text that the answer has, or that
// has no room, is dropped: a warning must not make an answer fail.
func (x *exchange) warn(text string) {
	h := x.w.Header()
	size := 0
	for _, v := range h["Warning"] {
		size += len(v)
	}
	if size+len(text) > maxWarningBytes {
		text = cut(text, longWarning)
	}
	value := "299 - " + quote(text)
	if slices.Contains(h["Warning"], value) {
		return
	}
	if len(h["Warning"]) < maxWarnings && size+len(value) <= maxWarningBytes {
		h.Add("Warning", value)
	}
}

// Bounds of an answer's warnings, whose texts may quote what a client sent: how many there are and how many bytes they
// have together. Where they have more, a warning is cut to longWarning characters.
const (
	maxWarnings     = 32
	maxWarningBytes = 4096
	longWarning     = 256
)

// cut returns the first n characters of text.
func cut(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// quote makes an HTTP quoted-string of printable text.
func quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(text, "") {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case r >= 0x20 && r != 0x7f:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// toHub converts an object that a client sent to the stored version. The defaults of the client's version come first:
// the same field may have another default in the stored one.
func (x *exchange) toHub(obj runtime.Object) (runtime.Object, error) {
	v := &x.res.Version
	if v.Default != nil {
		v.Default(obj)
	}
	if v.ToHub == nil {
		return obj, nil
	}
	return v.ToHub(x.r.Context(), obj)
}

// fromHub converts an object of the stored version to the client's. It may change obj, or return it.
func (x *exchange) fromHub(obj runtime.Object) (runtime.Object, error) {
	if v := &x.res.Version; v.FromHub != nil {
		return v.FromHub(x.r.Context(), obj)
	}
	return obj, nil
}

// share keeps the JSON of the object that was just written with its item, if this answer needs it. Watchers and readers
// then need not decode the item. It does nothing for answers that are not JSON, and for representations that convert:
// their JSON is not that of the stored version.
func (x *exchange) share(a accepted, item *storage.Item, obj runtime.Object) error {
	if a.as != "" || a.media == typeProtobuf || x.res.full.item != nil {
		return nil
	}
	if err := x.res.Store.Codec().Share(item, obj); err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}
