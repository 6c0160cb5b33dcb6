package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	proxyconfig "k8s.io/kube-proxy/config/v1alpha1"

	"bonsai/pkg/referencetest"
)

// usedFields have, for each field that does something, a file in which it says something of its own. It
// is compared with the same file without its last line.
var usedFields = map[string]string{
	"featureGates":                "featureGates: {AllAlpha: false}",
	"clientConnection.kubeconfig": "clientConnection: {kubeconfig: /k}",
	"clientConnection.qps":        "clientConnection: {qps: 7}",
	"clientConnection.burst":      "clientConnection: {burst: 7}",
	"logging.format":              "logging: {format: json}",
	"logging.verbosity":           "logging: {verbosity: 3}",
	"logging.flushFrequency":      "logging: {flushFrequency: 7s}",
	"logging.vmodule":             "logging: {vmodule: [{filePattern: a, verbosity: 7}]}",
	"logging.options.text.splitStream": "featureGates: {LoggingAlphaOptions: true}\n" +
		"logging: {options: {text: {splitStream: true}}}",
	"logging.options.text.infoBufferSize": "featureGates: {LoggingAlphaOptions: true}\n" +
		"logging: {options: {text: {infoBufferSize: 1Ki}}}",
	"logging.options.json.splitStream": "featureGates: {LoggingAlphaOptions: true}\n" +
		"logging: {options: {json: {splitStream: true}}}",
	"logging.options.json.infoBufferSize": "featureGates: {LoggingAlphaOptions: true}\n" +
		"logging: {options: {json: {infoBufferSize: 1Ki}}}",
	"hostnameOverride":                "hostnameOverride: n7",
	"bindAddress":                     "bindAddress: 192.0.2.7",
	"healthzBindAddress":              "healthzBindAddress: 127.0.0.1:7",
	"metricsBindAddress":              "metricsBindAddress: 127.0.0.1:7",
	"bindAddressHardFail":             "bindAddressHardFail: true",
	"enableProfiling":                 "enableProfiling: true",
	"mode":                            "mode: iptables",
	"iptables.masqueradeBit":          "mode: iptables\niptables: {masqueradeBit: 7}",
	"iptables.masqueradeAll":          "mode: iptables\niptables: {masqueradeAll: true}",
	"iptables.syncPeriod":             "mode: iptables\niptables: {syncPeriod: 7m}",
	"iptables.minSyncPeriod":          "mode: iptables\niptables: {minSyncPeriod: 7s}",
	"nftables.masqueradeBit":          "nftables: {masqueradeBit: 7}",
	"nftables.masqueradeAll":          "nftables: {masqueradeAll: true}",
	"nftables.syncPeriod":             "nftables: {syncPeriod: 7m}",
	"nftables.minSyncPeriod":          "nftables: {minSyncPeriod: 7s}",
	"clusterCIDR":                     "clusterCIDR: 10.7.0.0/16",
	"nodePortAddresses":               "nodePortAddresses: [10.7.0.0/16]",
	"detectLocal.bridgeInterface":     "detectLocal: {bridgeInterface: br7}\ndetectLocalMode: BridgeInterface",
	"detectLocal.interfaceNamePrefix": "detectLocal: {interfaceNamePrefix: veth}\ndetectLocalMode: InterfaceNamePrefix",
	"oomScoreAdj":                     "oomScoreAdj: -7",
	"ipvs.syncPeriod":                 "mode: ipvs\nipvs: {syncPeriod: 7m}",
	"ipvs.minSyncPeriod":              "mode: ipvs\nipvs: {minSyncPeriod: 7s}",
	"ipvs.scheduler":                  "mode: ipvs\nipvs: {scheduler: wrr}",
	"ipvs.excludeCIDRs":               "mode: ipvs\nipvs: {excludeCIDRs: [10.7.0.0/16]}",
	"ipvs.strictARP":                  "mode: ipvs\nipvs: {strictARP: true}",
	"ipvs.tcpTimeout":                 "mode: ipvs\nipvs: {tcpTimeout: 7m}",
	"ipvs.tcpFinTimeout":              "mode: ipvs\nipvs: {tcpFinTimeout: 7s}",
	"ipvs.udpTimeout":                 "mode: ipvs\nipvs: {udpTimeout: 7s}",
	"conntrack.maxPerCore":            "conntrack: {maxPerCore: 7}",
	"conntrack.min":                   "conntrack: {min: 7}",
	"conntrack.tcpEstablishedTimeout": "conntrack: {tcpEstablishedTimeout: 7m}",
	"conntrack.tcpCloseWaitTimeout":   "conntrack: {tcpCloseWaitTimeout: 7m}",
	"conntrack.tcpBeLiberal":          "conntrack: {tcpBeLiberal: true}",
	"conntrack.udpTimeout":            "conntrack: {udpTimeout: 7s}",
	"conntrack.udpStreamTimeout":      "conntrack: {udpStreamTimeout: 7s}",
}

// refusedFields have, for each field that can only say what we do anyway, a file that says something else, and the word
// about it.
var refusedFields = map[string][2]string{
	"detectLocalMode": {"detectLocalMode: NodeCIDR",
		`DetectLocalMode: Invalid value: "NodeCIDR": is not supported by this proxy`},
}

// values are the types of structs that the file has as one value.
var values = []string{"Duration", "TimeOrMetaDuration", "QuantityValue"}

// TestFields: each field of the configuration file changes the settings, or is refused by its name, or is in
// the table of fields without effect. The log names those that a file sets.
func TestFields(t *testing.T) {
	t.Parallel()
	var told []string
	for _, f := range idleFields(&proxyconfig.KubeProxyConfiguration{}) {
		if usedFields[f.name] == "" { // in no mode
			told = append(told, f.name)
		}
	}
	seen := map[string]bool{}
	var walk func(in reflect.Type, at string, field func(c *proxyconfig.KubeProxyConfiguration) reflect.Value)
	walk = func(in reflect.Type, at string, value func(c *proxyconfig.KubeProxyConfiguration) reflect.Value) {
		for i := range in.NumField() {
			f := in.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Name == "TypeMeta" {
				continue
			}
			path := at + name
			inner := func(c *proxyconfig.KubeProxyConfiguration) reflect.Value { return value(c).Field(i) }
			if f.Anonymous { // its fields are in this object
				walk(f.Type, at, inner)
				continue
			}
			seen[path] = true
			_, used := usedFields[path]
			_, refused := refusedFields[path]
			excused := slices.Contains(told, path)
			switch {
			case f.Type.Kind() == reflect.Struct && !excused && !slices.Contains(values, f.Type.Name()):
				walk(f.Type, path+".", inner)
			case used:
				checkUsed(t, path)
			case refused:
				if _, err := parseFile(t, refusedFields[path][0]); err == nil ||
					!strings.Contains(err.Error(), refusedFields[path][1]) {
					t.Errorf("%s is refused with %v, want %q", path, err, refusedFields[path][1])
				}
			case !excused:
				t.Errorf("%s does nothing, and the table of fields without effect does not have it", path)
			}
			if excused {
				c := &proxyconfig.KubeProxyConfiguration{}
				odd(inner(c))
				if got := idle(c); used || refused || !slices.Equal(got, []string{path}) {
					t.Errorf("%s is said to be without effect (and used %t, refused %t), and these are named: %q", path,
						used, refused, got)
				}
			}
		}
	}
	walk(reflect.TypeFor[proxyconfig.KubeProxyConfiguration](), "",
		func(c *proxyconfig.KubeProxyConfiguration) reflect.Value {
			return reflect.ValueOf(c).Elem()
		})
	for _, path := range told {
		if !seen[path] {
			t.Errorf("the table of fields without effect has %s, which is no field", path)
		}
	}
	for path := range usedFields {
		if !seen[path] {
			t.Errorf("%s is no field", path)
		}
	}
	if len(seen) < 50 {
		t.Errorf("only %d fields were looked at", len(seen))
	}
}

// checkUsed: the file of a field makes other settings than the same file without it.
func checkUsed(t *testing.T, path string) {
	t.Helper()
	file := usedFields[path]
	lines := strings.Split(file, "\n")
	with, err := parseFile(t, file)
	if err != nil {
		t.Fatal(path, err)
	}
	without, err := parseFile(t, strings.Join(lines[:len(lines)-1], "\n"))
	if err != nil {
		t.Fatal(path, err)
	}
	if reflect.DeepEqual(with, without) || len(with.idle) > 0 {
		t.Errorf("%s changes nothing, or is idle: %+v", path, with)
	}
}

// odd sets a field to what is nobody's default.
func odd(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		odd(v.Elem())
	case reflect.Struct:
		odd(v.Field(0))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.String:
		v.SetString("odd")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	}
}

// TestInstallersFile: the file that kubeadm writes says nothing of its own but the client and the pods' addresses.
func TestInstallersFile(t *testing.T) {
	t.Parallel()
	s, err := parseFile(t, `bindAddress: 0.0.0.0
bindAddressHardFail: false
clientConnection: {acceptContentTypes: "", burst: 0, contentType: "", kubeconfig: /var/lib/kube-proxy/kubeconfig.conf, qps: 0}
clusterCIDR: 10.244.0.0/16
configSyncPeriod: 0s
conntrack: {maxPerCore: null, min: null, tcpBeLiberal: false, tcpCloseWaitTimeout: null, tcpEstablishedTimeout: null, udpStreamTimeout: 0s, udpTimeout: 0s}
detectLocal: {bridgeInterface: "", interfaceNamePrefix: ""}
detectLocalMode: ""
enableProfiling: false
healthzBindAddress: ""
hostnameOverride: n1
iptables: {localhostNodePorts: null, masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s, syncPeriod: 0s}
ipvs: {excludeCIDRs: null, minSyncPeriod: 0s, scheduler: "", strictARP: false, syncPeriod: 0s, tcpFinTimeout: 0s, tcpTimeout: 0s, udpTimeout: 0s}
logging: {flushFrequency: 0, options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}, verbosity: 0}
metricsBindAddress: ""
mode: ""
nftables: {masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s, syncPeriod: 0s}
nodePortAddresses: null
oomScoreAdj: null
portRange: ""
showHiddenMetricsForVersion: ""
winkernel: {enableDSR: false, forwardHealthCheckVip: false, networkName: "", rootHnsEndpointName: "", sourceVip: ""}
`)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := parse(t, "--kubeconfig=/var/lib/kube-proxy/kubeconfig.conf", "--cluster-cidr=10.244.0.0/16",
		"--hostname-override=n1")
	if err != nil || !reflect.DeepEqual(s, plain) {
		t.Errorf("%+v, want %+v, %v", s, plain, err)
	}
}

// TestReferenceConfiguration: docs/reference has the fields of the configuration file as they are.
func TestReferenceConfiguration(t *testing.T) {
	t.Parallel()
	c := &proxyconfig.KubeProxyConfiguration{}
	setDefaults(c, func(string) bool { return false })
	effects := map[string]string{}
	for _, f := range idleFields(c) {
		effects[f.name] = "none: " + f.why
		if usedFields[f.name] != "" {
			effects[f.name] = "limited: " + f.why
		}
	}
	for path := range refusedFields {
		effects[path] = "limited: a value that is not supported is refused by its name"
	}
	referencetest.Configuration(t, "kube-proxy", "KubeProxyConfiguration of kubeproxy.config.k8s.io/v1alpha1",
		"./cmd/kube-proxy",
		"The log names a field without effect (`none`) that is set to something else than its default.",
		referencetest.Fields(c, "json"), effects)
}
