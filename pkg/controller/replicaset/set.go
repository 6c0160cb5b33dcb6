package replicaset

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/owned"
)

// set is what the controller needs to know of a ReplicaSet or a ReplicationController.
type set struct {
	obj      apiclient.Object
	selector labels.Selector
	replicas int
	minReady int32
	template *corev1.PodTemplateSpec
	status   appsv1.ReplicaSetStatus
}

// source is where sets of one kind come from and where their status goes.
type source interface {
	kind() schema.GroupVersionKind
	// get returns the cached set; nil if there is none.
	get(key controller.Key) (*set, error)
	// fresh reads the set's metadata past the cache.
	fresh(ctx context.Context, key controller.Key) (metav1.Object, error)
	// setStatus stores the status of s, computed for the generation of s.
	setStatus(ctx context.Context, s *set, status appsv1.ReplicaSetStatus) error
	// inNamespace returns the cached sets of a namespace; broken ones are left out.
	inNamespace(ns string) []*set
	// watch wakes each set that changes, and forgets what is expected of one that is gone.
	watch(l *controller.Loop[controller.Key], e *owned.Expectations) error
}

// replicaSets is the source of apps/v1 ReplicaSets.
type replicaSets struct {
	cache  *controller.Informer[*appsv1.ReplicaSet]
	client *apiclient.Resource[*appsv1.ReplicaSet]
}

func (replicaSets) kind() schema.GroupVersionKind {
	return appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
}

func (r replicaSets) get(key controller.Key) (*set, error) {
	rs, ok := r.cache.Get(key)
	if !ok {
		return nil, nil
	}
	return fromReplicaSet(rs)
}

func fromReplicaSet(rs *appsv1.ReplicaSet) (*set, error) {
	sel, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
	if err != nil {
		return nil, controller.TerminalError(
			fmt.Errorf("reading the selector of ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err))
	}
	return &set{obj: rs, selector: sel, replicas: count(rs.Spec.Replicas), minReady: rs.Spec.MinReadySeconds,
		template: &rs.Spec.Template, status: rs.Status}, nil
}

// count reads a replicas field; the API server defaults it to 1.
func count(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}

func (r replicaSets) fresh(ctx context.Context, key controller.Key) (metav1.Object, error) {
	return r.client.Get(ctx, key.Namespace, key.Name)
}

func (r replicaSets) setStatus(ctx context.Context, s *set, status appsv1.ReplicaSetStatus) error {
	rs := s.obj.DeepCopyObject().(*appsv1.ReplicaSet)
	rs.Status = status
	_, err := r.client.UpdateStatus(ctx, rs)
	return err
}

func (r replicaSets) inNamespace(ns string) []*set {
	var out []*set
	for _, rs := range r.cache.InNamespace(ns) {
		if s, err := fromReplicaSet(rs); err == nil {
			out = append(out, s)
		}
	}
	return out
}

func (r replicaSets) watch(l *controller.Loop[controller.Key], e *owned.Expectations) error {
	return owned.WatchOwners(l, r.cache, e)
}

// replicationControllers is the source of core/v1 ReplicationControllers.
type replicationControllers struct {
	cache  *controller.Informer[*corev1.ReplicationController]
	client *apiclient.Resource[*corev1.ReplicationController]
}

func (replicationControllers) kind() schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind("ReplicationController")
}

func (r replicationControllers) get(key controller.Key) (*set, error) {
	rc, ok := r.cache.Get(key)
	if !ok {
		return nil, nil
	}
	return fromReplicationController(rc), nil
}

func fromReplicationController(rc *corev1.ReplicationController) *set {
	s := &set{obj: rc, selector: labels.SelectorFromSet(rc.Spec.Selector), replicas: count(rc.Spec.Replicas),
		minReady: rc.Spec.MinReadySeconds, template: rc.Spec.Template}
	if len(rc.Spec.Selector) == 0 {
		s.selector = labels.Nothing()
	}
	st := rc.Status
	s.status = appsv1.ReplicaSetStatus{Replicas: st.Replicas, FullyLabeledReplicas: st.FullyLabeledReplicas,
		ReadyReplicas: st.ReadyReplicas, AvailableReplicas: st.AvailableReplicas,
		ObservedGeneration: st.ObservedGeneration}
	for _, c := range st.Conditions {
		s.status.Conditions = append(s.status.Conditions,
			appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetConditionType(c.Type), Status: c.Status,
				LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message})
	}
	return s
}

func (r replicationControllers) fresh(ctx context.Context, key controller.Key) (metav1.Object, error) {
	return r.client.Get(ctx, key.Namespace, key.Name)
}

func (r replicationControllers) setStatus(ctx context.Context, s *set, st appsv1.ReplicaSetStatus) error {
	rc := s.obj.DeepCopyObject().(*corev1.ReplicationController)
	status := corev1.ReplicationControllerStatus{Replicas: st.Replicas, FullyLabeledReplicas: st.FullyLabeledReplicas,
		ReadyReplicas: st.ReadyReplicas, AvailableReplicas: st.AvailableReplicas,
		ObservedGeneration: st.ObservedGeneration}
	for _, c := range st.Conditions {
		status.Conditions = append(status.Conditions,
			corev1.ReplicationControllerCondition{Type: corev1.ReplicationControllerConditionType(c.Type),
				Status: c.Status, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message})
	}
	if equality.Semantic.DeepEqual(rc.Status, status) {
		return nil
	}
	rc.Status = status
	_, err := r.client.UpdateStatus(ctx, rc)
	return err
}

func (r replicationControllers) inNamespace(ns string) []*set {
	var out []*set
	for _, rc := range r.cache.InNamespace(ns) {
		out = append(out, fromReplicationController(rc))
	}
	return out
}

func (r replicationControllers) watch(l *controller.Loop[controller.Key], e *owned.Expectations) error {
	return owned.WatchOwners(l, r.cache, e)
}
