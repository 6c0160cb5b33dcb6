package podsapi

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// watch is what one watcher has been sent.
type watch struct {
	to   podsv1alpha1.Pods_WatchPodsServer
	sent map[types.UID]*encoded
}

// round sends what differs from what was sent.
func (w *watch) round(pods []*encoded) error {
	is := map[types.UID]bool{}
	for _, p := range pods {
		is[p.pod.UID] = true
		was := w.sent[p.pod.UID]
		if was == p {
			continue
		}
		kind := podsv1alpha1.EventType_ADDED
		if was != nil {
			kind = podsv1alpha1.EventType_MODIFIED
		}
		w.sent[p.pod.UID] = p
		if err := w.to.Send(&podsv1alpha1.WatchPodsEvent{Type: kind, Pod: p.data}); err != nil {
			return err
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(w.sent)) {
		if is[uid] {
			continue
		}
		was := w.sent[uid].pod
		gone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: was.Namespace, Name: was.Name, UID: uid}}
		delete(w.sent, uid)
		data, err := gone.Marshal()
		if err != nil {
			return unencoded(gone, err)
		}
		if err := w.to.Send(&podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_DELETED,
			Pod: data}); err != nil {
			return err
		}
	}
	return nil
}
