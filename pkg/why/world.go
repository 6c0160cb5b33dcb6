package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/safetext"
)

// Source is where the objects of a World come from: an API server (live) or files (whytest). Errors are the API's
// Status errors.
type Source interface {
	// Get returns one object. A NotFound means that it is absent.
	Get(ctx context.Context, r schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error)
	// List returns all objects of a resource in a namespace, "" for all. It may stop at a bound of its own, and then
	// reports that there are more.
	List(ctx context.Context, r schema.GroupVersionResource, namespace string) (items []unstructured.Unstructured,
		more bool, err error)
	// Events returns the events about one object, those without a namespace from "default".
	Events(ctx context.Context, o Object) ([]unstructured.Unstructured, error)
	// Log returns the end of a container's log: at most LogLines lines and LogBytes bytes. NotFound and BadRequest mean
	// that there is none.
	Log(ctx context.Context, l Log) (string, error)
	// Mapping returns where a kind is served; an error that meta.IsNoMatchError knows if it is not.
	Mapping(group, kind string) (schema.GroupVersionResource, error)
	// Resource returns the version in which a resource is served; an error that meta.IsNoMatchError knows if it is not.
	Resource(group, resource string) (schema.GroupVersionResource, error)
	// Version returns the version in which a resource is served: that of r if it is among them, otherwise another one,
	// and "" if the server does not serve the resource at all.
	Version(r schema.GroupVersionResource) string
	// Self returns the name and the groups of the caller itself.
	Self(ctx context.Context) (user string, groups []string, err error)
	// Apply applies an object as a field manager, without force and as a dry run.
	Apply(ctx context.Context, r schema.GroupVersionResource, u *unstructured.Unstructured, manager string) error
	// Allowed reports whether a caller may do something, as `kubectl auth can-i` does; user is "" for the own identity.
	Allowed(ctx context.Context, a Access) (bool, string, error)
}

// Access is a question to the authorizers.
type Access struct {
	User   string
	Groups []string
	Verb   string
	Group, Resource, Subresource,
	Namespace, Name,
	Path string // of a request for no resource
}

// World is the cluster as one question sees it: each object and each list is read once at most. Use it from one
// goroutine.
type World struct {
	source Source
	got    map[place]*unstructured.Unstructured // nil: absent
	lists  map[place][]unstructured.Unstructured
	events map[Object][]*corev1.Event
	logs   map[Log][]string
	// supposed are objects that a question assumes, by resource.
	supposed map[schema.GroupVersionResource][]*unstructured.Unstructured
	unseen   unseen
}

// place is where an object or, without a name, a list is.
type place struct {
	schema.GroupVersionResource
	namespace, name string
}

// NewWorld returns a world of the objects of s.
func NewWorld(s Source) *World {
	return &World{source: s, got: map[place]*unstructured.Unstructured{},
		lists: map[place][]unstructured.Unstructured{}, events: map[Object][]*corev1.Event{}, logs: map[Log][]string{},
		unseen: unseen{}, supposed: map[schema.GroupVersionResource][]*unstructured.Unstructured{}}
}

// Get returns an object of a type that ResourceOf knows. A nil object is absent if known is true; otherwise nobody
// knows, since it could not be read, and the answer's Unseen says so.
func Get[T any](ctx context.Context, w *World, namespace, name string) (object *T, known bool) {
	u, known := w.Object(ctx, ResourceOf[T](), namespace, name)
	if u == nil {
		return nil, known
	}
	return convert[T](u), true
}

// List returns the objects of a type in a namespace, "" for all namespaces, that a selector matches; nil selects all.
// If complete is false, some or all could not be read.
func List[T any](ctx context.Context, w *World, namespace string, selector labels.Selector) (list []*T, complete bool) {
	items, complete := w.All(ctx, ResourceOf[T](), namespace)
	for i := range items {
		if selector == nil || selector.Matches(labels.Set(items[i].GetLabels())) {
			list = append(list, convert[T](&items[i]))
		}
	}
	return list, complete
}

// convert panics for no object of a server: fields of a wrong type are left empty.
func convert[T any](u *unstructured.Unstructured) *T {
	object := new(T)
	// The error is of a field whose type is another one. Servers send none such of their own kinds; what was read until
	// then is worth more than nothing.
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object)
	return object
}

// Object is Get for a resource of any type.
func (w *World) Object(ctx context.Context, r schema.GroupVersionResource, namespace, name string) (
	object *unstructured.Unstructured, known bool) {
	p := place{r, namespace, name}
	for _, u := range w.supposed[r] {
		if u.GetNamespace() == namespace && u.GetName() == name {
			return u, true
		}
	}
	if u, ok := w.got[p]; ok {
		return u, true
	}
	// A list that was read has the object, too.
	for _, within := range []string{namespace, ""} {
		if items, ok := w.lists[place{r, within, ""}]; ok {
			i := slices.IndexFunc(items, func(u unstructured.Unstructured) bool {
				return u.GetName() == name && u.GetNamespace() == namespace
			})
			if i < 0 {
				return nil, true
			}
			return &items[i], true
		}
	}
	u, err := w.source.Get(ctx, r, namespace, name)
	if err != nil {
		if !apierrors.IsNotFound(err) {
			w.unseen.add(p, err)
			return nil, false
		}
		if w.otherVersion(r) {
			return nil, false
		}
		u = nil
	}
	w.got[p] = u
	return u, true
}

// All is List for a resource of any type. The objects are the world's: do not change them.
func (w *World) All(ctx context.Context, r schema.GroupVersionResource, namespace string) (
	items []unstructured.Unstructured, complete bool) {
	items, complete = w.read(ctx, r, namespace)
	for _, s := range w.supposed[r] {
		if namespace != "" && s.GetNamespace() != namespace {
			continue
		}
		items = slices.DeleteFunc(slices.Clone(items), func(u unstructured.Unstructured) bool {
			return u.GetNamespace() == s.GetNamespace() && u.GetName() == s.GetName()
		})
		items = append(items, *s)
	}
	return items, complete
}

// read is All of what the cluster has.
func (w *World) read(ctx context.Context, r schema.GroupVersionResource, namespace string) (
	items []unstructured.Unstructured, complete bool) {
	p := place{r, namespace, ""}
	if items, ok := w.lists[p]; ok {
		return items, true
	}
	items, more, err := w.source.List(ctx, r, namespace)
	switch {
	case apierrors.IsNotFound(err): // the server does not serve the resource: there are none
		if w.otherVersion(r) {
			return nil, false
		}
	case err != nil:
		w.unseen.add(p, err)
		return nil, false
	case more:
		w.unseen.partial(p, len(items))
		return items, false
	}
	w.lists[p] = items
	return items, true
}

// otherVersion reports whether a resource without any find is served in other versions than that of the question, so
// that nobody knows whether there is something. The answer's Unseen says so.
func (w *World) otherVersion(r schema.GroupVersionResource) bool {
	version := w.source.Version(r)
	if version == "" || version == r.Version {
		return false
	}
	w.unseen[fmt.Sprintf("The server has %s as %s, and not as %s, which is read here.", r.GroupResource(),
		version, r.Version)] = true
	return true
}

// Suppose lets the world have an object that the cluster does not have, or has otherwise: what if it were made?
func (w *World) Suppose(r schema.GroupVersionResource, u *unstructured.Unstructured) {
	w.supposed[r] = append(slices.DeleteFunc(w.supposed[r], func(o *unstructured.Unstructured) bool {
		return o.GetNamespace() == u.GetNamespace() && o.GetName() == u.GetName()
	}), u)
}

// ByKind is Object by the kind. A kind that the server does not serve has no objects.
func (w *World) ByKind(ctx context.Context, group, kind, namespace, name string) (
	object *unstructured.Unstructured, known bool) {
	r, err := w.source.Mapping(group, kind)
	if err != nil {
		return nil, noMatch(err)
	}
	return w.Object(ctx, r, namespace, name)
}

// Served reports whether the server serves a kind, and where.
func (w *World) Served(group, kind string) (schema.GroupVersionResource, bool) {
	r, err := w.source.Mapping(group, kind)
	return r, err == nil
}

// Resource reports whether the server serves a resource, and in which version.
func (w *World) Resource(group, resource string) (schema.GroupVersionResource, bool) {
	r, err := w.source.Resource(group, resource)
	return r, err == nil
}

// Events returns the events about an object, the newest first. Those of another object of the same name are left out if
// o has a UID.
func (w *World) Events(ctx context.Context, o Object) []*corev1.Event {
	if list, ok := w.events[o]; ok {
		return list
	}
	items, err := w.source.Events(ctx, o)
	if err != nil {
		w.unseen.add(place{corev1.SchemeGroupVersion.WithResource("events"), o.Namespace, ""}, err)
		return nil
	}
	var list []*corev1.Event
	for i := range items {
		e := convert[corev1.Event](&items[i])
		if o.UID == "" || e.InvolvedObject.UID == o.UID || e.InvolvedObject.UID == "" {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b *corev1.Event) int { return LastSeen(b).Compare(LastSeen(a)) })
	w.events[o] = list
	return list
}

// Allowed reports whether a caller may do something, and why, as the server's authorizers say; known is false if they
// could not be asked.
func (w *World) Allowed(ctx context.Context, a Access) (allowed bool, reason string, known bool) {
	allowed, reason, err := w.source.Allowed(ctx, a)
	if err != nil {
		w.unseen["The authorizers could not be asked: "+safetext.Text(err.Error())+"."] = true
		return false, "", false
	}
	return allowed, reason, true
}

// Self returns the name and the groups of the caller; known is false if the server does not say.
func (w *World) Self(ctx context.Context) (user string, groups []string, known bool) {
	user, groups, err := w.source.Self(ctx)
	if err != nil {
		w.unseen["Your own name could not be asked for: "+safetext.Text(err.Error())+"."] = true
		return "", nil, false
	}
	return user, groups, true
}

// Apply tries to apply an object as a field manager. Nothing is written.
func (w *World) Apply(ctx context.Context, u *unstructured.Unstructured, manager string) error {
	gvk := u.GroupVersionKind()
	r, err := w.source.Mapping(gvk.Group, gvk.Kind)
	if err != nil {
		return err
	}
	return w.source.Apply(ctx, r.GroupResource().WithVersion(gvk.Version), u, manager)
}

// unseen has a sentence for each thing that could not be read.
type unseen map[string]bool

func (u unseen) add(p place, err error) {
	what := fmt.Sprintf("%s %s", p.Resource, cmp.Or(p.name, "(all)"))
	if p.namespace != "" {
		what += " in namespace " + p.namespace
	}
	if apierrors.IsForbidden(err) {
		u[fmt.Sprintf("You may not read %s.", what)] = true
		return
	}
	u[fmt.Sprintf("Reading %s failed: %s.", what, safetext.Text(err.Error()))] = true
}

// Note adds a sentence to the answer's Unseen: what a bound of the explainer left out.
func (w *World) Note(sentence string) { w.unseen[sentence] = true }

func (u unseen) partial(p place, n int) {
	u[fmt.Sprintf("Only the first %d %s were read.", n, p.Resource)] = true
}

// sentences are in the order of the alphabet, so that equal questions have equal answers.
func (u unseen) sentences() []string {
	var list []string
	for s := range u {
		list = append(list, s)
	}
	slices.Sort(list)
	return list
}
