package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/featuregates"
)

// settings are flags and configuration file, merged, checked and parsed.
type settings struct {
	kubeconfig, node, healthz, metrics string
	primary                            []netip.Addr // empty: the node object's
	clusterCIDRs                       []netip.Prefix
	nodePortAddresses                  []netip.Prefix // empty: primary
	mode                               string
	masqueradeAll                      bool
	minSync, resync                    time.Duration
	limits                             daemon.Limits
}

// Periods that apply where nothing is said.
const (
	defaultMinSync = 250 * time.Millisecond
	defaultResync  = 30 * time.Second
)

// settings merges flags over the file and checks everything, reporting all problems.
func (o *options) settings(fs *pflag.FlagSet, log *slog.Logger) (*settings, error) {
	c, limits := o.flags, o.limits
	if o.configFile != "" {
		file, err := readConfiguration(o.configFile, log)
		if err != nil {
			return nil, err
		}
		c.overlay(file, fs)
		if !fs.Changed("kube-api-qps") {
			limits.QPS = file.ClientConnection.QPS
		}
		if b := file.ClientConnection.Burst; b != 0 && !fs.Changed("kube-api-burst") {
			limits.Burst = b
		}
	}
	if fs.Changed("masquerade-all") {
		c.rules().MasqueradeAll = o.masqueradeAll
	}
	s := &settings{
		kubeconfig: c.ClientConnection.Kubeconfig, healthz: c.HealthzBindAddress, metrics: c.MetricsBindAddress,
		mode: c.Mode, masqueradeAll: c.rules().MasqueradeAll, minSync: c.rules().MinSyncPeriod.Duration, resync: c.rules().SyncPeriod.Duration, limits: limits,
	}
	if s.minSync == 0 {
		s.minSync = defaultMinSync
	}
	if s.resync == 0 {
		s.resync = defaultResync
	}
	if err := featuregates.Check(c.FeatureGates); err != nil {
		return nil, fmt.Errorf("failed complete: %w", err)
	}
	featuregates.Warn(c.FeatureGates, log)
	var errs []error
	check := func(err error) { errs = append(errs, err) }
	var err error
	s.node, err = nodeName(c.HostnameOverride)
	check(err)
	s.primary, err = primary(c.BindAddress)
	check(err)
	s.clusterCIDRs, err = cidrs("--cluster-cidr", strings.Split(c.ClusterCIDR, ","))
	check(err)
	if len(c.NodePortAddresses) != 1 || c.NodePortAddresses[0] != "primary" {
		s.nodePortAddresses, err = cidrs("--nodeport-addresses", c.NodePortAddresses)
		check(err)
	}
	check(limits.Validate())
	check(checkMode(c.Mode))
	for flag, address := range map[string]string{"--healthz-bind-address": s.healthz, "--metrics-bind-address": s.metrics} {
		if _, err := netip.ParseAddrPort(address); address != "" && err != nil {
			check(fmt.Errorf("%s %q: %w", flag, address, err))
		}
	}
	if b := c.rules().MasqueradeBit; b != nil && *b != 14 {
		check(fmt.Errorf("%s.masqueradeBit: only 14 is supported, got %d", c.Mode, *b))
	}
	if d := c.DetectLocalMode; d != "" && d != "ClusterCIDR" {
		check(fmt.Errorf("detectLocalMode: only ClusterCIDR is supported, got %q", d))
	}
	return s, errors.Join(errs...)
}

// overlay takes the file's values wherever it has one and the flag was not given.
func (c *configuration) overlay(file *configuration, fs *pflag.FlagSet) {
	for flag, v := range map[string]struct {
		to   *string
		from string
	}{
		"kubeconfig":           {&c.ClientConnection.Kubeconfig, file.ClientConnection.Kubeconfig},
		"hostname-override":    {&c.HostnameOverride, file.HostnameOverride},
		"bind-address":         {&c.BindAddress, file.BindAddress},
		"healthz-bind-address": {&c.HealthzBindAddress, file.HealthzBindAddress},
		"metrics-bind-address": {&c.MetricsBindAddress, file.MetricsBindAddress},
		"proxy-mode":           {&c.Mode, file.Mode},
		"cluster-cidr":         {&c.ClusterCIDR, file.ClusterCIDR},
	} {
		if v.from != "" && !fs.Changed(flag) {
			*v.to = v.from
		}
	}
	if len(file.NodePortAddresses) > 0 && !fs.Changed("nodeport-addresses") {
		c.NodePortAddresses = file.NodePortAddresses
	}
	for mode, rules := range map[string][2]*rulesConfiguration{modeNFTables: {&c.NFTables, &file.NFTables}, modeIPTables: {&c.IPTables, &file.IPTables}} {
		to, from := rules[0], rules[1]
		if from.SyncPeriod.Duration != 0 && !fs.Changed(mode+"-sync-period") {
			to.SyncPeriod = from.SyncPeriod
		}
		if from.MinSyncPeriod.Duration != 0 && !fs.Changed(mode+"-min-sync-period") {
			to.MinSyncPeriod = from.MinSyncPeriod
		}
		to.MasqueradeAll, to.MasqueradeBit = from.MasqueradeAll, from.MasqueradeBit
	}
	c.DetectLocalMode = file.DetectLocalMode
	if !fs.Changed("feature-gates") {
		c.FeatureGates = file.FeatureGates
	}
}

// The modes, by their names in flags and files.
const (
	modeNFTables = "nftables"
	modeIPTables = "iptables"
)

func checkMode(mode string) error {
	switch mode {
	case modeNFTables, modeIPTables:
		return nil
	case "ipvs":
		return fmt.Errorf("--proxy-mode: %q is not supported by this proxy, use nftables or iptables", mode)
	}
	return fmt.Errorf("--proxy-mode: unknown mode %q, use nftables or iptables", mode)
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
		return "", errors.New("the host has no name; give one with --hostname-override")
	}
	return name, nil
}

// primary is the bind address if it names one address.
func primary(text string) ([]netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return nil, fmt.Errorf("--bind-address: %w", err)
	}
	if a.IsUnspecified() {
		return nil, nil
	}
	return []netip.Addr{a}, nil
}

func cidrs(flag string, texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range texts {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}
