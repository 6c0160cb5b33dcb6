// Package eviction is the pods/eviction subresource: a deletion that asks the pod's disruption budget first.
package eviction

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/registry"
)

// REST answers POST …/pods/NAME/eviction.
type REST struct {
	stores registry.Stores
	now    func() time.Time
}

var _ registry.Creater = (*REST)(nil)

// New returns the behaviour. Budgets are read from the poddisruptionbudgets.policy store; where that is not served, every
// eviction is a plain deletion.
func New(stores registry.Stores, now func() time.Time) *REST {
	return &REST{stores: stores, now: now}
}

// New returns an empty Eviction.
func (r *REST) New() runtime.Object { return &policyv1.Eviction{} }

// Create deletes the pod and answers with a Status. 429 when its disruption budget has none left; 409 when the delete
// options' preconditions do not hold.
func (r *REST) Create(ctx context.Context, ns, name string, obj runtime.Object, opts *metav1.CreateOptions) (runtime.Object, error) {
	e, ok := obj.(*policyv1.Eviction)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Eviction object: %T", obj))
	}
	if e.Name != name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	del := deleteOptions(e, opts)
	pods := r.stores.Store(schema.GroupResource{Resource: "pods"})
	current, err := pods.Get(ctx, ns, name, true)
	if err != nil {
		return nil, err
	}
	pod := current.(*corev1.Pod)
	if del.Preconditions != nil && del.Preconditions.UID != nil && *del.Preconditions.UID != pod.UID {
		err := fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *del.Preconditions.UID, pod.UID)
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "Pod"}, name, err)
	}
	if !free(pod) {
		if err := r.spendBudget(ctx, pod, del.DryRun); err != nil {
			return nil, err
		}
	}
	if _, _, err := pods.Delete(ctx, ns, name, del); err != nil {
		return nil, err
	}
	return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess, Code: http.StatusCreated}, nil
}

// deleteOptions joins the eviction's own options and the request's dry run.
func deleteOptions(e *policyv1.Eviction, opts *metav1.CreateOptions) *metav1.DeleteOptions {
	del := &metav1.DeleteOptions{}
	if e.DeleteOptions != nil {
		del = e.DeleteOptions.DeepCopy()
	}
	if opts != nil && len(opts.DryRun) > 0 {
		del.DryRun = opts.DryRun
	}
	return del
}

// free tells whether evicting pod disrupts nobody: it has ended, is going already, or never ran.
func free(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending:
		return true
	}
	return pod.DeletionTimestamp != nil
}
