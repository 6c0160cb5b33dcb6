package pod

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// callee is what a host name or an address means within the cluster: a Service, a pod of one, or a pod by its address.
type callee struct {
	namespace string
	// service is that of the name or the address, "" for the address of a pod.
	service string
	// pod is the name before that of the Service (db-0 of db-0.db), or the pod that has the address; "" for a Service.
	pod string
	// shown is how sentences name it: as the program does, and for an address, what has it.
	shown string
}

// id tells what is called from other things that are.
func (t callee) id() string { return t.namespace + "/" + t.service + "/" + t.pod }

// ofService is the id of the Service alone.
func (t callee) ofService() string { return t.namespace + "/" + t.service + "/" }

// ordinal matches the end of names of a StatefulSet's pods.
var ordinal = regexp.MustCompile(`-\d+$`)

// callee returns what a host means within the pod; ok is false for one that need not be of the cluster.
func (p *program) callee(ctx context.Context, host string) (to callee, ok bool) {
	if a, err := netip.ParseAddr(host); err == nil {
		return calleeAt(ctx, p, a)
	}
	names := strings.Split(host, ".")
	if len(names) > 2 && dashed(names[0]) { // an endpoint of a Service by its address, which DNS names so
		names = names[1:]
	}
	number := strings.Trim(names[0], "0123456789") == "" // no name at all
	if number || slices.Contains(names, "") || host == "localhost" || p.alias(host) {
		return callee{}, false
	}
	switch i := slices.Index(names, "svc"); i { // name.namespace.svc, pod.name.namespace.svc
	case 2:
		return callee{namespace: names[1], service: names[0], shown: host}, true
	case 3:
		return callee{namespace: names[2], service: names[1], pod: names[0], shown: host}, true
	}
	switch len(names) {
	case 1:
		return callee{namespace: p.pod.Namespace, service: host, shown: host}, true
	case 2: // name.namespace, or pod.name; anything else is a name of another domain
		if s, _ := why.Get[corev1.Service](ctx, p.World, names[1], names[0]); s != nil {
			return callee{namespace: names[1], service: names[0], shown: host}, true
		}
		to = callee{namespace: p.pod.Namespace, service: names[1], pod: names[0], shown: host}
		return to, ofPod(ctx, p, to)
	case 3: // pod.name.namespace
		to = callee{namespace: names[2], service: names[1], pod: names[0], shown: host}
		return to, (ordinal.MatchString(to.pod) || to.namespace == p.pod.Namespace) && ofPod(ctx, p, to)
	}
	return callee{}, false
}

// dashed reports whether a name is an address with dashes in place of dots or colons.
func dashed(name string) bool {
	for _, mark := range []string{".", ":"} {
		if _, err := netip.ParseAddr(strings.ReplaceAll(name, "-", mark)); err == nil {
			return true
		}
	}
	return false
}

// ofPod reports whether a name can be that of a pod: its Service exists, or a StatefulSet with pods of that name does.
func ofPod(ctx context.Context, p *program, to callee) bool {
	if s, _ := why.Get[corev1.Service](ctx, p.World, to.namespace, to.service); s != nil {
		return true
	}
	if to.namespace != p.pod.Namespace || !ordinal.MatchString(to.pod) {
		return false
	}
	sets, _ := why.List[appsv1.StatefulSet](ctx, p.World, to.namespace, nil)
	return slices.ContainsFunc(sets, func(s *appsv1.StatefulSet) bool {
		_, ok := ordinalOf(s, to.pod)
		return ok
	})
}

// atAddress matches addresses in messages, with their port if it follows: 10.0.0.1:80, (10.0.0.1), [fd00::1]:80,
// 10.0.0.1 port 80.
var atAddress = regexp.MustCompile(`(?:^|[^\w.:])\[?(\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]{0,4}:[0-9a-f:]{1,40})[\])"']*` +
	`(?:(?::|,? port:? )(\d{1,5})\b)?`)

// addresses are those that a text names, the first maxNamed, and of one address those with a port only, if there are
// any.
func addresses(text string) (list []endpoint) {
	for _, m := range atAddress.FindAllStringSubmatch(text, maxNamed) {
		a, err := netip.ParseAddr(m[1])
		if err != nil || a.IsLoopback() || a.IsUnspecified() {
			continue
		}
		port, _ := strconv.ParseUint(m[2], 10, 16)
		e := endpoint{host: m[1], port: int32(port)}
		i := slices.IndexFunc(list, func(o endpoint) bool { return o.host == e.host && (o.port == 0 || e.port == 0) })
		switch {
		case i < 0 && !slices.Contains(list, e):
			list = append(list, e)
		case i >= 0 && list[i].port == 0:
			list[i] = e
		}
	}
	return list
}

// calleeAt returns the Service or the pod that has an address.
func calleeAt(ctx context.Context, p *program, a netip.Addr) (to callee, ok bool) {
	namespaces := []string{p.pod.Namespace}
	if a.IsPrivate() { // others are those of other networks, in nearly all clusters: that is not worth reading all
		namespaces = append(namespaces, "")
	}
	for _, ns := range namespaces {
		services, _ := why.List[corev1.Service](ctx, p.World, ns, nil)
		for _, s := range services {
			if slices.Contains(serviceAddresses(s), a) {
				return callee{namespace: s.Namespace, service: s.Name, shown: fmt.Sprintf("%s, the address of %s", a,
					p.named("Service", s.Namespace, s.Name))}, true
			}
		}
	}
	for _, ns := range namespaces {
		if pod := podAt(ctx, p, ns, a); pod != nil {
			return callee{namespace: pod.Namespace, pod: pod.Name, shown: fmt.Sprintf("%s, the address of %s", a,
				p.named("pod", pod.Namespace, pod.Name))}, pod.Name != p.pod.Name || pod.Namespace != p.pod.Namespace
		}
	}
	return callee{}, false
}

// podAt returns the pod of a namespace, "" for all, that has an address of its own; nil if none has it.
func podAt(ctx context.Context, p *program, namespace string, a netip.Addr) *corev1.Pod {
	pods, _ := why.List[corev1.Pod](ctx, p.World, namespace, nil)
	for _, pod := range pods {
		over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if over || pod.Spec.HostNetwork {
			continue
		}
		if pod.Status.PodIP == a.String() || slices.ContainsFunc(pod.Status.PodIPs, func(ip corev1.PodIP) bool {
			return ip.IP == a.String()
		}) {
			return pod
		}
	}
	return nil
}

// serviceAddresses are those of a Service within the cluster.
func serviceAddresses(s *corev1.Service) (list []netip.Addr) {
	for _, ip := range append([]string{s.Spec.ClusterIP}, s.Spec.ClusterIPs...) {
		if a, err := netip.ParseAddr(ip); err == nil {
			list = append(list, a)
		}
	}
	return list
}

// named is how sentences name an object, with its namespace if that is not the pod's.
func (p *program) named(kind, namespace, name string) string {
	if namespace == p.pod.Namespace {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}
