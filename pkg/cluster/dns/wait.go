package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// readyPod returns the address of a Ready pod of the cluster's DNS, or an error that says why there is none yet.
func readyPod(ctx context.Context, api *apiclient.Client) (string, error) {
	pods, err := core.Pods(api).List(ctx, metav1.NamespaceSystem, metav1.ListOptions{LabelSelector: podSelector})
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

// Wait waits until a pod of the cluster's DNS answers for the kubernetes Service. It asks the pod directly from the
// host, and so needs no kube-proxy.
func Wait(ctx context.Context, c plan.Config) error {
	api, err := client.Core(c)
	if err != nil {
		return err
	}
	var last error
	err = host.Poll(ctx, 50*time.Millisecond, func() (bool, error) {
		var address string
		if address, last = readyPod(ctx, api); last != nil {
			return false, nil // until ctx ends
		}
		// PreferGo: the resolver must ask this address, and not what the machine's settings say.
		resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(address, "53"))
		}}
		query, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		found, err := resolver.LookupHost(query, "kubernetes.default.svc.cluster.local.")
		if last = err; err == nil {
			last = fmt.Errorf("it says that kubernetes.default is %q", found)
		}
		return err == nil && len(found) == 1 && found[0] == c.Networks().ServiceIP().String(), nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}

// podSelector selects the pods of the cluster's DNS.
const podSelector = "k8s-app=kube-dns"
