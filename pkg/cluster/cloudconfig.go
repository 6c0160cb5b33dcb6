package cluster

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// writeCloudConfig tells the controller manager of the balancers' ranges. Kubernetes' own has no provider for it, and
// does not read the file.
func writeCloudConfig(c plan.Config) error {
	return host.WriteFile(c.Layout().CloudConfig(),
		fmt.Appendf(nil, "loadBalancerCIDRs: [%s]\n", quotedList(c.Networks().Balancers())))
}

// quotedList is a list of YAML.
func quotedList(networks []netip.Prefix) string {
	var texts []string
	for _, p := range networks {
		texts = append(texts, strconv.Quote(p.String()))
	}
	return strings.Join(texts, ", ")
}
