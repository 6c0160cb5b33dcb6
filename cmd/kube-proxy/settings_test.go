package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func parse(t *testing.T, args ...string) (*settings, error) {
	t.Helper()
	o, fs := &options{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.addFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o.settings(fs, slog.New(slog.DiscardHandler))
}

// TestConfigurationFile: the file that kubeadm-like set-ups write is understood, flags win over it, fields of other modes do not
// hurt.
func TestConfigurationFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	if err := os.WriteFile(file, []byte(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: 10.244.0.0/16,fd00:10::/48
hostnameOverride: N1
oomScoreAdj: 0
nodePortAddresses: [192.168.0.0/16]
nftables: {masqueradeAll: true, syncPeriod: 1m, minSyncPeriod: 2s}
ipvs: {scheduler: rr}
clientConnection: {kubeconfig: /etc/kube-proxy.kubeconfig, qps: 7, burst: 9}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := parse(t, "--config", file, "--kubeconfig=/other", "--kube-api-burst=3")
	if err != nil {
		t.Fatal(err)
	}
	if s.kubeconfig != "/other" || s.node != "n1" || !s.masqueradeAll || s.limits.QPS != 7 || s.limits.Burst != 3 || s.resync != time.Minute || s.minSync != 2*time.Second {
		t.Errorf("%+v", s)
	}
	if len(s.clusterCIDRs) != 2 || len(s.nodePortAddresses) != 1 || s.healthz != "0.0.0.0:10256" {
		t.Errorf("%+v", s)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	s, err := parse(t, "--hostname-override=n1", "--nodeport-addresses=primary", "--bind-address=192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	if s.nodePortAddresses != nil || len(s.primary) != 1 || s.minSync != defaultMinSync || s.resync != defaultResync || s.metrics != "127.0.0.1:10249" {
		t.Errorf("%+v", s)
	}
}

func TestRefusedSettings(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.yaml")
	if err := os.WriteFile(empty, []byte("kind: Other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--proxy-mode=ipvs"}, `"ipvs" is not supported`},
		{[]string{"--proxy-mode=quick"}, `unknown mode "quick"`},
		{[]string{"--cluster-cidr=10.0.0.0"}, "--cluster-cidr"},
		{[]string{"--nodeport-addresses=primary,10.0.0.0/8"}, "--nodeport-addresses"},
		{[]string{"--bind-address=everywhere"}, "--bind-address"},
		{[]string{"--healthz-bind-address=10256"}, "--healthz-bind-address"},
		{[]string{"--config=/does/not/exist"}, "--config"},
		{[]string{"--config", empty}, "want apiVersion"},
	} {
		if _, err := parse(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
}
