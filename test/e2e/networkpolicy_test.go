package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// policed are a server on one node, of which one port has a name, and clients on both.
const policed = `
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeName: n1
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: localhost/busybox:1.0
    command: [sh, -c, "mkdir /w && echo web >/w/index.html && httpd -p 8081 -h /w && exec httpd -f -p 8080 -h /w"]
    ports: [{name: http, containerPort: 8080}]
    readinessProbe: {httpGet: {port: 8080}, periodSeconds: 1, failureThreshold: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: a, port: 80, targetPort: 8080}, {name: b, port: 81, targetPort: 8081}]}
`

// policy is a NetworkPolicy that isolates the pods of an app and allows rules.
func policy(name, app, rules string) string {
	return fmt.Sprintf(`
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: %s}
spec:
  podSelector: {matchLabels: {app: %s}}
  %s
`, name, app, rules)
}

// TestNetworkPolicies: https://kubernetes.io/docs/concepts/services-networking/network-policies/. Policies cut off and
// let through, by pods' and namespaces' labels, blocks of addresses, named ports and ranges, within a node and between
// nodes, by address and by Service.
func TestNetworkPolicies(t *testing.T) {
	t.Parallel()
	k, other := newNamespace(t, "kubectl", "policed"), newNamespace(t, "kubectl", "policed-other")
	k.apply(policed)
	for client, node := range map[string]string{"near": "n1", "far": "n2"} {
		k.apply(podOf(client, "sleep 3600", "", "nodeName: "+node))
	}
	other.apply(podOf("stranger", "sleep 3600", "", "nodeName: n2"))
	k.ready("web", "near", "far")
	other.ready("stranger")
	ip := func(pod string) string { return k.run("get", "pod", pod, "-o", "jsonpath={.status.podIP}") }
	web, service := ip("web"), k.run("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
	// reach waits until exactly the named clients reach the server: at its own address and by its Service.
	reach := func(what string, port, servicePort int, clients ...string) {
		t.Helper()
		for pod, of := range map[string]kubectl{"near": k, "far": k, "stranger": other} {
			want := "cut off\ncut off"
			if strings.Contains(strings.Join(clients, " "), pod) {
				want = "web\nweb"
			}
			of.eventually(fmt.Sprintf("%s: what %s reaches", what, pod), is(want), "exec", pod, "--", "sh", "-c",
				fmt.Sprintf("for a in %s:%d %s:%d; do timeout 3 wget -qO- http://$a 2>/dev/null || echo cut off; done",
					web, port, service, servicePort))
		}
	}
	reach("no policy", 8080, 80, "near", "far", "stranger")

	k.apply(policy("deny", "web", "policyTypes: [Ingress]"))
	reach("all denied", 8080, 80)
	reach("all denied", 8081, 81)

	k.apply(policy("labels", "web",
		"ingress: [{from: [{podSelector: {matchLabels: {app: far}}}], ports: [{port: http}]}]"))
	reach("a pod's label at a named port", 8080, 80, "far")
	reach("a pod's label at another port", 8081, 81)

	k.apply(policy("labels", "web",
		"ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: policed-other}}}], ports: [{port: 8081, endPort: 8090}]}]"))
	reach("a namespace's label at a range of ports", 8081, 81, "stranger")
	reach("a namespace's label below the range", 8080, 80)

	k.apply(policy("labels", "web",
		fmt.Sprintf("ingress: [{from: [{ipBlock: {cidr: 10.244.0.0/16, except: [%s/32]}}]}]", ip("near"))))
	reach("a block with an exception", 8080, 80, "far", "stranger")
	// The kubelet's probes are the node's own, which no policy cuts off.
	k.field("web", `.status.conditions[?(@.type=="Ready")].status`, "True")
	k.field("web", ".status.containerStatuses[0].restartCount", "0")

	other.apply(policy("dns", "stranger",
		"policyTypes: [Egress]\n  egress: [{to: [{namespaceSelector: {}, podSelector: {matchLabels: {k8s-app: kube-dns}}}], ports: [{port: 53, protocol: UDP}]}]"))
	reach("egress to DNS only", 8080, 80, "far")
	other.eventually("names are still resolved", contains(service), "exec", "stranger", "--", "nslookup",
		"web.policed.svc.cluster.local")

	k.run("delete", "networkpolicy", "--all")
	other.run("delete", "networkpolicy", "--all")
	reach("no policy any more", 8080, 80, "near", "far", "stranger")
}
