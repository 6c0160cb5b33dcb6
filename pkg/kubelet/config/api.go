package config

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/kubelet/runtime"
)

// API watches the pods bound to one node.
type API struct {
	informer cache.SharedInformer
	// synced reports whether the handler has received the whole first list; nil before Run.
	synced atomic.Pointer[cache.InformerSynced]
}

// NewAPI returns the source of the node's pods, which pods lists and watches; it begins with Run.
func NewAPI(pods cache.ListerWatcher) (*API, error) {
	a := &API{informer: cache.NewSharedInformer(pods, &corev1.Pod{}, 0)}
	if err := a.informer.SetTransform(lean); err != nil {
		return nil, fmt.Errorf("watch the pods of the node: %w", err)
	}
	return a, nil
}

// sourceAPI is the annotation runtime.AnnotationConfigSource of pods that the API server has bound.
const sourceAPI = "api"

// lean drops what the kubelet never looks at. A pod that claims another source is marked as one of the API server, as
// Kubernetes marks all of them: static pods are critical, and their users need not be allowed to make such pods.
func lean(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		pod.ManagedFields = nil
		if runtime.IsStatic(pod) {
			pod.Annotations[runtime.AnnotationConfigSource] = sourceAPI
		}
	}
	return obj, nil
}

// Run watches until ctx ends.
func (a *API) Run(ctx context.Context, h Handler) error {
	told, err := a.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { call(obj, h.Update) },
		UpdateFunc: func(before, obj any) {
			// A list that takes the place of a lost watch shows only what is there now: another pod of the name, the
			// one before is gone.
			if old, now := before.(*corev1.Pod), obj.(*corev1.Pod); old.UID != now.UID {
				call(old, h.Remove)
			}
			call(obj, h.Update)
		},
		DeleteFunc: func(obj any) {
			if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = d.Obj
			}
			call(obj, h.Remove)
		},
	})
	if err != nil {
		return fmt.Errorf("watch the pods of the node: %w", err)
	}
	synced := cache.InformerSynced(told.HasSynced)
	a.synced.Store(&synced)
	a.informer.RunWithContext(ctx)
	return nil
}

func call(obj any, f func(*corev1.Pod)) {
	if pod, ok := obj.(*corev1.Pod); ok {
		f(pod)
	}
}

// Synced reports whether the handler has received all pods of the first list; before that, no pod may count as unknown.
// The informer's own HasSynced is too early, because handlers run after it.
func (a *API) Synced() bool {
	synced := a.synced.Load()
	return synced != nil && (*synced)()
}
