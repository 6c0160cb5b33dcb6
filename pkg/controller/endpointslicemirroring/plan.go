package endpointslicemirroring

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	endpointsliceutil "k8s.io/endpointslice/util"
)

// portGroup is the endpoints of one family that offer the same ports: only those can share a slice.
type portGroup struct {
	family    discoveryv1.AddressType
	ports     []discoveryv1.EndpointPort
	endpoints []discoveryv1.Endpoint
}

// groupKey is equal for slices of one family with the same ports.
type groupKey struct {
	family discoveryv1.AddressType
	ports  endpointsliceutil.PortMapKey
}

// group turns Endpoints into endpoints by family and ports. A subset contributes at most most addresses, ready ones
// first; group returns how many were left out. Of an address that several subsets with the same ports name, the first
// one counts.
func group(eps *corev1.Endpoints, most int) (map[groupKey]*portGroup, int) {
	groups, skipped := map[groupKey]*portGroup{}, 0
	for i := range eps.Subsets {
		s := &eps.Subsets[i]
		ports := portsOf(s.Ports)
		key, room := endpointsliceutil.NewPortMapKey(ports), most
		add := func(addresses []corev1.EndpointAddress, ready bool) {
			for _, a := range addresses {
				at := groupKey{familyOf(a.IP), key}
				if room == 0 {
					skipped++
					continue
				}
				room--
				if groups[at] == nil {
					groups[at] = &portGroup{family: at.family, ports: ports}
				}
				groups[at].endpoints = append(groups[at].endpoints, endpointOf(a, ready))
			}
		}
		add(s.Addresses, true)
		add(s.NotReadyAddresses, false)
	}
	for _, g := range groups {
		slices.SortStableFunc(g.endpoints, compare)
		g.endpoints = slices.CompactFunc(g.endpoints, func(a, b discoveryv1.Endpoint) bool {
			return compare(a, b) == 0
		})
	}
	return groups, skipped
}

// compare orders endpoints, so that the same ones make the same slice.
func compare(a, b discoveryv1.Endpoint) int {
	of := func(e discoveryv1.Endpoint) string {
		if e.TargetRef == nil {
			return ""
		}
		return e.TargetRef.Kind + "/" + e.TargetRef.Namespace + "/" + e.TargetRef.Name
	}
	return cmp.Or(strings.Compare(a.Addresses[0], b.Addresses[0]), strings.Compare(of(a), of(b)))
}

// familyOf is the address type of an address, which the server has checked.
func familyOf(ip string) discoveryv1.AddressType {
	if a, err := netip.ParseAddr(ip); err == nil && a.Is6() {
		return discoveryv1.AddressTypeIPv6
	}
	return discoveryv1.AddressTypeIPv4
}

func endpointOf(a corev1.EndpointAddress, ready bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{
		Addresses: []string{a.IP}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		TargetRef: a.TargetRef, NodeName: a.NodeName,
	}
	if a.Hostname != "" {
		e.Hostname = new(a.Hostname)
	}
	return e
}

func portsOf(all []corev1.EndpointPort) []discoveryv1.EndpointPort {
	var out []discoveryv1.EndpointPort
	for _, p := range all {
		out = append(out, discoveryv1.EndpointPort{Name: new(p.Name), Port: new(p.Port), Protocol: new(p.Protocol),
			AppProtocol: p.AppProtocol})
	}
	return out
}

// changes is what has to be written to bring the slices to what is wanted.
type changes struct{ create, update, remove []*discoveryv1.EndpointSlice }

// plan packs each group into slices of at most most: those that have its ports already, or else those of its family
// that are left over, or new ones.
func plan(eps *corev1.Endpoints, wanted map[groupKey]*portGroup, have []*discoveryv1.EndpointSlice, most int) changes {
	var out changes
	left := map[discoveryv1.AddressType][]*discoveryv1.EndpointSlice{}
	byKey := map[groupKey][]*discoveryv1.EndpointSlice{}
	slices.SortFunc(have, func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range have {
		key := groupKey{s.AddressType, endpointsliceutil.NewPortMapKey(s.Ports)}
		if g := wanted[key]; g == nil || len(byKey[key])*most >= len(g.endpoints) {
			left[s.AddressType] = append(left[s.AddressType], s)
			continue
		}
		byKey[key] = append(byKey[key], s)
	}
	order := func(a, b groupKey) int {
		return cmp.Or(strings.Compare(string(a.family), string(b.family)),
			strings.Compare(string(a.ports), string(b.ports)))
	}
	for _, key := range slices.SortedFunc(maps.Keys(wanted), order) {
		g, olds := wanted[key], byKey[key]
		for endpoints := range slices.Chunk(g.endpoints, most) {
			if len(olds) == 0 && len(left[key.family]) > 0 {
				olds, left[key.family] = left[key.family][:1], left[key.family][1:]
			}
			if len(olds) == 0 {
				out.create = append(out.create, describe(eps, g, endpoints))
				continue
			}
			if s := adjusted(eps, g.ports, endpoints, olds[0]); !equality.Semantic.DeepEqual(s, olds[0]) {
				out.update = append(out.update, s)
			}
			olds = olds[1:]
		}
	}
	for _, family := range slices.Sorted(maps.Keys(left)) {
		out.remove = append(out.remove, left[family]...)
	}
	return out
}

// describe makes a new slice.
func describe(eps *corev1.Endpoints, g *portGroup, endpoints []discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return adjusted(eps, g.ports, endpoints, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: eps.Namespace, GenerateName: eps.Name + "-"}, AddressType: g.family,
	})
}

// adjusted is a copy of s with these ports and endpoints, and the metadata of the Endpoints.
func adjusted(eps *corev1.Endpoints, ports []discoveryv1.EndpointPort, endpoints []discoveryv1.Endpoint,
	s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	s = s.DeepCopy()
	s.Ports, s.Endpoints = ports, endpoints
	s.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(eps, corev1.SchemeGroupVersion.WithKind("Endpoints"))}
	s.Labels = map[string]string{}
	maps.Copy(s.Labels, eps.Labels)
	s.Labels[discoveryv1.LabelServiceName], s.Labels[discoveryv1.LabelManagedBy] = eps.Name, managedBy
	s.Annotations = map[string]string{}
	for k, v := range eps.Annotations {
		// These are about the other object.
		if k != corev1.LastAppliedConfigAnnotation && k != corev1.EndpointsLastChangeTriggerTime {
			s.Annotations[k] = v
		}
	}
	return s
}
