package cni

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/containernetworking/cni/libcni"
)

// TestNetworkList: the lists are written once, libcni reads them, and nothing else is left beside them.
func TestNetworkList(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "net.d")
	cidrs := []netip.Prefix{netip.MustParsePrefix("10.244.3.7/24"), netip.MustParsePrefix("fd00:1::/64")}
	for i, want := range []bool{true, false} {
		if wrote, err := Dir(dir).Write(cidrs, "bonsai-ipam"); err != nil || wrote != want {
			t.Fatal(i, wrote, err)
		}
	}
	l, err := libcni.ConfListFromFile(filepath.Join(dir, listFile))
	if err != nil || l.Name != listName || len(l.Plugins) != 2 {
		t.Fatal(l, err)
	}
	var bridge struct {
		Bridge    string
		IsGateway bool
		IPMasq    bool
		IPAM      struct {
			Type   string
			Ranges [][]struct{ Subnet string }
			Routes []struct{ Dst string }
		}
	}
	if err := json.Unmarshal(l.Plugins[0].Bytes, &bridge); err != nil || bridge.Bridge != "cni0" || !bridge.IsGateway ||
		bridge.IPMasq ||
		bridge.IPAM.Ranges[0][0].Subnet != "10.244.3.0/24" || bridge.IPAM.Routes[1].Dst != "::/0" {
		t.Errorf("%+v %v", bridge, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Error("files:", files, err)
	}
	if _, err := Dir(dir).Write(nil, "host-local"); err == nil {
		t.Error("a list without a podCIDR was written")
	}
}
