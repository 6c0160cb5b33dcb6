package main

import (
	"strings"
	"testing"
)

// TestNodeLabels: --node-labels are refused as kubelet v1.36.3 refuses them.
func TestNodeLabels(t *testing.T) {
	t.Parallel()
	for labels, want := range map[string]string{
		"a=b,kubernetes.io/hostname=h,bad.kubelet.kubernetes.io/q=1,node.kubernetes.io/x=": "",
		"foo.k8s.io/z=1,node-role.kubernetes.io/x=y,ok=1": "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [foo.k8s.io/z node-role.kubernetes.io/x]\n" +
			"--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (kubelet.kubernetes.io, node.kubernetes.io) or be in the specifically allowed set " +
			"(beta.kubernetes.io/arch, beta.kubernetes.io/instance-type, beta.kubernetes.io/os, failure-domain.beta.kubernetes.io/region, failure-domain.beta.kubernetes.io/zone, " +
			"kubernetes.io/arch, kubernetes.io/hostname, kubernetes.io/os, node.kubernetes.io/instance-type, topology.kubernetes.io/region, topology.kubernetes.io/zone)",
		"a b=c":   "invalid node labels: 'a b' - name part must consist of",
		"ok=!!":   "invalid node labels: '!!' - a valid label must be an empty string",
		"x/y/z=1": "invalid node labels: 'x/y/z' - a valid label key must consist of",
		"=v":      "invalid node labels: '' - name part must be non-empty, name part must consist of",
	} {
		_, err := parse(t, "", "--node-labels="+labels)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", labels, err)
		}
	}
}
