package kubelet

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/kubelet/env"
	"bonsai/pkg/kubelet/runtime"
)

func (k *Kubelet) environment(ctx context.Context, pod *corev1.Pod, c *corev1.Container, ips, hostIPs []string) ([]env.Var, error) {
	if !runtime.IsStatic(pod) && !k.services.HasSynced() {
		if !cache.WaitForCacheSync(ctx.Done(), k.services.HasSynced) {
			return nil, errors.New("services have not yet been read at least once, cannot construct envvars")
		}
	}
	var services []*corev1.Service
	for _, ns := range []string{pod.Namespace, corev1.NamespaceDefault} {
		objs, err := k.services.GetIndexer().ByIndex(cache.NamespaceIndex, ns)
		if err != nil {
			return nil, fmt.Errorf("look up the services of namespace %s: %w", ns, err)
		}
		for _, o := range objs {
			if s, ok := o.(*corev1.Service); ok && (ns == pod.Namespace || s.Name == "kubernetes") {
				services = append(services, s)
			}
		}
		if pod.Namespace == corev1.NamespaceDefault {
			break
		}
	}
	return env.Build(ctx, env.Input{Pod: pod, Container: c, PodIPs: ips, HostIPs: hostIPs,
		Allocatable: k.node.Allocatable(), Services: services}, k.objects)
}
