package main

import (
	"reflect"
	"time"

	proxyconfig "k8s.io/kube-proxy/config/v1alpha1"
)

// idle names the fields that the file sets to something else than their default and that have no effect.
func idle(c *proxyconfig.KubeProxyConfiguration) (names []string) {
	for _, f := range idleFields(c) {
		if f.set {
			names = append(names, f.name)
		}
	}
	return names
}

// idleField is a field of the configuration file that has no effect.
type idleField struct {
	// name is its path in the file; why says what the proxy does instead.
	name, why string
	// set reports whether the file sets it to something else than its default.
	set bool
}

// idleFields returns all fields that have no effect, those that have one in another mode included.
func idleFields(c *proxyconfig.KubeProxyConfiguration) []idleField {
	client := &c.ClientConnection
	return []idleField{
		{"clientConnection.acceptContentTypes", "requests are protobuf", client.AcceptContentTypes != ""},
		{"clientConnection.contentType", "requests are protobuf",
			client.ContentType != "" && client.ContentType != "application/vnd.kubernetes.protobuf"},
		{"configSyncPeriod", "changes are watched",
			c.ConfigSyncPeriod.Duration != 0 && c.ConfigSyncPeriod.Duration != 15*time.Minute},
		{"detectLocal.bridgeInterface", "it has an effect with detectLocalMode: BridgeInterface alone",
			c.DetectLocal.BridgeInterface != "" && c.DetectLocalMode != localBridge},
		{"detectLocal.interfaceNamePrefix", "it has an effect with detectLocalMode: InterfaceNamePrefix alone",
			c.DetectLocal.InterfaceNamePrefix != "" && c.DetectLocalMode != localPrefix},
		{"iptables.localhostNodePorts", "node ports are never open at loopback addresses",
			c.IPTables.LocalhostNodePorts != nil && *c.IPTables.LocalhostNodePorts},
		{"portRange", "upstream does not use it either", c.PortRange != ""},
		{"showHiddenMetricsForVersion", "no metric is hidden", c.ShowHiddenMetricsForVersion != ""},
		{"windowsRunAsService", "there is no Windows", c.WindowsRunAsService},
		{"winkernel", "there is no Windows", set(c.Winkernel)},
	}
}

// set reports whether any field of a part is.
func set(part any) bool { return !reflect.ValueOf(part).IsZero() }
