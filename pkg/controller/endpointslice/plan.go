package endpointslice

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// changes is what has to be written to bring the slices of one family to what is wanted; same are the slices that are
// right.
//
// Slices in it that come from the cache are copies where they were changed.
type changes struct{ create, update, remove, same []*discoveryv1.EndpointSlice }

// plan packs the wanted endpoints into slices of at most most, with as few writes as it can, because every write goes
// to every node's kube-proxy. Endpoints stay in the slice they are in. New ones fill first the slices that are written
// anyway, then others with room, then new slices. Slices are not merged for their own sake: half-empty ones stay until
// they are written anyway, or empty.
//
// A Service without any endpoint keeps one empty slice, as in Kubernetes.
func plan(svc *corev1.Service, family discoveryv1.AddressType, wanted map[string]*portGroup,
	have []*discoveryv1.EndpointSlice, most int) changes {
	if len(wanted) == 0 {
		wanted = map[string]*portGroup{"": {}}
	}
	byPorts := map[string][]*discoveryv1.EndpointSlice{}
	var out changes
	for _, s := range have {
		k := portKey(s.Ports)
		if wanted[k] == nil {
			out.remove = append(out.remove, s)
			continue
		}
		byPorts[k] = append(byPorts[k], s)
	}
	for _, k := range slices.Sorted(maps.Keys(wanted)) {
		packGroup(svc, family, wanted[k], byPorts[k], most, &out)
	}
	reuse(&out)
	return out
}

// reuse turns pairs of a removal and a creation into one update: one write instead of two, and no moment without
// endpoints.
func reuse(c *changes) {
	for len(c.remove) > 0 && len(c.create) > 0 {
		old, fresh := c.remove[0].DeepCopy(), c.create[0]
		old.Ports, old.Endpoints, old.Labels, old.OwnerReferences = fresh.Ports, fresh.Endpoints, fresh.Labels,
			fresh.OwnerReferences
		c.update = append(c.update, old)
		c.remove, c.create = c.remove[1:], c.create[1:]
	}
}

// packed is a slice while it is being filled.
//
// changed means that it has to be written anyway: more endpoints in it cost nothing.
type packed struct {
	slice   *discoveryv1.EndpointSlice
	keep    []discoveryv1.Endpoint
	changed bool
}

// packGroup plans the slices of one set of ports, in three passes: what stays where it is (keep), what fills the gaps
// (pour), and new slices for the rest.
func packGroup(svc *corev1.Service, family discoveryv1.AddressType, g *portGroup, have []*discoveryv1.EndpointSlice,
	most int, out *changes) {
	open := map[string]discoveryv1.Endpoint{}
	for _, e := range g.endpoints {
		open[endpointKey(e)] = e
	}
	slices.SortFunc(have, func(a, b *discoveryv1.EndpointSlice) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	fill := make([]*packed, len(have))
	for i, s := range have {
		fill[i] = keep(svc, s, open)
	}
	var rest []discoveryv1.Endpoint
	for _, e := range g.endpoints {
		if _, ok := open[endpointKey(e)]; ok {
			rest = append(rest, e)
		}
	}
	rest = pour(fill, rest, most, true)
	// A whole slice of new endpoints is cheaper as one new slice than spread over others, which would all be written.
	if len(rest) < most {
		rest = pour(fill, rest, most, false)
	}
	empty := len(rest) == 0 && len(g.endpoints) == 0 && len(fill) == 0
	for len(rest) > 0 || empty {
		n := min(len(rest), most)
		out.create = append(out.create, describe(svc, family, g.ports, rest[:n]))
		rest, empty = rest[n:], false
	}
	settle(svc, fill, len(g.endpoints) == 0, out)
}

// keep sorts out what stays in a slice, in its newest state, and takes it from open.
//
// What is left in open afterwards is new, or was in a slice of other ports.
func keep(svc *corev1.Service, s *discoveryv1.EndpointSlice, open map[string]discoveryv1.Endpoint) *packed {
	// A slice of an earlier Service of the same name is taken over: the garbage collector is after it.
	p := &packed{slice: s, changed: !equality.Semantic.DeepEqual(s.Labels, labelsFor(svc)) ||
		!metav1.IsControlledBy(s, svc)}
	for _, e := range s.Endpoints {
		k := endpointKey(e)
		want, ok := open[k]
		if !ok {
			p.changed = true
			continue
		}
		delete(open, k)
		if modeAuto(svc) {
			want.Hints = e.Hints.DeepCopy() // they are judged together, when all slices are packed
		}
		p.changed = p.changed || !equality.Semantic.DeepEqual(e, want)
		p.keep = append(p.keep, want)
	}
	return p
}

// pour puts endpoints into the slices with room: those that are written anyway, or the fullest other one.
//
// The fullest first, so that few slices have gaps.
func pour(fill []*packed, rest []discoveryv1.Endpoint, most int, changed bool) []discoveryv1.Endpoint {
	order := slices.Clone(fill)
	slices.SortStableFunc(order, func(a, b *packed) int { return len(b.keep) - len(a.keep) })
	for _, p := range order {
		if room := most - len(p.keep); p.changed == changed && room > 0 && len(rest) > 0 {
			n := min(room, len(rest))
			p.keep, rest, p.changed = append(p.keep, rest[:n]...), rest[n:], true
		}
	}
	return rest
}

// settle writes the changed slices and removes the empty ones, except for the last one of a Service without endpoints.
//
// An emptied slice is removed rather than kept for later: consumers would go on watching it.
func settle(svc *corev1.Service, fill []*packed, placeholder bool, out *changes) {
	for _, p := range fill {
		if len(p.keep) == 0 && !placeholder {
			out.remove = append(out.remove, p.slice)
			continue
		}
		placeholder = false
		if !p.changed {
			out.same = append(out.same, p.slice)
			continue
		}
		s := p.slice.DeepCopy()
		s.Endpoints, s.Labels, s.OwnerReferences = p.keep, labelsFor(svc), ownersFor(svc)
		out.update = append(out.update, s)
	}
}

// describe makes a new slice.
//
// The name is generated: any number of slices belong to a Service, and none has a meaning of its own.
func describe(svc *corev1.Service, family discoveryv1.AddressType, ports []discoveryv1.EndpointPort,
	endpoints []discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: svc.Namespace, GenerateName: svc.Name + "-", Labels: labelsFor(svc),
			OwnerReferences: ownersFor(svc),
		},
		AddressType: family, Ports: ports, Endpoints: slices.Clone(endpoints),
	}
}

func ownersFor(svc *corev1.Service) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(svc, corev1.SchemeGroupVersion.WithKind("Service"))}
}

// labelsFor returns a slice's labels: the Service's own and those that mark the slice.
//
// Consumers find the slices of a Service by the label of its name, and their writer by managed-by, both from KEP-752.
func labelsFor(svc *corev1.Service) map[string]string {
	out := map[string]string{}
	for k, v := range svc.Labels {
		switch k {
		case discoveryv1.LabelServiceName, discoveryv1.LabelManagedBy, corev1.IsHeadlessService:
		default:
			out[k] = v
		}
	}
	if svc.Spec.ClusterIP == corev1.ClusterIPNone {
		out[corev1.IsHeadlessService] = ""
	}
	out[discoveryv1.LabelServiceName] = svc.Name
	out[discoveryv1.LabelManagedBy] = managedBy
	return out
}
