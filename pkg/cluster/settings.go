package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// setting is one thing that a user can choose, by the name and in the notation of its flag or field of the file.
type setting struct{ name, value string }

// settings lists everything that a user can choose, in a fixed order: two configurations have the same names at the same places.
func (c Config) settings() []setting {
	list := []setting{
		{"the cluster's name", c.Name},
		{"the data directory", c.DataDir},
		{"the directory of the programs", c.BinDir},
		{"nodes", strings.Join(c.nodeNames(), " ")},
	}
	for _, n := range nodesUpTo(maxNodes) {
		if i := slices.IndexFunc(c.Nodes, func(other Node) bool { return other.Number == n.Number }); i >= 0 {
			n = c.Nodes[i]
		}
		list = append(list,
			setting{"labels of " + n.Name(), pairs(n.Labels)},
			setting{"taints of " + n.Name(), strings.Join(n.Taints, " ")},
			setting{"mounts of " + n.Name(), words(n.Mounts)})
	}
	mode := ""
	if c.KubeconfigMode != 0 {
		mode = fmt.Sprintf("%04o", uint32(c.KubeconfigMode))
	}
	var advertised string
	if c.AdvertiseAddress.IsValid() {
		advertised = c.AdvertiseAddress.String()
	}
	flags := map[string]string{}
	for component, of := range c.ComponentFlags {
		for name, value := range of {
			flags[component+" --"+name] = value
		}
	}
	list = append(list,
		setting{"control planes", fmt.Sprint(c.ControlPlanes)},
		setting{"egress", fmt.Sprint(c.Egress)},
		setting{"registry mirrors", words(c.Mirrors)},
		setting{"OCI runtime", c.OCIRuntime},
		setting{"advertise address", advertised},
		setting{"API port", fmt.Sprint(c.Ports.API)},
		setting{"ports of the control plane", fmt.Sprint(c.Ports.onLoopback()[1:])},
		setting{"published ports", words(c.PortMappings)},
		setting{"IP family", cmp.Or(string(c.IPFamily), "ipv4")},
		setting{"node subnet", c.NodeSubnet.String()},
		setting{"pod subnet", c.PodSubnet.String()},
		setting{"service subnet", c.ServiceSubnet.String()},
		setting{"feature gates", pairs(c.FeatureGates)},
		setting{"component flags", pairs(flags)})
	for _, a := range optionalAddons {
		value := "off"
		if c.hasAddon(a.name) {
			value = "on"
		}
		list = append(list, setting{"add-on " + a.name, value})
	}
	return append(list, setting{"mode of the kubeconfig", mode})
}

// checkChange returns an error if a cluster that exists cannot become the wanted one: at all, or while it runs.
// It says how to get there without losing what the cluster holds.
func (c Config) checkChange(wanted Config, running bool) error {
	fixed := func(name, is, want string) error {
		return fmt.Errorf("the cluster in %s cannot change its %s: %s now, %s wanted. Choose another --name for a second cluster; "+
			"bonsai down --data-dir %s deletes this one with everything in it", c.DataDir, name, is, want, c.DataDir)
	}
	switch {
	case c.Name != wanted.Name:
		return fixed("name", c.Name, wanted.Name)
	case c.ControlPlanes != wanted.ControlPlanes:
		return fixed("number of control planes", strconv.Itoa(c.ControlPlanes), strconv.Itoa(wanted.ControlPlanes))
	case !slices.Equal(c.subnets(), wanted.subnets()) || c.IPFamily != wanted.IPFamily:
		return fixed("networks", c.networking(), wanted.networking())
	case !running || c.canBecome(wanted):
		return nil
	}
	return fmt.Errorf("the cluster in %s runs with other settings, and nothing changed. %s. To change them and keep everything in the "+
		"cluster: bonsai stop --data-dir %s, then the same bonsai up again (bonsai node add and bonsai node remove change nodes at once)",
		c.DataDir, difference(c, wanted), c.DataDir)
}

// networking has the IP family and the subnets, for a message.
func (c Config) networking() string {
	return fmt.Sprintf("%s with nodes %s, pods %s, Services %s",
		cmp.Or(string(c.IPFamily), "ipv4"), c.NodeSubnet, c.PodSubnet, c.ServiceSubnet)
}

// difference says which settings of a running cluster would have to change for it to be as wanted.
func difference(is, wanted Config) string {
	var changes []string
	want := wanted.settings()
	for i, s := range is.settings() {
		if s != want[i] {
			changes = append(changes, fmt.Sprintf("%s: %s now, %s wanted", s.name, orNone(s.value), orNone(want[i].value)))
		}
	}
	return strings.Join(changes, "; ")
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

func (c Config) nodeNames() []string {
	var names []string
	for _, n := range c.Nodes {
		names = append(names, n.Name())
	}
	return names
}

// pairs writes a map as key=value, in the order of the keys.
func pairs[V any](m map[string]V) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%s=%v", key, m[key]))
	}
	return strings.Join(all, " ")
}

func words[T fmt.Stringer](list []T) string {
	var all []string
	for _, one := range list {
		all = append(all, one.String())
	}
	return strings.Join(all, " ")
}

// String writes a mount as docker run does: HOST:NODE, with :ro where nodes cannot write.
func (m Mount) String() string {
	text := m.HostPath + ":" + m.NodePath
	if m.ReadOnly {
		text += ":ro"
	}
	return text
}

// String writes a mirror as REGISTRY=URL.
func (m Mirror) String() string { return m.Registry + "=" + m.URL }

// String writes a mapping as --port takes it.
func (m PortMapping) String() string {
	text := fmt.Sprintf("%s:%d", m.listens(), m.NodePort)
	if m.UDP {
		text += "/udp"
	}
	return text
}
