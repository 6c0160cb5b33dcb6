package rollout

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/kubectl/resource"
)

// statefulSet keeps its history in ControllerRevisions.
type statefulSet struct{ appsv1.StatefulSet }

func (s *statefulSet) object() runtime.Object { return &s.StatefulSet }

func (s *statefulSet) podTemplate() *corev1.PodTemplateSpec { return &s.Spec.Template }

func (s *statefulSet) noHistory() error { return errNoRevision }

func (s *statefulSet) history(ctx context.Context, c *resource.Client) ([]revision, error) {
	return controllerRevisions(ctx, c, s, s.Spec.Selector, func() workload { return &statefulSet{} })
}

func (s *statefulSet) progress(int64) (message string, done bool, err error) {
	if s.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		return "", true, fmt.Errorf("rollout status is only available for %s strategy type",
			appsv1.RollingUpdateStatefulSetStrategyType)
	}
	st := s.Status
	if st.ObservedGeneration == 0 || s.Generation > st.ObservedGeneration {
		return "Waiting for statefulset spec update to be observed...\n", false, nil
	}
	if s.Spec.Replicas != nil && st.ReadyReplicas < *s.Spec.Replicas {
		return fmt.Sprintf("Waiting for %d pods to be ready...\n", *s.Spec.Replicas-st.ReadyReplicas), false, nil
	}
	if u := s.Spec.UpdateStrategy.RollingUpdate; u != nil && u.Partition != nil && s.Spec.Replicas != nil {
		if due := *s.Spec.Replicas - *u.Partition; st.UpdatedReplicas < due {
			return fmt.Sprintf("Waiting for partitioned roll out to finish: %d out of %d new pods have been updated...\n", st.UpdatedReplicas, due), false, nil
		}
		return fmt.Sprintf("partitioned roll out complete: %d new pods have been updated...\n", st.UpdatedReplicas),
			true, nil
	}
	if st.UpdateRevision != st.CurrentRevision {
		return fmt.Sprintf("waiting for statefulset rolling update to complete %d pods at revision %s...\n",
			st.UpdatedReplicas, st.UpdateRevision), false, nil
	}
	return fmt.Sprintf("statefulset rolling update complete %d pods at revision %s...\n", st.CurrentReplicas,
		st.CurrentRevision), true, nil
}
