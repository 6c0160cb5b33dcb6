package main

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	proxyconfig "k8s.io/kube-proxy/config/v1alpha1"
	netutils "k8s.io/utils/net"

	"bonsai/api/kubeversion"
	"bonsai/pkg/featuregates"
)

// primaryAddresses, among the addresses of node ports, are the node's own.
const primaryAddresses = "primary"

// addressKeywords are the words for ranges of addresses of node ports.
var addressKeywords = map[string][]string{primaryAddresses: nil, "localhost": {"127.0.0.0/8", "::1/128"},
	"all": {"0.0.0.0/0", "::/0"}}

// validate says what is wrong with a configuration that has its defaults, in the words and the order of Kubernetes
// 1.37.2.
func validate(c *proxyconfig.KubeProxyConfiguration) (errs field.ErrorList) {
	at := field.NewPath("KubeProxyConfiguration")
	errs = append(errs, bit(at.Child("KubeProxyIPTablesConfiguration"), c.IPTables.MasqueradeBit)...)
	modes := allowedModes(c.FeatureGates)
	if c.Mode == modeIPVS && slices.Contains(modes, modeIPVS) {
		errs = append(errs, validateIPVS(at.Child("KubeProxyIPVSConfiguration"), &c.IPVS)...)
	}
	if c.Mode == modeNFTables {
		errs = append(errs, bit(at.Child("KubeProxyNFTablesConfiguration"), c.NFTables.MasqueradeBit)...)
	}
	errs = append(errs, validateLinux(at.Child("KubeProxyLinuxConfiguration"), c)...)
	if !slices.Contains(modes, string(c.Mode)) {
		errs = append(errs, field.Invalid(at.Child("Mode").Child("ProxyMode"), string(c.Mode), "must be "+
			strings.Join(modes, ", ")+" or blank (blank means the best-available proxy [currently nftables])"))
	}
	if c.ClientConnection.Burst < 0 {
		errs = append(errs, field.Invalid(at.Child("ClientConnection").Child("Burst"), c.ClientConnection.Burst,
			atLeast0))
	}
	if c.ConfigSyncPeriod.Duration < 0 {
		errs = append(errs, field.Invalid(at.Child("ConfigSyncPeriod"), c.ConfigSyncPeriod.Duration.String(), above0))
	}
	switch c.Mode {
	case modeNFTables:
		errs = append(errs, periods(at, c.NFTables.SyncPeriod.Duration, c.NFTables.MinSyncPeriod.Duration)...)
	case modeIPTables:
		errs = append(errs, periods(at, c.IPTables.SyncPeriod.Duration, c.IPTables.MinSyncPeriod.Duration)...)
	case modeIPVS:
		errs = append(errs, periods(at, c.IPVS.SyncPeriod.Duration, c.IPVS.MinSyncPeriod.Duration)...)
	}
	if netutils.ParseIPSloppy(c.BindAddress) == nil {
		errs = append(errs, field.Invalid(at.Child("BindAddress"), c.BindAddress,
			"not a valid textual representation of an IP address"))
	}
	errs = append(errs, hostPort(at.Child("HealthzBindAddress"), c.HealthzBindAddress)...)
	errs = append(errs, hostPort(at.Child("MetricsBindAddress"), c.MetricsBindAddress)...)
	errs = append(errs, validateNodePorts(at.Child("NodePortAddresses"), c.NodePortAddresses)...)
	if v := c.ShowHiddenMetricsForVersion; v != "" && v != kubeversion.Previous {
		const must = "must be omitted or have the value '" + kubeversion.Previous +
			"'; only the previous minor version is allowed"
		inner := field.Invalid(field.NewPath("showHiddenMetricsForVersion"), v, must)
		errs = append(errs, field.Invalid(at.Child("ShowHiddenMetricsForVersion"), v,
			"invalid showHiddenMetricsForVersion: "+inner.Error()))
	}
	return append(errs, validateLocal(at, c)...)
}

// What numbers must be.
const (
	above0   = "must be greater than 0"
	atLeast0 = "must be greater than or equal to 0"
)

// bit is one of a packet's mark.
func bit(at *field.Path, b *int32) (errs field.ErrorList) {
	if b != nil && (*b < 0 || *b > 31) {
		errs = append(errs, field.Invalid(at.Child("MasqueradeBit"), *b, "must be within the range [0, 31]"))
	}
	return errs
}

// validateLinux looks at what concerns the machine and the process.
func validateLinux(at *field.Path, c *proxyconfig.KubeProxyConfiguration) (errs field.ErrorList) {
	tracking, t := at.Child("KubeProxyConntrackConfiguration"), &c.Conntrack
	for _, n := range []struct {
		name  string
		value *int32
	}{{"MaxPerCore", t.MaxPerCore}, {"Min", t.Min}} {
		if n.value != nil && *n.value < 0 {
			errs = append(errs, field.Invalid(tracking.Child(n.name), *n.value, atLeast0))
		}
	}
	for _, d := range []struct {
		name  string
		value *metav1.Duration
	}{
		{"TCPEstablishedTimeout", t.TCPEstablishedTimeout}, {"TCPCloseWaitTimeout", t.TCPCloseWaitTimeout},
		{"UDPTimeout", &t.UDPTimeout}, {"UDPStreamTimeout", &t.UDPStreamTimeout},
	} {
		if d.value != nil && d.value.Duration < 0 {
			errs = append(errs, field.Invalid(tracking.Child(d.name), d.value.Duration.String(), atLeast0))
		}
	}
	if s := c.OOMScoreAdj; s != nil && (*s < -1000 || *s > 1000) {
		errs = append(errs, field.Invalid(at.Child("OOMScoreAdj"), *s, "must be within the range [-1000, 1000]"))
	}
	return errs
}

// validateIPVS looks at what the ipvs mode alone has, except its periods.
func validateIPVS(at *field.Path, c *proxyconfig.KubeProxyIPVSConfiguration) (errs field.ErrorList) {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"TCPTimeout", c.TCPTimeout.Duration}, {"TCPFinTimeout", c.TCPFinTimeout.Duration},
		{"UDPTimeout", c.UDPTimeout.Duration}} {
		if d.value < 0 {
			errs = append(errs, field.Invalid(at.Child(d.name), d.value.String(), atLeast0))
		}
	}
	known := []string{"rr", "wrr", "lc", "wlc", "lblc", "lblcr", "sh", "dh", "sed", "nq", "mh", ""}
	if !slices.Contains(known, c.Scheduler) {
		errs = append(errs, field.Invalid(at.Child("Scheduler").Child("Scheduler"), c.Scheduler,
			fmt.Sprintf("must be in %v, blank means the default algorithm method (currently rr)", known)))
	}
	for i, text := range c.ExcludeCIDRs {
		if _, _, err := netutils.ParseCIDRSloppy(text); err != nil {
			errs = append(errs, field.Invalid(at.Child("ExcludeCidrs").Index(i), text, "must be a valid CIDR"))
		}
	}
	return errs
}

// gateIPVS allows the mode ipvs.
const gateIPVS = "KubeProxyIPVS"

// allowedModes are the modes that the feature gates allow.
func allowedModes(settings map[string]bool) []string {
	// An error in the gates has ended the start before.
	if gates, err := featuregates.With(settings); err == nil && !gates.Enabled(gateIPVS) {
		return []string{modeIPTables, modeNFTables}
	}
	return []string{modeIPTables, modeIPVS, modeNFTables}
}

// periods are those between two rounds. Upstream shows the shorter one where the longer is too short.
func periods(at *field.Path, resync, minSync time.Duration) (errs field.ErrorList) {
	if resync <= 0 {
		errs = append(errs, field.Invalid(at.Child("SyncPeriod"), resync.String(), above0))
	}
	if minSync < 0 {
		errs = append(errs, field.Invalid(at.Child("MinSyncPeriod"), minSync.String(), atLeast0))
	}
	if resync < minSync {
		errs = append(errs, field.Invalid(at.Child("SyncPeriod"), minSync.String(),
			"must be greater than or equal to "+at.Child("MinSyncPeriod").String()))
	}
	return errs
}

// hostPort is an address to serve on; "" serves none.
func hostPort(at *field.Path, text string) (errs field.ErrorList) {
	if text == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return field.ErrorList{field.Invalid(at, text, "must be IP:port")}
	}
	if netutils.ParseIPSloppy(host) == nil {
		errs = append(errs, field.Invalid(at, host, "must be a valid IP"))
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		errs = append(errs, field.Invalid(at, port, "must be a valid port"))
	}
	return errs
}

// validateNodePorts looks at the ranges of addresses that take node ports, and the words for some.
func validateNodePorts(at *field.Path, all []string) (errs field.ErrorList) {
	for i, text := range all {
		if _, keyword := addressKeywords[text]; keyword {
			if slices.Contains(all[:i], text) {
				errs = append(errs, field.Duplicate(at.Index(i), text))
			}
			continue
		}
		if _, _, err := netutils.ParseCIDRSloppy(text); err != nil {
			errs = append(errs, field.Invalid(at.Index(i), text,
				"must be a valid CIDR or one of the keywords 'primary', 'localhost', 'all'"))
		}
	}
	return errs
}

// validateLocal checks how the node's pods are recognized.
func validateLocal(at *field.Path, c *proxyconfig.KubeProxyConfiguration) (errs field.ErrorList) {
	details := at.Child("DetectLocalConfiguration")
	switch mode := string(c.DetectLocalMode); mode {
	case "NodeCIDR":
		errs = append(errs, field.Invalid(at.Child("DetectLocalMode"), mode,
			"is not supported by this proxy, use "+localClusterCIDR))
	case localClusterCIDR:
	case localBridge:
		errs = append(errs, interfaceName(details.Child("InterfaceName"), c.DetectLocal.BridgeInterface)...)
	case localPrefix:
		errs = append(errs, interfaceName(details.Child("InterfacePrefix"), c.DetectLocal.InterfaceNamePrefix)...)
	default:
		errs = append(errs, field.NotSupported(at.Child("DetectLocalMode"), mode,
			[]string{localClusterCIDR, localBridge, localPrefix, ""}))
	}
	if c.ClusterCIDR == "" {
		return errs
	}
	ranges := strings.Split(c.ClusterCIDR, ",")
	at = details.Child("ClusterCIDRs")
	two, err := netutils.IsDualStackCIDRStrings(ranges)
	if err == nil && len(ranges) > 1 && (len(ranges) > 2 || !two) {
		errs = append(errs, field.Invalid(at, ranges,
			"must be a either a single CIDR or dual-stack pair of CIDRs (e.g. [10.100.0.0/16, fde4:8dba:82e1::/48]"))
	}
	for i, text := range ranges {
		if _, _, err := netutils.ParseCIDRSloppy(text); err != nil {
			errs = append(errs, field.Invalid(at.Index(i), text,
				"must be a valid CIDR block (e.g. 10.100.0.0/16 or fde4:8dba:82e1::/48)"))
		}
	}
	return errs
}

// interfaceName is what the kernel takes for a network interface, or its beginning; it is written into rules.
func interfaceName(at *field.Path, name string) (errs field.ErrorList) {
	odd := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"*+/:!\'`, r) }
	switch {
	case name == "":
		errs = append(errs, field.Invalid(at, name, "must not be empty"))
	case len(name) > 15 || strings.ContainsFunc(name, odd):
		errs = append(errs, field.Invalid(at, name, "must be the name of a network interface"))
	}
	return errs
}
