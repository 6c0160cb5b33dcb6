// Package eviction is the pods/eviction subresource: a deletion that asks the pod's disruption budget first.
package eviction

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"bonsai/pkg/apiserver/registry"
)

// REST answers POST …/pods/NAME/eviction.
type REST struct {
	stores registry.Stores
	now    func() time.Time
}

var _ registry.Creater = (*REST)(nil)

// New returns the behaviour. Budgets are read from the poddisruptionbudgets.policy store; where that is not served,
// every eviction is a plain deletion.
func New(stores registry.Stores, now func() time.Time) *REST {
	return &REST{stores: stores, now: now}
}

// New returns an empty Eviction.
func (r *REST) New() runtime.Object { return &policyv1.Eviction{} }

// Create deletes the pod and answers with a Status. 429 when its disruption budget has none left; 409 when the delete
// options' preconditions do not hold.
func (r *REST) Create(ctx context.Context, ns, name string, obj runtime.Object,
	opts *metav1.CreateOptions) (runtime.Object, error) {
	e, ok := obj.(*policyv1.Eviction)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Eviction object: %T", obj))
	}
	if e.Name != name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	del, err := deleteOptions(e, opts)
	if err != nil {
		return nil, err
	}
	again := true
	for n := 0; again && n < attempts; n++ {
		again, err = r.attempt(ctx, ns, name, del)
	}
	if err != nil {
		return nil, err
	}
	return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
		Code: http.StatusCreated}, nil
}

// attempts is how often a pod is judged that changes each time before it can be deleted.
const attempts = 20

// attempt evicts the pod as it is now. A pod that spends no budget goes only as it was judged: one that has become
// ready since would be missed by those that the budget counts. Such a change is a conflict, and again says that it is
// none of the caller's.
func (r *REST) attempt(ctx context.Context, ns, name string, del *metav1.DeleteOptions) (again bool, err error) {
	pods := r.stores.Store(schema.GroupResource{Resource: "pods"}).Admitted()
	current, err := pods.Get(ctx, ns, name)
	if err != nil {
		return false, err
	}
	pod := current.(*corev1.Pod)
	// A budget is not spent on an eviction that cannot be.
	if err := meets(pod, del.Preconditions); err != nil {
		return false, err
	}
	spent := false
	if !free(pod) {
		if spent, err = r.spendBudget(ctx, pod, del.DryRun); err != nil {
			return false, err
		}
	}
	asJudged := !spent && !gone(pod) && (del.Preconditions == nil || del.Preconditions.ResourceVersion == nil)
	if del = del.DeepCopy(); asJudged {
		if del.Preconditions == nil {
			del.Preconditions = &metav1.Preconditions{}
		}
		del.Preconditions.ResourceVersion = &pod.ResourceVersion
	}
	if err = mark(ctx, pods, pod, del, metav1.NewTime(r.now())); err == nil {
		_, _, err = pods.Delete(ctx, ns, name, del)
	}
	return asJudged && apierrors.IsConflict(err), err
}

// deleteOptions joins the eviction's own options, which must be valid, and the request's dry run. Only DELETE removes
// objects that nobody can read: it checks the permission for that.
func deleteOptions(e *policyv1.Eviction, opts *metav1.CreateOptions) (*metav1.DeleteOptions, error) {
	del := &metav1.DeleteOptions{}
	if e.DeleteOptions != nil {
		del = e.DeleteOptions.DeepCopy()
	}
	if ptr.Deref(del.IgnoreStoreReadErrorWithClusterBreakingPotential, false) {
		return nil, apierrors.NewInvalid(policyv1.SchemeGroupVersion.WithKind("Eviction").GroupKind(), e.Name,
			field.ErrorList{field.Invalid(
				field.NewPath("deleteOptions", "ignoreStoreReadErrorWithClusterBreakingPotential"), true,
				"can not be set for pod eviction, try after removing the option")})
	}
	if errs := validation.ValidateDeleteOptions(del); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	if opts == nil || len(opts.DryRun) == 0 {
		return del, nil
	}
	if len(del.DryRun) > 0 && !slices.Equal(del.DryRun, opts.DryRun) {
		return nil, apierrors.NewBadRequest(
			fmt.Sprintf("Non-matching dry-run options in request and content: %v and %v", opts.DryRun, del.DryRun))
	}
	del.DryRun = opts.DryRun
	return del, nil
}

// meets tells by a conflict that pod is not the one that the preconditions ask for.
func meets(pod *corev1.Pod, want *metav1.Preconditions) error {
	var err error
	switch {
	case want == nil:
		return nil
	case want.UID != nil && *want.UID != pod.UID:
		err = fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *want.UID, pod.UID)
	case want.ResourceVersion != nil && *want.ResourceVersion != pod.ResourceVersion:
		err = fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *want.ResourceVersion, pod.ResourceVersion)
	default:
		return nil
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: "Pod"}, pod.Name, err)
}

// mark says in the pod's status why it goes (not in a dry run). As that changes the pod, a resourceVersion that del
// asks for is checked here, and del then asks for the new one.
func mark(ctx context.Context, pods registry.Store, pod *corev1.Pod, del *metav1.DeleteOptions, now metav1.Time) error {
	if len(del.DryRun) > 0 {
		return nil
	}
	marked, err := pods.Update(ctx, pod.Namespace, pod.Name, "status",
		func(current runtime.Object) (runtime.Object, error) {
			p := current.(*corev1.Pod)
			if p.UID != pod.UID {
				return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, pod.Name)
			}
			if err := meets(p, del.Preconditions); err != nil {
				return nil, err
			}
			setDisrupted(p, now)
			return p, nil
		}, &metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if del.Preconditions != nil && del.Preconditions.ResourceVersion != nil {
		version := marked.(*corev1.Pod).ResourceVersion
		del.Preconditions.ResourceVersion = &version
	}
	return nil
}

// setDisrupted sets the condition DisruptionTarget. An earlier time stays.
func setDisrupted(pod *corev1.Pod, now metav1.Time) {
	c := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting", LastTransitionTime: now}
	for i := range pod.Status.Conditions {
		if was := &pod.Status.Conditions[i]; was.Type == c.Type {
			if was.Status == c.Status {
				c.LastTransitionTime = was.LastTransitionTime
			}
			*was = c
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, c)
}

// free reports whether evicting pod disrupts nobody: it is gone already, or never ran.
func free(pod *corev1.Pod) bool { return gone(pod) || pod.Status.Phase == corev1.PodPending }

// gone tells that pod will never be ready again: it has ended, or is going.
func gone(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed ||
		pod.DeletionTimestamp != nil
}
