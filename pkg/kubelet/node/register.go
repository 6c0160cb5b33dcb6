package node

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/nodelabels"
)

// Registration is tried again after pauses that double from the first to the last.
const (
	registerRetryFirst = 100 * time.Millisecond
	registerRetryMost  = 7 * time.Second
	// registerTimeout is how long one try may wait for the API server.
	registerTimeout = 30 * time.Second
)

// register makes the Node, or takes over the one that exists; false if ctx was done before. It never gives up: a node
// whose API server is away for a day registers when it is back.
func (n *Node) register(ctx context.Context) bool {
	retry := registerRetryFirst
	for {
		node, err := n.tryRegister(ctx)
		if err == nil {
			n.seen(node)
			return true
		}
		n.cfg.Log.Warn("node not registered yet", "node", n.cfg.Name, "err", err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(retry):
		}
		retry = min(retry*2, registerRetryMost)
	}
}

// tryRegister makes the Node or updates the existing one. It waits no longer for the runtime than the status does, and
// no longer for the API server than registerTimeout.
func (n *Node) tryRegister(parent context.Context) (*corev1.Node, error) {
	fresh := n.initial()
	if !n.cfg.NoRegister {
		look, stop := context.WithTimeout(parent, runtimeTimeout)
		health, healthErr := n.health(look)
		fresh.Status = n.status(look, fresh.Status, health, healthErr)
		stop()
	}
	ctx, cancel := context.WithTimeout(parent, registerTimeout)
	defer cancel()
	if n.cfg.NoRegister {
		return n.cfg.Client.Node(ctx, n.cfg.Name)
	}
	node, err := n.cfg.Client.CreateNode(ctx, fresh)
	if err == nil {
		n.cfg.Log.Info("registered the node", "node", n.cfg.Name)
		return node, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create the Node: %w", err)
	}
	if node, err = n.cfg.Client.Node(ctx, n.cfg.Name); err != nil {
		return nil, fmt.Errorf("get the existing Node: %w", err)
	}
	patch := describe(node, fresh, n.cfg.ExternalCloud)
	if patch == nil {
		return node, nil
	}
	if node, err = n.cfg.Client.PatchNode(ctx, n.cfg.Name, types.MergePatchType, patch); err != nil {
		return nil, fmt.Errorf("patch the existing Node: %w", err)
	}
	return node, nil
}

// initial returns the Node as it is registered, without status.
func (n *Node) initial() *corev1.Node {
	labels := map[string]string{}
	maps.Copy(labels, n.cfg.Labels)
	maps.Copy(labels, ownLabels(n.cfg.Hostname))
	annotations := map[string]string{managedAttachment: "true"}
	if ips := n.provided(); ips != "" {
		annotations[providedIP] = ips
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.cfg.Name, Labels: labels, Annotations: annotations},
		Spec:       corev1.NodeSpec{Taints: n.cloudTaints(), ProviderID: n.cfg.ProviderID},
	}
}

// ownLabels returns the labels that every kubelet sets, with the older names of two of them.
func ownLabels(hostname string) map[string]string {
	return map[string]string{
		corev1.LabelHostname: hostname, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH,
		"beta.kubernetes.io/os": runtime.GOOS, "beta.kubernetes.io/arch": runtime.GOARCH,
	}
}

// managedAttachment makes the controller manager attach the node's volumes.
const managedAttachment = "volumes.kubernetes.io/controller-managed-attach-detach"

// describing returns the labels that say what a node is and where: they follow the kubelet. All others belong to the
// administrator once the Node exists.
func describing() []string { return append(nodelabels.Own(), corev1.LabelWindowsBuild) }

// describe returns the merge patch that brings an existing Node's description up to date; nil if it is. Labels are
// added and changed only: one that the kubelet no longer sets stays.
func describe(have, want *corev1.Node, external bool) []byte {
	labels, meta := map[string]string{}, map[string]any{}
	for _, k := range describing() {
		if v, ok := want.Labels[k]; ok && have.Labels[k] != v {
			labels[k] = v
		}
	}
	if len(labels) > 0 {
		meta["labels"] = labels
	}
	if annotations := annotationPatch(have.Annotations, want.Annotations, external); len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	if len(meta) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return nil // strings and null always marshal
	}
	return patch
}
