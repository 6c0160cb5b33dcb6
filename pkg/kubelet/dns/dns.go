// Package dns computes what a pod sees of name resolution: its resolv.conf and its hosts file. Pure except for Read.
//
// The rules: https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/ and
// https://kubernetes.io/docs/tasks/network/customize-hosts-file-for-pods/.
package dns

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Limits of resolv.conf that the kubelet keeps, whatever the pod or the host says.
const (
	maxServers     = 3
	maxSearches    = 32
	maxSearchChars = 2048
)

// Settings are the lines of a resolv.conf.
type Settings struct {
	Servers, Searches, Options []string
}

// Config is what a node's pods have in common.
type Config struct {
	// ClusterDNS are the addresses of the cluster's name servers, ClusterDomain its domain ("cluster.local").
	ClusterDNS    []string
	ClusterDomain string
	// Host is the node's own resolv.conf (see Read).
	Host Settings
}

// For returns the pod's settings. Problems are what was left out, one sentence each, fit for a Warning event; a pod
// with problems runs all the same.
func (c Config) For(pod *corev1.Pod) (s Settings, problems []string) {
	policy := pod.Spec.DNSPolicy
	if policy == corev1.DNSClusterFirst && pod.Spec.HostNetwork {
		policy = corev1.DNSDefault
	}
	if policy == "" || policy == corev1.DNSClusterFirstWithHostNet {
		policy = corev1.DNSClusterFirst
	}
	if policy == corev1.DNSClusterFirst && len(c.ClusterDNS) == 0 {
		problems = append(problems,
			fmt.Sprintf("kubelet does not have ClusterDNS IP configured and cannot create Pod using %q policy. Falling back to %q policy.",
				pod.Spec.DNSPolicy, corev1.DNSDefault))
		policy = corev1.DNSDefault
	}
	switch policy {
	case corev1.DNSDefault:
		s = Settings{slices.Clone(c.Host.Servers), slices.Clone(c.Host.Searches), slices.Clone(c.Host.Options)}
	case corev1.DNSClusterFirst:
		s = Settings{Servers: slices.Clone(c.ClusterDNS), Searches: c.searches(pod.Namespace),
			Options: []string{"ndots:5"}}
	}
	if d := pod.Spec.DNSConfig; d != nil {
		s = s.with(d)
	}
	return s.limited(problems)
}

// searches are the domains in which the pod's short names are looked up.
func (c Config) searches(namespace string) []string {
	var out []string
	if c.ClusterDomain != "" {
		svc := "svc." + c.ClusterDomain
		out = []string{namespace + "." + svc, svc, c.ClusterDomain}
	}
	return unique(append(out, c.Host.Searches...))
}

// with adds a pod's own dnsConfig; its options replace those of the same name.
func (s Settings) with(d *corev1.PodDNSConfig) Settings {
	out := Settings{Servers: unique(append(s.Servers, d.Nameservers...)),
		Searches: unique(append(s.Searches, d.Searches...))}
	own := map[string]bool{}
	for _, o := range d.Options {
		own[o.Name] = true
	}
	for _, o := range s.Options {
		if name, _, _ := strings.Cut(o, ":"); !own[name] {
			out.Options = append(out.Options, o)
		}
	}
	for _, o := range d.Options {
		line := o.Name
		if o.Value != nil && *o.Value != "" {
			line += ":" + *o.Value
		}
		out.Options = append(out.Options, line)
	}
	return out
}

func (s Settings) limited(problems []string) (Settings, []string) {
	if len(s.Servers) > maxServers {
		s.Servers = s.Servers[:maxServers]
		problems = append(problems,
			fmt.Sprintf("Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: %s", strings.Join(s.Servers, " ")))
	}
	kept, chars := 0, 0
	for _, d := range s.Searches {
		if chars += len(d) + 1; kept == maxSearches || chars-1 > maxSearchChars {
			break
		}
		kept++
	}
	if kept < len(s.Searches) {
		s.Searches = s.Searches[:kept]
		problems = append(problems,
			fmt.Sprintf("Search Line limits were exceeded, some search paths have been omitted, the applied search line is: %s", strings.Join(s.Searches, " ")))
	}
	return s, problems
}

// Read parses the node's resolv.conf. An empty path means none: pods of the policy Default then resolve nothing but
// through a name server on loopback.
func Read(path string) (Settings, error) {
	if path == "" {
		return Settings{Servers: []string{"127.0.0.1"}, Searches: []string{"."}}, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Settings{}, fmt.Errorf("read the node's resolv.conf: %w", err)
	}
	return parse(data), nil
}

// parse reads a resolv.conf; of several search or options lines the last one counts, as in resolv.conf(5).
func parse(data []byte) Settings {
	var s Settings
	for line := range bytes.Lines(data) {
		f := strings.Fields(string(line))
		if len(f) < 2 {
			continue
		}
		switch f[0] {
		case "nameserver":
			s.Servers = append(s.Servers, f[1])
		case "search":
			s.Searches = nil
			for _, d := range f[1:] {
				if d != "." {
					d = strings.TrimSuffix(d, ".")
				}
				s.Searches = append(s.Searches, d)
			}
		case "options":
			s.Options = f[1:]
		}
	}
	return s
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
