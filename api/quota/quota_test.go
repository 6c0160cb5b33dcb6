package quota

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// list makes a ResourceList of name, amount, name, amount…
func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func container(name string, requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func pod(containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: containers}}
}

// https://kubernetes.io/docs/concepts/policy/resource-quotas/
func TestUsage(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	pods, services := corev1.Resource("pods"), corev1.Resource("services")
	asks := container("c", list("cpu", "1", "memory", "1Gi", "ephemeral-storage", "2Gi", "hugepages-2Mi", "4Mi",
		"example.com/gpu", "2"),
		list("cpu", "2", "hugepages-2Mi", "4Mi", "example.com/gpu", "2"))
	deleted := func(at int64) *corev1.Pod {
		p := pod(asks)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = ptr.To(metav1.Unix(at, 0)), ptr.To[int64](30)
		return p
	}
	ended := pod(asks)
	ended.Status.Phase = corev1.PodSucceeded
	alive := list("count/pods", "1", "pods", "1", "cpu", "1", "requests.cpu", "1", "limits.cpu", "2", "memory", "1Gi",
		"requests.memory", "1Gi",
		"ephemeral-storage", "2Gi", "requests.ephemeral-storage", "2Gi", "hugepages-2Mi", "4Mi",
		"requests.hugepages-2Mi", "4Mi", "requests.example.com/gpu", "2")
	initial := pod(container("c", list("cpu", "1"), nil), container("d", list("cpu", "1"), nil))
	initial.Spec.InitContainers = []corev1.Container{container("i", list("cpu", "3"), nil)}
	service := func(s corev1.ServiceSpec) *corev1.Service {
		s.Ports = []corev1.ServicePort{{Port: 1, NodePort: 30001}, {Port: 2}}
		return &corev1.Service{Spec: s}
	}
	for name, c := range map[string]struct {
		gr   schema.GroupResource
		obj  runtime.Object
		want corev1.ResourceList
	}{
		"pod":                   {pods, pod(asks), alive},
		"being deleted":         {pods, deleted(980), alive},
		"stuck after its grace": {pods, deleted(960), list("count/pods", "1")},
		"ended":                 {pods, ended, list("count/pods", "1")},
		"init container": {pods, initial,
			list("count/pods", "1", "pods", "1", "cpu", "3", "requests.cpu", "3")},
		"service": {services, service(corev1.ServiceSpec{}),
			list("count/services", "1", "services", "1", "services.nodeports", "0", "services.loadbalancers", "0")},
		"node ports": {services, service(corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}),
			list("count/services", "1", "services", "1", "services.nodeports", "2", "services.loadbalancers", "0")},
		"load balancer": {services, service(corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}),
			list("count/services", "1", "services", "1", "services.nodeports", "2", "services.loadbalancers", "1")},
		"balancer without ports": {services,
			service(corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer,
				AllocateLoadBalancerNodePorts: ptr.To(false)}),
			list("count/services", "1", "services", "1", "services.nodeports", "1", "services.loadbalancers", "1")},
		"older name": {corev1.Resource("secrets"), nil, list("count/secrets", "1", "secrets", "1")},
		"group": {schema.GroupResource{Group: "apps", Resource: "deployments"}, nil,
			list("count/deployments.apps", "1")},
		"same name, other group": {schema.GroupResource{Group: "example.com", Resource: "secrets"}, nil,
			list("count/secrets.example.com", "1")},
		"no older name for a quota": {corev1.Resource("serviceaccounts"), nil, list("count/serviceaccounts", "1")},
	} {
		got := Usage(c.gr, c.obj, now, Known{})
		if !Equal(got, c.want) {
			t.Errorf("%s: got %s, want %s", name, Text(got), Text(c.want))
		}
		for n := range got {
			if !counts(c.gr, n) {
				t.Errorf("%s: %s is used but does not count", name, n)
			}
			want := []schema.GroupResource{c.gr}
			if n == "requests.example.com/gpu" { // which devices may give, too
				want = append(want, resourcev1.Resource("resourceclaims"))
			}
			if by := Counted(n); !slices.Equal(by, want) {
				t.Errorf("%s: %s counts %v, want %v", name, n, by, want)
			}
		}
	}
	for _, n := range []corev1.ResourceName{"requests.kubernetes.io/x", "limits.example.com/gpu",
		"limits.hugepages-2Mi", "example.com/gpu"} {
		if by := Counted(n); len(by) > 0 {
			t.Errorf("%s counts %v, want nothing", n, by)
		}
	}
}

// The messages are what kube-apiserver v1.36 answers.
func TestUnspecified(t *testing.T) {
	t.Parallel()
	full := container("full", list("cpu", "1", "memory", "1"), list("cpu", "1", "memory", "1"))
	levelled := pod(container("c", nil, nil))
	levelled.Spec.Resources = &corev1.ResourceRequirements{Limits: list("cpu", "1")}
	initial := pod(full)
	initial.Spec.InitContainers = []corev1.Container{container("b", nil, nil), container("a", nil, nil)}
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		names []corev1.ResourceName
		want  string
	}{
		"all said": {pod(full), []corev1.ResourceName{"cpu", "limits.memory"}, ""},
		"nothing wanted": {pod(container("c", nil, nil)),
			[]corev1.ResourceName{"pods", "requests.ephemeral-storage", "requests.example.com/gpu"}, ""},
		"for the pod": {levelled, []corev1.ResourceName{"limits.memory"}, ""},
		"one": {pod(container("c", list("cpu", "1"), nil), full),
			[]corev1.ResourceName{"limits.cpu", "cpu", "requests.cpu"}, "must specify limits.cpu for: c"},
		"several": {pod(container("c", nil, nil)), []corev1.ResourceName{"requests.memory", "limits.cpu"},
			"must specify limits.cpu for: c; requests.memory for: c"},
		"init containers": {initial, []corev1.ResourceName{"memory"}, "must specify memory for: a,b"},
	} {
		got := ""
		if err := Unspecified(c.pod, c.names); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestInScope(t *testing.T) {
	t.Parallel()
	effort := pod(container("c", nil, nil))
	burst := pod(container("c", list("cpu", "1"), nil))
	ends := pod(container("c", nil, nil))
	ends.Spec.ActiveDeadlineSeconds = ptr.To[int64](1)
	high := pod(container("c", nil, nil))
	high.Spec.PriorityClassName = "high"
	cross := pod(container("c", nil, nil))
	cross.Spec.Affinity = &corev1.Affinity{
		PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{PodAffinityTerm: corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{}}}}}}
	named := pod(container("c", nil, nil))
	named.Spec.Affinity = &corev1.Affinity{
		PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{Namespaces: []string{"x"}}}}}
	scopes := func(s ...corev1.ResourceQuotaScope) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{Scopes: s}
	}
	class := func(op corev1.ScopeSelectorOperator, values ...string) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{
			ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
				{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: op, Values: values}}}}
	}
	for name, c := range map[string]struct {
		spec    corev1.ResourceQuotaSpec
		in, out []*corev1.Pod
	}{
		"none":        {scopes(), []*corev1.Pod{effort, burst, ends}, nil},
		"Terminating": {scopes(corev1.ResourceQuotaScopeTerminating), []*corev1.Pod{ends}, []*corev1.Pod{effort}},
		"NotTerminating": {scopes(corev1.ResourceQuotaScopeNotTerminating), []*corev1.Pod{effort},
			[]*corev1.Pod{ends}},
		"BestEffort": {scopes(corev1.ResourceQuotaScopeBestEffort), []*corev1.Pod{effort}, []*corev1.Pod{burst}},
		"NotBestEffort": {scopes(corev1.ResourceQuotaScopeNotBestEffort), []*corev1.Pod{burst},
			[]*corev1.Pod{effort}},
		"both": {scopes(corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeTerminating),
			[]*corev1.Pod{ends}, []*corev1.Pod{effort, burst}},
		"across": {scopes(corev1.ResourceQuotaScopeCrossNamespacePodAffinity), []*corev1.Pod{cross, named},
			[]*corev1.Pod{effort}},
		"class": {scopes(corev1.ResourceQuotaScopePriorityClass), []*corev1.Pod{high},
			[]*corev1.Pod{effort}},
		"class in": {class(corev1.ScopeSelectorOpIn, "low", "high"), []*corev1.Pod{high},
			[]*corev1.Pod{effort}},
		"class not in":     {class(corev1.ScopeSelectorOpNotIn, "high"), []*corev1.Pod{effort}, []*corev1.Pod{high}},
		"class not there":  {class(corev1.ScopeSelectorOpDoesNotExist), []*corev1.Pod{effort}, []*corev1.Pod{high}},
		"class exists":     {class(corev1.ScopeSelectorOpExists), []*corev1.Pod{high}, []*corev1.Pod{effort}},
		"unknown operator": {class("Like", "high"), nil, []*corev1.Pod{effort, high}},
		"of other kinds":   {scopes(corev1.ResourceQuotaScopeVolumeAttributesClass), nil, []*corev1.Pod{effort, burst}},
	} {
		for _, p := range c.in {
			if !InScope(&c.spec, corev1.Resource("pods"), p) {
				t.Errorf("%s: %+v is not in scope", name, p.Spec)
			}
		}
		for _, p := range c.out {
			if InScope(&c.spec, corev1.Resource("pods"), p) {
				t.Errorf("%s: %+v is in scope", name, p.Spec)
			}
		}
		if none := name == "none"; InScope(&c.spec, corev1.Resource("configmaps"), nil) != none {
			t.Errorf("%s: config maps are in scope: %v, want %v", name, !none, none)
		}
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	a, b := list("cpu", "1", "pods", "2"), list("cpu", "500m", "memory", "1Gi")
	if got := Text(Add(a, b)); got != "cpu=1500m,memory=1Gi,pods=2" {
		t.Errorf("sum: %s", got)
	}
	if got := Text(Subtract(a, b)); got != "cpu=500m,memory=-1Gi,pods=2" {
		t.Errorf("difference: %s", got)
	}
	if got := Text(Mask(a, []corev1.ResourceName{"pods", "secrets"})); got != "pods=2" {
		t.Errorf("mask: %s", got)
	}
	if got := Beyond(list("cpu", "2", "pods", "2", "secrets", "9"), list("cpu", "1", "pods", "2")); len(got) != 1 ||
		got[0] != "cpu" {
		t.Errorf("beyond: %v", got)
	}
	if !Equal(list("cpu", "1"), list("cpu", "1000m")) || Equal(a, b) || Equal(a, list("cpu", "1")) {
		t.Error("equality is not that of amounts")
	}
	if Text(a) != "cpu=1,pods=2" || Text(b) != "cpu=500m,memory=1Gi" {
		t.Errorf("the operands have changed: %s, %s", Text(a), Text(b))
	}
}
