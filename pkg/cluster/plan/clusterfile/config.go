package clusterfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/componentflags"
	"bonsai/pkg/cluster/plan/programs"
	"bonsai/pkg/featuregates"
)

// config returns c with what the file says, and adds to p what is wrong.
func (f file) config(c plan.Config, p *problems) plan.Config {
	if f.APIVersion != fileVersion {
		p.add(fmt.Sprintf("must be %s, not %q", fileVersion, f.APIVersion), "apiVersion")
	}
	if f.Kind != fileKind {
		p.add(fmt.Sprintf("must be %s, not %q", fileKind, f.Kind), "kind")
	}
	if f.Name != "" {
		p.check(plan.CheckName(f.Name), "name")
		c.Name = f.Name
	}
	c.ControlPlanes = max(1, f.ControlPlanes)
	if f.ControlPlanes < 0 || f.ControlPlanes > 1 && f.ControlPlanes != plan.MaxControlPlanes {
		p.add(fmt.Sprintf("must be 1 or %d, not %d", plan.MaxControlPlanes, f.ControlPlanes), "controlPlanes")
	}
	if len(f.Nodes) > plan.MaxNodes {
		p.add(fmt.Sprintf("there may be %d nodes, not %d", plan.MaxNodes, len(f.Nodes)), "nodes")
	}
	c.Nodes = plan.NodesUpTo(max(1, len(f.Nodes)))
	for i, n := range f.Nodes {
		n.fill(&c.Nodes[i], p, i)
	}
	f.Networking.fill(&c, p)
	c.PortMappings = nil
	for i, m := range f.PortMappings {
		mapping := plan.PortMapping{HostPort: m.HostPort, NodePort: m.NodePort}
		var err error
		if mapping.Address, err = netip.ParseAddr(cmp.Or(m.ListenAddress, plan.Loopback)); err == nil {
			err = errors.Join(mapping.Check(), mapping.SetProtocol(cmp.Or(m.Protocol, "TCP")))
		}
		p.check(err, "portMappings", i)
		c.PortMappings = append(c.PortMappings, mapping)
	}
	if f.EncryptSecrets != nil { // left out, an existing cluster stays as it is
		c.EncryptSecrets = *f.EncryptSecrets
	}
	c.NoTraces = f.Traces != nil && !*f.Traces
	c.Mirrors = nil
	for i, m := range f.RegistryMirrors {
		c.Mirrors = append(c.Mirrors, plan.Mirror(m))
		p.check(plan.Mirror(m).Check(), "registryMirrors", i)
	}
	c.OCIRuntime = ""
	if f.OCIRuntime != "" && f.OCIRuntime != plan.DefaultOCIRuntime {
		p.check(plan.CheckOCIRuntime(f.OCIRuntime), "ociRuntime")
		c.OCIRuntime = f.OCIRuntime
	}
	c.Programs = ""
	if f.Programs != "" && f.Programs != programs.Bundled {
		p.check(programs.Check(f.Programs), "programs")
		c.Programs = f.Programs
	}
	c.FeatureGates, c.ComponentFlags = f.FeatureGates, f.ComponentFlags
	checkGates(f.FeatureGates, p)
	for component, flags := range f.ComponentFlags {
		if !slices.Contains(componentflags.Components[:], component) {
			p.add(fmt.Sprintf("there is no such component (%s)", strings.Join(componentflags.Components[:], ", ")),
				"componentFlags",
				component)
		}
		for flag := range flags {
			if flag == "" || strings.HasPrefix(flag, "-") || strings.ContainsAny(flag, "= ") {
				p.add("must be a flag without its dashes", "componentFlags", component, flag)
			}
		}
	}
	c.AddonChoices = nil
	for _, name := range slices.Sorted(maps.Keys(f.Addons)) {
		var err error
		c, err = c.WithAddon(name, f.Addons[name])
		p.check(err, "addons", name)
	}
	c.KubeconfigMode = 0
	if f.KubeconfigMode != "" {
		var err error
		c.KubeconfigMode, err = ParseMode(f.KubeconfigMode)
		p.check(err, "kubeconfigMode")
	}
	return c
}

// ParseMode reads the mode of a kubeconfig in octal, for the flag, too. Which modes there may be is checked with the
// rest of the configuration.
func ParseMode(text string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no octal mode, as 0640", text)
	}
	return fs.FileMode(mode), nil
}

// checkGates finds the gates that the components would refuse, each with its line. If there are none, it looks for
// gates that depend on others.
func checkGates(gates map[string]bool, p *problems) {
	before := len(p.errs)
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		p.check(featuregates.CheckOne(name, gates[name]), "featureGates", name)
	}
	if len(p.errs) == before {
		p.check(featuregates.Check(gates), "featureGates")
	}
}

// fill sets the fields of node i.
func (f fileNode) fill(n *plan.Node, p *problems, i int) {
	n.Labels = f.Labels
	for key, value := range f.Labels {
		if wrong := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(wrong) > 0 {
			p.add(strings.Join(wrong, "; "), "nodes", i, "labels", key)
		}
	}
	for j, t := range f.Taints {
		if wrong := append(validation.IsQualifiedName(t.Key),
			validation.IsValidLabelValue(t.Value)...); len(wrong) > 0 {
			p.add(strings.Join(wrong, "; "), "nodes", i, "taints", j)
		}
		if !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, t.Effect) {
			p.add(fmt.Sprintf("must be NoSchedule, PreferNoSchedule or NoExecute, not %q", t.Effect), "nodes", i,
				"taints", j, "effect")
		}
		n.Taints = append(n.Taints, t.Key+"="+t.Value+":"+t.Effect)
	}
	for j, m := range f.Mounts {
		p.check(plan.Mount(m).Check(), "nodes", i, "mounts", j)
		n.Mounts = append(n.Mounts, plan.Mount(m))
	}
}

// fill sets the networks of c. A subnet that is left out stays c's: an existing cluster cannot change it.
func (f fileNetworking) fill(c *plan.Config, p *problems) {
	c.IPFamily = plan.IPv4
	if f.IPFamily != "" {
		var err error
		c.IPFamily, err = plan.ParseIPFamily(f.IPFamily)
		p.check(err, "networking", "ipFamily")
	}
	for _, s := range []struct {
		field, text string
		to          *netip.Prefix
	}{{"nodeSubnet", f.NodeSubnet, &c.NodeSubnet}, {"podSubnet", f.PodSubnet, &c.PodSubnet},
		{"serviceSubnet", f.ServiceSubnet, &c.ServiceSubnet}} {
		if s.text == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(s.text)
		if err != nil {
			p.add(fmt.Sprintf("must be a network as 10.77.0.0/24, not %q", s.text), "networking", s.field)
			continue
		}
		*s.to = prefix
	}
	for _, err := range c.Networks().Check() {
		p.check(err, "networking")
	}
	if f.APIPort < 0 || f.APIPort > 65535 {
		p.add(fmt.Sprintf("must be between 1 and 65535, not %d", f.APIPort), "networking", "apiPort")
	} else if f.APIPort > 0 {
		c.Ports.API = f.APIPort
	}
	c.Egress = f.Egress == nil || *f.Egress
	c.AdvertiseAddress = netip.Addr{}
	if f.Advertise != "" {
		var err error
		c.AdvertiseAddress, err = netip.ParseAddr(f.Advertise)
		p.check(err, "networking", "advertiseAddress")
	}
	c.ControlPlaneEndpoint = f.Endpoint
}
