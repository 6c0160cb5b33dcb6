package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
	logsapi "k8s.io/component-base/logs/api/v1"
	proxyconfig "k8s.io/kube-proxy/config/v1alpha1"
	netutils "k8s.io/utils/net"

	"bonsai/cmd/internal/daemon"
	"bonsai/cmd/internal/profiling"
	"bonsai/pkg/featuregates"
)

// settings are flags and configuration file, merged, checked and parsed.
type settings struct {
	kubeconfig, master     string
	node, healthz, metrics string
	primary                []netip.Addr // empty: the node object's
	clusterCIDRs           []netip.Prefix
	podInterface           string         // "": pods are known by clusterCIDRs
	primaryNodePorts       bool           // the node's own addresses, and those of nodePortAddresses
	nodePortAddresses      []netip.Prefix // empty: none but the node's own with primaryNodePorts, else all
	mode                   string
	rules                  rules
	ipvs                   proxyconfig.KubeProxyIPVSConfiguration
	tracking               proxyconfig.KubeProxyConntrackConfiguration
	limits                 daemon.Limits
	logging                daemon.Logging
	tracing                daemon.Tracing
	profiling              profiling.Flags
	// hardFail ends the process where a server cannot listen.
	hardFail bool
	// oomScoreAdj is nil to leave it as it is.
	oomScoreAdj *int32
	gates       map[string]bool
	// idle are the fields that the file sets, but that have no effect.
	idle []string
}

// settings merges flags over the file and checks everything, reporting all problems. The log hears of what the file has
// too much.
func (o *options) settings(fs *pflag.FlagSet, log *slog.Logger) (*settings, error) {
	c, err := o.configuration(fs, log)
	if err != nil {
		return nil, err
	}
	logging, err := checkLogging(c.Logging, c.FeatureGates)
	if err != nil {
		return nil, err
	}
	if errs := validate(c); len(errs) > 0 {
		return nil, fmt.Errorf("failed validate: %w", errs.ToAggregate())
	}
	if err := o.tracing.Read(); err != nil {
		return nil, err
	}
	node, err := nodeName(c.HostnameOverride)
	if err != nil {
		return nil, err
	}
	s := &settings{
		kubeconfig: c.ClientConnection.Kubeconfig, master: o.master, node: node, healthz: c.HealthzBindAddress,
		metrics: c.MetricsBindAddress,
		primary: primary(c.BindAddress), mode: string(c.Mode), rules: rulesOf(c), limits: o.requests(c, fs.Changed),
		logging:   logging,
		tracing:   o.tracing,
		profiling: profiling.Flags{Enabled: c.EnableProfiling}, hardFail: c.BindAddressHardFail,
		ipvs: c.IPVS, tracking: c.Conntrack,
		oomScoreAdj: c.OOMScoreAdj, gates: c.FeatureGates, idle: idle(c),
	}
	switch c.DetectLocalMode {
	case localBridge:
		s.podInterface = c.DetectLocal.BridgeInterface
	case localPrefix:
		s.podInterface = c.DetectLocal.InterfaceNamePrefix + "*"
	}
	if c.ClusterCIDR != "" {
		s.clusterCIDRs = prefixes(strings.Split(c.ClusterCIDR, ","))
	}
	for _, text := range c.NodePortAddresses {
		ranges, keyword := addressKeywords[text]
		if !keyword {
			ranges = []string{text}
		}
		s.primaryNodePorts = s.primaryNodePorts || text == primaryAddresses
		s.nodePortAddresses = append(s.nodePortAddresses, prefixes(ranges)...)
	}
	return s, s.limits.Validate()
}

// checkLogging says what is wrong with feature gates, and with the settings of the log, as the gates allow them.
func checkLogging(c logsapi.LoggingConfiguration, settings map[string]bool) (daemon.Logging, error) {
	l := daemon.Logging{Config: c}
	gates, err := featuregates.With(settings)
	if err != nil {
		return l, fmt.Errorf("failed complete: %w", err)
	}
	if err := l.Validate(gates, field.NewPath("logging")); err != nil {
		return l, fmt.Errorf("initialize logging: %w", err)
	}
	return l, nil
}

// requests are the limits of requests to the API server: there are none unless they are asked for.
func (o *options) requests(c *proxyconfig.KubeProxyConfiguration, given func(flag string) bool) daemon.Limits {
	limits := daemon.Limits{QPS: c.ClientConnection.QPS, Burst: int(c.ClientConnection.Burst)}
	if limits.Burst == 0 && !given("kube-api-burst") {
		limits.Burst = o.limits.Burst
	}
	return limits
}

// nodeName is the host's name, unless it is overridden.
func nodeName(override string) (string, error) {
	name := override
	if name == "" {
		var err error
		if name, err = os.Hostname(); err != nil {
			return "", fmt.Errorf("find the host's name: %w", err)
		}
	}
	if name = strings.ToLower(strings.TrimSpace(name)); name == "" {
		return "", errors.New("empty hostname is invalid")
	}
	return name, nil
}

// primary is the bind address if it names one address; validate has seen it.
func primary(text string) []netip.Addr {
	a, ok := netip.AddrFromSlice(netutils.ParseIPSloppy(text))
	if a = a.Unmap(); !ok || a.IsUnspecified() {
		return nil
	}
	return []netip.Addr{a}
}

// prefixes reads ranges of addresses, which validate has seen.
func prefixes(texts []string) (out []netip.Prefix) {
	for _, text := range texts {
		_, n, err := netutils.ParseCIDRSloppy(text)
		if err != nil {
			continue
		}
		bits, _ := n.Mask.Size()
		if a, ok := netip.AddrFromSlice(n.IP); ok {
			out = append(out, netip.PrefixFrom(a.Unmap(), bits))
		}
	}
	return out
}
