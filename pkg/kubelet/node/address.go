package node

import (
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// findAddresses returns the node's addresses: the given ones, or that of the interface with the default route; then the
// host name. A lone 0.0.0.0 or :: chooses the family of that address. An external cloud provider sets the addresses
// that are not given.
func findAddresses(ips []net.IP, hostname string, external bool) ([]corev1.NodeAddress, error) {
	name := corev1.NodeAddress{Type: corev1.NodeHostName, Address: hostname}
	if len(ips) == 0 && external {
		return []corev1.NodeAddress{name}, nil
	}
	if family := net.IP(nil); len(ips) == 0 || len(ips) == 1 && ips[0].IsUnspecified() {
		if len(ips) == 1 {
			family = ips[0]
		}
		if ip := net.ParseIP(hostname); ip != nil {
			ips = []net.IP{ip}
		} else if ip, err := utilnet.ResolveBindAddress(family); err == nil {
			ips = []net.IP{ip}
		} else {
			return nil, fmt.Errorf("find the node's address by its default route (--node-ip sets it): %w", err)
		}
	}
	var out []corev1.NodeAddress
	for _, ip := range ips {
		if ip.IsUnspecified() || ip.IsMulticast() || ip == nil {
			return nil, fmt.Errorf("%s cannot be a node's address", ip)
		}
		out = append(out, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip.String()})
	}
	return append(out, name), nil
}
