package statefulset

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/podcontrol"
)

// words are Kubernetes' events. A create that finds the pod existing records none: either the cache is late, or another
// owner's pod has the name, and every retry would record the same event.
func words(verb podcontrol.Verb, owner apiclient.Object, pod string, err error) podcontrol.Words {
	what := fmt.Sprintf("%s Pod %s in StatefulSet %s ", verb, pod, owner.GetName())
	switch {
	case err == nil:
		return podcontrol.Words{Reason: "Successful" + string(verb), Message: what + "successful"}
	case verb == podcontrol.VerbCreate && apierrors.IsAlreadyExists(err):
		return podcontrol.Words{}
	}
	return podcontrol.Words{Reason: "Failed" + string(verb), Message: what + "failed error: " + err.Error()}
}

// sayClaim records the result of creating a pod's claim as an event.
func (c *Controller) sayClaim(set *appsv1.StatefulSet, claim, pod string, err error) {
	if controller.NamespaceEnding(err) {
		return
	}
	if err != nil {
		c.Events.Eventf(set, corev1.EventTypeWarning, "FailedCreate",
			"Create Claim %s for Pod %s in StatefulSet %s failed error: %v", claim, pod, set.Name, err)
		return
	}
	c.Events.Eventf(set, corev1.EventTypeNormal, "SuccessfulCreate", "Create Claim %s Pod %s in StatefulSet %s success",
		claim, pod, set.Name)
}

// sayUnprovided records that a pod is not created because of its claims.
func (c *Controller) sayUnprovided(set *appsv1.StatefulSet, pod string, err error) {
	if controller.NamespaceEnding(err) {
		return
	}
	w := words(podcontrol.VerbCreate, set, pod, fmt.Errorf("failed to create PVC %w", err))
	c.Events.Event(set, corev1.EventTypeWarning, w.Reason, w.Message)
}

// repair gives pods back the labels that name them.
func (c *Controller) repair(ctx context.Context, set *appsv1.StatefulSet, pods []*corev1.Pod) error {
	var errs []error
	for _, p := range pods {
		patch, err := identityPatch(set, p)
		if err == nil {
			_, err = c.control.Pods.Patch(ctx, p.Namespace, p.Name, types.MergePatchType, patch)
		}
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			continue
		}
		w := words("Update", set, p.Name, err)
		if err != nil {
			errs = append(errs, fmt.Errorf("repairing the labels of pod %s/%s: %w", p.Namespace, p.Name, err))
			c.Events.Event(set, corev1.EventTypeWarning, w.Reason, w.Message)
			continue
		}
		c.Events.Event(set, corev1.EventTypeNormal, w.Reason, w.Message)
	}
	return errors.Join(errs...)
}
