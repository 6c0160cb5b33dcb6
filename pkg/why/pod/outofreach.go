package pod

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/why"
)

// maxEnds bounds the pods and addresses of a Service that are held against NetworkPolicies: those of one Service have
// the same labels in practice.
const maxEnds = 20

// outOfReach explains a server that NetworkPolicies keep the pod away from: its own for what goes out, and those of the
// server's pods for what comes in. All the pods that a Service (nil for a pod's address) leads to must be out of reach:
// a client that finds one of them gets its answer.
func (p *program) outOfReach(ctx context.Context, e endpoint, to callee, s *corev1.Service) []why.Cause {
	policies, all := why.List[networkingv1.NetworkPolicy](ctx, p.World, p.pod.Namespace, nil)
	if to.namespace != p.pod.Namespace {
		others, known := why.List[networkingv1.NetworkPolicy](ctx, p.World, to.namespace, nil)
		policies, all = slices.Concat(policies, others), all && known
	}
	if !all || len(policies) == 0 {
		return nil
	}
	traffic := p.traffic(ctx, e, to, s)
	var first []why.Denial
	for _, t := range traffic {
		denials := t.Denials(policies)
		if len(denials) == 0 {
			return nil
		}
		if first == nil {
			first = denials
		}
	}
	var causes []why.Cause
	for _, d := range first {
		causes = append(causes, p.denied(e, to, traffic, d, s))
	}
	if len(causes) > 0 {
		p.down[to.id()] = true
	}
	if len(causes) == 2 {
		causes[0].Text += " The policies of the other side do not allow it either: both must change."
	}
	return causes
}

// traffic is all that may be meant by what a program calls: one for each pod and port, none if nobody knows.
func (p *program) traffic(ctx context.Context, e endpoint, to callee, s *corev1.Service) (list []*why.Traffic) {
	from := p.end(ctx, p.pod)
	if s == nil {
		pod, _ := why.Get[corev1.Pod](ctx, p.World, to.namespace, to.pod)
		if pod == nil {
			return nil
		}
		return []*why.Traffic{{From: from, To: p.end(ctx, pod), Port: e.port}}
	}
	if len(s.Spec.Selector) == 0 {
		return p.written(ctx, e, s, from)
	}
	pods, _ := why.List[corev1.Pod](ctx, p.World, s.Namespace, labels.Set(s.Spec.Selector).AsSelector())
	for _, pod := range pods {
		over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if over || !isReady(pod) && !s.Spec.PublishNotReadyAddresses || pod.DeletionTimestamp != nil ||
			to.pod != "" && pod.Name != to.pod && pod.Spec.Hostname != to.pod {
			continue
		}
		if len(list) >= maxEnds {
			break
		}
		end := p.end(ctx, pod)
		if s.Spec.ClusterIP == corev1.ClusterIPNone && e.port != 0 { // nothing translates the port
			list = append(list, &why.Traffic{From: from, To: end, Port: e.port})
			continue
		}
		for _, sp := range s.Spec.Ports {
			if e.port != 0 && sp.Port != e.port {
				continue
			}
			if port := targetOf(&sp, pod); port != 0 {
				list = append(list, &why.Traffic{From: from, To: end, Port: port, Protocol: sp.Protocol,
					Service: serviceAddresses(s), ServicePort: sp.Port})
			}
		}
	}
	return list
}

// written is the traffic to the endpoints of a Service without a selector, which somebody wrote.
func (p *program) written(ctx context.Context, e endpoint, s *corev1.Service, from why.End) (list []*why.Traffic) {
	written, _ := why.List[discoveryv1.EndpointSlice](ctx, p.World, s.Namespace,
		labels.Set{discoveryv1.LabelServiceName: s.Name}.AsSelector())
	for _, slice := range written {
		for _, port := range slice.Ports {
			i := slices.IndexFunc(s.Spec.Ports, func(sp corev1.ServicePort) bool {
				return port.Name == nil && sp.Name == "" || port.Name != nil && *port.Name == sp.Name
			})
			if i < 0 || port.Port == nil || e.port != 0 && s.Spec.Ports[i].Port != e.port {
				continue
			}
			for _, a := range slice.Endpoints {
				for _, text := range a.Addresses {
					address, err := netip.ParseAddr(text)
					if err != nil || len(list) == maxEnds {
						continue
					}
					end := why.End{Address: address}
					if pod := podAt(ctx, p, s.Namespace, address); pod != nil {
						end = p.end(ctx, pod)
					}
					list = append(list, &why.Traffic{From: from, To: end, Port: *port.Port,
						Protocol: s.Spec.Ports[i].Protocol, Service: serviceAddresses(s),
						ServicePort: s.Spec.Ports[i].Port})
				}
			}
		}
	}
	return list
}

// end is a pod as an end of traffic.
func (p *program) end(ctx context.Context, pod *corev1.Pod) why.End {
	e := why.End{Pod: pod}
	if ns, _ := why.Get[corev1.Namespace](ctx, p.World, "", pod.Namespace); ns != nil {
		e.Namespace = labels.Set{}
		maps.Copy(e.Namespace, ns.Labels)
	}
	return e
}

// targetOf is the port of a pod that a Service's port leads to, 0 if it has none of that name.
func targetOf(sp *corev1.ServicePort, pod *corev1.Pod) int32 {
	if sp.TargetPort.StrVal == "" {
		return cmp.Or(sp.TargetPort.IntVal, sp.Port)
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, p := range c.Ports {
			if p.Name == sp.TargetPort.StrVal &&
				cmp.Or(p.Protocol, corev1.ProtocolTCP) == cmp.Or(sp.Protocol, corev1.ProtocolTCP) {
				return p.ContainerPort
			}
		}
	}
	return 0
}

// denied is the cause of what the policies of one end keep away. traffic has the same fault in all its parts.
func (p *program) denied(e endpoint, to callee, traffic []*why.Traffic, d why.Denial, s *corev1.Service) why.Cause {
	t := traffic[0]
	target := t.To.Address.String()
	if t.To.Pod != nil {
		target = p.named("pod", t.To.Pod.Namespace, t.To.Pod.Name)
	}
	if t.Port != 0 {
		target += fmt.Sprintf(" at port %d", t.Port)
	}
	nearest := p.named("NetworkPolicy", d.Nearest.Namespace, d.Nearest.Name)
	text := fmt.Sprintf("%s does not let pod %s reach %s: it %s.", nearest, p.pod.Name, target, d.Text)
	if d.Direction == networkingv1.PolicyTypeIngress {
		text = fmt.Sprintf("%s does not let pod %s in to %s: it %s.", nearest, p.pod.Name, target, d.Text)
	}
	self := why.ObjectOf(networkingv1.GroupName, "NetworkPolicy", d.Nearest)
	cause := why.Cause{Code: "NetworkPolicyKeepsAway", Text: fmt.Sprintf("It calls %s, and %s", to.shown, text),
		Evidence: []why.Evidence{p.calls(e), why.See(self, d.Field, d.Value)}}
	var others []string
	for _, o := range d.Policies {
		if o == d.Nearest {
			continue
		}
		if others = append(others, o.Name); len(others) == maxHints {
			break
		}
	}
	if len(others) > 0 {
		cause.Text += fmt.Sprintf(" Nor does NetworkPolicy %s.", why.And(others))
	}
	cause.Fixes = []why.Fix{letThrough(p.pod, traffic, d, s)}
	return cause
}

// letThrough is the change by which a policy lets traffic of a client through: one more rule.
func letThrough(client *corev1.Pod, traffic []*why.Traffic, d why.Denial, s *corev1.Service) why.Fix {
	type object = map[string]any
	var peers, ports []object
	var numbers []string
	for _, t := range traffic {
		protocol, text := cmp.Or(t.Protocol, corev1.ProtocolTCP), fmt.Sprint(t.Port)
		if protocol != corev1.ProtocolTCP {
			text += " (" + string(protocol) + ")"
		}
		if t.Port != 0 && !slices.Contains(numbers, text) {
			numbers = append(numbers, text)
			ports = append(ports, object{"port": t.Port, "protocol": protocol})
		}
	}
	egress := d.Direction == networkingv1.PolicyTypeEgress
	other, who := client, ""
	if egress {
		other = traffic[0].To.Pod
	}
	switch {
	case other == nil:
		for _, t := range traffic {
			if a := t.To.Address; t.To.Pod == nil {
				peers = append(peers, object{"ipBlock": object{"cidr": netip.PrefixFrom(a, a.BitLen()).String()}})
			}
		}
		who = traffic[0].To.Address.String()
	default:
		set := ownLabels(other.Labels)
		if s != nil && egress && len(s.Spec.Selector) > 0 {
			set = s.Spec.Selector
		}
		selector := object{}
		if who = "all pods"; len(set) > 0 {
			selector["matchLabels"], who = set, "pods with "+labels.Set(set).String()
		}
		peer := object{"podSelector": selector}
		if other.Namespace != d.Nearest.Namespace {
			peer["namespaceSelector"] = object{"matchLabels": object{corev1.LabelMetadataName: other.Namespace}}
			who += " of namespace " + other.Namespace
		}
		peers = append(peers, peer)
	}
	text, rule := "Admit "+who, object{"from": peers}
	if egress {
		text, rule = "Allow egress to "+who, object{"to": peers}
	}
	if len(ports) > 0 {
		rule["ports"], text = ports, text+", at port "+why.And(numbers)
	}
	return why.Fix{Text: text + ".", Command: addRule(d.Nearest, d.Direction, rule)}
}

// ownLabels are those of a pod that its author chose: without those that controllers add, which other pods of the same
// workload do not have.
func ownLabels(set map[string]string) map[string]string {
	own := map[string]string{}
	for k, v := range set {
		domain, _, _ := strings.Cut(k, "/")
		added := slices.Contains([]string{"pod-template-hash", "controller-revision-hash", "pod-template-generation",
			"controller-uid", "job-name", "statefulset.kubernetes.io", "batch.kubernetes.io", "apps.kubernetes.io"}, domain)
		if !added {
			own[k] = v
		}
	}
	return own
}
