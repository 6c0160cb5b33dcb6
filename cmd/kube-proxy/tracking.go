package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	proxyconfig "k8s.io/kube-proxy/config/v1alpha1"
)

// trackingOptions are the flags of the kernel's table of connections.
type trackingOptions struct {
	maxPerCore, least                    int32
	liberal                              bool
	established, closeWait, udp, streams time.Duration
}

// addFlags registers the flags. Without them the table stays as it is: it belongs to the machine, which may have other
// users of it.
func (o *trackingOptions) addFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.maxPerCore, "conntrack-max-per-core", 0,
		"How many connections the kernel may track for each CPU core; 0 leaves the limit as it is, and ignores --conntrack-min.")
	fs.Int32Var(&o.least, "conntrack-min", 0,
		"How many connections the kernel may track at least, whatever --conntrack-max-per-core is.")
	fs.BoolVar(&o.liberal, "conntrack-tcp-be-liberal", false,
		"Track TCP packets outside of the window, too (nf_conntrack_tcp_be_liberal).")
	fs.DurationVar(&o.established, "conntrack-tcp-timeout-established", 0,
		"How long the kernel tracks idle TCP connections; 0 leaves it as it is.")
	fs.DurationVar(&o.closeWait, "conntrack-tcp-timeout-close-wait", 0,
		"How long the kernel tracks TCP connections that one side has closed; 0 leaves it as it is.")
	fs.DurationVar(&o.udp, "conntrack-udp-timeout", 0,
		"How long the kernel tracks UDP packets without an answer; 0 leaves it as it is.")
	fs.DurationVar(&o.streams, "conntrack-udp-timeout-stream", 0,
		"How long the kernel tracks UDP packets with answers; 0 leaves it as it is.")
}

// over sets the flags that were given in the file's configuration.
func (o *trackingOptions) over(c *proxyconfig.KubeProxyConntrackConfiguration, given func(flag string) bool) {
	for flag, take := range map[string]func(){
		"conntrack-max-per-core":   func() { c.MaxPerCore = &o.maxPerCore },
		"conntrack-min":            func() { c.Min = &o.least },
		"conntrack-tcp-be-liberal": func() { c.TCPBeLiberal = o.liberal },
		"conntrack-tcp-timeout-established": func() {
			c.TCPEstablishedTimeout = &metav1.Duration{Duration: o.established}
		},
		"conntrack-tcp-timeout-close-wait": func() {
			c.TCPCloseWaitTimeout = &metav1.Duration{Duration: o.closeWait}
		},
		"conntrack-udp-timeout":        func() { c.UDPTimeout.Duration = o.udp },
		"conntrack-udp-timeout-stream": func() { c.UDPStreamTimeout.Duration = o.streams },
	} {
		if given(flag) {
			take()
		}
	}
}

// connections returns how many the kernel may track; 0 leaves the limit as it is.
func connections(c *proxyconfig.KubeProxyConntrackConfiguration, cores int) int {
	least, perCore := 0, 0
	if c.Min != nil {
		least = int(*c.Min)
	}
	if c.MaxPerCore != nil {
		if perCore = int(*c.MaxPerCore); perCore == 0 {
			return 0
		}
	}
	return max(perCore*cores, least)
}

// setTracking sets what is asked for of the kernel's table of connections; root is /proc/sys. Some settings are the
// whole machine's, and a node with a network of its own may not change them: then the error says which.
func setTracking(root string, c *proxyconfig.KubeProxyConntrackConfiguration) error {
	values := []struct {
		field, name string
		value       int
	}{
		{"maxPerCore", "nf_conntrack_max", connections(c, runtime.NumCPU())},
		{"tcpEstablishedTimeout", "nf_conntrack_tcp_timeout_established", wholeSeconds(c.TCPEstablishedTimeout)},
		{"tcpCloseWaitTimeout", "nf_conntrack_tcp_timeout_close_wait", wholeSeconds(c.TCPCloseWaitTimeout)},
		{"udpTimeout", "nf_conntrack_udp_timeout", wholeSeconds(&c.UDPTimeout)},
		{"udpStreamTimeout", "nf_conntrack_udp_timeout_stream", wholeSeconds(&c.UDPStreamTimeout)},
	}
	for _, v := range values {
		if v.value == 0 {
			continue
		}
		if err := setKernel(root, v.name, v.value); err != nil {
			return fmt.Errorf("conntrack.%s: %w", v.field, err)
		}
	}
	if c.TCPBeLiberal {
		if err := setKernel(root, "nf_conntrack_tcp_be_liberal", 1); err != nil {
			return fmt.Errorf("conntrack.tcpBeLiberal: %w", err)
		}
	}
	return nil
}

func wholeSeconds(d *metav1.Duration) int {
	if d == nil {
		return 0
	}
	return int(d.Duration / time.Second)
}

// setKernel writes a setting of connection tracking, unless it has the value.
func setKernel(root, name string, value int) error {
	path := filepath.Join(root, "net", "netfilter", name)
	old, err := os.ReadFile(path)
	if err == nil && strings.TrimSpace(string(old)) == strconv.Itoa(value) {
		return nil
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(value)), 0); err != nil {
		return fmt.Errorf("set net.netfilter.%s to %d: %w", name, value, err)
	}
	return nil
}

// prepare does what needs a process with all rights; --init-only ends after it.
func (s *settings) prepare() error {
	if err := s.setOOMScore(); err != nil {
		return fmt.Errorf("set oomScoreAdj: %w", err)
	}
	return setTracking("/proc/sys", &s.tracking)
}
