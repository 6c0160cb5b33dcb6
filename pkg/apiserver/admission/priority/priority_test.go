package priority

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"bonsai/pkg/apiserver/admission"
)

type classes []*schedulingv1.PriorityClass

func (c classes) Get(_ context.Context, _, name string) (runtime.Object, error) {
	for _, x := range c {
		if x.Name == name {
			return x, nil
		}
	}
	return nil, apierrors.NewNotFound(schedulingv1.Resource("priorityclasses"), name)
}

func (c classes) GetCached(ctx context.Context, ns, name string) (runtime.Object, error) {
	return c.Get(ctx, ns, name)
}

func (c classes) List(context.Context, string, string) (list []runtime.Object, err error) {
	for _, x := range c {
		list = append(list, x)
	}
	return list, nil
}

func class(name string, value int32, byDefault bool) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value,
		GlobalDefault: byDefault, PreemptionPolicy: ptr.To(corev1.PreemptNever)}
}

// The messages are what kube-apiserver v1.36 answers.
func TestPods(t *testing.T) {
	t.Parallel()
	none, some := classes{class("high", 7, false)},
		classes{class("high", 7, false), class("g2", 9, true), class("g1", 5, true)}
	for name, c := range map[string]struct {
		classes  classes
		spec     corev1.PodSpec
		priority int32
		class    string
		policy   corev1.PreemptionPolicy
		err      string
	}{
		"nothing":           {none, corev1.PodSpec{}, 0, "", corev1.PreemptLowerPriority, ""},
		"the lower default": {some, corev1.PodSpec{}, 5, "g1", corev1.PreemptNever, ""},
		"by name":           {none, corev1.PodSpec{PriorityClassName: "high"}, 7, "high", corev1.PreemptNever, ""},
		"right number": {none, corev1.PodSpec{PriorityClassName: "high", Priority: ptr.To[int32](7)}, 7, "high",
			corev1.PreemptNever, ""},
		"no such class": {none, corev1.PodSpec{PriorityClassName: "nope"}, 0, "", "",
			`pods "p" is forbidden: no PriorityClass with name nope was found`},
		"own number": {none, corev1.PodSpec{Priority: ptr.To[int32](7)}, 0, "", "",
			`pods "p" is forbidden: the integer value of priority (7) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name`},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: c.spec}
		a := &admission.Attributes{Operation: admission.Create,
			Resource: corev1.SchemeGroupVersion.WithResource("pods"), Object: p}
		err := New(c.classes).Mutator.Admit(context.Background(), a)
		if err != nil || c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: got %v", name, err)
			}
			continue
		}
		if *p.Spec.Priority != c.priority || p.Spec.PriorityClassName != c.class ||
			*p.Spec.PreemptionPolicy != c.policy {
			t.Errorf("%s: got %+v", name, p.Spec)
		}
	}
}

func TestOneDefault(t *testing.T) {
	t.Parallel()
	a := &admission.Attributes{Operation: admission.Create,
		Resource: schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"), Object: class("g2", 1, true)}
	err := New(classes{class("g1", 5, true)}).Validator.Validate(context.Background(), a)
	if err == nil || err.Error() !=
		`priorityclasses.scheduling.k8s.io "g2" is forbidden: PriorityClass g1 is already marked as default. Only one default can exist` {
		t.Errorf("got %v", err)
	}
	a.Object = class("g1", 6, true)
	if err := New(classes{class("g1", 5, true)}).Validator.Validate(context.Background(), a); err != nil {
		t.Errorf("itself: got %v", err)
	}
}

func TestSystemClassesStay(t *testing.T) {
	t.Parallel()
	for name, stays := range map[string]bool{"system-node-critical": true, "system-cluster-critical": true,
		"mine": false} {
		a := &admission.Attributes{Operation: admission.Delete,
			Resource: schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"), Name: name}
		if err := New(classes{}).Validator.Validate(t.Context(), a); (err != nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}
