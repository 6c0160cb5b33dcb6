// Package network explains Services and Ingresses: why one has no endpoints, refuses connections or has no address.
package network

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/pkg/why"
)

// Service explains a Service.
func Service(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	s, known := why.Get[corev1.Service](ctx, c.World, o.Namespace, o.Name)
	if s == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	self := why.ObjectOf("", "Service", s)
	a := why.Answer{Subject: self}
	if s.DeletionTimestamp != nil {
		a.State = fmt.Sprintf("%s is being deleted.", self)
		var err error
		a.Causes, err = why.Finalizers(ctx, c, self, s)
		return a, err
	}
	q := &inquiry{Case: c, service: s, self: self}
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		return q.externalName(ctx)
	}
	var err error
	if len(s.Spec.Selector) == 0 {
		a.Causes = q.withoutSelector(ctx)
	} else if a.Causes, err = q.selected(ctx); err != nil {
		return a, err
	}
	a.Causes = append(a.Causes, q.balancer(ctx)...)
	switch {
	case len(a.Causes) == 0:
		a.State, a.Well = fmt.Sprintf("%s has %s behind it.", self, why.Count(q.ready, "ready endpoint")), true
	case q.ready == 0:
		a.State = fmt.Sprintf("%s has no ready endpoints: connections to it are refused.", self)
	default:
		a.State = fmt.Sprintf("%s has %s, but something is wrong.", self, why.Count(q.ready, "ready endpoint"))
	}
	return a, nil
}

// inquiry is one question about one Service.
type inquiry struct {
	*why.Case
	service *corev1.Service
	self    why.Object
	// ready is the number of ready endpoints in the Service's slices.
	ready int
}

// slices returns the Service's EndpointSlices and counts their ready endpoints.
func (q *inquiry) slices(ctx context.Context) (list []*discoveryv1.EndpointSlice, complete bool) {
	list, complete = why.List[discoveryv1.EndpointSlice](ctx, q.World, q.service.Namespace,
		labels.Set{discoveryv1.LabelServiceName: q.service.Name}.AsSelector())
	addresses := map[string]bool{}
	for _, s := range list {
		families := q.service.Spec.IPFamilies
		if len(families) > 0 && !slices.Contains(families, corev1.IPFamily(s.AddressType)) && s.AddressType != "" {
			continue // the Service has no address of that family
		}
		for _, e := range s.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready || len(e.Addresses) == 0 {
				continue
			}
			name := e.Addresses[0]
			if e.TargetRef != nil {
				name = e.TargetRef.Name // once for both address families
			}
			addresses[name] = true
		}
	}
	q.ready = len(addresses)
	return list, complete
}

// withoutSelector explains a Service whose endpoints somebody else writes.
func (q *inquiry) withoutSelector(ctx context.Context) []why.Cause {
	list, complete := q.slices(ctx)
	switch {
	case !complete:
		return nil
	case q.ready > 0:
		return q.unnamed(list)
	}
	cause := why.Cause{Code: "NoSelector",
		Text: "It has no selector, so that somebody must write its EndpointSlices, and there is none with a ready " +
			"endpoint.",
		Evidence: []why.Evidence{why.See(q.self, ".spec.selector", "not set")},
		Fixes: []why.Fix{{Text: fmt.Sprintf("Set a selector, or create an EndpointSlice with the label %s=%s.",
			discoveryv1.LabelServiceName, q.service.Name)}}}
	if len(list) > 0 {
		cause.Text = "It has no selector, and none of the endpoints that somebody wrote for it is ready."
	}
	cause.Because = q.unlabelled(ctx)
	return []why.Cause{cause}
}

// selected explains a Service by the pods that its selector matches.
func (q *inquiry) selected(ctx context.Context) ([]why.Cause, error) {
	pods, complete := why.List[corev1.Pod](ctx, q.World, q.service.Namespace,
		labels.Set(q.service.Spec.Selector).AsSelector())
	if !complete {
		return nil, nil
	}
	written, _ := q.slices(ctx)
	pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	if len(pods) == 0 {
		return q.noPods(ctx)
	}
	var ready []*corev1.Pod
	var causes []why.Cause
	for _, p := range pods {
		if isReady(p) && p.DeletionTimestamp == nil || q.service.Spec.PublishNotReadyAddresses {
			ready = append(ready, p)
		}
	}
	if len(ready) == 0 {
		return q.nonReady(ctx, pods)
	}
	causes = append(causes, q.ports(ready)...)
	causes = append(causes, q.untranslated(ready)...)
	causes = append(causes, q.family(ready)...)
	if len(causes) == 0 {
		causes = append(causes, q.unnamed(written)...)
	}
	if len(causes) == 0 && q.ready == 0 {
		causes = append(causes, why.Cause{Code: "EndpointsNotWritten",
			Text: fmt.Sprintf("%s its selector, ready to serve, but no EndpointSlice lists them. Does "+
				"kube-controller-manager run?", matching(len(ready))),
			Evidence: []why.Evidence{why.See(q.self, ".spec.selector", labels.Set(q.service.Spec.Selector).String())}})
	}
	causes = append(causes, q.mixed(ready)...)
	causes = append(causes, q.policies(ctx, ready)...)
	return append(causes, q.local(ctx, ready)...), nil
}

// mixed explains a selector that takes pods of several workloads, where some do not have the port: a part of the
// connections is refused.
func (q *inquiry) mixed(ready []*corev1.Pod) (causes []why.Cause) {
	for _, port := range q.service.Spec.Ports {
		protocol := cmp.Or(port.Protocol, corev1.ProtocolTCP)
		var with, without []string
		var seen []why.Evidence
		for _, p := range ready {
			name := workloadOf(p)
			if _, has, _ := declaredPorts([]*corev1.Pod{p}, port.TargetPort, protocol); has {
				with = add(with, name)
				continue
			}
			if without = add(without, name); len(seen) < 3 {
				seen = append(seen, why.See(why.ObjectOf("", "Pod", p), ".metadata.labels",
					labels.Set(p.Labels).String()))
			}
		}
		without = slices.DeleteFunc(without, func(n string) bool { return slices.Contains(with, n) })
		if len(with) == 0 || len(without) == 0 {
			continue
		}
		selector := labels.Set(q.service.Spec.Selector).String()
		causes = append(causes, why.Cause{Code: "SelectorTooWide",
			Text: fmt.Sprintf("Its selector %s also takes the pods of %s, which do not declare port %s as those of %s do: "+
				"connections that come to them are refused.", selector, why.And(without), port.TargetPort.String(),
				why.And(with)),
			Evidence: append([]why.Evidence{why.See(q.self, ".spec.selector", selector)}, seen...),
			Fixes:    []why.Fix{{Text: "Add a label to the selector that only the right pods have."}}})
	}
	return causes
}

// workloadOf names what made a pod, by the name that its pods share.
func workloadOf(p *corev1.Pod) string {
	owner := why.Controller(p)
	if owner == nil {
		return "pod " + p.Name
	}
	hash := p.Labels["pod-template-hash"]
	if name, ok := strings.CutSuffix(owner.Name, "-"+hash); ok && hash != "" {
		return name
	}
	return owner.Name
}

func add(list []string, one string) []string {
	if slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}

// local explains a Service whose traffic stays on a node, where some nodes have none of its pods.
func (q *inquiry) local(ctx context.Context, ready []*corev1.Pod) (causes []why.Cause) {
	nodes, complete := why.List[corev1.Node](ctx, q.World, "", nil)
	if !complete {
		return nil
	}
	var without []string
	for _, n := range nodes {
		if !slices.ContainsFunc(ready, func(p *corev1.Pod) bool { return p.Spec.NodeName == n.Name }) {
			without = append(without, n.Name)
		}
	}
	if len(without) == 0 {
		return nil
	}
	if p := q.service.Spec.InternalTrafficPolicy; p != nil && *p == corev1.ServiceInternalTrafficPolicyLocal {
		causes = append(causes, why.Cause{Code: "InternalTrafficLocal",
			Text: fmt.Sprintf("Its internalTrafficPolicy is Local: pods reach it only through pods on their own "+
				"node, and %s has none.", why.And(without)),
			Evidence: []why.Evidence{why.See(q.self, ".spec.internalTrafficPolicy", string(*p))},
			Fixes: []why.Fix{{Text: "Run a pod on each node, or let traffic go to other nodes.", Command: why.Command(
				`kubectl patch service %s%s --type=merge -p '{"spec":{"internalTrafficPolicy":"Cluster"}}'`,
				q.service.Name,
				q.self.Flag())}}})
	}
	outside := q.service.Spec.Type == corev1.ServiceTypeNodePort
	if p := q.service.Spec.ExternalTrafficPolicy; p == corev1.ServiceExternalTrafficPolicyLocal && outside {
		causes = append(causes, why.Cause{Code: "ExternalTrafficLocal",
			Text: fmt.Sprintf("Its externalTrafficPolicy is Local: its node ports answer only on nodes with one of "+
				"its pods, and %s has none.", why.And(without)),
			Evidence: []why.Evidence{why.See(q.self, ".spec.externalTrafficPolicy", string(p))}})
	}
	return causes
}

// noPods explains a selector that matches nothing: by what comes closest to it.
func (q *inquiry) noPods(ctx context.Context) ([]why.Cause, error) {
	selector := q.service.Spec.Selector
	cause := why.Cause{Code: "SelectorMatchesNothing",
		Text: fmt.Sprintf("No pod in namespace %s has the labels of its selector: %s.", q.service.Namespace,
			labels.Set(selector)),
		Evidence: []why.Evidence{why.See(q.self, ".spec.selector", labels.Set(selector).String())}}
	if w := q.workload(ctx); w != nil {
		because, err := q.Causes(ctx, *w)
		if err != nil {
			return nil, err
		}
		cause.Because = append(cause.Because, why.Cause{Code: "WorkloadHasNoPods",
			Text: fmt.Sprintf("%s %s makes such pods, and has none now.", w.Kind, w.Name), Because: because,
			Evidence: []why.Evidence{why.See(*w, ".spec.template.metadata.labels", labels.Set(selector).String())}})
		if a, err := q.Explain(ctx, *w); err == nil && a.Well && len(a.Causes) > 0 {
			cause.Because[0].Because = a.Causes // scaled to 0
		}
		return []why.Cause{cause}, nil
	}
	if p := q.elsewhere(ctx); p != nil {
		cause.Text += fmt.Sprintf(" Pod %s/%s has them, but in another namespace: a selector never leaves its own.",
			p.Namespace, p.Name)
		cause.Evidence = append(cause.Evidence, why.See(why.ObjectOf("", "Pod", p), ".metadata.labels",
			labels.Set(p.Labels).String()))
		cause.Fixes = []why.Fix{{Text: fmt.Sprintf("Make the Service in namespace %s, and use it as %s.%s.",
			p.Namespace, q.service.Name, p.Namespace)}}
		return []why.Cause{cause}, nil
	}
	if p, differing := q.closest(ctx); p != nil {
		var has []string
		for _, k := range differing {
			if v, ok := p.Labels[k]; ok {
				has = append(has, fmt.Sprintf("%s=%s instead of %s", k, v, selector[k]))
			} else {
				has = append(has, fmt.Sprintf("no label %s", k))
			}
		}
		cause.Text += fmt.Sprintf(" Pod %s comes closest; it has %s.", p.Name, why.And(has))
		cause.Evidence = append(cause.Evidence, why.See(why.ObjectOf("", "Pod", p), ".metadata.labels",
			labels.Set(p.Labels).String()))
		fixed := map[string]string{}
		for _, k := range differing {
			if v, ok := p.Labels[k]; ok {
				fixed[k] = v
			}
		}
		if len(fixed) == len(differing) {
			cause.Fixes = []why.Fix{{Text: "Select the labels that the pods have.", Command: why.Command(
				`kubectl patch service %s%s --type=merge -p %s`, q.service.Name, q.self.Flag(),
				fmt.Sprintf(`{"spec":{"selector":%s}}`, jsonMap(fixed)))}}
		}
	}
	return []why.Cause{cause}, nil
}

// elsewhere returns a pod of another namespace that the selector would match.
func (q *inquiry) elsewhere(ctx context.Context) *corev1.Pod {
	pods, _ := why.List[corev1.Pod](ctx, q.World, "", labels.Set(q.service.Spec.Selector).AsSelector())
	for _, p := range pods {
		if p.Namespace != q.service.Namespace {
			return p
		}
	}
	return nil
}

// closest returns the pod that has most of the selector's labels, or else one whose label has the same key, with the
// keys that differ.
func (q *inquiry) closest(ctx context.Context) (best *corev1.Pod, differing []string) {
	pods, _ := why.List[corev1.Pod](ctx, q.World, q.service.Namespace, nil)
	score := 0
	for _, p := range pods {
		s := 0
		var differ []string
		for _, k := range slices.Sorted(keysOf(q.service.Spec.Selector)) {
			switch v, ok := p.Labels[k]; {
			case ok && v == q.service.Spec.Selector[k]:
				s += 4
				continue
			case ok && alike(v, q.service.Spec.Selector[k]):
				s += 3
			case ok:
				s++
			}
			differ = append(differ, k)
		}
		if s > score {
			best, score, differing = p, s, differ
		}
	}
	return best, differing
}

// nonReady explains pods that are all not ready.
func (q *inquiry) nonReady(ctx context.Context, pods []*corev1.Pod) ([]why.Cause, error) {
	cause := why.Cause{Code: "NoPodReady",
		Text:     fmt.Sprintf("%s its selector, and none is ready.", matching(len(pods))),
		Evidence: []why.Evidence{why.See(q.self, ".spec.selector", labels.Set(q.service.Spec.Selector).String())}}
	if q.service.Spec.ClusterIP == corev1.ClusterIPNone {
		cause.Text += " DNS has no addresses of pods that are not ready."
		cause.Fixes = []why.Fix{{Text: "If its pods must find each other before they are ready, publish them earlier.",
			Command: why.Command(`kubectl patch service %s%s --type=merge -p '{"spec":{"publishNotReadyAddresses":true}}'`,
				q.service.Name, q.self.Flag())}}
	}
	var err error
	cause.Because, err = why.NotReady(ctx, q.Case, pods)
	// Whatever keeps the pods from being ready, these are wrong as well.
	return slices.Concat([]why.Cause{cause}, q.ports(pods), q.untranslated(pods)), err
}

// ports explains ports of the Service that lead to none of the pods' containers.
func (q *inquiry) ports(pods []*corev1.Pod) (causes []why.Cause) {
	for _, port := range q.service.Spec.Ports {
		target := port.TargetPort
		protocol := cmp.Or(port.Protocol, corev1.ProtocolTCP)
		field := fmt.Sprintf(`.spec.ports[?(@.port==%d)].targetPort`, port.Port)
		declared, matches, other := declaredPorts(pods, target, protocol)
		if matches || len(declared) == 0 && target.Type == intstr.Int {
			continue
		}
		fix := why.Fix{Text: "Let the Service use a port that the containers declare."}
		if len(declared) > 0 {
			i := slices.IndexFunc(q.service.Spec.Ports, func(p corev1.ServicePort) bool {
				return p.Port == port.Port && p.Protocol == port.Protocol
			})
			fix.Command = why.Command("kubectl patch service %s%s --type=json -p %s", q.service.Name, q.self.Flag(),
				fmt.Sprintf(`[{"op":"replace","path":"/spec/ports/%d/targetPort","value":%s}]`, i, first(pods, protocol)))
		}
		switch {
		case other != "":
			causes = append(causes, why.Cause{Code: "ProtocolDiffers",
				Text: fmt.Sprintf("Port %d of the Service is %s, but the containers declare port %s as %s.", port.Port,
					protocol, target.String(), other),
				Evidence: []why.Evidence{why.See(q.self, field, target.String()),
					why.See(why.ObjectOf("", "Pod", pods[0]), ".spec.containers[*].ports", why.And(declared))}})
		case target.Type == intstr.String:
			causes = append(causes, why.Cause{Code: "TargetPortUnknown",
				Text: fmt.Sprintf("Port %d of the Service leads to the container port named %q, and no container of "+
					"its pods has a port of that name. They have: %s.", port.Port, target.StrVal, why.And(declared)),
				Evidence: []why.Evidence{why.See(q.self, field, target.StrVal),
					why.See(why.ObjectOf("", "Pod", pods[0]), ".spec.containers[*].ports", why.And(declared))},
				Fixes: []why.Fix{fix}})
		default:
			causes = append(causes, why.Cause{Code: "TargetPortUndeclared",
				Text: fmt.Sprintf("Port %d of the Service leads to port %d of its pods, but their containers "+
					"declare other ports: %s. If nothing listens at %d, connections are "+
					"refused.", port.Port, target.IntVal,
					why.And(declared), target.IntVal),
				Evidence: []why.Evidence{why.See(q.self, field, target.String()),
					why.See(why.ObjectOf("", "Pod", pods[0]), ".spec.containers[*].ports", why.And(declared))},
				Fixes: []why.Fix{fix}})
		}
	}
	return causes
}

// declaredPorts returns the ports that containers declare, whether one is the target, and else the protocol with which
// it is declared.
func declaredPorts(pods []*corev1.Pod, target intstr.IntOrString, protocol corev1.Protocol) (declared []string,
	matches bool, other corev1.Protocol) {
	for _, p := range pods {
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			for _, cp := range c.Ports {
				text := fmt.Sprint(cp.ContainerPort)
				if cp.Name != "" {
					text += " (" + cp.Name + ")"
				}
				if !slices.Contains(declared, text) {
					declared = append(declared, text)
				}
				if target.Type == intstr.String && cp.Name != target.StrVal ||
					target.Type == intstr.Int && cp.ContainerPort != target.IntVal {
					continue
				}
				if cmp.Or(cp.Protocol, corev1.ProtocolTCP) == protocol {
					matches = true
				} else {
					other = cmp.Or(cp.Protocol, corev1.ProtocolTCP)
				}
			}
		}
	}
	return declared, matches, other
}

// first is the first declared port of a protocol as JSON: its name if it has one, as names survive new numbers.
func first(pods []*corev1.Pod, protocol corev1.Protocol) string {
	for _, p := range pods {
		for _, c := range p.Spec.Containers {
			for _, cp := range c.Ports {
				if cmp.Or(cp.Protocol, corev1.ProtocolTCP) != protocol {
					continue
				}
				if cp.Name != "" {
					return `"` + cp.Name + `"`
				}
				return fmt.Sprint(cp.ContainerPort)
			}
		}
	}
	return "PORT"
}

// balancer explains a Service of type LoadBalancer without an address.
func (q *inquiry) balancer(ctx context.Context) []why.Cause {
	if q.service.Spec.Type != corev1.ServiceTypeLoadBalancer || len(q.service.Status.LoadBalancer.Ingress) > 0 {
		return nil
	}
	cause := why.Cause{Code: "LoadBalancerPending",
		Text: fmt.Sprintf("No load balancer has given it an address for %s.",
			why.Span(q.Now.Sub(q.service.CreationTimestamp.Time))),
		Evidence: []why.Evidence{why.See(q.self, ".status.loadBalancer.ingress", "empty")}}
	said := false
	for _, e := range q.Events(ctx, q.self) {
		if strings.Contains(e.Reason, "LoadBalancer") && e.Type == corev1.EventTypeWarning {
			cause.Text += " The controller says: " + why.Quote(e.Message) + "."
			cause.Evidence = append(cause.Evidence, why.SeeEvent(e))
			said = true
			break
		}
	}
	switch class := q.service.Spec.LoadBalancerClass; {
	case class != nil:
		cause.Text += fmt.Sprintf(" Its loadBalancerClass is %s: only a controller of that class serves it.", *class)
		cause.Evidence = append(cause.Evidence, why.See(q.self, ".spec.loadBalancerClass", *class))
	case !said:
		cause.Text += " Nothing in the cluster seems to provide load balancers."
		cause.Fixes = []why.Fix{{Text: "Install a provider of load balancers, or use type NodePort."}}
	}
	return []why.Cause{cause}
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func matching(n int) string {
	if n == 1 {
		return "1 pod matches"
	}
	return fmt.Sprintf("%d pods match", n)
}
