package kubelet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"bonsai/pkg/kubelet/stats"
)

func (k *Kubelet) composeStats() error {
	var err error
	k.stats, err = stats.New(stats.Config{NodeName: k.cfg.NodeName, Started: time.Now(), Dir: k.cfg.RootDir, Pods: k.View().Pods, Now: time.Now,
		Pod: func(pod *corev1.Pod) (stats.Usage, error) {
			u, err := k.cgroups.PodUsage(pod)
			return stats.Usage(u), err
		},
		Container: func(pod *corev1.Pod, id string) (stats.Usage, error) {
			u, err := k.cgroups.ContainerUsage(pod, id)
			return stats.Usage(u), err
		}})
	if err != nil {
		return fmt.Errorf("prepare statistics: %w", err)
	}
	return nil
}

// Summary is the use of resources by the node and its pods, as /stats/summary shows it.
func (k *Kubelet) Summary(ctx context.Context) (*statsapi.Summary, error) {
	return k.stats.Summary(ctx)
}
