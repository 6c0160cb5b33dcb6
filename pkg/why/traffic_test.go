package why

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// policyOf reads the spec of a policy, whose name is the namespace and a name: shop/web.
func policyOf(t *testing.T, name, spec string) *networkingv1.NetworkPolicy {
	t.Helper()
	p := &networkingv1.NetworkPolicy{}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(name, err)
	}
	p.Namespace, p.Name, _ = strings.Cut(name, "/")
	return p
}

// TestDenials holds traffic of pod web (shop, app=web, 10.1.0.1) to port 8080, named http, of pod api (data, app=api,
// 10.2.0.1) against policies. The documentation of NetworkPolicy is the rule.
func TestDenials(t *testing.T) {
	t.Parallel()
	const egress, ingress = "{podSelector: {}, policyTypes: [Egress], egress: [%s]}", "{podSelector: {}, ingress: [%s]}"
	out := func(rules string) map[string]string { return map[string]string{"shop/p": fmt.Sprintf(egress, rules)} }
	in := func(rules string) map[string]string { return map[string]string{"data/p": fmt.Sprintf(ingress, rules)} }
	for _, c := range []struct {
		name     string
		policies map[string]string
		change   func(*Traffic)
		want     string // "" if the traffic is let through
	}{
		{name: "no policy"},
		{name: "egress without a rule", policies: out(``), want: "Egress: allows nothing"},
		{name: "ingress without a rule", policies: in(``), want: "Ingress: admits nobody"},
		{name: "a rule without anything", policies: out(`{}`)},
		{name: "of another namespace", policies: map[string]string{"data/p": fmt.Sprintf(egress, "")}},
		{name: "of other pods",
			policies: map[string]string{"shop/p": `{podSelector: {matchLabels: {app: x}}, policyTypes: [Egress]}`}},
		{name: "rules without their type",
			policies: map[string]string{"shop/p": `{podSelector: {}, policyTypes: [Ingress],
				egress: [{ports: [{port: 1}]}]}`}},
		{name: "no types, with a rule",
			policies: map[string]string{"shop/p": `{podSelector: {}, egress: [{ports: [{port: 1}]}]}`},
			want:     "Egress: allows port 1, and"},
		{name: "no types, without a rule", policies: map[string]string{"shop/p": `{podSelector: {}}`}},
		{name: "the port", policies: out(`{ports: [{port: 8080}]}`)},
		{name: "the port's name", policies: out(`{ports: [{port: http}]}`)},
		{name: "another port's name", policies: in(`{ports: [{port: grpc}]}`),
			want: "Ingress: admits port grpc (9090), and the pod's port is 8080"},
		{name: "a name that nobody has", policies: in(`{ports: [{port: web}]}`),
			want: "port web (which no container has)"},
		{name: "a range", policies: out(`{ports: [{port: 8000, endPort: 8100}]}`)},
		{name: "a range below", policies: out(`{ports: [{port: 8000, endPort: 8079}]}`), want: "port 8000 to 8079"},
		{name: "another protocol", policies: out(`{ports: [{port: 8080, protocol: UDP}]}`),
			want: "port 8080 (UDP), and the pod's port is 8080"},
		{name: "a protocol's ports", policies: out(`{ports: [{protocol: TCP}]}`)},
		{name: "an unknown port", policies: out(`{ports: [{port: 1}]}`), change: func(t *Traffic) { t.Port = 0 }},
		{name: "the Service's port", policies: out(`{to: [{podSelector: {}}]}, {ports: [{port: 80}]}`),
			want: "port 80, which is that of the Service: policies count the port of the pod, 8080"},
		{name: "pods of the same namespace", policies: out(`{to: [{podSelector: {matchLabels: {app: api}}}]}`),
			want: "allows pods with app=api of namespace shop, and pod api is in namespace data"},
		{name: "all of the namespace", policies: out(`{to: [{namespaceSelector: {matchLabels: {team: b}}}]}`)},
		{name: "both selectors",
			policies: out(`{to: [{namespaceSelector: {matchLabels: {team: b}},
				podSelector: {matchLabels: {app: api}}}]}`)},
		{name: "both, another namespace",
			policies: out(`{to: [{namespaceSelector: {matchLabels: {team: a}},
				podSelector: {matchLabels: {app: api}}}]}`),
			want: "allows pods with app=api of namespaces with team=a, and namespace data has team=b"},
		{name: "both, other pods",
			policies: out(`{to: [{namespaceSelector: {}, podSelector: {matchLabels: {app: db}}}]}`),
			want:     "allows pods with app=db, and pod api has app=api"},
		{name: "unknown namespace", policies: out(`{to: [{namespaceSelector: {matchLabels: {team: a}}}]}`),
			change: func(t *Traffic) { t.To.Namespace = nil }},
		{name: "unknown namespace, by its name",
			policies: out(`{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: data, team: a}}}]}`),
			change:   func(t *Traffic) { t.To.Namespace = nil }},
		{name: "unknown namespace of another name",
			policies: out(`{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: dns}}}]}`),
			change:   func(t *Traffic) { t.To.Namespace = nil }, want: "and namespace data has another name"},
		{name: "one peer of two", policies: out(`{to: [{podSelector: {}}, {namespaceSelector: {}}]}`)},
		{name: "an expression",
			policies: in(`{from: [{namespaceSelector: {},
				podSelector: {matchExpressions: [{key: app, operator: In, values: [a, b]}]}}]}`),
			want: "and pod web has app=web"},
		{name: "a label that is not there",
			policies: in(`{from: [{namespaceSelector: {}, podSelector: {matchLabels: {role: x}}}]}`),
			want:     "and pod web has no label role"},
		{name: "a block", policies: out(`{to: [{ipBlock: {cidr: 10.2.0.0/16}}]}`)},
		{name: "a block with its exception",
			policies: out(`{to: [{ipBlock: {cidr: 0.0.0.0/0, except: [192.168.0.0/16, 10.0.0.0/8]}}]}`),
			want:     "allows 0.0.0.0/0 without 10.0.0.0/8, in which the address of pod api lies, 10.2.0.1"},
		{name: "a block elsewhere", policies: out(`{to: [{ipBlock: {cidr: 192.0.2.0/24}}]}`),
			want: "allows 192.0.2.0/24, where the address of pod api, 10.2.0.1, does not lie"},
		{name: "the Service's block", policies: out(`{to: [{ipBlock: {cidr: 10.96.0.0/12}}]}`),
			want: "where the address of the Service lies: policies count that of pod api, 10.2.0.1"},
		{name: "a pod without an address", policies: out(`{to: [{ipBlock: {cidr: 192.0.2.0/24}}]}`),
			change: func(t *Traffic) { t.To.Pod.Status.PodIPs = nil }},
		{name: "one address of two", policies: out(`{to: [{ipBlock: {cidr: "fd00::/8"}}]}`),
			change: func(t *Traffic) {
				t.To.Pod.Status.PodIPs = append(t.To.Pod.Status.PodIPs, corev1.PodIP{IP: "fd00::2"})
			}},
		{name: "policies add up",
			policies: map[string]string{"shop/a": fmt.Sprintf(egress, ""), "shop/b": fmt.Sprintf(egress, "{}")}},
		{name: "the sender's host network", policies: in(``),
			change: func(t *Traffic) { t.From.Pod.Spec.HostNetwork = true }},
		{name: "the receiver's host network", policies: in(``),
			change: func(t *Traffic) { t.To.Pod.Spec.HostNetwork = true }},
		{name: "itself", policies: out(``), change: func(t *Traffic) { t.To = t.From }},
		{name: "its own node", policies: out(``),
			change: func(t *Traffic) { t.To = End{Address: netip.MustParseAddr("192.0.2.1")} }},
		{name: "an address", policies: out(`{to: [{ipBlock: {cidr: 192.0.2.7/32}}]}`),
			change: func(t *Traffic) { t.To = End{Address: netip.MustParseAddr("192.0.2.7")} }},
		{name: "an address, and pods allowed", policies: out(`{to: [{namespaceSelector: {}}]}`),
			change: func(t *Traffic) { t.To = End{Address: netip.MustParseAddr("192.0.2.7")} },
			want:   "allows pods alone, and 192.0.2.7 is no pod's address"},
		{name: "a peer nearer than DNS",
			policies: out(`{ports: [{port: 53}]}, {to: [{ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8]}}]},
				{ports: [{port: 54}]}`),
			want: "without 10.0.0.0/8"},
		{name: "both ends",
			policies: map[string]string{"shop/p": fmt.Sprintf(egress, ""), "data/p": fmt.Sprintf(ingress, "")},
			want:     "Egress: allows nothing; Ingress: admits nobody"},
		{name: "more rules than are read",
			policies: out(`{to: [` + strings.Repeat(`{podSelector: {}}, `, maxParts) + `{podSelector: {}}]}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			traffic := between()
			if c.change != nil {
				c.change(traffic)
			}
			var policies []*networkingv1.NetworkPolicy
			for name, spec := range c.policies {
				policies = append(policies, policyOf(t, name, spec))
			}
			var got []string
			for _, d := range traffic.Denials(policies) {
				got = append(got, string(d.Direction)+": "+d.Text)
			}
			if text := strings.Join(got, "; "); !strings.Contains(text, c.want) || c.want == "" && text != "" {
				t.Errorf("%q, want %q", text, c.want)
			}
		})
	}
}

// between is the traffic of TestDenials.
func between() *Traffic {
	pod := func(namespace, name, ip string) *corev1.Pod {
		p := &corev1.Pod{}
		p.Namespace, p.Name, p.Labels = namespace, name, map[string]string{"app": name}
		p.Status.PodIPs, p.Status.HostIP = []corev1.PodIP{{IP: ip}}, "192.0.2.1"
		return p
	}
	api := pod("data", "api", "10.2.0.1")
	api.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080},
		{Name: "grpc", ContainerPort: 9090}}}}
	return &Traffic{From: End{Pod: pod("shop", "web", "10.1.0.1"), Namespace: labels.Set{"team": "a"}},
		To: End{Pod: api, Namespace: labels.Set{"team": "b"}}, Port: 8080,
		Service: []netip.Addr{netip.MustParseAddr("10.96.0.7")}, ServicePort: 80}
}
