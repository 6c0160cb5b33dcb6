package env

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/kubelet/runtime"
)

// Services caches the Services that variables describe.
//
// The watch is of all Services of the cluster, cut down to what variables need, because pods of any namespace may come.
type Services struct{ informer cache.SharedIndexInformer }

// NewServices returns a cache of all Services, which services lists and watches; it begins with Run.
func NewServices(services cache.ListerWatcher) (*Services, error) {
	informer := cache.NewSharedIndexInformer(services, &corev1.Service{}, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	err := informer.SetTransform(func(obj any) (any, error) {
		if s, ok := obj.(*corev1.Service); ok {
			return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace,
				ResourceVersion: s.ResourceVersion},
				Spec: corev1.ServiceSpec{ClusterIP: s.Spec.ClusterIP, Ports: s.Spec.Ports}}, nil
		}
		return obj, nil
	})
	if err != nil {
		return nil, fmt.Errorf("watch services: %w", err)
	}
	return &Services{informer}, nil
}

// Run watches until ctx ends.
func (s *Services) Run(ctx context.Context) error {
	s.informer.RunWithContext(ctx)
	return nil
}

// For returns the Services that a pod's environment may describe: those of its namespace and default/kubernetes. It
// waits until all have been read once. Static pods do not wait, because the API server may be one of them; they get
// what is known.
func (s *Services) For(ctx context.Context, pod *corev1.Pod) ([]*corev1.Service, error) {
	if !runtime.IsStatic(pod) && !s.informer.HasSynced() && !cache.WaitForCacheSync(ctx.Done(), s.informer.HasSynced) {
		return nil, errors.New("services have not yet been read at least once, cannot construct envvars")
	}
	var out []*corev1.Service
	for _, ns := range []string{pod.Namespace, corev1.NamespaceDefault} {
		objs, err := s.informer.GetIndexer().ByIndex(cache.NamespaceIndex, ns)
		if err != nil {
			return nil, fmt.Errorf("look up the services of namespace %s: %w", ns, err)
		}
		for _, o := range objs {
			if s, ok := o.(*corev1.Service); ok && (ns == pod.Namespace || s.Name == "kubernetes") {
				out = append(out, s)
			}
		}
		if pod.Namespace == corev1.NamespaceDefault {
			break
		}
	}
	return out, nil
}
