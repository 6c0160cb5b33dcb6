// Package quota says what a ResourceQuota counts: which of its resources an object counts against, how much of each,
// and which quotas an object belongs to by their scopes. Admission charges by it and the controller recounts by it, so
// both always agree.
package quota

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// countPrefix begins the names that count the objects of a resource: count/pods, count/deployments.apps.
const countPrefix = "count/"

// CountName is the name by which a quota counts the objects of gr, in whatever state they are.
func CountName(gr schema.GroupResource) corev1.ResourceName {
	return corev1.ResourceName(countPrefix + gr.String())
}

// alias is the name older than count/… that counts the objects of a core resource, if there is one.
func alias(gr schema.GroupResource) (corev1.ResourceName, bool) {
	if gr.Group != "" {
		return "", false
	}
	switch name := corev1.ResourceName(gr.Resource); name {
	case corev1.ResourceConfigMaps, corev1.ResourceQuotas, corev1.ResourceReplicationControllers,
		corev1.ResourceSecrets, corev1.ResourcePersistentVolumeClaims:
		return name, true
	}
	return "", false
}

// isPods, isServices, isClaims and isDevices report the resources that quotas count by more than the number of objects.
func isPods(gr schema.GroupResource) bool     { return gr == corev1.Resource("pods") }
func isServices(gr schema.GroupResource) bool { return gr == corev1.Resource("services") }
func isClaims(gr schema.GroupResource) bool   { return gr == corev1.Resource("persistentvolumeclaims") }
func isDevices(gr schema.GroupResource) bool  { return gr == resourcev1.Resource("resourceclaims") }

// Ignored reports whether no quota counts the objects of gr: events are bounded by their life, and the rest is not
// stored.
func Ignored(gr schema.GroupResource) bool { return gr == corev1.Resource("events") }

// counts reports whether an object of gr can count against the resource name of a quota.
func counts(gr schema.GroupResource, name corev1.ResourceName) bool {
	if name == CountName(gr) {
		return true
	}
	if other, ok := alias(gr); ok && other == name {
		return true
	}
	return isPods(gr) && countsPods(name) || isServices(gr) && countsServices(name) ||
		isClaims(gr) && countsClaims(name) || isDevices(gr) && countsDevices(name)
}

// Counted returns the resources whose objects count against name; none for a name that counts nothing we know.
func Counted(name corev1.ResourceName) []schema.GroupResource {
	if rest, ok := strings.CutPrefix(string(name), countPrefix); ok {
		return []schema.GroupResource{schema.ParseGroupResource(rest)}
	}
	core := corev1.Resource(string(name))
	if _, ok := alias(core); ok {
		return []schema.GroupResource{core}
	}
	var out []schema.GroupResource
	for _, gr := range []schema.GroupResource{corev1.Resource("persistentvolumeclaims"), corev1.Resource("pods"),
		corev1.Resource("services"), resourcev1.Resource("resourceclaims")} {
		if counts(gr, name) {
			out = append(out, gr)
		}
	}
	return out
}

// Matching returns those of names that objects of gr can count against.
func Matching(gr schema.GroupResource, names corev1.ResourceList) []corev1.ResourceName {
	var out []corev1.ResourceName
	for _, name := range Names(names) {
		if counts(gr, name) {
			out = append(out, name)
		}
	}
	return out
}

// Usage is how much obj, an object of gr, uses of everything that a quota can bound. Pods, services and claims on
// volumes and devices are given as their own types; of other objects nothing is looked at, obj may be nil. A pod that
// is over, or should be at the time now, uses nothing but its place among the objects.
func Usage(gr schema.GroupResource, obj runtime.Object, now time.Time, known Known) corev1.ResourceList {
	used := corev1.ResourceList{CountName(gr): one()}
	if other, ok := alias(gr); ok {
		used[other] = one()
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		addPod(used, o, now)
	case *corev1.Service:
		addService(used, o)
	case *corev1.PersistentVolumeClaim:
		addClaim(used, o)
	case *resourcev1.ResourceClaim:
		addDevices(used, o, known)
	}
	return used
}

func one() resource.Quantity { return number(1) }

func number(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }
