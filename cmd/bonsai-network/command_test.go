package main

import (
	"strings"
	"testing"
)

// TestSettings: what is missing or wrong is told all at once.
func TestSettings(t *testing.T) {
	t.Parallel()
	good := options{kubeconfig: "/k", node: "n1", cniConfDir: "/c", ipamPlugin: "host-local",
		clusterCIDRs: []string{"10.244.7.0/16"}}
	s, err := good.settings()
	if err != nil || len(s.clusterCIDRs) != 1 || s.clusterCIDRs[0].String() != "10.244.0.0/16" || s.node != "n1" ||
		s.conf != "/c" {
		t.Errorf("%+v, %v", s, err)
	}
	bad := options{clusterCIDRs: []string{"everywhere"}}
	_, err = bad.settings()
	for _, flag := range []string{"--kubeconfig", "--node-name", "--cni-conf-dir", "--ipam-plugin", "--cluster-cidr"} {
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%v does not name %s", err, flag)
		}
	}
}
