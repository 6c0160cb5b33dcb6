package rollout

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{Name: "d", Generation: 2}
	deploy := func(s appsv1.DeploymentStatus) workload {
		return &deployment{appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: new(int32(3))}, Status: s}}
	}
	daemon := func(s appsv1.DaemonSetStatus) workload {
		u := appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType}
		return &daemonSet{appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{UpdateStrategy: u}, Status: s}}
	}
	stateful := func(partition *int32, s appsv1.StatefulSetStatus) workload {
		u := appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: partition}}
		return &statefulSet{appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3)), UpdateStrategy: u}, Status: s}}
	}
	for _, c := range []struct {
		w    workload
		want string
		done bool
	}{
		{deploy(appsv1.DeploymentStatus{ObservedGeneration: 1}), "Waiting for deployment spec update to be observed...\n", false},
		{deploy(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 1}), "Waiting for deployment \"d\" rollout to finish: 1 out of 3 new replicas have been updated...\n", false},
		{deploy(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 3, Replicas: 4}), "Waiting for deployment \"d\" rollout to finish: 1 old replicas are pending termination...\n", false},
		{deploy(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 3, Replicas: 3, AvailableReplicas: 2}), "Waiting for deployment \"d\" rollout to finish: 2 of 3 updated replicas are available...\n", false},
		{deploy(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 3, Replicas: 3, AvailableReplicas: 3}), "deployment \"d\" successfully rolled out\n", true},
		{daemon(appsv1.DaemonSetStatus{ObservedGeneration: 1}), "Waiting for daemon set spec update to be observed...\n", false},
		{daemon(appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 1}), "Waiting for daemon set \"d\" rollout to finish: 1 out of 2 new pods have been updated...\n", false},
		{daemon(appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 1}), "Waiting for daemon set \"d\" rollout to finish: 1 of 2 updated pods are available...\n", false},
		{daemon(appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 2}), "daemon set \"d\" successfully rolled out\n", true},
		{stateful(nil, appsv1.StatefulSetStatus{}), "Waiting for statefulset spec update to be observed...\n", false},
		{stateful(nil, appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 1}), "Waiting for 2 pods to be ready...\n", false},
		{stateful(nil, appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 3, UpdatedReplicas: 1, UpdateRevision: "d-2", CurrentRevision: "d-1"}), "waiting for statefulset rolling update to complete 1 pods at revision d-2...\n", false},
		{stateful(nil, appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 3, CurrentReplicas: 3, UpdateRevision: "d-2", CurrentRevision: "d-2"}), "statefulset rolling update complete 3 pods at revision d-2...\n", true},
		{stateful(new(int32(1)), appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 3, UpdatedReplicas: 1}), "Waiting for partitioned roll out to finish: 1 out of 2 new pods have been updated...\n", false},
		{stateful(new(int32(1)), appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 3, UpdatedReplicas: 2}), "partitioned roll out complete: 2 new pods have been updated...\n", true},
	} {
		if got, done, err := c.w.progress(0); err != nil || got != c.want || done != c.done {
			t.Errorf("got %q, %t (%v), want %q, %t", got, done, err, c.want, c.done)
		}
	}
}
