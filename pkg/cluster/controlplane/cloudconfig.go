package controlplane

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// WriteCloudConfig writes the file with the networks of load balancers, which our controller manager reads. Kubernetes'
// own has no provider for it, and does not read the file. Each start writes it before the processes begin
// (start.Write).
func WriteCloudConfig(c plan.Config) error {
	return host.WriteFile(c.Layout().CloudConfig(),
		fmt.Appendf(nil, "loadBalancerCIDRs: [%s]\n", quotedList(c.Networks().Balancers())))
}

// quotedList returns a list for a YAML file.
func quotedList(networks []netip.Prefix) string {
	var texts []string
	for _, p := range networks {
		texts = append(texts, strconv.Quote(p.String()))
	}
	return strings.Join(texts, ", ")
}
