package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/host"
)

// dnsPod returns the address of a Ready pod of the cluster's DNS, or why there is none yet.
func dnsPod(ctx context.Context, api *apiclient.Client) (string, error) {
	pods, err := core.Pods(api).List(ctx, metav1.NamespaceSystem, metav1.ListOptions{LabelSelector: dnsPods})
	if err != nil {
		return "", fmt.Errorf("list the pods of the cluster's DNS: %w", err)
	}
	why := errors.New("it has no pod")
	for _, pod := range pods {
		if client.IsPodReady(pod) {
			return pod.Status.PodIP, nil
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Status == corev1.ConditionTrue {
				host.Progressed(ctx, fmt.Sprintf("pod %s: %s", pod.Name, condition.Type))
			}
		}
		why = fmt.Errorf("the pod %s is not ready: %s", pod.Name, client.PodTrouble(pod))
	}
	return "", why
}
