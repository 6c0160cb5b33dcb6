package workload

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// ReplicationController explains a ReplicationController, which is what ReplicaSets were before.
func ReplicationController(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	rc, known := why.Get[corev1.ReplicationController](ctx, c.World, o.Namespace, o.Name)
	if rc == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	s := &rc.Status
	return replicas(ctx, c, why.ObjectOf("", "ReplicationController", rc), &appsv1.ReplicaSet{ObjectMeta: rc.ObjectMeta,
		Spec: appsv1.ReplicaSetSpec{Replicas: rc.Spec.Replicas}, Status: appsv1.ReplicaSetStatus{Replicas: s.Replicas,
			AvailableReplicas: s.AvailableReplicas, ObservedGeneration: s.ObservedGeneration}})
}
