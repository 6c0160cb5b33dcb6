package join

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"

	"k8s.io/client-go/util/cert"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/componentflags"
	"bonsai/pkg/cluster/plan/tracestore"
)

// clusterFacts are the settings of a cluster that the nodes on other machines must share. A machine reads them when it
// joins, and follows them from then on (Follow).
type clusterFacts struct {
	NodeSubnet, PodSubnet, ServiceSubnet netip.Prefix
	FeatureGates                         map[string]bool `json:",omitempty"`
	Mirrors                              []plan.Mirror   `json:",omitempty"`
	OCIRuntime                           string          `json:",omitempty"`
	// AddonChoices decide which local images a node offers, and whether it has the registry as a mirror.
	AddonChoices map[string]bool `json:",omitempty"`
	// ComponentFlags are for the control planes of other machines. Machines that are nodes alone take those of
	// nodeComponents.
	ComponentFlags map[string]map[string]string `json:",omitempty"`
	// Traces is set if the cluster keeps traces, to which the components of all machines send their spans.
	Traces bool `json:",omitempty"`
	// Server is the API server of the first machine, through which the node network is reached, and Endpoint the user's
	// own name or balancer before all API servers.
	Server   netip.AddrPort
	Endpoint string `json:",omitempty"`
	// Authority is the cluster's, in PEM. It changes when it is renewed (pki.Make).
	Authority string
}

// nodeComponents are the components of a node to which a user may give flags.
var nodeComponents = [...]string{"kubelet", "kube-proxy"}

// factsOf returns the facts of a cluster with the authority ca.
func factsOf(c plan.Config, ca []byte) clusterFacts {
	f := clusterFacts{NodeSubnet: c.NodeSubnet, PodSubnet: c.PodSubnet, ServiceSubnet: c.ServiceSubnet,
		FeatureGates: c.FeatureGates, Mirrors: c.Mirrors, OCIRuntime: c.OCIRuntime, AddonChoices: c.AddonChoices,
		ComponentFlags: c.ComponentFlags, Server: c.Advertised().Listens(), Endpoint: c.ControlPlaneEndpoint,
		Traces: c.HasAddon(tracestore.Addon), Authority: string(ca)}
	return f
}

// givenTo returns c, which is a machine's that joins or has joined, with the facts. It checks what the cluster says
// before it becomes routes, rules and files of this machine: networks, names of components and the authority. Unknown
// add-ons are ignored: the cluster's version may know more than this machine's.
func (f clusterFacts) givenTo(c plan.Config) (plan.Config, error) {
	c.NodeSubnet, c.PodSubnet, c.ServiceSubnet = f.NodeSubnet, f.PodSubnet, f.ServiceSubnet
	c.FeatureGates, c.Mirrors, c.OCIRuntime = f.FeatureGates, f.Mirrors, f.OCIRuntime
	// Nodes on other machines need IPv4 and egress (plan.Config.Validate).
	c.IPFamily, c.Egress = plan.IPv4, true
	c.NoTraces = !f.Traces
	c.AddonChoices, c.ComponentFlags = nil, nil
	for name, on := range f.AddonChoices {
		if with, err := c.WithAddon(name, on); err == nil {
			c = with
		}
	}
	taken := nodeComponents[:]
	if c.HasControlPlane() {
		taken = componentflags.Components[:]
	}
	for _, component := range taken {
		if flags := f.ComponentFlags[component]; len(flags) > 0 {
			if c.ComponentFlags == nil {
				c.ComponentFlags = map[string]map[string]string{}
			}
			c.ComponentFlags[component] = maps.Clone(flags)
		}
	}
	if err := errors.Join(c.Networks().Check()...); err != nil || !c.NodeSubnet.IsValid() || !c.PodSubnet.IsValid() ||
		!c.ServiceSubnet.IsValid() {
		return c, errors.Join(errors.New("the cluster says no good networks of itself"), err)
	}
	if f.Server.IsValid() { // older versions do not say it
		joined := *c.Joined
		joined.Gateway = f.Server.Addr()
		c.Joined = &joined
	}
	if c.ControlPlaneEndpoint = f.Endpoint; c.ControlPlaneEndpoint != "" {
		if _, _, err := net.SplitHostPort(c.ControlPlaneEndpoint); err != nil {
			return c, fmt.Errorf("the cluster's control-plane endpoint: %w", err)
		}
	}
	for _, m := range c.Mirrors {
		if err := m.Check(); err != nil {
			return c, fmt.Errorf("the cluster's registry mirror: %w", err)
		}
	}
	if c.OCIRuntime != "" {
		if err := plan.CheckOCIRuntime(c.OCIRuntime); err != nil {
			return c, fmt.Errorf("the cluster's OCI runtime: %w", err)
		}
	}
	return c, nil
}

// writeAuthority writes the authority of the facts for this machine's kubelet, if it is another than the one that is
// there. An older version of the cluster does not say its authority.
func (f clusterFacts) writeAuthority(c plan.Config) error {
	if f.Authority == "" || c.HasControlPlane() { // which has the authority's key, and renews it itself
		return nil
	}
	if _, err := cert.ParseCertsPEM([]byte(f.Authority)); err != nil {
		return fmt.Errorf("read the cluster's authority: %w", err)
	}
	if present, err := os.ReadFile(c.Layout().PKI("ca.crt")); err == nil && string(present) == f.Authority {
		return nil
	}
	return trust(c, []byte(f.Authority))
}
