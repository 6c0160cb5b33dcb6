package pod

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/why"
)

// podName is a name that a program calls a pod by: that of a pod, then that of the Service that it belongs to.
type podName struct {
	*program
	e  endpoint
	to callee
	s  *corev1.Service // nil if there is none
	// sets and pods are those of the namespace.
	sets []*appsv1.StatefulSet
	pods []*corev1.Pod
}

// explainPodName explains a name of a pod in DNS that leads nowhere: a pod that no StatefulSet makes, one that belongs
// to another Service, and one that is not ready; ok is false if the name leads to a pod, or nobody knows.
func explainPodName(ctx context.Context, p *program, e endpoint, to callee, s *corev1.Service) (cause why.Cause,
	ok bool) {
	n := &podName{program: p, e: e, to: to, s: s}
	var all, known bool
	n.sets, all = why.List[appsv1.StatefulSet](ctx, p.World, to.namespace, nil)
	n.pods, known = why.List[corev1.Pod](ctx, p.World, to.namespace, nil)
	if !all || !known || s != nil && (s.Spec.Type == corev1.ServiceTypeExternalName || n.listed(ctx)) {
		return why.Cause{}, false
	}
	i := slices.IndexFunc(n.pods, func(p *corev1.Pod) bool {
		return p.Name == to.pod || p.Spec.Hostname == to.pod && p.Spec.Subdomain == to.service
	})
	if i >= 0 {
		return n.there(ctx, n.pods[i])
	}
	for _, set := range n.sets {
		if ordinal, ok := ordinalOf(set, to.pod); ok {
			return n.absent(ctx, set, ordinal)
		}
	}
	if s == nil || len(s.Spec.Selector) == 0 {
		return why.Cause{}, false
	}
	return n.unknown()
}

// explainBarePodName explains a program that calls a pod of a StatefulSet by its name alone, which DNS does not have.
func explainBarePodName(ctx context.Context, p *program, e endpoint, to callee) (cause why.Cause, ok bool) {
	if to.pod != "" || !ordinal.MatchString(to.service) {
		return why.Cause{}, false
	}
	sets, _ := why.List[appsv1.StatefulSet](ctx, p.World, to.namespace, nil)
	i := slices.IndexFunc(sets, func(s *appsv1.StatefulSet) bool {
		_, ok := ordinalOf(s, to.service)
		return ok
	})
	if i < 0 || sets[i].Spec.ServiceName == "" {
		return why.Cause{}, false
	}
	set := sets[i]
	to.pod, to.service = to.service, set.Spec.ServiceName
	s, known := why.Get[corev1.Service](ctx, p.World, to.namespace, to.service)
	if s == nil && known {
		return p.noService(ctx, to.pod+"."+to.service, to.namespace, to.service), true
	}
	if cause, ok := explainPodName(ctx, p, e, to, s); ok {
		return cause, true
	}
	n := &podName{program: p, e: e, to: to, s: s}
	cause = n.cause("PodNameIncomplete", "that is the name of a pod of StatefulSet %s: DNS has it with the Service %s, as "+
		"%s.%s.", set.Name, to.service, to.pod, to.service)
	cause.Evidence = append(cause.Evidence, why.See(why.ObjectOf("apps", "StatefulSet", set), ".spec.serviceName",
		set.Spec.ServiceName))
	cause.Fixes = []why.Fix{n.call(to.pod, to.service)}
	return cause, true
}

// ordinalOf is the ordinal of a set's pod by the pod's name; ok is false for a name that is not of its pods.
func ordinalOf(set *appsv1.StatefulSet, pod string) (ordinal int, ok bool) {
	number, found := strings.CutPrefix(pod, set.Name+"-")
	ordinal, err := strconv.Atoi(number)
	return ordinal, found && err == nil && strconv.Itoa(ordinal) == number && ordinal >= 0
}

// listed reports whether the Service's endpoints have the name, so that DNS has it, too.
func (n *podName) listed(ctx context.Context) bool {
	list, _ := why.List[discoveryv1.EndpointSlice](ctx, n.World, n.to.namespace,
		labels.Set{discoveryv1.LabelServiceName: n.to.service}.AsSelector())
	return slices.ContainsFunc(list, func(s *discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
			return e.Hostname != nil && *e.Hostname == n.to.pod && (e.Conditions.Ready == nil || *e.Conditions.Ready)
		})
	})
}

// cause is one about the name.
func (n *podName) cause(code, format string, args ...any) why.Cause {
	return why.Cause{Code: code, Text: fmt.Sprintf("It calls %s, and ", n.e.host) + fmt.Sprintf(format, args...),
		Evidence: []why.Evidence{n.calls(n.e)}}
}

// call is the change by which the program calls another name: of the same kind as the one that it calls.
func (n *podName) call(pod, service string) why.Fix {
	name := pod + "." + service
	if n.to.namespace != n.pod.Namespace {
		name += "." + n.to.namespace
	}
	return why.Fix{Text: fmt.Sprintf("Let the program call %s.", name)}
}

// absent explains a pod that a set does not have: its number is below or above those of the set, or it has not been
// made.
func (n *podName) absent(ctx context.Context, set *appsv1.StatefulSet, ordinal int) (why.Cause, bool) {
	self := why.ObjectOf("apps", "StatefulSet", set)
	start, replicas := 0, 1
	if set.Spec.Ordinals != nil {
		start = int(set.Spec.Ordinals.Start)
	}
	if set.Spec.Replicas != nil {
		replicas = int(*set.Spec.Replicas)
	}
	own := fmt.Sprintf("%s-%d", set.Name, start)
	has := "Its pods are " + own + "."
	switch {
	case replicas == 0:
		has = "It has no pods (0 replicas)."
	case replicas == 1:
		has = "Its only pod is " + own + "."
	case replicas == 2:
		has = fmt.Sprintf("Its pods are %s and %s-%d.", own, set.Name, start+1)
	default:
		has = fmt.Sprintf("Its pods are %s to %s-%d.", own, set.Name, start+replicas-1)
	}
	absent := why.Absent("Pod", n.to.namespace, n.to.pod)
	switch {
	case ordinal < start:
		cause := n.cause("OrdinalBelowStart", "there is no pod %s: the numbering of StatefulSet %s starts at %d "+
			"(spec.ordinals.start). %s", n.to.pod, set.Name, start, has)
		cause.Evidence = append(cause.Evidence, absent, why.See(self, ".spec.ordinals.start", fmt.Sprint(start)))
		cause.Fixes = []why.Fix{n.call(own, set.Spec.ServiceName), {
			Text: fmt.Sprintf("Or let the numbering start at %d. Pods are then made and deleted to fit it.", ordinal),
			Command: why.Command("kubectl patch %s%s --type=merge -p %s", self.Arg(), self.Flag(),
				fmt.Sprintf(`{"spec":{"ordinals":{"start":%d}}}`, ordinal))}}
		if replicas == 0 {
			cause.Fixes = cause.Fixes[1:]
		}
		return cause, true
	case ordinal >= start+replicas:
		cause := n.cause("OrdinalAboveReplicas", "there is no pod %s: StatefulSet %s has too few replicas for it. %s",
			n.to.pod, set.Name, has)
		cause.Evidence = append(cause.Evidence, absent, why.See(self, ".spec.replicas", fmt.Sprint(replicas)))
		if replicas > 0 {
			last := fmt.Sprintf("%s-%d", set.Name, start+replicas-1)
			cause.Fixes = append(cause.Fixes, n.call(last, set.Spec.ServiceName))
		}
		cause.Fixes = append(cause.Fixes, why.Fix{Text: "Let the set have a pod of that number.",
			Command: why.Command("kubectl scale %s%s --replicas=%d", self.Arg(), self.Flag(), ordinal-start+1)})
		return cause, true
	}
	if n.s == nil {
		return why.Cause{}, false // the Service is what is missing
	}
	cause := n.cause("PodNotMade", "StatefulSet %s has not made its pod %s yet.", set.Name, n.to.pod)
	cause.Evidence = append(cause.Evidence, absent)
	if because, err := n.Causes(ctx, self); err == nil {
		cause.Because = because
	}
	return cause, true
}

// there explains a name whose pod exists.
func (n *podName) there(ctx context.Context, pod *corev1.Pod) (why.Cause, bool) {
	self := why.ObjectOf("", "Pod", pod)
	name := pod.Name
	if pod.Spec.Hostname != "" {
		name = pod.Spec.Hostname
	}
	switch {
	case pod.Spec.Subdomain == "":
		cause := n.cause("PodWithoutSubdomain", "pod %s has no name in DNS: it has no subdomain.", pod.Name)
		cause.Evidence = append(cause.Evidence, why.See(self, ".spec.subdomain", "not set"))
		if set := n.owner(pod); set != nil {
			cause.Text = strings.TrimSuffix(cause.Text, ".") + fmt.Sprintf(", since StatefulSet %s has no serviceName.",
				set.Name)
			cause.Fixes = []why.Fix{{Text: "Make the set again with the serviceName of a headless Service."}}
		} else if n.s != nil {
			cause.Fixes = []why.Fix{{Text: "Let the program call the Service itself."}}
		}
		return cause, true
	case pod.Spec.Subdomain != n.to.service:
		cause := n.cause("PodOfOtherService", "pod %s belongs to the Service %s, by its subdomain.", pod.Name,
			pod.Spec.Subdomain)
		cause.Evidence = append(cause.Evidence, why.See(self, ".spec.subdomain", pod.Spec.Subdomain))
		cause.Fixes = []why.Fix{n.call(name, pod.Spec.Subdomain)}
		if set := n.owner(pod); set != nil {
			cause.Text = strings.TrimSuffix(cause.Text, ", by its subdomain.") + fmt.Sprintf(
				", which the serviceName of StatefulSet %s says.", set.Name)
			cause.Evidence = append(cause.Evidence, why.See(why.ObjectOf("apps", "StatefulSet", set),
				".spec.serviceName", set.Spec.ServiceName))
		}
		return cause, true
	case n.s == nil:
		return why.Cause{}, false // the Service is what is missing
	}
	service := why.ObjectOf("", "Service", n.s)
	selector := labels.Set(n.s.Spec.Selector)
	switch {
	case len(selector) == 0:
		return why.Cause{}, false
	case !selector.AsSelector().Matches(labels.Set(pod.Labels)):
		cause := n.cause("PodNotSelected", "the selector of Service %s does not match pod %s: its name is not in DNS.",
			n.s.Name, pod.Name)
		cause.Evidence = append(cause.Evidence, why.See(service, ".spec.selector", selector.String()),
			why.See(self, ".metadata.labels", labels.Set(pod.Labels).String()))
		return cause, true
	case n.s.Spec.ClusterIP != corev1.ClusterIPNone:
		if !n.saidUnknown() {
			return why.Cause{}, false // some DNS servers know such names all the same
		}
		cause := n.cause("ServiceNotHeadless", "Service %s is not headless: names of its pods need not be in DNS.",
			n.s.Name)
		cause.Evidence = append(cause.Evidence, why.See(service, ".spec.clusterIP", n.s.Spec.ClusterIP))
		cause.Fixes = []why.Fix{{Text: "Let the program call the Service itself, if any of its pods will do."},
			{Text: "Or make the Service again with clusterIP: None."}}
		return cause, true
	case isReady(pod) || n.s.Spec.PublishNotReadyAddresses:
		return why.Cause{}, false
	}
	cause := n.cause("NamedPodNotReady", "pod %s is not ready: Service %s has the names of ready pods alone.", pod.Name,
		n.s.Name)
	if pod.Name == n.pod.Name && pod.Namespace == n.pod.Namespace {
		cause.Text += " It waits for itself."
	}
	cause.Evidence = append(cause.Evidence, why.See(self, `.status.conditions[?(@.type=="Ready")].status`, "False"),
		why.See(service, ".spec.publishNotReadyAddresses", "false"))
	if because, err := n.Causes(ctx, self); err == nil {
		cause.Because = because
	}
	cause.Fixes = []why.Fix{{Text: "If the program may call the pod before it is ready, as members of a cluster do to " +
		"find each other: let the Service have the names of all.", Command: why.Command("kubectl patch %s%s -p %s",
		service.Arg(), service.Flag(), `{"spec":{"publishNotReadyAddresses":true}}`)}}
	return cause, true
}

// unknown explains a name that no pod has and no set would give, by the names that the Service's pods have.
func (n *podName) unknown() (why.Cause, bool) {
	var names []string
	var pods int
	for _, p := range n.pods {
		if !labels.Set(n.s.Spec.Selector).AsSelector().Matches(labels.Set(p.Labels)) {
			continue
		}
		if pods++; p.Spec.Subdomain == n.s.Name && p.Spec.Hostname != "" {
			names = append(names, p.Spec.Hostname)
		}
	}
	service := why.ObjectOf("", "Service", n.s)
	slices.Sort(names)
	switch {
	case pods == 0 || n.s.Spec.ClusterIP != corev1.ClusterIPNone && !n.saidUnknown():
		return why.Cause{}, false
	case len(names) == 0:
		cause := n.cause("PodsWithoutNames", "the pods of Service %s have no names of their own in DNS: those of "+
			"StatefulSets have, and those with a hostname and a subdomain.", n.s.Name)
		cause.Evidence = append(cause.Evidence, why.See(service, ".spec.selector",
			labels.Set(n.s.Spec.Selector).String()))
		cause.Fixes = []why.Fix{{Text: "Let the program call the Service itself."}}
		return cause, true
	}
	cause := n.cause("PodNameUnknown", "no pod of Service %s has the name %s. They have: %s.", n.s.Name, n.to.pod,
		why.And(names))
	cause.Evidence = append(cause.Evidence, why.Absent("Pod", n.to.namespace, n.to.pod),
		why.See(service, ".spec.selector", labels.Set(n.s.Spec.Selector).String()))
	best := names[0]
	for _, name := range names { // one of the same number
		if name[strings.LastIndexByte(name, '-')+1:] == n.to.pod[strings.LastIndexByte(n.to.pod, '-')+1:] {
			best = name
			break
		}
	}
	cause.Fixes = []why.Fix{n.call(best, n.s.Name)}
	return cause, true
}

// owner is the set that controls a pod, nil if none does.
func (n *podName) owner(pod *corev1.Pod) *appsv1.StatefulSet {
	o := why.Controller(pod)
	i := slices.IndexFunc(n.sets, func(s *appsv1.StatefulSet) bool {
		return o != nil && o.Kind == "StatefulSet" && s.Name == o.Name
	})
	if i < 0 {
		return nil
	}
	return n.sets[i]
}

// saidUnknown reports whether the program says that the name was not found.
func (n *podName) saidUnknown() bool {
	return slices.ContainsFunc(n.said, func(line string) bool {
		return lookupFailed.MatchString(line) && strings.Contains(line, n.e.host)
	})
}

// isReady reports whether a pod is ready.
func isReady(p *corev1.Pod) bool {
	c := condition(p, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}
