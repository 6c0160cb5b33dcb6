package limitranger

import (
	"context"
	"errors"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/admission"
)

type ranges []runtime.Object

func (r ranges) List(context.Context, string, string) ([]runtime.Object, error) { return r, nil }

type broken struct{}

func (broken) List(context.Context, string, string) ([]runtime.Object, error) {
	return nil, errors.New("no storage")
}

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func limitRange(items ...corev1.LimitRangeItem) *corev1.LimitRange {
	return &corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: items}}
}

func container(requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func pod(containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: containers}}
}

func creation(p *corev1.Pod) *admission.Attributes {
	return &admission.Attributes{Operation: admission.Create, Resource: corev1.SchemeGroupVersion.WithResource("pods"),
		Namespace: "ns", Object: p}
}

// The messages are what kube-apiserver v1.36 answers.
func TestBounds(t *testing.T) {
	t.Parallel()
	of := func(t corev1.LimitType, min, max, ratio corev1.ResourceList) *corev1.LimitRange {
		return limitRange(corev1.LimitRangeItem{Type: t, Min: min, Max: max, MaxLimitRequestRatio: ratio})
	}
	const each, all = corev1.LimitTypeContainer, corev1.LimitTypePod
	initial := pod(container(list("cpu", "1"), list("cpu", "1")))
	initial.Spec.InitContainers = []corev1.Container{container(list("cpu", "1"), list("cpu", "3"))}
	levelled := pod(container(nil, nil))
	levelled.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu", "1"), Limits: list("cpu", "3")}
	tidy := pod(container(list("cpu", "1"), list("cpu", "1")))
	tidy.Spec.Overhead = list("cpu", "5")
	for name, c := range map[string]struct {
		limits *corev1.LimitRange
		pod    *corev1.Pod
		err    string
	}{
		"within": {of(each, list("cpu", "1"), list("cpu", "2"), list("cpu", "2")),
			pod(container(list("cpu", "1"), list("cpu", "2"))), ""},
		"limit too high": {of(each, nil, list("cpu", "500m"), nil), pod(container(nil, list("cpu", "600m"))),
			"maximum cpu usage per Container is 500m, but limit is 600m"},
		"request too high": {of(each, nil, list("cpu", "500m"), nil),
			pod(container(list("cpu", "600m"), list("cpu", "500m"))),
			"maximum cpu usage per Container is 500m, but request is 600m"},
		"no limit": {of(each, nil, list("cpu", "500m"), nil), pod(container(list("cpu", "1"), nil)),
			"maximum cpu usage per Container is 500m.  No limit is specified"},
		"request too low": {of(each, list("cpu", "500m"), nil, nil), pod(container(list("cpu", "400m"), nil)),
			"minimum cpu usage per Container is 500m, but request is 400m"},
		"limit too low": {of(each, list("cpu", "500m"), nil, nil),
			pod(container(list("cpu", "500m"), list("cpu", "400m"))),
			"minimum cpu usage per Container is 500m, but limit is 400m"},
		"no request": {of(each, list("cpu", "500m"), nil, nil), pod(container(nil, nil)),
			"minimum cpu usage per Container is 500m.  No request is specified"},
		"ratio": {of(each, nil, nil, list("cpu", "1500m")),
			pod(container(list("cpu", "100m"), list("cpu", "151m"))),
			"cpu max limit to request ratio per Container is 1500m, but provided ratio is 1.510000"},
		"ratio just so": {of(each, nil, nil, list("memory", "1500m")),
			pod(container(list("memory", "100Mi"), list("memory", "150Mi"))), ""},
		"ratio, no request": {of(each, nil, nil, list("cpu", "2")), pod(container(list("cpu", "0"), list("cpu", "1"))),
			"cpu max limit to request ratio per Container is 2, but no request is specified or request is 0"},
		"ratio, no limit": {of(each, nil, nil, list("cpu", "2")), pod(container(list("cpu", "1"), nil)),
			"cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0"},
		"several": {of(each, list("memory", "1Gi"), list("cpu", "1"), nil),
			pod(container(list("memory", "1Mi"), list("cpu", "2")), container(list("memory", "1Gi"), list("cpu", "3"))),
			"[minimum memory usage per Container is 1Gi, but request is 1Mi, maximum cpu usage per Container is 1, but limit is 2, maximum cpu usage per Container is 1, but limit is 3]"},
		"init container": {of(each, nil, list("cpu", "2"), nil), initial,
			"maximum cpu usage per Container is 2, but limit is 3"},
		"pod": {of(all, nil, list("cpu", "1"), nil),
			pod(container(nil, list("cpu", "600m")), container(nil, list("cpu", "600m"))),
			"maximum cpu usage per Pod is 1, but limit is 1200m"},
		"pod, part unlimted": {of(all, nil, list("cpu", "1"), nil),
			pod(container(nil, list("cpu", "600m")), container(nil, nil)), ""},
		"pod, none limited": {of(all, nil, list("cpu", "1"), nil), pod(container(nil, nil)),
			"maximum cpu usage per Pod is 1.  No limit is specified"},
		"pod's init": {of(all, nil, list("cpu", "2"), nil), initial,
			"maximum cpu usage per Pod is 2, but limit is 3"},
		"pod level": {of(all, nil, list("cpu", "2"), list("cpu", "2")), levelled,
			"[maximum cpu usage per Pod is 2, but limit is 3, cpu max limit to request ratio per Pod is 2, but provided ratio is 3.000000]"},
		"overhead is free": {of(all, nil, list("cpu", "1"), nil), tidy, ""},
		"volume claims": {of(corev1.LimitTypePersistentVolumeClaim, list("storage", "1Gi"), nil, nil),
			pod(container(nil, nil)), ""},
	} {
		err := New(ranges{c.limits}).Validator.Validate(t.Context(), creation(c.pod))
		got := ""
		if err != nil {
			got = err.Error()
		}
		want := c.err
		if want != "" {
			want = `pods "p" is forbidden: ` + want
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// The annotation is what kube-apiserver v1.36 writes.
func TestDefaults(t *testing.T) {
	t.Parallel()
	first := limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: list("cpu", "500m"),
		DefaultRequest: list("cpu", "100m", "memory", "1Mi")},
		corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: list("cpu", "9")})
	second := limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer,
		Default: list("cpu", "900m", "memory", "2Mi")})
	p := pod(container(list("cpu", "200m"), nil))
	p.Spec.InitContainers = []corev1.Container{{Name: "i"}}
	a := creation(p)
	if err := New(ranges{first}).Mutator.Admit(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	want := "LimitRanger plugin set: memory request for container c; cpu limit for container c; cpu, memory request for init container i; cpu limit for init container i"
	if got := p.Annotations["kubernetes.io/limit-ranger"]; got != want {
		t.Errorf("annotation %q, want %q", got, want)
	}
	want2 := corev1.ResourceRequirements{Requests: list("cpu", "200m", "memory", "1Mi"), Limits: list("cpu", "500m")}
	if got := p.Spec.Containers[0].Resources; !reflect.DeepEqual(got, want2) {
		t.Errorf("container: got %v, want %v", got, want2)
	}
	if err := New(ranges{first, second}).Mutator.Admit(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if got := p.Spec.Containers[0].Resources.Limits; !reflect.DeepEqual(got, list("cpu", "500m", "memory", "2Mi")) {
		t.Errorf("the first range with a default decides: got %v", got)
	}
	whole := pod(container(list("cpu", "1", "memory", "1"), list("cpu", "1")))
	if err := New(ranges{first}).Mutator.Admit(t.Context(), creation(whole)); err != nil || whole.Annotations != nil {
		t.Errorf("nothing to fill in: %v, %v", err, whole.Annotations)
	}
}

// Requests of running pods change only by resize.
func TestOperations(t *testing.T) {
	t.Parallel()
	strict := ranges{limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: list("cpu", "1")})}
	going := pod(container(nil, nil))
	going.DeletionTimestamp = &metav1.Time{}
	for name, c := range map[string]struct {
		op      admission.Operation
		sub     string
		obj     runtime.Object
		old     runtime.Object
		refused bool
	}{
		"create":                      {admission.Create, "", pod(container(nil, nil)), nil, true},
		"update":                      {admission.Update, "", pod(container(nil, nil)), pod(), false},
		"status":                      {admission.Update, "status", pod(container(nil, nil)), pod(), false},
		"resize":                      {admission.Update, "resize", pod(container(nil, nil)), pod(), true},
		"resize of a pod that leaves": {admission.Update, "resize", pod(container(nil, nil)), going, false},
		"binding":                     {admission.Create, "binding", &corev1.Binding{}, nil, false},
		"delete":                      {admission.Delete, "", nil, going, false},
	} {
		a := creation(nil)
		a.Operation, a.Subresource, a.Object, a.OldObject, a.Name = c.op, c.sub, c.obj, c.old, "p"
		if err := New(strict).Validator.Validate(t.Context(), a); (err != nil) != c.refused {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := New(broken{}).Mutator.Admit(t.Context(), creation(pod())); err == nil ||
		err.Error() != "listing the limit ranges of namespace ns: no storage" {
		t.Errorf("without storage: got %v", err)
	}
}
