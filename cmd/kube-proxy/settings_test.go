package main

import (
	"bytes"
	"fmt"
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

// written is the path of a file with text.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "proxy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// parseFile reads a file of these fields.
func parseFile(t *testing.T, fields string) (*settings, error) {
	t.Helper()
	return parse(t, "--config",
		written(t, "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"+fields+"\n"))
}

// TestConfigurationFile: the file that kubeadm-like set-ups write is understood, flags win over it, fields of other
// modes do not hurt.
func TestConfigurationFile(t *testing.T) {
	t.Parallel()
	file := written(t, `apiVersion: kubeproxy.config.k8s.io/v1alpha1
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
`)
	s, err := parse(t, "--config", file, "--kubeconfig=/other", "--kube-api-burst=3")
	if err != nil {
		t.Fatal(err)
	}
	if s.kubeconfig != "/other" || s.node != "n1" || !s.rules.masqueradeAll || s.limits.QPS != 7 ||
		s.limits.Burst != 3 || s.rules.resync != time.Minute || s.rules.minSync != 2*time.Second {
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
	if s.nodePortAddresses != nil || !s.primaryNodePorts || len(s.primary) != 1 ||
		s.rules.minSync != defaultNFTablesMinSync || s.rules.resync != defaultResync || s.metrics != "127.0.0.1:10249" {
		t.Errorf("%+v", s)
	}
}

func TestRefusedSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--proxy-mode=ipvs", "--ipvs-scheduler=quick"}, `"quick": must be in [rr `},
		{[]string{"--proxy-mode=quick"}, `"quick": must be`},
		{[]string{"--cluster-cidr=10.0.0.0"}, "ClusterCIDRs[0]"},
		{[]string{"--bind-address=everywhere"}, "BindAddress"},
		{[]string{"--healthz-bind-address=10256"}, "HealthzBindAddress"},
		{[]string{"--kube-api-qps=1", "--kube-api-burst=0"}, "--kube-api-burst"},
		{[]string{"--config=/does/not/exist"}, "failed complete: open /does/not/exist: no such file or directory"},
	} {
		if _, err := parse(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
}

// TestShowHiddenMetrics: the flag takes what the file's field takes, and wins over it.
func TestShowHiddenMetrics(t *testing.T) {
	t.Parallel()
	const flag = "--show-hidden-metrics-for-version="
	for version, want := range map[string]string{"": "", "1.36": "", "1.35": "'1.36'; only the previous minor version is allowed",
		"x": `invalid showHiddenMetricsForVersion: showHiddenMetricsForVersion: Invalid value: "x"`} {
		switch _, err := parse(t, flag+version); {
		case want == "" && err != nil:
			t.Errorf("%s: %v", version, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", version, err, want)
		}
	}
}

// TestNodePortAddresses: the words for some of a node's addresses, alone and among ranges.
func TestNodePortAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		primary bool
		ranges  string
	}{
		"":                   {true, "[]"}, // of the mode nftables
		"primary":            {true, "[]"},
		"primary,10.0.0.0/8": {true, "[10.0.0.0/8]"},
		"all":                {false, "[0.0.0.0/0 ::/0]"},
		"localhost,primary":  {true, "[127.0.0.0/8 ::1/128]"},
	} {
		s, err := parse(t, "--nodeport-addresses="+text)
		if err != nil || s.primaryNodePorts != want.primary || fmt.Sprint(s.nodePortAddresses) != want.ranges {
			t.Errorf("%s: %v %v %v, want %+v", text, s.primaryNodePorts, s.nodePortAddresses, err, want)
		}
	}
}

// TestModeUnset: a proxy that nobody tells its mode says which it takes.
func TestModeUnset(t *testing.T) {
	t.Parallel()
	for args, warns := range map[string]bool{"--v=0": true, "--proxy-mode=nftables": false} {
		var log bytes.Buffer
		o, fs := &options{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
		o.addFlags(fs)
		if err := fs.Parse([]string{args}); err != nil {
			t.Fatal(err)
		}
		s, err := o.settings(fs, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil || s.mode != modeNFTables ||
			strings.Contains(log.String(), "No mode of the proxy is set") != warns {
			t.Errorf("%s: %v, %s", args, err, log.String())
		}
	}
}
