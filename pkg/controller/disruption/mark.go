package disruption

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/controller"
)

func (c *Controller) wakeMarked(p *corev1.Pod) {
	if _, marked := staleIn(p, c.Now()); marked {
		c.stale.Add(controller.KeyOf(p))
	}
}

// staleIn returns how long a pod may stay marked with DisruptionTarget without being deleted; marked is false if
// nothing awaits its deletion: it is deleted, or at its end, or the mark is the kubelet's, which ends the pod itself.
func staleIn(p *corev1.Pod, now time.Time) (left time.Duration, marked bool) {
	m := controller.PodCondition(p, corev1.DisruptionTarget)
	if m == nil || m.Status != corev1.ConditionTrue || m.Reason == corev1.PodReasonTerminationByKubelet ||
		!controller.PodActive(p) {
		return 0, false
	}
	return markTimeout - now.Sub(m.LastTransitionTime.Time), true
}

// reconcilePod takes a stale mark back.
func (c *Controller) reconcilePod(ctx context.Context, key controller.Key) (controller.Result, error) {
	p, ok := c.pods.Get(key)
	if !ok {
		return controller.Result{}, nil
	}
	left, marked := staleIn(p, c.Now())
	if !marked {
		return controller.Result{}, nil
	}
	if left > 0 {
		return controller.Result{RequeueAfter: left}, nil
	}
	// The resourceVersion keeps a mark that was set again meanwhile.
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"resourceVersion":%q},"status":{"conditions":[{"type":"DisruptionTarget","status":"False","reason":null,"message":null,"observedGeneration":%d,"lastTransitionTime":%q}]}}`,
		p.UID, p.ResourceVersion, p.Generation, c.Now().UTC().Format(time.RFC3339))
	_, err := c.marks.Patch(ctx, p.Namespace, p.Name, types.StrategicMergePatchType, []byte(patch), "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return controller.Result{}, fmt.Errorf("taking the condition DisruptionTarget back from pod %s: %w", key, err)
	}
	return controller.Result{}, nil
}
