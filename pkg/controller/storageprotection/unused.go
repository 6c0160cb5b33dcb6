package storageprotection

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/podindex"
)

// unused returns what writes into a claim's condition Unused whether no pod uses it, and since when: what has been
// unused for long may be deleted. Pods count before they have a node, and no longer once they have ended or are being
// deleted.
//
// Only bound claims that are to stay have the condition kept. A claim that is not bound yet belongs to the binder,
// which writes its status too.
func unused(c *Controller[*corev1.PersistentVolumeClaim], users podindex.ByClaim) func(context.Context,
	*corev1.PersistentVolumeClaim) error {
	return func(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
		if claim.Status.Phase != corev1.ClaimBound || claim.DeletionTimestamp != nil {
			return nil
		}
		want := corev1.PersistentVolumeClaimCondition{Type: corev1.PersistentVolumeClaimUnused,
			Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.Now()),
			Reason: "NoPodsUsingPVC", Message: "No pods are currently referencing this PVC"}
		if slices.ContainsFunc(users.Using(controller.KeyOf(claim)), func(p *corev1.Pod) bool {
			return controller.PodActive(p) && mounts(p, claim)
		}) {
			want.Status, want.Reason, want.Message = corev1.ConditionFalse, "PodUsingPVC",
				"A pod is currently referencing this PVC"
		}
		claim = claim.DeepCopy()
		at := slices.IndexFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
			return c.Type == want.Type
		})
		switch {
		case at < 0:
			claim.Status.Conditions = append(claim.Status.Conditions, want)
		case claim.Status.Conditions[at].Status == want.Status:
			return nil
		default:
			claim.Status.Conditions[at] = want
		}
		if _, err := c.writes.UpdateStatus(ctx, claim); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("writing whether claim %s/%s is used: %w", claim.Namespace, claim.Name, err)
		}
		return nil
	}
}
