// Package admit runs the API server's own admission plug-ins on objects that do not exist yet: what these would be
// given, and why they would be refused. The plug-ins are those that are on by default and that decide by objects, which
// they read with the caller's rights. Webhooks are not asked, and policies in CEL are not evaluated. Quotas, which
// count, are left to the caller.
package admit

import (
	"context"
	"errors"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/podspec"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/defaultstorageclass"
	"bonsai/pkg/apiserver/admission/limitranger"
	"bonsai/pkg/apiserver/admission/namespacelifecycle"
	"bonsai/pkg/apiserver/admission/podsecurity"
	"bonsai/pkg/apiserver/admission/priority"
	"bonsai/pkg/apiserver/admission/runtimeclass"
	"bonsai/pkg/apiserver/admission/serviceaccount"
	"bonsai/pkg/why"
)

// errUnread says that the caller may not read what a plug-in asks for. The answer's Unseen says so.
var errUnread = errors.New("could not be read")

// sight is what admission's plug-ins look at. blind says that the last one could not read what it asked for: plug-ins
// make refusals of such errors, which are none.
type sight struct {
	*why.World
	blind bool
}

// reader gives an admission plug-in the objects of a type that the caller can read.
type reader[T any] struct{ *sight }

// Get implements registry.Getter.
func (r reader[T]) Get(ctx context.Context, namespace, name string) (runtime.Object, error) {
	o, known := why.Get[T](ctx, r.World, namespace, name)
	switch {
	case o != nil:
		return object(o)
	case known:
		return nil, apierrors.NewNotFound(why.ResourceOf[T]().GroupResource(), name)
	}
	r.blind = true
	return nil, errUnread
}

// GetCached implements registry.Getter.
func (r reader[T]) GetCached(ctx context.Context, namespace, name string) (runtime.Object, error) {
	return r.Get(ctx, namespace, name)
}

// List implements registry.Reader. No plug-in here selects by labels.
func (r reader[T]) List(ctx context.Context, namespace, _ string) (list []runtime.Object, err error) {
	all, complete := why.List[T](ctx, r.World, namespace, nil)
	if r.blind = r.blind || !complete; r.blind {
		return nil, errUnread
	}
	for _, one := range all {
		o, err := object(one)
		if err != nil {
			return nil, err
		}
		list = append(list, o)
	}
	return list, nil
}

func object(o any) (runtime.Object, error) {
	typed, ok := o.(runtime.Object)
	if !ok {
		return nil, errors.New("no object of the API")
	}
	return typed, nil
}

// Admission is the plug-ins of one question. Use it from one goroutine.
type Admission struct {
	sight   *sight
	plugins []admission.Plugin
}

// New returns the admission of a cluster.
func New(c *why.Case) *Admission {
	w := &sight{World: c.World}
	return &Admission{sight: w, plugins: []admission.Plugin{
		namespacelifecycle.New(reader[corev1.Namespace]{w}),
		limitranger.New(reader[corev1.LimitRange]{w}),
		serviceaccount.New(serviceaccount.Config{ServiceAccounts: reader[corev1.ServiceAccount]{w},
			Suffix: func() string { return "token" }}),
		podsecurity.New(podsecurity.Config{Namespaces: reader[corev1.Namespace]{w}, Pods: reader[corev1.Pod]{w},
			Now: func() time.Time { return c.Now }}),
		priority.New(reader[schedulingv1.PriorityClass]{w}),
		defaultstorageclass.New(reader[storagev1.StorageClass]{w}),
		runtimeclass.New(reader[nodev1.RuntimeClass]{w}),
	}}
}

// forbidden begins a refusal: it names an object that the answer names itself.
var forbidden = regexp.MustCompile(`^\S+ "[^"]*" is forbidden: `)

// Pod completes a new pod as the API server would, and returns why it would refuse it, "" if it would not.
func (x *Admission) Pod(ctx context.Context, pod *corev1.Pod) string {
	podspec.DefaultPod(&pod.Spec)
	if pod.Spec.PriorityClassName != "" {
		// A pod that is made again has what its class said then, which the class may say otherwise now.
		pod.Spec.Priority, pod.Spec.PreemptionPolicy = nil, nil
	}
	if pod.Spec.RuntimeClassName != nil {
		pod.Spec.Overhead = nil
	}
	return x.pass(ctx, &admission.Attributes{Operation: admission.Create, Object: pod, Namespace: pod.Namespace,
		Name: pod.Name, Kind: corev1.SchemeGroupVersion.WithKind("Pod"),
		Resource: corev1.SchemeGroupVersion.WithResource("pods"), Warn: func(string) {}})
}

// Claim does the same for a claim.
func (x *Admission) Claim(ctx context.Context, claim *corev1.PersistentVolumeClaim) string {
	return x.pass(ctx, &admission.Attributes{Operation: admission.Create, Object: claim, Namespace: claim.Namespace,
		Name: claim.Name, Kind: corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
		Resource: corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), Warn: func(string) {}})
}

// pass runs the plug-ins. One that could not read what it needs is taken to let the object pass.
func (x *Admission) pass(ctx context.Context, a *admission.Attributes) string {
	for _, p := range x.plugins {
		if p.Mutator == nil {
			continue
		}
		x.sight.blind = false
		if err := p.Mutator.Admit(ctx, a); err != nil && !x.sight.blind {
			return forbidden.ReplaceAllString(err.Error(), "")
		}
	}
	if pod, ok := a.Object.(*corev1.Pod); ok {
		podspec.DefaultPodResources(&pod.Spec)
	}
	for _, p := range x.plugins {
		if p.Validator == nil {
			continue
		}
		x.sight.blind = false
		if err := p.Validator.Validate(ctx, a); err != nil && !x.sight.blind {
			return forbidden.ReplaceAllString(err.Error(), "")
		}
	}
	return ""
}
