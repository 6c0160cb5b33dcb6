// Package runtimeclass knows which of the container runtime's handlers a pod's RuntimeClass stands for.
package runtimeclass

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Classes caches what is needed of all RuntimeClasses.
type Classes struct{ informer cache.SharedIndexInformer }

// New returns a cache of all RuntimeClasses, which classes lists and watches; it begins with Run.
func New(classes cache.ListerWatcher) (*Classes, error) {
	informer := cache.NewSharedIndexInformer(classes, &nodev1.RuntimeClass{}, 0, cache.Indexers{})
	err := informer.SetTransform(func(obj any) (any, error) {
		if c, ok := obj.(*nodev1.RuntimeClass); ok {
			return &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: c.Name, ResourceVersion: c.ResourceVersion},
				Handler: c.Handler}, nil
		}
		return obj, nil
	})
	if err != nil {
		return nil, fmt.Errorf("watch runtime classes: %w", err)
	}
	return &Classes{informer}, nil
}

// Run watches until ctx ends.
func (c *Classes) Run(ctx context.Context) error {
	c.informer.RunWithContext(ctx)
	return nil
}

// Handler is the handler of a pod's class; "", which is the runtime's default, for a pod without one. It waits until
// all classes have been read once. A class that is not there is a NotFound error.
func (c *Classes) Handler(ctx context.Context, pod *corev1.Pod) (string, error) {
	if pod.Spec.RuntimeClassName == nil || *pod.Spec.RuntimeClassName == "" {
		return "", nil
	}
	name := *pod.Spec.RuntimeClassName
	if !c.informer.HasSynced() && !cache.WaitForCacheSync(ctx.Done(), c.informer.HasSynced) {
		return "", errors.New("runtime classes have not yet been read at least once")
	}
	obj, ok, err := c.informer.GetStore().GetByKey(name)
	if err != nil {
		return "", fmt.Errorf("failed to lookup RuntimeClass %s: %w", name, err)
	}
	class, is := obj.(*nodev1.RuntimeClass)
	if !ok || !is {
		return "", apierrors.NewNotFound(nodev1.Resource("runtimeclass"), name)
	}
	return class.Handler, nil
}
