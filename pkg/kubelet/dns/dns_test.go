package dns

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func ptr[T any](v T) *T { return &v }

func TestPolicies(t *testing.T) {
	t.Parallel()
	host := Settings{Servers: []string{"192.0.2.53"}, Searches: []string{"corp.example"},
		Options: []string{"timeout:2"}}
	cfg := Config{ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "cluster.local", Host: host}
	cluster := Settings{[]string{"10.96.0.10"},
		[]string{"ns.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example"}, []string{"ndots:5"}}
	many := func(n int, f string) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf(f, i))
		}
		return out
	}
	for name, tc := range map[string]struct {
		cfg      Config
		policy   corev1.DNSPolicy
		hostNet  bool
		dns      *corev1.PodDNSConfig
		want     Settings
		problems int
	}{
		"cluster first":                 {cfg: cfg, policy: corev1.DNSClusterFirst, want: cluster},
		"cluster first on host network": {cfg: cfg, policy: corev1.DNSClusterFirst, hostNet: true, want: host},
		"cluster first with host net": {cfg: cfg, policy: corev1.DNSClusterFirstWithHostNet, hostNet: true,
			want: cluster},
		"default": {cfg: cfg, policy: corev1.DNSDefault, want: host},
		"no cluster DNS": {cfg: Config{Host: host}, policy: corev1.DNSClusterFirst, want: host,
			problems: 1},
		"none": {cfg: cfg, policy: corev1.DNSNone,
			dns:  &corev1.PodDNSConfig{Nameservers: []string{"1.1.1.1"}, Searches: []string{"resolv.conf.local"}},
			want: Settings{Servers: []string{"1.1.1.1"}, Searches: []string{"resolv.conf.local"}}},
		"options merge": {cfg: cfg, policy: corev1.DNSClusterFirst,
			dns: &corev1.PodDNSConfig{Nameservers: []string{"10.96.0.10", "1.1.1.1"},
				Searches: []string{"corp.example", "x"},
				Options:  []corev1.PodDNSConfigOption{{Name: "ndots", Value: ptr("2")}, {Name: "edns0"}}},
			want: Settings{[]string{"10.96.0.10", "1.1.1.1"}, append(append([]string{}, cluster.Searches...), "x"),
				[]string{"ndots:2", "edns0"}}},
		"limits": {cfg: cfg, policy: corev1.DNSNone,
			dns:  &corev1.PodDNSConfig{Nameservers: many(4, "10.0.0.%d"), Searches: many(33, "d%d")},
			want: Settings{Servers: many(3, "10.0.0.%d"), Searches: many(32, "d%d")}, problems: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"},
				Spec: corev1.PodSpec{DNSPolicy: tc.policy, HostNetwork: tc.hostNet, DNSConfig: tc.dns}}
			got, problems := tc.cfg.For(pod)
			if d := cmp.Diff(tc.want, got); d != "" || len(problems) != tc.problems {
				t.Error(d, problems)
			}
		})
	}
	long, _ := Config{}.For(
		&corev1.Pod{Spec: corev1.PodSpec{DNSPolicy: corev1.DNSNone,
			DNSConfig: &corev1.PodDNSConfig{Searches: many(20, strings.Repeat("x", 200)+"%d")}}})
	if n := len(strings.Join(long.Searches, " ")); n > maxSearchChars || n < maxSearchChars-250 {
		t.Error("search line of", n, "characters")
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(path,
		[]byte("# c\nnameserver 1.1.1.1\nnameserver\n nameserver fe80::1%eth0\nsearch old\nsearch a. b .\noptions ndots:1 rotate"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	want := Settings{[]string{"1.1.1.1", "fe80::1%eth0"}, []string{"a", "b", "."}, []string{"ndots:1", "rotate"}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Error(err, d)
	}
	if _, err := Read(path + "x"); err == nil {
		t.Error("a missing file was read")
	}
	if s, err := Read(""); err != nil || len(s.Servers) != 1 {
		t.Error(s, err)
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	aliases := []corev1.HostAlias{{IP: "123.45.67.89", Hostnames: []string{"foo", "bar"}}}
	const head = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
	if d := cmp.Diff(head+"10.0.0.1\tweb-0.web.ns.svc.cluster.local\tweb-0\nfd00::1\tweb-0.web.ns.svc.cluster.local\tweb-0\n\n# Entries added by HostAliases.\n123.45.67.89\tfoo\tbar\n",
		string(Hosts([]string{"10.0.0.1", "fd00::1"}, "web-0", "web.ns.svc.cluster.local", aliases))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(head+"10.0.0.1\tp\n", string(Hosts([]string{"10.0.0.1"}, "p", "", nil))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff("# Kubernetes-managed hosts file (host network).\n127.0.0.1 x\n\n# Entries added by HostAliases.\n123.45.67.89\tfoo\tbar\n", string(HostNetworkHosts([]byte("127.0.0.1 x\n"), aliases))); d != "" {
		t.Error(d)
	}
}

func TestHostname(t *testing.T) {
	t.Parallel()
	pod := func(name, host, sub string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
			Spec: corev1.PodSpec{Hostname: host, Subdomain: sub}}
	}
	for _, tc := range []struct {
		pod    *corev1.Pod
		h, dom string
	}{
		{pod("p", "", ""), "p", ""}, {pod("p", "h", "s"), "h", "s.ns.svc.cluster.local"},
		{pod(strings.Repeat("a", 62)+"-b", "", ""), strings.Repeat("a", 62), ""},
		{pod("p", "", "s"), "p", "s.ns.svc.cluster.local"},
	} {
		if h, d := Hostname(tc.pod, "cluster.local"); h != tc.h || d != tc.dom {
			t.Errorf("%s: %q %q", tc.pod.Name, h, d)
		}
	}
	o := pod("p", "h", "s")
	o.Spec.HostnameOverride = ptr("over.example")
	if h, d := Hostname(o, "x"); h != "over.example" || d != "" {
		t.Error(h, d)
	}
}
