package network

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/why"
)

// peers holds the peers of NetworkPolicies against the pods that there are.
type peers struct {
	*why.Case
	namespace  string // of the policies
	namespaces map[string]labels.Set
	pods       []*corev1.Pod
	// complete says that all namespaces and pods could be read.
	complete bool
}

func newPeers(ctx context.Context, c *why.Case, namespace string) *peers {
	p := &peers{Case: c, namespace: namespace, namespaces: map[string]labels.Set{}}
	namespaces, all := why.List[corev1.Namespace](ctx, c.World, "", nil)
	for _, n := range namespaces {
		p.namespaces[n.Name] = n.Labels
	}
	p.pods, p.complete = why.List[corev1.Pod](ctx, c.World, "", nil)
	p.complete = p.complete && all
	return p
}

// admits reports whether a rule's peers admit anybody: some pod, or addresses. Of what could not be read it says yes.
func (p *peers) admits(list []networkingv1.NetworkPolicyPeer) bool {
	if len(list) == 0 || !p.complete {
		return true
	}
	for i := range list {
		if list[i].IPBlock != nil {
			return true
		}
		for _, pod := range p.pods {
			if p.inNamespace(&list[i], pod.Namespace) && selects(list[i].PodSelector, pod.Labels) {
				return true
			}
		}
	}
	return false
}

// inNamespace reports whether a peer is about pods of a namespace: that of the policy, if the peer says nothing.
func (p *peers) inNamespace(peer *networkingv1.NetworkPolicyPeer, namespace string) bool {
	if peer.NamespaceSelector == nil {
		return namespace == p.namespace
	}
	return selects(peer.NamespaceSelector, p.namespaces[namespace])
}

// selects reports whether a selector matches; nil matches all, and one that cannot be read nothing.
func selects(s *metav1.LabelSelector, set map[string]string) bool {
	if s == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(set))
}

// nobody says whom a rule's peers admit, and why there is nobody: "pods with role=front of namespaces with team=a, and
// no namespace has these labels".
func (p *peers) nobody(list []networkingv1.NetworkPolicyPeer) string {
	var parts []string
	for i := range list {
		peer := &list[i]
		who := "pods"
		if peer.PodSelector != nil && !empty(peer.PodSelector) {
			who += " with " + metav1.FormatLabelSelector(peer.PodSelector)
		}
		where := "of namespace " + p.namespace
		var within []string // the namespaces that the peer is about
		for name := range p.namespaces {
			if p.inNamespace(peer, name) {
				within = append(within, name)
			}
		}
		if peer.NamespaceSelector != nil {
			where = "of namespaces with " + metav1.FormatLabelSelector(peer.NamespaceSelector)
		}
		text := fmt.Sprintf("%s %s", who, where)
		var elsewhere []string
		for _, pod := range p.pods {
			if selects(peer.PodSelector, pod.Labels) && peer.PodSelector != nil && !empty(peer.PodSelector) {
				elsewhere = append(elsewhere, fmt.Sprintf("%s/%s", pod.Namespace, pod.Name))
			}
		}
		switch {
		case len(within) == 0 && len(elsewhere) > 0:
			text += fmt.Sprintf(", and no namespace has these labels (pod %s has those of the pods)", why.And(elsewhere))
		case len(within) == 0:
			text += ", and no namespace has these labels"
		case len(elsewhere) > 0:
			text += fmt.Sprintf(", and pod %s, which has the labels, is in another namespace", why.And(elsewhere))
		default:
			text += ", and there is no such pod"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; or ")
}

func empty(s *metav1.LabelSelector) bool {
	return len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}
