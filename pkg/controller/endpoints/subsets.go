package endpoints

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/api/podspec"
	"bonsai/pkg/controller"
)

// maxAddresses is how many addresses an Endpoints object may have; ready ones are kept first.
const maxAddresses = 1000

// describe fills in everything that follows from the Service and its pods.
func describe(e *corev1.Endpoints, svc *corev1.Service, pods []*corev1.Pod) {
	lab := maps.Clone(svc.Labels)
	if lab == nil {
		lab = map[string]string{}
	}
	delete(lab, corev1.IsHeadlessService)
	if svc.Spec.ClusterIP == corev1.ClusterIPNone {
		lab[corev1.IsHeadlessService] = ""
	}
	lab[managedByLabel] = managedBy
	subsets, truncated := truncate(subsetsOf(svc, pods))
	ann := maps.Clone(e.Annotations)
	delete(ann, corev1.EndpointsOverCapacity)
	if truncated {
		if ann == nil {
			ann = map[string]string{}
		}
		ann[corev1.EndpointsOverCapacity] = "truncated"
	}
	e.Labels, e.Annotations, e.Subsets = lab, ann, subsets
}

// subsetsOf groups the pods' addresses by the ports they offer.
func subsetsOf(svc *corev1.Service, pods []*corev1.Pod) []corev1.EndpointSubset {
	groups := map[string]*corev1.EndpointSubset{}
	for _, p := range pods {
		if controller.PodTerminal(p) || p.DeletionTimestamp != nil && !svc.Spec.PublishNotReadyAddresses {
			continue
		}
		ip := primaryIP(svc, p)
		if ip == "" {
			continue
		}
		ports := portsOf(svc, p)
		if len(ports) == 0 && !(svc.Spec.ClusterIP == corev1.ClusterIPNone && len(svc.Spec.Ports) == 0) {
			continue
		}
		key := fmt.Sprint(ports)
		if groups[key] == nil {
			groups[key] = &corev1.EndpointSubset{Ports: ports}
		}
		g, a := groups[key], addressOf(svc, p, ip)
		if svc.Spec.PublishNotReadyAddresses || controller.PodReady(p) {
			g.Addresses = append(g.Addresses, a)
		} else {
			g.NotReadyAddresses = append(g.NotReadyAddresses, a)
		}
	}
	var out []corev1.EndpointSubset
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		slices.SortFunc(groups[key].Addresses, byIP)
		slices.SortFunc(groups[key].NotReadyAddresses, byIP)
		out = append(out, *groups[key])
	}
	return out
}

func byIP(a, b corev1.EndpointAddress) int {
	return cmp.Or(strings.Compare(a.IP, b.IP), cmp.Compare(a.TargetRef.UID, b.TargetRef.UID))
}

// primaryIP returns the pod's address of the Service's first family.
func primaryIP(svc *corev1.Service, p *corev1.Pod) string {
	want6 := len(svc.Spec.IPFamilies) > 0 && svc.Spec.IPFamilies[0] == corev1.IPv6Protocol
	if len(svc.Spec.IPFamilies) == 0 {
		if a, err := netip.ParseAddr(svc.Spec.ClusterIP); err == nil {
			want6 = a.Is6()
		}
	}
	for _, ip := range p.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil && a.Is6() == want6 {
			return ip.IP
		}
	}
	return ""
}

func addressOf(svc *corev1.Service, p *corev1.Pod, ip string) corev1.EndpointAddress {
	a := corev1.EndpointAddress{IP: ip,
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID}}
	if p.Spec.NodeName != "" {
		a.NodeName = new(p.Spec.NodeName)
	}
	if p.Spec.Hostname != "" && p.Spec.Subdomain == svc.Name {
		a.Hostname = p.Spec.Hostname
	}
	return a
}

func portsOf(svc *corev1.Service, p *corev1.Pod) []corev1.EndpointPort {
	var out []corev1.EndpointPort
	for _, sp := range svc.Spec.Ports {
		if n, ok := targetPort(sp, p); ok {
			proto := cmp.Or(sp.Protocol, corev1.ProtocolTCP)
			out = append(out, corev1.EndpointPort{Name: sp.Name, Port: n, Protocol: proto, AppProtocol: sp.AppProtocol})
		}
	}
	return out
}

func targetPort(sp corev1.ServicePort, p *corev1.Pod) (int32, bool) {
	if sp.TargetPort.Type == intstr.Int {
		return cmp.Or(sp.TargetPort.IntVal, sp.Port), true
	}
	sidecars := slices.DeleteFunc(slices.Clone(p.Spec.InitContainers), func(c corev1.Container) bool {
		return !podspec.IsSidecar(&c)
	})
	for _, c := range slices.Concat(p.Spec.Containers, sidecars) {
		for _, port := range c.Ports {
			if port.Name == sp.TargetPort.StrVal && port.Protocol == sp.Protocol {
				return port.ContainerPort, true
			}
		}
	}
	return 0, false
}

// truncate keeps at most maxAddresses, ready ones before others.
func truncate(subsets []corev1.EndpointSubset) ([]corev1.EndpointSubset, bool) {
	left, cut := maxAddresses, false
	take := func(a []corev1.EndpointAddress) []corev1.EndpointAddress {
		if len(a) > left {
			a, cut = a[:left], true
		}
		left -= len(a)
		return a
	}
	for i := range subsets {
		subsets[i].Addresses = take(subsets[i].Addresses)
	}
	for i := range subsets {
		subsets[i].NotReadyAddresses = take(subsets[i].NotReadyAddresses)
	}
	return slices.DeleteFunc(subsets, func(s corev1.EndpointSubset) bool {
		return len(s.Addresses)+len(s.NotReadyAddresses) == 0
	}), cut
}
