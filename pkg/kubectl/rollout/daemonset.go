package rollout

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/kubectl/resource"
)

// daemonSet keeps its history in ControllerRevisions.
type daemonSet struct{ appsv1.DaemonSet }

func (d *daemonSet) object() runtime.Object { return &d.DaemonSet }

func (d *daemonSet) podTemplate() *corev1.PodTemplateSpec { return &d.Spec.Template }

func (d *daemonSet) noHistory() error { return errNoRevision }

func (d *daemonSet) history(ctx context.Context, c *resource.Client) ([]revision, error) {
	return controllerRevisions(ctx, c, d, d.Spec.Selector, func() workload { return &daemonSet{} })
}

func (d *daemonSet) progress(int64) (message string, done bool, err error) {
	if d.Spec.UpdateStrategy.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		return "", true, fmt.Errorf("rollout status is only available for %s strategy type",
			appsv1.RollingUpdateDaemonSetStrategyType)
	}
	if d.Generation > d.Status.ObservedGeneration {
		return "Waiting for daemon set spec update to be observed...\n", false, nil
	}
	s := d.Status
	wait := fmt.Sprintf("Waiting for daemon set %q rollout to finish: ", d.Name)
	switch {
	case s.UpdatedNumberScheduled < s.DesiredNumberScheduled:
		return wait + fmt.Sprintf("%d out of %d new pods have been updated...\n", s.UpdatedNumberScheduled,
			s.DesiredNumberScheduled), false, nil
	case s.NumberAvailable < s.DesiredNumberScheduled:
		return wait + fmt.Sprintf("%d of %d updated pods are available...\n", s.NumberAvailable,
			s.DesiredNumberScheduled), false, nil
	}
	return fmt.Sprintf("daemon set %q successfully rolled out\n", d.Name), true, nil
}
