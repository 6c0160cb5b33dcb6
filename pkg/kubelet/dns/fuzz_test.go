package dns

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// FuzzParse: whatever the host's resolv.conf says, a pod's settings keep the limits and stay single words.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "nameserver 10.0.0.1\nsearch a.example. b.example .\noptions ndots:1 edns0\n",
		"nameserver", "search " + strings.Repeat("x. ", 50),
		strings.Repeat("nameserver 1.1.1.1\n", 9), "; comment\n# another\noptions",
		"search " + strings.Repeat("y", 3000), "nameserver a\x00b\r\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, policy := range []corev1.DNSPolicy{corev1.DNSDefault, corev1.DNSClusterFirst, corev1.DNSNone} {
			c := Config{ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "cluster.local", Host: parse(data)}
			s, problems := c.For(&corev1.Pod{Spec: corev1.PodSpec{DNSPolicy: policy}})
			if len(s.Servers) > maxServers || len(s.Searches) > maxSearches ||
				len(strings.Join(s.Searches, " ")) > maxSearchChars {
				t.Fatalf("%q, %s: %d servers, %d searches of %d characters", data, policy, len(s.Servers),
					len(s.Searches), len(strings.Join(s.Searches, " ")))
			}
			if cut := len(c.Host.Servers) > maxServers; policy == corev1.DNSDefault && cut && len(problems) == 0 {
				t.Fatalf("%q: servers were left out without a word", data)
			}
			for _, list := range [][]string{s.Servers, s.Searches, s.Options} {
				for _, w := range list {
					if strings.ContainsAny(w, " \t\r\n") {
						t.Fatalf("%q, %s: %q would become several words", data, policy, w)
					}
				}
			}
		}
	})
}
