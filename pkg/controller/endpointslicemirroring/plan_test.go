package endpointslicemirroring

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func eps(subsets ...corev1.EndpointSubset) *corev1.Endpoints {
	return &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e", UID: "u"}, Subsets: subsets}
}

// subset has ready addresses, unready ones after "-", and ports.
func subset(addresses string, ports ...int32) corev1.EndpointSubset {
	var s corev1.EndpointSubset
	ready, unready, _ := strings.Cut(addresses, "-")
	for _, ip := range strings.Fields(ready) {
		s.Addresses = append(s.Addresses, corev1.EndpointAddress{IP: ip})
	}
	for _, ip := range strings.Fields(unready) {
		s.NotReadyAddresses = append(s.NotReadyAddresses, corev1.EndpointAddress{IP: ip})
	}
	for _, p := range ports {
		s.Ports = append(s.Ports, corev1.EndpointPort{Port: p, Protocol: corev1.ProtocolTCP})
	}
	return s
}

// text is a slice in short: "IPv4 :80 10.0.0.1 -10.0.0.2".
func text(s *discoveryv1.EndpointSlice) string {
	words := []string{string(s.AddressType)}
	for _, p := range s.Ports {
		words = append(words, fmt.Sprint(":", *p.Port))
	}
	for _, e := range s.Endpoints {
		ip := e.Addresses[0]
		if !*e.Conditions.Ready {
			ip = "-" + ip
		}
		words = append(words, ip)
	}
	return strings.Join(words, " ")
}

func texts(all []*discoveryv1.EndpointSlice) (out []string) {
	for _, s := range all {
		out = append(out, s.Name+"> "+text(s))
	}
	slices.Sort(out)
	return out
}

// stored is what of was made of as if the server had it.
func stored(t *testing.T, of *corev1.Endpoints, most int) []*discoveryv1.EndpointSlice {
	t.Helper()
	wanted, _ := group(of, most)
	made := plan(of, wanted, nil, most).create
	for i, s := range made {
		s.Name = fmt.Sprint("s", i)
	}
	return made
}

func TestPlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after          *corev1.Endpoints
		create, update, remove []string
		skipped                int
	}{
		"new": {eps(), eps(subset("10.0.0.2 10.0.0.1 - 10.0.0.3", 80), subset("::1 10.0.0.1", 90)),
			[]string{"> IPv4 :80 10.0.0.1 10.0.0.2 -10.0.0.3", "> IPv4 :90 10.0.0.1", "> IPv6 :90 ::1"}, nil, nil, 0},
		"the same": {eps(subset("10.0.0.1 10.0.0.2", 80)), eps(subset("10.0.0.2 10.0.0.1", 80)), nil, nil, nil,
			0},
		"one more": {eps(subset("10.0.0.1", 80)), eps(subset("10.0.0.2 10.0.0.1", 80)), nil,
			[]string{"s0> IPv4 :80 10.0.0.1 10.0.0.2"}, nil, 0},
		"another port": {eps(subset("10.0.0.1", 80)), eps(subset("10.0.0.1", 81)), nil,
			[]string{"s0> IPv4 :81 10.0.0.1"}, nil, 0},
		"another family": {eps(subset("10.0.0.1", 80)), eps(subset("::1", 80)), []string{"> IPv6 :80 ::1"}, nil,
			[]string{"s0> IPv4 :80 10.0.0.1"}, 0},
		"none left":     {eps(subset("10.0.0.1", 80)), eps(), nil, nil, []string{"s0> IPv4 :80 10.0.0.1"}, 0},
		"without ports": {eps(), eps(subset("10.0.0.1")), []string{"> IPv4 10.0.0.1"}, nil, nil, 0},
		"too many": {eps(), eps(subset("10.0.0.1 10.0.0.2 10.0.0.3 - 10.0.0.4 10.0.0.5", 80)),
			[]string{"> IPv4 :80 10.0.0.1 10.0.0.2 10.0.0.3"}, nil, nil, 2},
		"the same ports twice": {eps(),
			eps(subset("10.0.0.1 - 10.0.0.2", 80), subset("10.0.0.2 10.0.0.3 10.0.0.4", 80)),
			[]string{"> IPv4 :80 10.0.0.1 -10.0.0.2 10.0.0.3", "> IPv4 :80 10.0.0.4"}, nil, nil, 0},
		"fewer of the same ports": {eps(subset("10.0.0.1 10.0.0.2 10.0.0.3", 80), subset("10.0.0.4", 80)),
			eps(subset("10.0.0.4", 80)),
			nil, []string{"s0> IPv4 :80 10.0.0.4"}, []string{"s1> IPv4 :80 10.0.0.4"}, 0},
	} {
		have := stored(t, c.before, 3)
		wanted, skipped := group(c.after, 3)
		p := plan(c.after, wanted, have, 3)
		if !slices.Equal(texts(p.create), c.create) || !slices.Equal(texts(p.update), c.update) ||
			!slices.Equal(texts(p.remove), c.remove) || skipped != c.skipped {
			t.Errorf("%s: create %q, update %q, remove %q, %d skipped", name, texts(p.create), texts(p.update),
				texts(p.remove), skipped)
		}
	}
}

// TestDescribed: what the slice takes over, as a real controller manager v1.36.3 does.
func TestDescribed(t *testing.T) {
	t.Parallel()
	e := eps(corev1.EndpointSubset{
		Addresses: []corev1.EndpointAddress{
			{IP: "10.0.0.1", Hostname: "h", NodeName: new("n"),
				TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p"}}},
		Ports: []corev1.EndpointPort{{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP, AppProtocol: new("x")}},
	})
	e.Labels = map[string]string{"a": "b", "service.kubernetes.io/headless": "", discoveryv1.LabelServiceName: "other"}
	e.Annotations = map[string]string{"c": "d", corev1.LastAppliedConfigAnnotation: "x",
		corev1.EndpointsLastChangeTriggerTime: "y"}
	s := stored(t, e, 10)[0]
	if fmt.Sprint(s.Labels) !=
		"map[a:b endpointslice.kubernetes.io/managed-by:endpointslicemirroring-controller.k8s.io kubernetes.io/service-name:e service.kubernetes.io/headless:]" || fmt.Sprint(s.Annotations) != "map[c:d]" {
		t.Errorf("%v %v", s.Labels, s.Annotations)
	}
	if o := s.OwnerReferences[0]; s.GenerateName != "e-" || o.APIVersion != "v1" || o.Kind != "Endpoints" ||
		o.Name != "e" || o.UID != "u" || !*o.Controller || !*o.BlockOwnerDeletion {
		t.Errorf("%+v", s.ObjectMeta)
	}
	x, p := s.Endpoints[0], s.Ports[0]
	if *x.Hostname != "h" || *x.NodeName != "n" || x.TargetRef.Name != "p" || x.Conditions.Serving != nil ||
		*p.Name != "dns" || *p.Protocol != corev1.ProtocolUDP || *p.AppProtocol != "x" {
		t.Errorf("%+v %+v", x, p)
	}
	changed := e.DeepCopy()
	changed.Annotations["c"] = "e"
	wanted, _ := group(changed, 10)
	if u := plan(changed, wanted, []*discoveryv1.EndpointSlice{s}, 10).update; len(u) != 1 ||
		u[0].Annotations["c"] != "e" {
		t.Errorf("an annotation: %+v", u)
	}
}
