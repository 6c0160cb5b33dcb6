package node

import (
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// findAddresses returns the node's addresses: the given ones, or that of the interface with the default route; then the host name.
func findAddresses(ips []net.IP, hostname string) ([]corev1.NodeAddress, error) {
	if len(ips) == 0 {
		if ip := net.ParseIP(hostname); ip != nil {
			ips = []net.IP{ip}
		} else if ip, err := utilnet.ResolveBindAddress(nil); err == nil {
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
	return append(out, corev1.NodeAddress{Type: corev1.NodeHostName, Address: hostname}), nil
}
