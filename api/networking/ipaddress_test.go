package networking

import (
	"slices"
	"testing"
)

// TestAddressName: an address has one name. The messages are a kube-apiserver v1.36.3's.
func TestAddressName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"192.168.1.1":    nil,
		"2001:db8::1":    nil,
		"2001:db8:0::1":  {`must be in canonical form ("2001:db8::1")`},
		"192.168.001.1":  {"must not have leading 0s"},
		"::ffff:1.2.3.4": {"must not be an IPv4-mapped IPv6 address"},
		"x":              {"must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"},
	} {
		if got := addressName(name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
