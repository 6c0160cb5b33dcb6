package main

import (
	"strings"
	"testing"
)

// TestValidation: what Kubernetes 1.37.2 refuses is refused in its words, all of it at once and in its order.
func TestValidation(t *testing.T) {
	t.Parallel()
	const at = "KubeProxyConfiguration."
	for file, want := range map[string]string{
		"bindAddress: everywhere": at +
			`BindAddress: Invalid value: "everywhere": not a valid textual representation of an IP address`,
		"healthzBindAddress: '10256'": at +
			`HealthzBindAddress: Invalid value: "10256": must be IP:port`,
		"healthzBindAddress: 'a:99999'": `[` + at +
			`HealthzBindAddress: Invalid value: "a": must be a valid IP, ` + at +
			`HealthzBindAddress: Invalid value: "99999": must be a valid port]`,
		"healthzBindAddress: ':10256'": at +
			`HealthzBindAddress: Invalid value: "": must be a valid IP`,
		"metricsBindAddress: '1.2.3.4:0'": at +
			`MetricsBindAddress: Invalid value: "0": must be a valid port`,
		"clusterCIDR: 10.0.0.0": at +
			`DetectLocalConfiguration.ClusterCIDRs[0]: Invalid value: "10.0.0.0": must be a valid CIDR block (e.g. 10.100.0.0/16 or fde4:8dba:82e1::/48)`,
		"clusterCIDR: 10.0.0.0/8,11.0.0.0/8": at +
			`DetectLocalConfiguration.ClusterCIDRs: Invalid value: ["10.0.0.0/8","11.0.0.0/8"]: must be a either a single CIDR or dual-stack pair of CIDRs (e.g. [10.100.0.0/16, fde4:8dba:82e1::/48]`,
		"nodePortAddresses: [foo]": at +
			`NodePortAddresses[0]: Invalid value: "foo": must be a valid CIDR or one of the keywords 'primary', 'localhost', 'all'`,
		"nodePortAddresses: [primary, primary, all, localhost, 10.0.0.0/8, 10.0.0.0/8, Primary]": `[` + at +
			`NodePortAddresses[1]: Duplicate value: "primary", ` + at +
			`NodePortAddresses[6]: Invalid value: "Primary": must be a valid CIDR or one of the keywords 'primary', 'localhost', 'all']`,
		"conntrack: {tcpCloseWaitTimeout: -1s}": at +
			`KubeProxyLinuxConfiguration.KubeProxyConntrackConfiguration.TCPCloseWaitTimeout: Invalid value: "-1s": must be greater than or equal to 0`,
		"nftables: {syncPeriod: 1s, minSyncPeriod: 2s}": at +
			`SyncPeriod: Invalid value: "2s": must be greater than or equal to ` + at + `MinSyncPeriod`,
		"mode: iptables\nnftables: {masqueradeBit: 32, syncPeriod: -1s}\niptables: {minSyncPeriod: -1s}": at +
			`MinSyncPeriod: Invalid value: "-1s": must be greater than or equal to 0`,
		"nftables: {masqueradeBit: 32}\nconfigSyncPeriod: -1s\noomScoreAdj: 2000\nclientConnection: {burst: -1}": `[` +
			at + `KubeProxyNFTablesConfiguration.MasqueradeBit: Invalid value: 32: must be within the range [0, 31], ` +
			at + `KubeProxyLinuxConfiguration.OOMScoreAdj: Invalid value: 2000: must be within the range [-1000, 1000], ` +
			at + `ClientConnection.Burst: Invalid value: -1: must be greater than or equal to 0, ` + at +
			`ConfigSyncPeriod: Invalid value: "-1s": must be greater than 0]`,
		"showHiddenMetricsForVersion: x": at +
			`ShowHiddenMetricsForVersion: Invalid value: "x": invalid showHiddenMetricsForVersion: showHiddenMetricsForVersion: Invalid value: "x": must be omitted or have the value '1.36'; only the previous minor version is allowed`,
		"mode: quick": at +
			`Mode.ProxyMode: Invalid value: "quick": must be iptables, ipvs, nftables or blank (blank means the best-available proxy [currently nftables])`,
		"mode: ipvs\nipvs: {scheduler: foo}\nfeatureGates: {KubeProxyIPVS: false}": at +
			`Mode.ProxyMode: Invalid value: "ipvs": must be iptables, nftables or blank (blank means the best-available proxy [currently nftables])`,
		"mode: ipvs\nipvs: {scheduler: foo, tcpTimeout: -1s, excludeCIDRs: [bar], syncPeriod: -1s}": `[` + at +
			`KubeProxyIPVSConfiguration.TCPTimeout: Invalid value: "-1s": must be greater than or equal to 0, ` + at +
			`KubeProxyIPVSConfiguration.Scheduler.Scheduler: Invalid value: "foo": must be in [rr wrr lc wlc lblc lblcr sh dh sed nq mh ], blank means the default algorithm method (currently rr), ` + at +
			`KubeProxyIPVSConfiguration.ExcludeCidrs[0]: Invalid value: "bar": must be a valid CIDR, ` + at +
			`SyncPeriod: Invalid value: "-1s": must be greater than 0, ` + at +
			`SyncPeriod: Invalid value: "1s": must be greater than or equal to ` + at + `MinSyncPeriod]`,
		"detectLocalMode: BridgeInterface": at +
			`DetectLocalConfiguration.InterfaceName: Invalid value: "": must not be empty`,
		"detectLocalMode: InterfaceNamePrefix": at +
			`DetectLocalConfiguration.InterfacePrefix: Invalid value: "": must not be empty`,
		"detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: 'a\" accept'}": at +
			`DetectLocalConfiguration.InterfaceName: Invalid value: "a\" accept": must be the name of a network interface`,
		"detectLocalMode: foo": at +
			`DetectLocalMode: Unsupported value: "foo": supported values: "ClusterCIDR", "BridgeInterface", "InterfaceNamePrefix", ""`,
	} {
		if _, err := parseFile(t, file); err == nil || err.Error() != "failed validate: "+want {
			t.Errorf("%s:\n%v, want\nfailed validate: %s", file, err, want)
		}
	}
	for file, want := range map[string]string{
		"logging: {format: foo}":    `initialize logging: logging.format: Invalid value: "foo": Unsupported log format`,
		"featureGates: {Foo: true}": "failed complete: unrecognized feature gate: Foo",
		"hostnameOverride: ' '":     "empty hostname is invalid",
		"mode: 1":                   "failed complete: failed to decode: json: cannot unmarshal number into Go struct field KubeProxyConfiguration.mode of type v1alpha1.ProxyMode",
		"nftables: {syncPeriod: 3}": "failed complete: failed to decode: json: cannot unmarshal number into Go struct field KubeProxyNFTablesConfiguration.nftables.syncPeriod of type string",
		"logging: {verbosity: -1}":  "failed complete: failed to decode: json: cannot unmarshal number -1 into Go struct field LoggingConfiguration.logging.verbosity of type v1.VerbosityLevel",
	} {
		if _, err := parseFile(t, file); err == nil || err.Error() != want {
			t.Errorf("%s:\n%v, want\n%s", file, err, want)
		}
	}
	for file, want := range map[string]string{
		"kind: KubeProxyConfiguration\n":                                         "Object 'apiVersion' is missing in 'kind: KubeProxyConfiguration\n'",
		"apiVersion: kubeproxy.config.k8s.io/v1alpha1\n":                         "Object 'Kind' is missing in 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\n'",
		"apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: Other\n":            `no kind "Other" is registered for version "kubeproxy.config.k8s.io/v1alpha1" in scheme`,
		"apiVersion: kubeproxy.config.k8s.io/v1\nkind: KubeProxyConfiguration\n": `no kind "KubeProxyConfiguration" is registered for version "kubeproxy.config.k8s.io/v1" in scheme`,
		"": "Object 'Kind' is missing in ''",
	} {
		if _, err := parse(t, "--config", written(t, file)); err == nil ||
			!strings.HasPrefix(err.Error(), "failed complete: failed to decode: "+want) {
			t.Errorf("%q: %v, want %q", file, err, want)
		}
	}
}

// TestLenientFile: fields that there are not, and fields said twice, are not the end.
func TestLenientFile(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"unknownField: 1\nmode: iptables", "conntrack: {bogus: 1}\nmode: iptables",
		"mode: nftables\nmode: iptables"} {
		if s, err := parseFile(t, file); err != nil || s.mode != modeIPTables {
			t.Errorf("%s: %+v, %v", file, s, err)
		}
	}
}
