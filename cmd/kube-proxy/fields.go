package main

import (
	"reflect"
	"time"

	proxyconfig "k8s.io/kube-proxy/config/v1alpha1"
)

// idle names the fields that the file sets to something else than their default and that have no effect; docs/stock.md
// tells why.
func idle(c *proxyconfig.KubeProxyConfiguration) (names []string) {
	client, tracking, log := &c.ClientConnection, &c.Conntrack, &c.Logging
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"clientConnection.acceptContentTypes", client.AcceptContentTypes != ""},
		{"clientConnection.contentType",
			client.ContentType != "" && client.ContentType != "application/vnd.kubernetes.protobuf"},
		{"configSyncPeriod", c.ConfigSyncPeriod.Duration != 0 && c.ConfigSyncPeriod.Duration != 15*time.Minute},
		{"conntrack.maxPerCore", asked(tracking.MaxPerCore, 32768)},
		{"conntrack.min", asked(tracking.Min, 131072)},
		{"conntrack.tcpBeLiberal", tracking.TCPBeLiberal},
		{"conntrack.tcpCloseWaitTimeout",
			tracking.TCPCloseWaitTimeout != nil && asked(&tracking.TCPCloseWaitTimeout.Duration, time.Hour)},
		{"conntrack.tcpEstablishedTimeout",
			tracking.TCPEstablishedTimeout != nil && asked(&tracking.TCPEstablishedTimeout.Duration, 24*time.Hour)},
		{"conntrack.udpStreamTimeout", tracking.UDPStreamTimeout.Duration != 0},
		{"conntrack.udpTimeout", tracking.UDPTimeout.Duration != 0},
		{"detectLocal.bridgeInterface", c.DetectLocal.BridgeInterface != "" && c.DetectLocalMode != localBridge},
		{"detectLocal.interfaceNamePrefix",
			c.DetectLocal.InterfaceNamePrefix != "" && c.DetectLocalMode != localPrefix},
		{"iptables.localhostNodePorts", c.IPTables.LocalhostNodePorts != nil && *c.IPTables.LocalhostNodePorts},
		{"ipvs", set(c.IPVS)},
		{"logging.flushFrequency",
			log.FlushFrequency.Duration.Duration != 0 && log.FlushFrequency.Duration.Duration != 5*time.Second},
		{"logging.options", !log.Options.Text.InfoBufferSize.IsZero() || !log.Options.JSON.InfoBufferSize.IsZero() ||
			log.Options.Text.SplitStream || log.Options.JSON.SplitStream},
		{"logging.vmodule", len(log.VModule) > 0},
		{"portRange", c.PortRange != ""},
		{"showHiddenMetricsForVersion", c.ShowHiddenMetricsForVersion != ""},
		{"windowsRunAsService", c.WindowsRunAsService},
		{"winkernel", set(c.Winkernel)},
	} {
		if f.set {
			names = append(names, f.name)
		}
	}
	return names
}

// asked reports whether a setting of the kernel is asked for: 0 leaves it as it is, and so do we.
func asked[T int32 | time.Duration](p *T, usual T) bool { return p != nil && *p != 0 && *p != usual }

// set reports whether any field of a part is.
func set(part any) bool { return !reflect.ValueOf(part).IsZero() }
