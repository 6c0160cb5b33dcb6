package rollout

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	n := int32(3)
	for want, s := range map[string]appsv1.DeploymentStatus{
		"Waiting for deployment spec update to be observed...\n":                                         {},
		"Waiting for deployment \"d\" rollout to finish: 1 out of 3 new replicas have been updated...\n": {ObservedGeneration: 1, UpdatedReplicas: 1},
		"Waiting for deployment \"d\" rollout to finish: 1 old replicas are pending termination...\n":    {ObservedGeneration: 1, UpdatedReplicas: 3, Replicas: 4},
		"Waiting for deployment \"d\" rollout to finish: 2 of 3 updated replicas are available...\n":     {ObservedGeneration: 1, UpdatedReplicas: 3, Replicas: 3, AvailableReplicas: 2},
		"deployment \"d\" successfully rolled out\n":                                                     {ObservedGeneration: 1, UpdatedReplicas: 3, Replicas: 3, AvailableReplicas: 3},
	} {
		d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &n}, Status: s}
		d.Name, d.Generation = "d", 1
		if got, _, err := progress(d, 0); err != nil || got != want {
			t.Errorf("got %q (%v), want %q", got, err, want)
		}
	}
}
