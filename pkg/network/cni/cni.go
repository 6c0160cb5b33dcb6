// Package cni writes a node's CNI network list, from which the container runtime takes how pods get their network.
package cni

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/containernetworking/cni/libcni"
)

// Dir is where the runtime looks for network lists, by default /etc/cni/net.d. The files are 10-bonsai.conflist and
// 99-loopback.conflist.
type Dir string

const (
	listName     = "bonsai"
	listFile     = "10-bonsai.conflist"
	loopbackFile = "99-loopback.conflist"
	cniVersion   = "1.0.0"
)

// plugin is one plug-in's configuration; list is a network list.
type plugin map[string]any

type list struct {
	CNIVersion string   `json:"cniVersion"`
	Name       string   `json:"name"`
	Plugins    []plugin `json:"plugins"`
}

// Render returns the network list for the podCIDRs, one for each address family: a bridge that pods are plugged into,
// addresses from the podCIDRs by ipamPlugin, which takes the configuration of host-local, ports of the host mapped to
// pods.
func Render(cidrs []netip.Prefix, ipamPlugin string) ([]byte, error) {
	if len(cidrs) == 0 {
		return nil, errors.New("a network list needs a podCIDR")
	}
	var ranges [][]map[string]string
	var routes []map[string]string
	for _, p := range cidrs {
		dst := "0.0.0.0/0"
		if p.Addr().Is6() {
			dst = "::/0"
		}
		ranges = append(ranges, []map[string]string{{"subnet": p.Masked().String()}})
		routes = append(routes, map[string]string{"dst": dst})
	}
	ipam := plugin{"type": ipamPlugin, "ranges": ranges, "routes": routes}
	bridge := plugin{"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true, "ipam": ipam}
	return marshal(list{cniVersion, listName,
		[]plugin{bridge, {"type": "portmap", "capabilities": map[string]bool{"portMappings": true}, "snat": true}}})
}

// Write puts the lists for the podCIDRs into d, whole or not at all; wrote is false if they were there already.
func (d Dir) Write(cidrs []netip.Prefix, ipamPlugin string) (wrote bool, err error) {
	pods, err := Render(cidrs, ipamPlugin)
	if err != nil {
		return false, err
	}
	loopback, err := marshal(list{cniVersion, "loopback", []plugin{{"type": "loopback"}}})
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(string(d), 0o755); err != nil {
		return false, fmt.Errorf("make the directory of network lists: %w", err)
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{loopbackFile, loopback}, {listFile, pods}} {
		path := filepath.Join(string(d), f.name)
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, f.data) {
			continue
		}
		if _, err := libcni.ConfListFromBytes(f.data); err != nil {
			return wrote, fmt.Errorf("check the network list %s: %w", f.name, err)
		}
		if err := replaceFile(path, f.data); err != nil {
			return wrote, err
		}
		wrote = true
	}
	return wrote, nil
}

func marshal(l list) ([]byte, error) {
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the network list: %w", err)
	}
	return append(data, '\n'), nil
}

// replaceFile writes next to path, under a name that no runtime reads, and renames.
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
