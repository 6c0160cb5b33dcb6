package client

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/plan"
)

// DeleteNode deletes a node that has ended, and its pods, from the API. The pods go at once: no kubelet is left that
// could stop them in order.
func DeleteNode(ctx context.Context, c plan.Config, name string) error {
	return DeleteNodeAt(ctx, c, "", name)
}

// DeleteNodeAt is DeleteNode by the API server of that URL.
func DeleteNodeAt(ctx context.Context, c plan.Config, server, name string) error {
	api, err := CoreAt(c, server)
	if err != nil {
		return err
	}
	// The Node goes first, so that the scheduler assigns it no more pods. A pod that is bound after the list below is
	// left to the pod garbage collector.
	if err := core.Nodes(api).Delete(ctx, "", name, ""); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the node: %w", err)
	}
	pods, err := core.Pods(api).List(ctx, metav1.NamespaceAll,
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if err != nil {
		return fmt.Errorf("list the node's pods: %w", err)
	}
	var atOnce int64
	for _, p := range pods {
		// The UID protects a pod of the same name that a controller has made elsewhere meanwhile.
		err := core.Pods(api).DeleteWith(ctx, p.Namespace, p.Name,
			metav1.DeleteOptions{GracePeriodSeconds: &atOnce, Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete the pod %s/%s: %w", p.Namespace, p.Name, err)
		}
	}
	return nil
}
