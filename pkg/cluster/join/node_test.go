package join

import (
	"net/netip"
	"strings"
	"testing"
)

// TestNodeAddress: --node-ip takes addresses of this machine only, as the kubelet's --node-ip does.
func TestNodeAddress(t *testing.T) {
	t.Parallel()
	server := netip.MustParseAddrPort("127.0.0.1:6443")
	loopback := netip.MustParseAddr("127.0.0.1")
	for _, asked := range []netip.Addr{{}, loopback} {
		if got, err := nodeAddress(asked, server); got != loopback || err != nil {
			t.Errorf("%v: %v, %v", asked, got, err)
		}
	}
	_, err := nodeAddress(netip.MustParseAddr("192.0.2.200"), server)
	if err == nil || !strings.Contains(err.Error(), "--node-ip: 192.0.2.200 is no address of this machine") {
		t.Error(err)
	}
}
