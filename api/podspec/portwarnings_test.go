package podspec

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestPortWarnings: what a real kube-apiserver v1.36.3 says of pairs of ports with one number.
func TestPortWarnings(t *testing.T) {
	t.Parallel()
	port := func(host int32, ip string) corev1.ContainerPort {
		return corev1.ContainerPort{ContainerPort: 80, HostPort: host, HostIP: ip, Protocol: corev1.ProtocolTCP}
	}
	udp := port(0, "")
	udp.Protocol = corev1.ProtocolUDP
	for name, c := range map[string]struct {
		a, b corev1.ContainerPort
		want string
	}{
		"the same":                  {port(0, ""), port(0, ""), "duplicate"},
		"the same on the host":      {port(80, "1.1.1.1"), port(80, "1.1.1.1"), "duplicate"},
		"another protocol":          {port(0, ""), udp, ""},
		"one on the host":           {port(80, ""), port(0, ""), "overlapping"},
		"addresses without a port":  {port(0, "1.1.1.1"), port(0, "1.1.1.2"), "overlapping"},
		"two ports of the host":     {port(80, ""), port(81, ""), ""},
		"two addresses":             {port(80, "1.1.1.1"), port(80, "1.1.1.2"), ""},
		"any address and one":       {port(80, "1.1.1.1"), port(80, ""), "dangerously ambiguous"},
		"all addresses, named, one": {port(80, "0.0.0.0"), port(80, "1.1.1.1"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w portWarner
			w.warn(&corev1.Container{Ports: []corev1.ContainerPort{c.a}}, field.NewPath("initContainers").Index(0))
			got := w.warn(&corev1.Container{Ports: []corev1.ContainerPort{c.b}}, field.NewPath("containers").Index(0))
			got = slices.DeleteFunc(got, func(s string) bool {
				return strings.Contains(s, "hostIP set without hostPort")
			})
			var want []string
			if c.want != "" {
				want = []string{"containers[0].ports[0]: " + c.want +
					" port definition with initContainers[0].ports[0]"}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestPortNames: a name leads to the port of the first container that has it.
func TestPortNames(t *testing.T) {
	t.Parallel()
	named := func(names ...string) *corev1.Container {
		c := &corev1.Container{}
		for _, name := range names {
			c.Ports = append(c.Ports, corev1.ContainerPort{Name: name})
		}
		return c
	}
	w := portNames{}
	var got []string
	for i, c := range []*corev1.Container{named("a", ""), named("b", "b", ""), named("c", "b", "a")} {
		got = append(got, w.warn(c, field.NewPath("c").Index(i))...)
	}
	want := []string{
		`c[2].ports[1]: duplicate port name "b" with c[1].ports[1], services and probes that select ports by name will use c[1].ports[1]`,
		`c[2].ports[2]: duplicate port name "a" with c[0].ports[0], services and probes that select ports by name will use c[0].ports[0]`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPortWarningsAreBounded: thousands of ports that are alike cost no millions of warnings.
func TestPortWarningsAreBounded(t *testing.T) {
	t.Parallel()
	var w portWarner
	c := &corev1.Container{Ports: make([]corev1.ContainerPort, 20_000)}
	if n := len(w.warn(c, field.NewPath("spec"))); n != maxPortWarnings {
		t.Errorf("%d warnings, want %d", n, maxPortWarnings)
	}
}
