package resourcequota

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/quota"
	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

// store returns a real store of quotas over a fresh memory, holding qs.
func store(t *testing.T, qs ...*corev1.ResourceQuota) *registry.Generic {
	t.Helper()
	for _, row := range rows.All() {
		if row.GroupResource() != corev1.Resource("resourcequotas") {
			continue
		}
		facts := &storage.FactsTable{}
		g, err := registry.NewGeneric(registry.Config{Row: &row, Storage: memory.New(facts)})
		if err != nil {
			t.Fatal(err)
		}
		facts.Register(registry.Prefix(&row), g.Codec().FactsOf)
		for _, q := range qs {
			if _, err := g.Create(t.Context(), "ns", q.DeepCopy(), &metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			setUsed(t, g, q.Name, q.Status)
		}
		return g
	}
	t.Fatal("no row for quotas")
	return nil
}

func setUsed(t *testing.T, g *registry.Generic, name string, s corev1.ResourceQuotaStatus) {
	t.Helper()
	_, err := g.Update(t.Context(), "ns", name, "status", func(o runtime.Object) (runtime.Object, error) {
		o.(*corev1.ResourceQuota).Status = s
		return o, nil
	}, &metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func used(t *testing.T, g *registry.Generic, name string) string {
	t.Helper()
	obj, err := g.Get(t.Context(), "ns", name)
	if err != nil {
		t.Fatal(err)
	}
	return quota.Text(obj.(*corev1.ResourceQuota).Status.Used)
}

// bounded is a quota whose status has been counted.
func bounded(name string, hard, used corev1.ResourceList, scopes ...corev1.ResourceQuotaScope) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:   corev1.ResourceQuotaSpec{Hard: hard, Scopes: scopes},
		Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}}
}

func creation(resource string, obj runtime.Object) *admission.Attributes {
	return &admission.Attributes{Operation: admission.Create,
		Resource: corev1.SchemeGroupVersion.WithResource(resource), Namespace: "ns", Name: "x", Object: obj}
}

func pod(requests, limits corev1.ResourceList) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{
			{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}}}}
}

func service(t corev1.ServiceType, ports int, version string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version},
		Spec: corev1.ServiceSpec{Type: t, Ports: make([]corev1.ServicePort, ports)}}
}

func update(resource, sub string, obj, old runtime.Object) *admission.Attributes {
	a := creation(resource, obj)
	a.Operation, a.Subresource, a.OldObject = admission.Update, sub, old
	return a
}

func stamped(p *corev1.Pod) *corev1.Pod {
	p.ResourceVersion = "1"
	return p
}

// ending is a pod that is to end by itself.
func ending(p *corev1.Pod, seconds int64) *corev1.Pod {
	p.Spec.ActiveDeadlineSeconds = &seconds
	return stamped(p)
}

// volumeClaim is one on a volume of a size, with the class of attributes that it wants, the one that it has, and what
// is allocated; "" is none.
func volumeClaim(size, wants, has, allocated string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
	c.Spec.Resources.Requests = list("storage", size)
	if wants != "" {
		c.Spec.VolumeAttributesClassName = &wants
	}
	if has != "" {
		c.Status.CurrentVolumeAttributesClassName = &has
	}
	if allocated != "" {
		c.Status.AllocatedResources = list("storage", allocated)
	}
	return c
}

func ofClass(name, class string, hard, used corev1.ResourceList) *corev1.ResourceQuota {
	q := bounded(name, hard, used)
	q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopeVolumeAttributesClass, Operator: corev1.ScopeSelectorOpIn,
			Values: []string{class}}}}
	return q
}

// The messages are what kube-apiserver v1.36 answers.
func TestCharges(t *testing.T) {
	t.Parallel()
	dry := creation("configmaps", &corev1.ConfigMap{})
	dry.DryRun = true
	lease := creation("leases", &corev1.ConfigMap{})
	lease.Resource = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	cluster := creation("configmaps", &corev1.ConfigMap{})
	cluster.Namespace = ""
	for name, c := range map[string]struct {
		quotas []*corev1.ResourceQuota
		a      *admission.Attributes
		err    string
		used   string // of the first quota
	}{
		"room": {[]*corev1.ResourceQuota{
			bounded("q", list("pods", "2", "count/pods", "9"), list("pods", "1", "count/pods", "3"))},
			creation("pods", pod(nil, nil)), "", "count/pods=4,pods=2"},
		"full": {[]*corev1.ResourceQuota{bounded("q", list("pods", "1"), list("pods", "1"))},
			creation("pods", pod(nil, nil)),
			`pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`, "pods=1"},
		"only what is exceeded is named": {
			[]*corev1.ResourceQuota{
				bounded("q", list("requests.cpu", "1", "limits.cpu", "2", "pods", "9"),
					list("requests.cpu", "900m", "limits.cpu", "1", "pods", "0"))},
			creation("pods", pod(list("cpu", "200m"), list("cpu", "1"))),
			`pods "x" is forbidden: exceeded quota: q, requested: requests.cpu=200m, used: requests.cpu=900m, limited: requests.cpu=1`, "limits.cpu=1,pods=0,requests.cpu=900m"},
		"unspecified": {[]*corev1.ResourceQuota{bounded("q", list("limits.cpu", "1"), list("limits.cpu", "0"))},
			creation("pods", pod(nil, nil)),
			`pods "x" is forbidden: failed quota: q: must specify limits.cpu for: c`, "limits.cpu=0"},
		"not counted yet": {[]*corev1.ResourceQuota{bounded("q", list("pods", "1"), nil)},
			creation("pods", pod(nil, nil)),
			`pods "x" is forbidden: status unknown for quota: q, resources: pods`, ""},
		"a refusal charges no other quota": {
			[]*corev1.ResourceQuota{bounded("a", list("pods", "1"), list("pods", "0")),
				bounded("b", list("pods", "0"), list("pods", "0"))}, creation("pods", pod(nil, nil)),
			`pods "x" is forbidden: exceeded quota: b, requested: pods=1, used: pods=0, limited: pods=0`, "pods=0"},
		"out of scope": {
			[]*corev1.ResourceQuota{
				bounded("q", list("pods", "0"), list("pods", "0"), corev1.ResourceQuotaScopeTerminating)},
			creation("pods", pod(nil, nil)), "", "pods=0"},
		"nothing bounded": {[]*corev1.ResourceQuota{bounded("q", list("secrets", "0"), list("secrets", "0"))},
			creation("configmaps", &corev1.ConfigMap{}), "", "secrets=0"},
		"any kind": {
			[]*corev1.ResourceQuota{
				bounded("q", list("count/leases.coordination.k8s.io", "1"),
					list("count/leases.coordination.k8s.io", "0"))}, lease, "", "count/leases.coordination.k8s.io=1"},
		"dry run": {
			[]*corev1.ResourceQuota{bounded("q", list("configmaps", "1"), list("configmaps", "0"))}, dry, "",
			"configmaps=0"},
		"events are free": {
			[]*corev1.ResourceQuota{bounded("q", list("count/events", "0"), list("count/events", "0"))},
			creation("events", &corev1.Event{}), "", "count/events=0"},
		"no namespace": {
			[]*corev1.ResourceQuota{bounded("q", list("configmaps", "0"), list("configmaps", "0"))}, cluster, "",
			"configmaps=0"},
		"update is free": {
			[]*corev1.ResourceQuota{bounded("q", list("configmaps", "0"), list("configmaps", "0"))},
			update("configmaps", "", &corev1.ConfigMap{}, &corev1.ConfigMap{}), "", "configmaps=0"},
		"service that grows": {
			[]*corev1.ResourceQuota{
				bounded("q", list("services", "1", "services.nodeports", "2"),
					list("services", "1", "services.nodeports", "0"))},
			update("services", "", service("NodePort", 2, "1"), service("ClusterIP", 2, "1")), "",
			"services=1,services.nodeports=2"},
		"service that shrinks": {
			[]*corev1.ResourceQuota{bounded("q", list("services.nodeports", "2"), list("services.nodeports", "2"))},
			update("services", "", service("ClusterIP", 2, "1"), service("NodePort", 2, "1")), "",
			"services.nodeports=2"},
		"service too big": {[]*corev1.ResourceQuota{
			bounded("q", list("services.nodeports", "1"), list("services.nodeports", "0"))},
			update("services", "", service("NodePort", 2, "1"), service("ClusterIP", 2, "1")),
			`services "x" is forbidden: exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=0, limited: services.nodeports=1`, "services.nodeports=0"},
		"resize": {[]*corev1.ResourceQuota{
			bounded("q", list("cpu", "3", "requests.memory", "3"), list("cpu", "2", "requests.memory", "3"))},
			update("pods", "resize", stamped(pod(list("cpu", "2", "memory", "1"), nil)),
				stamped(pod(list("cpu", "1", "memory", "2"), nil))), "", "cpu=3,requests.memory=2"},
		"pod update is free": {[]*corev1.ResourceQuota{bounded("q", list("pods", "0"), list("pods", "0"))},
			update("pods", "", stamped(pod(nil, nil)), stamped(pod(nil, nil))), "", "pods=0"},
		"pod that enters a scope": {
			[]*corev1.ResourceQuota{
				bounded("q", list("pods", "1", "requests.cpu", "2"), list("pods", "0", "requests.cpu", "0"),
					corev1.ResourceQuotaScopeTerminating)},
			update("pods", "", ending(pod(list("cpu", "2"), nil), 9), stamped(pod(list("cpu", "2"), nil))), "",
			"pods=1,requests.cpu=2"},
		"pod that enters a full scope": {
			[]*corev1.ResourceQuota{
				bounded("q", list("pods", "1"), list("pods", "1"), corev1.ResourceQuotaScopeTerminating)},
			update("pods", "", ending(pod(nil, nil), 9), stamped(pod(nil, nil))),
			`pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`, "pods=1"},
		"pod that leaves a scope": {
			[]*corev1.ResourceQuota{
				bounded("q", list("pods", "2"), list("pods", "2"), corev1.ResourceQuotaScopeNotTerminating)},
			update("pods", "", ending(pod(nil, nil), 9), stamped(pod(nil, nil))), "", "pods=2"},
		"pod that stays in a full scope": {
			[]*corev1.ResourceQuota{
				bounded("q", list("pods", "1"), list("pods", "1"), corev1.ResourceQuotaScopeTerminating)},
			update("pods", "", ending(pod(nil, nil), 5), ending(pod(nil, nil), 9)), "", "pods=1"},
		"pod's status": {[]*corev1.ResourceQuota{
			bounded("q", list("pods", "1"), list("pods", "1"), corev1.ResourceQuotaScopeTerminating)},
			update("pods", "status", ending(pod(nil, nil), 9), stamped(pod(nil, nil))), "", "pods=1"},
		"claim that enters a class": {
			[]*corev1.ResourceQuota{
				ofClass("q", "gold", list("requests.storage", "1Gi"), list("requests.storage", "0"))},
			update("persistentvolumeclaims", "", volumeClaim("1Gi", "gold", "", ""), volumeClaim("1Gi", "", "", "")),
			"", "requests.storage=1Gi"},
		"claim that enters a full class": {
			[]*corev1.ResourceQuota{
				ofClass("q", "gold", list("requests.storage", "1Gi"), list("requests.storage", "1Gi"))},
			update("persistentvolumeclaims", "", volumeClaim("1Gi", "gold", "", ""), volumeClaim("1Gi", "", "", "")),
			`persistentvolumeclaims "x" is forbidden: exceeded quota: q, requested: requests.storage=1Gi, used: requests.storage=1Gi, limited: requests.storage=1Gi`, "requests.storage=1Gi"},
		"claim whose status says the class": {
			[]*corev1.ResourceQuota{
				ofClass("q", "gold", list("requests.storage", "1Gi"), list("requests.storage", "1Gi"))},
			update("persistentvolumeclaims", "status", volumeClaim("1Gi", "", "gold", ""),
				volumeClaim("1Gi", "", "", "")), "", "requests.storage=2Gi"},
		"claim whose status says a size": {
			[]*corev1.ResourceQuota{bounded("q", list("requests.storage", "1Gi"), list("requests.storage", "1Gi"))},
			update("persistentvolumeclaims", "status", volumeClaim("1Gi", "", "", "3Gi"),
				volumeClaim("1Gi", "", "", "")), "", "requests.storage=3Gi"},
	} {
		g := store(t, c.quotas...)
		got := ""
		if err := New(g, nil, nil, nil, time.Now).Validator.Validate(t.Context(), c.a); err != nil {
			got = err.Error()
		}
		if got != c.err {
			t.Errorf("%s: got %q, want %q", name, got, c.err)
		}
		if now := used(t, g, c.quotas[0].Name); now != c.used {
			t.Errorf("%s: used %s, want %s", name, now, c.used)
		}
	}
}

// TestConcurrency: of twenty creators by two servers, a quota of five lets exactly five pass.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	g := store(t, bounded("q", list("pods", "5"), list("pods", "0")),
		bounded("r", list("count/pods", "9"), list("count/pods", "0")))
	servers := []admission.Plugin{New(g, nil, nil, nil, time.Now), New(g, nil, nil, nil, time.Now)}
	var all sync.WaitGroup
	var mu sync.Mutex
	passed, refused := 0, 0
	for i := range 20 {
		all.Go(func() {
			err := servers[i%2].Validator.Validate(t.Context(), creation("pods", pod(nil, nil)))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				passed++
			} else if want := `pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5`; err.Error() == want {
				refused++
			} else {
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	if passed != 5 || refused != 15 || used(t, g, "q") != "pods=5" {
		t.Errorf("%d passed, %d were refused, used: %s", passed, refused, used(t, g, "q"))
	}
}

// late is a store whose lists are of an earlier time.
type late struct {
	*registry.Generic
	was []runtime.Object
}

func (l late) List(context.Context, string, string) ([]runtime.Object, error) { return l.was, nil }

// TestLateCache: neither room that is not there any more is given away, nor is what has become free refused.
func TestLateCache(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		was, is string
		err     string
	}{
		"was free": {"0", "1", `pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`},
		"was full": {"1", "0", ""},
	} {
		g := store(t, bounded("q", list("pods", "1"), list("pods", c.is)))
		old := bounded("q", list("pods", "1"), list("pods", c.was))
		old.Namespace = "ns"
		got := ""
		if err := New(late{g, []runtime.Object{old}}, nil, nil, nil, time.Now).Validator.Validate(t.Context(),
			creation("pods", pod(nil, nil))); err != nil {
			got = err.Error()
		}
		if got != c.err || used(t, g, "q") != "pods=1" {
			t.Errorf("%s: got %q, used %s", name, got, used(t, g, "q"))
		}
	}
	gone := bounded("q", list("pods", "0"), list("pods", "0"))
	gone.Namespace = "ns"
	if err := New(late{store(t), []runtime.Object{gone}}, nil, nil, nil, time.Now).Validator.Validate(t.Context(),
		creation("pods", pod(nil, nil))); err != nil {
		t.Errorf("a quota that is gone bounds nothing: got %v", err)
	}
}

// failing is a store that cannot write.
type failing struct{ *registry.Generic }

func (failing) Update(context.Context, string, string, string, func(runtime.Object) (runtime.Object, error),
	*metav1.UpdateOptions) (runtime.Object, error) {
	return nil, errors.New("no storage")
}

func TestNothingPassesUncharged(t *testing.T) {
	t.Parallel()
	g := store(t, bounded("q", list("pods", "1"), list("pods", "0")))
	err := New(failing{g}, nil, nil, nil, time.Now).Validator.Validate(t.Context(), creation("pods", pod(nil, nil)))
	if err == nil || err.Error() != "charging quota ns/q: no storage" {
		t.Errorf("got %v", err)
	}
}

// TestDesks: who comes while others are served is served together with those beside him, one namespace not waiting for
// another.
func TestDesks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d desks
		var mu sync.Mutex
		batches := map[string][]int{}
		open := make(chan struct{})
		serve := func(ns string) func([]*claim) {
			return func(batch []*claim) {
				mu.Lock()
				batches[ns] = append(batches[ns], len(batch))
				mu.Unlock()
				if ns == "slow" {
					<-open
				}
				for _, c := range batch {
					c.err = errors.New("served")
				}
			}
		}
		var all sync.WaitGroup
		come := func(ns string, n int) {
			for range n {
				all.Go(func() {
					c := newClaim(&admission.Attributes{})
					d.queue(ns, c, serve(ns))
					if c.err == nil {
						t.Errorf("somebody left %s before being served", ns)
					}
				})
			}
			synctest.Wait()
		}
		come("slow", 1)
		come("slow", 9)
		come("quick", 1)
		come("quick", 1)
		close(open)
		all.Wait()
		if got := fmt.Sprint(batches); got != "map[quick:[1 1] slow:[1 9]]" {
			t.Errorf("batches %s", got)
		}
		if len(d.open) != 0 {
			t.Errorf("%d desks stay open", len(d.open))
		}
	})
}
