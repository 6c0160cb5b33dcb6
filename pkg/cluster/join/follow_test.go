package join

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
)

// authority makes the PKI of a cluster and returns its authority.
func authority(t *testing.T) []byte {
	t.Helper()
	c := plan.Default(t.TempDir(), "")
	if err := pki.Make(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(c.Layout().PKI("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// published is the ConfigMap that a cluster publishes.
func published(t *testing.T, f clusterFacts) *corev1.ConfigMap {
	t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{Data: map[string]string{nodeConfigKey: string(text)}}
}

// TestFollow: what changes in a cluster after a machine joined reaches the machine's node: images and mirrors of
// add-ons, flags, gates, the runtime, the authority. What is of the machine with the control plane does not.
func TestFollow(t *testing.T) {
	t.Parallel()
	of := plan.Default("/first", "/bin")
	of.AdvertiseAddress = netip.MustParseAddr("192.0.2.1")
	ca := authority(t)

	joined := plan.Config{Name: "far", DataDir: t.TempDir(), BinDir: "/bin", ControlPlanes: 1,
		Nodes: []plan.Node{{Number: 1, Hostname: "far"}}, Joined: &plan.Joined{
			Server:  netip.MustParseAddrPort("192.0.2.1:6443"),
			Address: netip.MustParseAddr("192.0.2.2")}}
	joined, err := factsOf(of, ca).givenTo(joined)
	if err != nil {
		t.Fatal(err)
	}
	d := &Cluster{cluster: &clientcmdapi.Cluster{Server: "https://192.0.2.1:6443", CertificateAuthorityData: ca}}
	if joined.NoTraces || !node.Of(joined, joined.Nodes[0]).ForwardsSpans {
		t.Error("the machine does not know that the cluster keeps traces")
	}
	if err := d.WriteCredentials(joined, Request{token: joiner}); err != nil {
		t.Fatal(err)
	}
	if err := datadir.Save(joined); err != nil {
		t.Fatal(err)
	}

	if of, err = of.ParseAddons([]string{"metrics-server", "registry"}); err != nil {
		t.Fatal(err)
	}
	of.NoTraces = true
	of.FeatureGates, of.OCIRuntime = map[string]bool{"MemoryQoS": true}, "crun"
	of.Mirrors = []plan.Mirror{{Registry: "docker.io", URL: "http://me:hunter2@192.0.2.1:5000"}}
	of.ComponentFlags = map[string]map[string]string{"kube-proxy": {"proxy-mode": "iptables", "a-token": "hunter2"},
		"etcd": {"quota-backend-bytes": "1"}}
	other := authority(t)
	var applied plan.Config
	apply := func(c plan.Config) error { applied = c; return nil }
	var log bytes.Buffer
	err = follow(joined, published(t, factsOf(of, other)), apply, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	// The log is part of a report (logs.Export).
	if strings.Contains(log.String(), "hunter2") || !strings.Contains(log.String(), "proxy-mode=iptables") {
		t.Errorf("the log lacks the change, or has a password: %s", &log)
	}
	saved, err := datadir.Load(joined.DataDir)
	if err != nil || !reflect.DeepEqual(saved, applied) {
		t.Errorf("saved %+v, applied %+v: %v", saved, applied, err)
	}
	n := node.Of(applied, applied.Nodes[0])
	if !slices.Contains(n.Images, "metrics-server") || len(n.Mirrors) != 2 || n.OCIRuntime != "crun" ||
		!n.FeatureGates["MemoryQoS"] || n.ComponentFlags["kube-proxy"]["proxy-mode"] != "iptables" {
		t.Errorf("the node gets %+v", n)
	}
	if !applied.NoTraces || n.ForwardsSpans {
		t.Errorf("traces that the cluster no longer keeps: %+v", n)
	}
	if applied.ComponentFlags["etcd"] != nil || len(applied.Mappings()) != 0 || applied.Nodes[0].Name() != "far" {
		t.Errorf("what is none of the node's: %+v", applied)
	}
	if now, err := os.ReadFile(joined.Layout().PKI("ca.crt")); err != nil || string(now) != string(other) {
		t.Errorf("the authority is not the renewed one: %v", err)
	}
	k, err := clientcmd.LoadFromFile(joined.Layout().Kubeconfig(plan.BootstrapIdentity("far")))
	if err != nil || string(k.Clusters["bootstrap"].CertificateAuthorityData) != string(other) {
		t.Errorf("a kubeconfig trusts the earlier authority: %v", err)
	}

	elsewhere := factsOf(of, other)
	elsewhere.NodeSubnet = netip.MustParsePrefix("10.99.0.0/24")
	bad := factsOf(of, other)
	bad.Authority = "no authority"
	for _, f := range []clusterFacts{elsewhere, bad, {}} {
		if err := follow(joined, published(t, f), apply, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%+v was taken over", f)
		}
	}
	if again, err := datadir.Load(joined.DataDir); err != nil || !reflect.DeepEqual(again, saved) {
		t.Errorf("a refused change was saved: %+v, %v", again, err)
	}
}
