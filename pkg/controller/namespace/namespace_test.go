package namespace

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

const (
	in       = "/api/v1/namespaces/ns/"
	finalize = "PUT /api/v1/namespaces/ns/finalize"
	status   = "PUT /api/v1/namespaces/ns/status"
)

var start = time.Unix(1_000_000, 0)

// world is what a namespace holds, as the server sees it: objects by resource.
type world struct {
	mu      sync.Mutex
	objects map[string][]metav1.PartialObjectMetadata
	sticky  map[string]bool  // resources whose deletion takes its time
	answers map[string]error // by call
	single  bool             // nothing supports deletecollection
	stale   bool             // an aggregated group is down
	ns      *corev1.Namespace
}

func object(name string, finalizers ...string) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Finalizers: finalizers}}
}

func (w *world) answer(c controllertest.Call) (runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.answers[c.Name()]; err != nil {
		return nil, err
	}
	switch ns, ok := c.Object.(*corev1.Namespace); {
	case ok:
		w.ns = ns
		return ns, nil
	case c.Path == "/api" || c.Path == "/apis":
		return w.discovery(c.Path), nil
	}
	resource, name, _ := strings.Cut(strings.TrimPrefix(c.Path, in), "/")
	if c.Method == http.MethodDelete && !w.sticky[resource] {
		w.objects[resource] = slices.DeleteFunc(w.objects[resource], func(o metav1.PartialObjectMetadata) bool {
			return len(o.Finalizers) == 0 && (name == "" || name == o.Name)
		})
	}
	return &metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
		Items:    w.objects[resource]}, nil
}

func (w *world) discovery(path string) runtime.Object {
	verbs := []string{"list", "delete", "deletecollection"}
	if w.single {
		verbs = verbs[:2]
	}
	row := func(resource, kind string, scope apidiscoveryv2.ResourceScope,
		verbs []string) apidiscoveryv2.APIResourceDiscovery {
		return apidiscoveryv2.APIResourceDiscovery{Resource: resource,
			ResponseKind: &metav1.GroupVersionKind{Kind: kind}, Scope: scope, Verbs: verbs}
	}
	group := apidiscoveryv2.APIGroupDiscovery{
		Versions: []apidiscoveryv2.APIVersionDiscovery{
			{Version: "v1", Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
				Resources: []apidiscoveryv2.APIResourceDiscovery{
					row("configmaps", "ConfigMap", apidiscoveryv2.ScopeNamespace, verbs),
					row("pods", "Pod", apidiscoveryv2.ScopeNamespace, verbs),
					row("nodes", "Node", apidiscoveryv2.ScopeCluster, verbs),
					row("bindings", "Binding", apidiscoveryv2.ScopeNamespace, []string{"create"}),
				}}}}
	if path == "/apis" {
		group = apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: "metrics.example.com"},
			Versions: []apidiscoveryv2.APIVersionDiscovery{{Version: "v1"}}}
		if w.stale {
			group.Versions[0].Freshness = apidiscoveryv2.DiscoveryFreshnessStale
		}
	}
	return &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"},
		Items:    []apidiscoveryv2.APIGroupDiscovery{group}}
}

// conditions lists the bad conditions as "Type: Reason: Message".
func conditions(ns *corev1.Namespace) []string {
	var bad []string
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			bad = append(bad, string(c.Type)+": "+c.Reason+": "+c.Message)
		}
	}
	slices.Sort(bad)
	return bad
}

func leaving() *corev1.Namespace {
	return &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "ns", DeletionTimestamp: &metav1.Time{Time: start}},
		Spec: corev1.NamespaceSpec{
			Finalizers: []corev1.FinalizerName{"example.com/other", corev1.FinalizerKubernetes}},
		Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating},
	}
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	objects := func(pods, maps []metav1.PartialObjectMetadata) map[string][]metav1.PartialObjectMetadata {
		return map[string][]metav1.PartialObjectMetadata{"pods": pods, "configmaps": maps}
	}
	one := []metav1.PartialObjectMetadata{object("a")}
	held := []metav1.PartialObjectMetadata{object("a"), object("b", "example.com/hold", "example.com/keep"),
		object("c", "example.com/hold")}
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil)
	absent := apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "")
	for _, c := range []struct {
		name      string
		world     *world
		gone      bool // the finalizer went
		again     bool // comes back with a growing delay
		fails     bool
		bad       []string
		untouched string // no call but reads of this resource
	}{
		{name: "empty", world: &world{}, gone: true},
		{name: "all goes", world: &world{objects: objects(one, one)}, gone: true},
		{name: "one by one where there is no collection", world: &world{objects: objects(one, one), single: true},
			gone: true},
		{name: "collections refused as a method", world: &world{objects: objects(nil, one), answers: map[string]error{
			"DELETE " + in + "configmaps": apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "configmaps"},
				"deletecollection")}}, gone: true},
		{name: "no longer served", world: &world{answers: map[string]error{"GET " + in + "configmaps": absent}},
			gone: true},
		{name: "pods end first", world: &world{objects: objects(one, one), sticky: map[string]bool{"pods": true}},
			again: true, untouched: "configmaps",
			bad: []string{"NamespaceContentRemaining: SomeResourcesRemain: Some resources are remaining: pods. has 1 resource instances"}},
		{name: "held by finalizers", world: &world{objects: objects(nil, held)}, again: true, bad: []string{
			"NamespaceContentRemaining: SomeResourcesRemain: Some resources are remaining: configmaps. has 2 resource instances",
			"NamespaceFinalizersRemaining: SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/hold in 2 resource instances, example.com/keep in 1 resource instances"}},
		{name: "deletion refused",
			world: &world{objects: objects(nil, one),
				answers: map[string]error{"DELETE " + in + "configmaps": refused}}, fails: true, bad: []string{
				"NamespaceContentRemaining: SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances",
				"NamespaceDeletionContentFailure: ContentDeletionFailed: Failed to delete all resource types, 1 remaining: deleting configmaps: " + refused.Error()}},
		{name: "list refused", world: &world{answers: map[string]error{"GET " + in + "configmaps": refused}},
			fails: true, bad: []string{
				"NamespaceDeletionContentFailure: ContentDeletionFailed: Failed to delete all resource types, 1 remaining: listing configmaps: " + refused.Error()}},
		{name: "a group is down, the others are emptied", world: &world{objects: objects(nil, one), stale: true},
			fails: true, bad: []string{
				"NamespaceDeletionDiscoveryFailure: DiscoveryFailed: Discovery failed for some groups, 1 failing: metrics.example.com/v1: stale GroupVersion discovery"}},
		{name: "no discovery at all",
			world: &world{objects: objects(nil, one),
				answers: map[string]error{"GET /apis": apierrors.NewServiceUnavailable("later")}}, fails: true,
			untouched: "configmaps",
			bad:       []string{"NamespaceDeletionDiscoveryFailure: DiscoveryFailed: Discovery failed for some groups, 1 failing: reading discovery from /apis: the server is currently unable to handle the request"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := c.world
			if w.objects == nil {
				w.objects = objects(nil, nil)
			}
			for r, list := range w.objects { // the rows share theirs
				w.objects[r] = slices.Clone(list)
			}
			fake := &controllertest.Fake{Answer: w.answer}
			ctl, err := New(fake.Deps(t, start))
			if err != nil {
				t.Fatal(err)
			}
			controllertest.Put(t, ctl.namespaces, leaving())
			res, err := ctl.Reconcile(t.Context(), controller.Key{Name: "ns"})
			if (err != nil) != c.fails || res.Backoff != c.again {
				t.Errorf("result %+v, error %v", res, err)
			}
			if got := slices.Contains(w.ns.Spec.Finalizers, corev1.FinalizerKubernetes); got == c.gone ||
				w.ns.Spec.Finalizers[0] != "example.com/other" {
				t.Errorf("finalizers %v", w.ns.Spec.Finalizers)
			}
			if got := conditions(w.ns); !slices.Equal(got, c.bad) || len(w.ns.Status.Conditions) != 5 {
				t.Errorf("conditions\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.bad, "\n"))
			}
			names := fake.Names()
			if got := slices.Contains(names, finalize); got != c.gone {
				t.Errorf("finalized: %v", got)
			}
			for _, n := range names {
				if c.untouched != "" && strings.Contains(n, c.untouched) && !strings.HasPrefix(n, "GET") {
					t.Errorf("%s came too early", n)
				}
				if strings.Contains(n, "nodes") || strings.Contains(n, "bindings") {
					t.Errorf("%s: not part of a namespace's content", n)
				}
			}
		})
	}
}

// TestLeftAlone: a namespace that lives, or whose finalizer is gone already, causes no request.
func TestLeftAlone(t *testing.T) {
	t.Parallel()
	living, done := leaving(), leaving()
	living.DeletionTimestamp, done.Spec.Finalizers = nil, nil
	for _, ns := range []*corev1.Namespace{living, done} {
		fake := &controllertest.Fake{}
		ctl, err := New(fake.Deps(t, start))
		if err != nil {
			t.Fatal(err)
		}
		controllertest.Put(t, ctl.namespaces, ns)
		if res, err := ctl.Reconcile(t.Context(), controller.Key{Name: "ns"}); err != nil ||
			res != (controller.Result{}) || len(fake.Calls()) != 0 {
			t.Errorf("%+v, %v after %v", res, err, fake.Names())
		}
	}
}

// TestPhaseComesFirst: from the first moment everybody sees that nothing can be made in the namespace any more.
func TestPhaseComesFirst(t *testing.T) {
	t.Parallel()
	w := &world{objects: map[string][]metav1.PartialObjectMetadata{}}
	fake := &controllertest.Fake{Answer: w.answer}
	ctl, err := New(fake.Deps(t, start))
	if err != nil {
		t.Fatal(err)
	}
	ns := leaving()
	ns.Status.Phase = corev1.NamespaceActive
	controllertest.Put(t, ctl.namespaces, ns)
	if _, err := ctl.Reconcile(t.Context(), controller.Key{Name: "ns"}); err != nil {
		t.Fatal(err)
	}
	first := fake.Calls()[0]
	if first.Name() != status || first.Object.(*corev1.Namespace).Status.Phase != corev1.NamespaceTerminating {
		t.Errorf("first call is %s", first.Name())
	}
}

// TestConditionsKeepTheirTime unless their status turns.
func TestConditionsKeepTheirTime(t *testing.T) {
	t.Parallel()
	var st corev1.NamespaceStatus
	pods := schema.GroupResource{Resource: "pods"}
	for i, c := range []struct {
		left int
		want time.Duration
	}{{0, 0}, {3, time.Minute}, {2, time.Minute}, {0, 3 * time.Minute}} {
		f := findings{remaining: map[schema.GroupResource]int{}}
		if c.left > 0 {
			f.remaining[pods] = c.left
		}
		setConditions(&st, f, start.Add(time.Duration(i)*time.Minute))
		for _, cond := range st.Conditions {
			if cond.Type == corev1.NamespaceContentRemaining &&
				(cond.LastTransitionTime.Sub(start) != c.want ||
					(cond.Status == corev1.ConditionTrue) != (c.left > 0)) {
				t.Errorf("step %d: %+v", i, cond)
			}
			if cond.Type == corev1.NamespaceDeletionDiscoveryFailure && !cond.LastTransitionTime.Time.Equal(start) {
				t.Errorf("step %d: %+v", i, cond)
			}
		}
	}
}
