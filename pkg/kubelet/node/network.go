package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/containernetworking/cni/libcni"
)

// Network is how the node's CNI network list is written: a bridge that pods are plugged into, addresses from the node's
// podCIDRs, ports of the host mapped to pods.
type Network struct {
	// Dir is where the runtime looks for network lists, /etc/cni/net.d. The files are 10-bonsai.conflist and 99-loopback.conflist.
	Dir string
	// BinDirs hold the plug-ins. If set, a list is checked by asking each plug-in whether it is there and takes it.
	BinDirs []string
	// Bridge is "cni0" by default; MTU 0 is the kernel's choice; Masquerade has traffic that leaves for other networks take the
	// node's address.
	Bridge     string
	MTU        int
	Masquerade bool
	// DataDir is where host-local keeps the addresses it gave, /var/lib/cni/networks by default.
	DataDir string
}

const (
	listName     = "bonsai"
	listFile     = "10-bonsai.conflist"
	loopbackFile = "99-loopback.conflist"
	cniVersion   = "1.0.0"
	cniPatience  = 10 * time.Second
)

// plugin is one plug-in's configuration; list is a network list.
type plugin map[string]any

type list struct {
	CNIVersion string   `json:"cniVersion"`
	Name       string   `json:"name"`
	Plugins    []plugin `json:"plugins"`
}

// Render returns the network list for the podCIDRs, one for each address family.
func (n *Network) Render(cidrs []string) ([]byte, error) {
	var ranges [][]map[string]string
	var routes []map[string]string
	for _, c := range cidrs {
		p, err := netip.ParsePrefix(c)
		if err != nil {
			return nil, fmt.Errorf("podCIDR %q: %w", c, err)
		}
		dst := "0.0.0.0/0"
		if p.Addr().Is6() {
			dst = "::/0"
		}
		ranges = append(ranges, []map[string]string{{"subnet": p.Masked().String()}})
		routes = append(routes, map[string]string{"dst": dst})
	}
	if len(ranges) == 0 {
		return nil, fmt.Errorf("a network list needs a podCIDR")
	}
	ipam := plugin{"type": "host-local", "ranges": ranges, "routes": routes}
	if n.DataDir != "" {
		ipam["dataDir"] = n.DataDir
	}
	bridge := plugin{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": n.Masquerade, "hairpinMode": true, "ipam": ipam}
	if n.Bridge != "" {
		bridge["bridge"] = n.Bridge
	}
	if n.MTU > 0 {
		bridge["mtu"] = n.MTU
	}
	return marshal(list{cniVersion, listName, []plugin{bridge, {"type": "portmap", "capabilities": map[string]bool{"portMappings": true}, "snat": true}}})
}

// Write puts the lists into Dir, whole or not at all; wrote is false if they were there already.
func (n *Network) Write(ctx context.Context, cidrs []string) (wrote bool, err error) {
	pods, err := n.Render(cidrs)
	if err != nil {
		return false, err
	}
	loopback, err := marshal(list{cniVersion, "loopback", []plugin{{"type": "loopback"}}})
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(n.Dir, 0o755); err != nil {
		return false, fmt.Errorf("make the directory of network lists: %w", err)
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{loopbackFile, loopback}, {listFile, pods}} {
		path := filepath.Join(n.Dir, f.name)
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, f.data) {
			continue
		}
		if err := n.check(ctx, f.data); err != nil {
			return wrote, fmt.Errorf("check the network list %s: %w", f.name, err)
		}
		if err := replaceFile(path, f.data); err != nil {
			return wrote, err
		}
		if _, err := libcni.ConfListFromFile(path); err != nil {
			return wrote, fmt.Errorf("read the network list back: %w", err)
		}
		wrote = true
	}
	return wrote, nil
}

// check has libcni parse the list and, with BinDirs, each plug-in confirm that it takes it.
func (n *Network) check(ctx context.Context, data []byte) error {
	l, err := libcni.ConfListFromBytes(data)
	if err != nil || len(n.BinDirs) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cniPatience)
	defer cancel()
	_, err = libcni.NewCNIConfig(n.BinDirs, nil).ValidateNetworkList(ctx, l)
	return err
}

func marshal(l list) ([]byte, error) {
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the network list: %w", err)
	}
	return append(data, '\n'), nil
}

// replaceFile writes beside path, under a name no runtime reads, and renames.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".network-*.tmp")
	if err != nil {
		return fmt.Errorf("make the network list: %w", err)
	}
	defer os.Remove(f.Name()) // fails once renamed
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write the network list: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("put the network list in place: %w", err)
	}
	return nil
}
