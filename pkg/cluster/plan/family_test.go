package plan

import (
	"testing"
)

func TestParseIPFamily(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]IPFamily{"ipv4": IPv4, "IPv4": IPv4, "ipv6": IPv6, "IPv6": IPv6, "Dual": Dual} {
		if got, err := ParseIPFamily(text); got != want || err != nil {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "both", "ipv5"} {
		if _, err := ParseIPFamily(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
