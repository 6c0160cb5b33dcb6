package rest

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"bonsai/api/resources"
)

// wanted is the kind that a body must have.
type wanted struct {
	schema.GroupVersionKind
	// kinds are all that there are: an error tells another kind from one that is none. Nil: those that options may be
	// mistaken for. The words of the error depend on it: upstream distinguishes a known kind that does not fit from an
	// unknown one.
	kinds *runtime.Scheme
	// internal is what Kubernetes calls the package of the type that it converts the body to; empty: the version.
	internal string
	// prune is for objects without a Go type.
	prune pruner
	// readable tells why an object of the type is none of the kind; may be nil.
	readable func(runtime.Object) error
}

// optionKinds returns the kinds that the options of a deletion may be mistaken for.
func optionKinds() *runtime.Scheme {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, metav1.SchemeGroupVersion)
	return s
}

// wanted is for bodies of a kind.
func (x *exchange) wanted(gvk schema.GroupVersionKind) wanted {
	w := wanted{GroupVersionKind: gvk, kinds: x.res.api.Scheme}
	if gvk == x.res.GVK {
		w.prune, w.readable = x.res.Version.Prune, x.res.Row.Readable
	}
	if !x.res.Version.Dynamic() {
		w.internal = resources.InternalPackage(gvk.Group)
	}
	return w
}

// complete fills the parts that got leaves out from the wanted kind.
func (w *wanted) complete(got schema.GroupVersionKind) schema.GroupVersionKind {
	if got.Kind == "" {
		got.Kind = w.Kind
	}
	if got.Version == "" && (got.Group == "" || got.Group == w.Group) {
		got.Group, got.Version = w.Group, w.Version
	}
	return got
}

// read returns why a decoded object is not of the kind, nil if it is.
func (w *wanted) read(obj runtime.Object) error {
	if w.readable == nil {
		return nil
	}
	return w.readable(obj)
}

// differs returns how got, the kind that body names, differs from the wanted one. Parts that got leaves out count as
// wanted.
func (w *wanted) differs(got schema.GroupVersionKind, body []byte) error {
	if got = w.complete(got); got == w.GroupVersionKind {
		return nil
	}
	if got.Version == "" {
		return runtime.NewMissingVersionErr(string(body))
	}
	kinds := w.kinds
	if kinds == nil {
		kinds = optionKinds()
	}
	if !kinds.Recognizes(got) {
		return fmt.Errorf("no kind %q is registered for version %q", got.Kind, got.GroupVersion())
	}
	to := w.internal
	if to == "" {
		to = w.Version
	}
	return fmt.Errorf("converting (%s.%s) to (%s.%s): unknown conversion", got.Version, got.Kind, to, w.Kind)
}

// check refuses a body of another kind.
func (w *wanted) check(got schema.GroupVersionKind, body []byte) error {
	if err := w.differs(got, body); err != nil {
		return cannotHandle(w.complete(got), w.GroupVersionKind, err)
	}
	return nil
}

// named returns the kind that a JSON document names.
func named(doc []byte) (schema.GroupVersionKind, error) {
	var meta struct {
		APIVersion string `json:"apiVersion,omitempty"`
		Kind       string `json:"kind,omitempty"`
	}
	if err := json.Unmarshal(doc, &meta); err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	gv, err := schema.ParseGroupVersion(meta.APIVersion)
	return gv.WithKind(meta.Kind), err
}
