package runtimeclass

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/admission"
)

// classes are RuntimeClasses by name.
type classes map[string]*nodev1.RuntimeClass

func (c classes) Get(_ context.Context, _, name string) (runtime.Object, error) {
	if class, ok := c[name]; ok {
		return class.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(nodev1.Resource("runtimeclasses"), name)
}

func (c classes) GetCached(ctx context.Context, ns, name string) (runtime.Object, error) {
	return c.Get(ctx, ns, name)
}

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
}

// TestAdmit: the answers are those of a kube-apiserver v1.36.3 to the same pods.
func TestAdmit(t *testing.T) {
	t.Parallel()
	evicted := corev1.Toleration{Key: "k", Operator: "Exists", Effect: "NoExecute"}
	evictedIn := func(s int64) corev1.Toleration {
		l := evicted
		l.TolerationSeconds = &s
		return l
	}
	z := corev1.Toleration{Key: "z", Value: "1"}
	all := classes{
		"plain":     {},
		"over":      {Overhead: &nodev1.Overhead{PodFixed: amounts("250m", "1Mi")}},
		"emptyover": {Overhead: &nodev1.Overhead{}},
		"sched": {Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"a": "b", "c": "d"},
			Tolerations: []corev1.Toleration{evictedIn(5), z}}},
		"wide": {Scheduling: &nodev1.Scheduling{Tolerations: []corev1.Toleration{{Key: "q"}}}},
	}
	const without = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
	const other = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
	ab := map[string]string{"a": "b", "c": "d"}
	for name, c := range map[string]struct {
		class     string
		spec      corev1.PodSpec
		op        admission.Operation
		want      corev1.PodSpec
		forbidden string
	}{
		"no class":                {},
		"overhead of no class":    {spec: corev1.PodSpec{Overhead: amounts("1", "1")}, forbidden: without},
		"no overhead of no class": {spec: corev1.PodSpec{Overhead: corev1.ResourceList{}}, forbidden: without},
		"missing":                 {class: "nope", forbidden: `pod rejected: RuntimeClass "nope" not found`},
		"invalid name":            {class: "A b", forbidden: `pod rejected: RuntimeClass "A b" not found`},
		"an update":               {class: "nope", op: admission.Update},
		"plain":                   {class: "plain"},
		"overhead":                {class: "over", want: corev1.PodSpec{Overhead: amounts("250m", "1Mi")}},
		"the same overhead": {class: "over", spec: corev1.PodSpec{Overhead: amounts("0.25", "1Mi")},
			want: corev1.PodSpec{Overhead: amounts("0.25", "1Mi")}},
		"other overhead": {class: "over", spec: corev1.PodSpec{Overhead: amounts("1", "1Mi")},
			forbidden: other},
		"empty overhead": {class: "over", spec: corev1.PodSpec{Overhead: corev1.ResourceList{}},
			want: corev1.PodSpec{Overhead: amounts("250m", "1Mi")}},
		"overhead of a class without": {class: "plain", spec: corev1.PodSpec{Overhead: amounts("1", "1")},
			forbidden: without},
		"overhead of a class with none": {class: "emptyover", spec: corev1.PodSpec{Overhead: amounts("1", "1")},
			forbidden: other},
		"a class with no overhead": {class: "emptyover"},
		"scheduling": {class: "sched",
			want: corev1.PodSpec{NodeSelector: ab, Tolerations: []corev1.Toleration{evictedIn(5), z}}},
		"more of a selector": {class: "sched",
			spec: corev1.PodSpec{NodeSelector: map[string]string{"x": "y"}},
			want: corev1.PodSpec{NodeSelector: map[string]string{"x": "y", "a": "b", "c": "d"},
				Tolerations: []corev1.Toleration{evictedIn(5), z}}},
		"another selector": {class: "sched",
			spec:      corev1.PodSpec{NodeSelector: map[string]string{"a": "x", "c": "x"}},
			forbidden: "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = x"},
		"a pod that tolerates for longer": {class: "sched",
			spec: corev1.PodSpec{Tolerations: []corev1.Toleration{evicted}},
			want: corev1.PodSpec{NodeSelector: ab, Tolerations: []corev1.Toleration{evicted, z}}},
		"a class that tolerates for longer": {class: "sched",
			spec: corev1.PodSpec{Tolerations: []corev1.Toleration{evictedIn(3),
				{Key: "z", Operator: "Equal", Value: "1"}}},
			want: corev1.PodSpec{NodeSelector: ab, Tolerations: []corev1.Toleration{evictedIn(5), z}}},
		"a pod that tolerates all": {class: "sched",
			spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: "Exists"}, z,
				{Key: "z", Value: "1", Effect: "NoSchedule"}}},
			want: corev1.PodSpec{NodeSelector: ab, Tolerations: []corev1.Toleration{{Operator: "Exists"}}}},
		"values differ": {class: "wide",
			spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "q", Value: "x"},
				{Key: "q", Effect: "NoSchedule"}, {Key: "q", Operator: "Exists", Effect: "NoSchedule"}}},
			want: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "q", Value: "x"},
				{Key: "q", Operator: "Exists", Effect: "NoSchedule"}, {Key: "q"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod, want := &corev1.Pod{Spec: c.spec}, c.want
			if c.class != "" {
				pod.Spec.RuntimeClassName, want.RuntimeClassName = &c.class, &c.class
			}
			op := c.op
			if op == "" {
				op = admission.Create
			}
			a := &admission.Attributes{Operation: op, Resource: corev1.SchemeGroupVersion.WithResource("pods"),
				Name: "p", Object: pod}
			err := New(all).Mutator.Admit(t.Context(), a)
			switch {
			case c.forbidden != "":
				if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), ": "+c.forbidden) {
					t.Errorf("%v, want %s", err, c.forbidden)
				}
			case err != nil:
				t.Error(err)
			case !apiequality.Semantic.DeepEqual(pod.Spec, want):
				t.Errorf("%+v, want %+v", pod.Spec, want)
			}
		})
	}
}
