package iptables

import "testing"

// TestNames: the chains of the Services that every cluster has are those that operators know.
func TestNames(t *testing.T) {
	t.Parallel()
	for want, of := range map[string][2]string{
		"KUBE-SVC-NPX46M4PTMTKRN6Y": {"default/kubernetes:https", "tcp"},
		"KUBE-SVC-TCOU7JCQXEZGVUNU": {"kube-system/kube-dns:dns", "udp"},
		"KUBE-SVC-ERIFXISQEP7F7OF4": {"kube-system/kube-dns:dns-tcp", "tcp"},
		"KUBE-SVC-JD5MR3NA4I4DYORP": {"kube-system/kube-dns:metrics", "tcp"},
	} {
		if got := chain(clusterPrefix, of[0], of[1]); got != want {
			t.Errorf("%v: %s, want %s", of, got, want)
		}
	}
}
