package describe

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// TestNetworkPolicy compares with what kubectl v1.36.3 writes.
func TestNetworkPolicy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ object, want string }{
		"rules": {`
metadata: {name: sel, namespace: default, labels: {x: "1"}, annotations: {k: v}, creationTimestamp: "2026-11-22T16:19:48Z"}
spec:
  podSelector: {matchLabels: {app: web, b: c}, matchExpressions: [{key: a, operator: In, values: [x, w]}, {key: q, operator: Exists}, {key: r, operator: DoesNotExist}, {key: s, operator: NotIn, values: [z]}]}
  policyTypes: [Ingress, Egress]
  ingress:
  - from:
    - podSelector: {matchLabels: {a: b}}
    - namespaceSelector: {}
    - {podSelector: {matchExpressions: [{key: a, operator: In, values: [x, w]}]}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}}
    - ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16, 10.2.0.0/16]}
    - ipBlock: {cidr: "2001:db8::/32"}
    ports:
    - {protocol: TCP}
    - {port: 80}
    - {port: http, protocol: UDP}
    - {port: 1000, endPort: 2000, protocol: SCTP}
  - ports: [{port: 80}]
  - from: [{podSelector: {}}]
  - {}
  egress:
  - to: [{podSelector: {}}]
    ports: [{protocol: UDP, port: 53}]
  - {}
`, `Name:         sel
Namespace:    default
Created on:   2026-11-22 16:19:48 +0000 UTC
Labels:       x=1
Annotations:  k: v
Spec:
  PodSelector:     a in (w,x),app=web,b=c,q,!r,s notin (z)
  Allowing ingress traffic:
    To Port: <nil>/TCP
    To Port: 80/TCP
    To Port: http/UDP
    To Port Range: 1000-2000/SCTP
    From:
      PodSelector: a=b
    From:
      NamespaceSelector: <none>
    From:
      NamespaceSelector: kubernetes.io/metadata.name=other
      PodSelector: a in (w,x)
    From:
      IPBlock:
        CIDR: 10.0.0.0/8
        Except: 10.1.0.0/16, 10.2.0.0/16
    From:
      IPBlock:
        CIDR: 2001:db8::/32
        Except: 
    ----------
    To Port: 80/TCP
    From: <any> (traffic not restricted by source)
    ----------
    To Port: <any> (traffic allowed to all ports)
    From:
      PodSelector: <none>
    ----------
    To Port: <any> (traffic allowed to all ports)
    From: <any> (traffic not restricted by source)
  Allowing egress traffic:
    To Port: 53/UDP
    To:
      PodSelector: <none>
    ----------
    To Port: <any> (traffic allowed to all ports)
    To: <any> (traffic not restricted by destination)
  Policy Types: Ingress, Egress
`},
		"all denied": {`
metadata: {name: deny, namespace: default, creationTimestamp: "2026-11-22T16:19:28Z"}
spec: {podSelector: {}, policyTypes: [Ingress]}
`, `Name:         deny
Namespace:    default
Created on:   2026-11-22 16:19:28 +0000 UTC
Labels:       <none>
Annotations:  <none>
Spec:
  PodSelector:     <none> (Allowing the specific traffic to all pods in this namespace)
  Allowing ingress traffic:
    <none> (Selected pods are isolated for ingress connectivity)
  Not affecting egress traffic
  Policy Types: Ingress
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p networkingv1.NetworkPolicy
			if err := yaml.Unmarshal([]byte(c.object), &p); err != nil {
				t.Fatal(err)
			}
			p.CreationTimestamp.Time = p.CreationTimestamp.UTC()
			if got := shown(t, func(d *describer) error { return networkPolicy(d, &p) }); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
