// Package binding assigns a pod to a node: the pods/binding subresource, and the bindings resource that takes the pod's
// name from the object.
package binding

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/apiserver/registry"
)

// REST answers POST …/pods/NAME/binding and POST …/bindings.
type REST struct {
	stores registry.Stores
	now    func() time.Time
}

var _ registry.Creater = (*REST)(nil)

// New returns the behaviour of both paths. now stamps the PodScheduled condition.
func New(stores registry.Stores, now func() time.Time) *REST {
	return &REST{stores: stores, now: now}
}

// New returns an empty Binding.
func (r *REST) New() runtime.Object { return &corev1.Binding{} }

// Create binds the pod to obj's target node and answers with a Status. name is empty for the bindings resource. A pod
// that is deleted, gated or has a node already is refused with 409; the UID and resourceVersion of the binding, if set,
// must be the pod's.
//
// The checks are part of the change, on the pod as it is when it is written. So of two schedulers that bind one pod,
// the second gets the 409. The store is an admitted one: admission has judged the binding, and the write of the pod is
// only how it is carried out.
func (r *REST) Create(ctx context.Context, ns, name string, obj runtime.Object,
	opts *metav1.CreateOptions) (runtime.Object, error) {
	b, ok := obj.(*corev1.Binding)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Binding object: %T", obj))
	}
	if name == "" {
		name = b.Name
	}
	if name == "" {
		return nil, apierrors.NewBadRequest("Name parameter required.")
	}
	if name != b.Name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	if errs := validate(b); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Binding"}, name, errs)
	}
	pods := r.stores.Store(schema.GroupResource{Resource: "pods"}).Admitted()
	change := func(current runtime.Object) (runtime.Object, error) {
		pod := current.(*corev1.Pod)
		return pod, bind(pod, b, metav1.NewTime(r.now()))
	}
	var dry []string
	if opts != nil {
		dry = opts.DryRun
	}
	if _, err := pods.Update(ctx, ns, name, "binding", change, &metav1.UpdateOptions{DryRun: dry}); err != nil {
		if status := apierrors.APIStatus(nil); errors.As(err, &status) || ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("binding pod %s/%s: %w", ns, name, err)
	}
	return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
		Code: http.StatusCreated}, nil
}

// validate checks what does not depend on the pod.
func validate(b *corev1.Binding) field.ErrorList {
	var errs field.ErrorList
	target := field.NewPath("target")
	if kind := b.Target.Kind; kind != "" && kind != "Node" {
		errs = append(errs, field.NotSupported(target.Child("kind"), kind, []string{"Node", "<empty>"}))
	}
	if b.Target.Name == "" {
		errs = append(errs, field.Required(target.Child("name"), ""))
	}
	return errs
}

// bind changes pod as b says. Annotations of the binding replace those of the pod, labels do not: what selects the pod
// stays. It may run several times, each time on the newest pod.
func bind(pod *corev1.Pod, b *corev1.Binding, now metav1.Time) error {
	if err := precondition(pod, b); err != nil {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, pod.Name, err)
	}
	if err := refuse(pod); err != nil {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, pod.Name, err)
	}
	pod.Spec.NodeName = b.Target.Name
	pod.Status.NominatedNodeName = "" // the wait for the node is over
	for k, v := range b.Annotations {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, k, v)
	}
	for k, v := range b.Labels {
		if _, set := pod.Labels[k]; !set {
			metav1.SetMetaDataLabel(&pod.ObjectMeta, k, v)
		}
	}
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			if c.Status == corev1.ConditionTrue {
				scheduled.LastTransitionTime = c.LastTransitionTime
			}
			scheduled.ObservedGeneration = c.ObservedGeneration
			*c = scheduled
			return nil
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, scheduled)
	return nil
}

// precondition checks that the pod is the one the binding was made for.
func precondition(pod *corev1.Pod, b *corev1.Binding) error {
	switch {
	case b.UID != "" && b.UID != pod.UID:
		return fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", b.UID, pod.UID)
	case b.ResourceVersion != "" && b.ResourceVersion != pod.ResourceVersion:
		return fmt.Errorf("Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", b.ResourceVersion, pod.ResourceVersion)
	}
	return nil
}

// refuse says why pod cannot be bound, nil if it can.
func refuse(pod *corev1.Pod) error {
	switch {
	case pod.DeletionTimestamp != nil:
		return fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", pod.Name)
	case pod.Spec.NodeName != "":
		return fmt.Errorf("pod %v is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) > 0:
		return fmt.Errorf("pod %v has non-empty .spec.schedulingGates", pod.Name)
	}
	return nil
}
