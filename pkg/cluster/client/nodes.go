package client

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// whyNotReady says for each of the cluster's nodes that is not Ready why, from the Nodes in the API and the times when
// the nodes started. It returns "" if all are Ready.
func whyNotReady(c plan.Config, nodes map[string]*corev1.Node, started map[string]time.Time) string {
	var out []string
	for _, node := range c.Nodes {
		n, why := nodes[node.Name()], "has not registered"
		if n != nil {
			if isReadySince(n, started[n.Name]) {
				continue
			}
			why = "has told nothing of itself since its start"
			if IsReady(n) { // in its last life
				out = append(out, fmt.Sprintf("node %s %s", node.Name(), why))
				continue
			}
			for _, condition := range n.Status.Conditions {
				if condition.Type == corev1.NodeReady {
					why = fmt.Sprintf("is not Ready: %s", condition.Message)
				}
			}
		}
		out = append(out, fmt.Sprintf("node %s %s", node.Name(), why))
	}
	return strings.Join(out, "; ")
}

// PodTrouble says why a pod is not ready: what the pod itself, its scheduling or its first waiting container reports.
func PodTrouble(p *corev1.Pod) string {
	for _, cs := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := cs.State.Waiting; w != nil {
			return strings.TrimSuffix(fmt.Sprintf("%s: %s", w.Reason, w.Message), ": ")
		}
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status != corev1.ConditionTrue {
			return condition.Message
		}
	}
	return string(p.Status.Phase)
}

// InternalIPs returns the addresses of a node that it reports as its own.
func InternalIPs(node *corev1.Node) []netip.Addr {
	var out []netip.Addr
	for _, a := range node.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
			out = append(out, ip)
		}
	}
	return out
}

// IsReady reports whether a node is Ready.
func IsReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// isReadySince reports whether a node has said since a time that it is Ready. The API keeps what a node said in its
// last life: a machine that lost power left its nodes Ready there.
func isReadySince(node *corev1.Node, started time.Time) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			// The API keeps whole seconds.
			return condition.Status == corev1.ConditionTrue &&
				!condition.LastHeartbeatTime.Time.Before(started.Truncate(time.Second))
		}
	}
	return false
}

// startTimes returns when the cluster's nodes that run on this machine started: their inits made their sockets then,
// and the supervisor its own, which is earlier.
func startTimes(c plan.Config) map[string]time.Time {
	started := map[string]time.Time{}
	for _, node := range c.Nodes {
		for _, socket := range []string{c.Layout().Socket("supervisor"), c.Layout().NodeSocket(node.Name())} {
			if info, err := os.Stat(socket); err == nil && info.ModTime().After(started[node.Name()]) {
				started[node.Name()] = info.ModTime()
			}
		}
	}
	return started
}

// WaitNodes waits with a watch until all nodes are Ready in their present life. Its error says which are not, and why.
// While an API server does not answer, it tries again.
//
// nodes keeps what an earlier watch has shown, so the error at the end also has reasons if the API server went away
// meanwhile. A node that was deleted between two watches stays in it, and in the worst case counts as Ready.
func WaitNodes(ctx context.Context, c plan.Config) error {
	client, err := Core(c)
	if err != nil {
		return err
	}
	nodes, last := map[string]*corev1.Node{}, error(nil)
	err = host.Poll(ctx, 100*time.Millisecond, func() (bool, error) {
		var w watch.Interface
		if w, last = core.Nodes(client).Watch(ctx, "", metav1.ListOptions{}); last != nil {
			return false, nil
		}
		defer w.Stop()
		// The watch begins with all existing Nodes. When it ends, the next one does so again, and nodes is corrected.
		for event := range w.ResultChan() {
			if node, ok := event.Object.(*corev1.Node); ok && event.Type != watch.Deleted {
				nodes[node.Name] = node
				host.Progressed(ctx, "node "+node.Name)
				if IsReady(node) {
					host.Progressed(ctx, "node "+node.Name+" is Ready")
				}
			} else if ok {
				delete(nodes, node.Name)
			}
			if whyNotReady(c, nodes, startTimes(c)) == "" {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %s", err, whyNotReady(c, nodes, startTimes(c))), last)
	}
	return nil
}

// IsPodReady reports whether a pod is Ready.
func IsPodReady(p *corev1.Pod) bool {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// ReadyNodes asks the API server which nodes are Ready, those of this machine in their present life. Timeout bounds the
// question.
func ReadyNodes(ctx context.Context, c plan.Config) (map[string]bool, error) {
	client, err := Core(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	nodes, err := core.Nodes(client).List(ctx, "", metav1.ListOptions{FieldSelector: plan.SeenNodes(c)})
	if err != nil {
		return nil, fmt.Errorf("ask the API server for the nodes: %w", err)
	}
	isReady, started := map[string]bool{}, startTimes(c)
	for _, node := range nodes {
		isReady[node.Name] = isReadySince(node, started[node.Name])
	}
	return isReady, nil
}
