package plan

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"bonsai/pkg/cluster/plan/programs"
)

// setting is one choice of a user, with the name that messages have for it, in the notation of its flag or field of the
// file.
type setting struct{ name, value string }

// settings lists everything that a user can choose, in a fixed order: the lists of two configurations have the same
// names at the same places.
func settings(c Config) []setting {
	list := []setting{
		{"the cluster's name", c.Name},
		{"the data directory", c.DataDir},
		{"the directory of the programs", c.BinDir},
		{"nodes", strings.Join(c.NodeNames(), " ")},
	}
	for _, n := range NodesUpTo(MaxNodes) {
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
		setting{"encryption of Secrets", fmt.Sprint(c.EncryptSecrets)},
		setting{"traces", fmt.Sprint(!c.NoTraces)},
		setting{"registry mirrors", words(c.Mirrors)},
		setting{"OCI runtime", c.OCIRuntime},
		setting{"programs", cmp.Or(c.Programs, programs.Bundled)},
		setting{"advertise address", advertised},
		setting{"control-plane endpoint", c.ControlPlaneEndpoint},
		setting{"API port", fmt.Sprint(c.Ports.API)},
		setting{"ports of the control plane", fmt.Sprint(c.Ports.onLoopback()[1:])},
		setting{"published ports", words(c.PortMappings)},
		setting{"IP family", cmp.Or(string(c.IPFamily), "ipv4")},
		setting{"node subnet", c.NodeSubnet.String()},
		setting{"pod subnet", c.PodSubnet.String()},
		setting{"service subnet", c.ServiceSubnet.String()},
		setting{"feature gates", pairs(c.FeatureGates)},
		setting{"component flags", pairs(flags)})
	for _, a := range OptionalAddons {
		value := "off"
		if c.HasAddon(a.Name) {
			value = "on"
		}
		list = append(list, setting{"add-on " + a.Name, value})
	}
	return append(list, setting{"mode of the kubeconfig", mode})
}

// CheckChange returns an error if an existing cluster cannot become the wanted one, at all or while it runs. The error
// says how to get there without losing what the cluster holds.
func (c Config) CheckChange(wanted Config, running bool) error {
	fixed := func(name, is, want string) error {
		return fmt.Errorf("the cluster in %s cannot change its %s: %s now, %s wanted. Choose another --name for a second cluster; "+
			"bonsai down --data-dir %s deletes this one with everything in it", c.DataDir, name, is, want, c.DataDir)
	}
	lost := slices.DeleteFunc(c.NodeNames(), func(name string) bool {
		return slices.Contains(wanted.NodeNames(), name)
	})
	switch {
	case c.Name != wanted.Name:
		return fixed("name", c.Name, wanted.Name)
	case c.ControlPlanes != wanted.ControlPlanes:
		return fixed("number of control planes", strconv.Itoa(c.ControlPlanes), strconv.Itoa(wanted.ControlPlanes))
	case !slices.Equal(c.Networks().list(), wanted.Networks().list()) || c.IPFamily != wanted.IPFamily:
		return fixed("networks", networking(c), networking(wanted))
	case !c.EncryptSecrets && wanted.EncryptSecrets:
		return fmt.Errorf("up does not encrypt the Secrets of an existing cluster: start the cluster in %s as it is, then run bonsai --data-dir %[1]s encryption enable",
			c.DataDir)
	case c.EncryptSecrets && !wanted.EncryptSecrets:
		return fmt.Errorf("the Secrets of the cluster in %s are encrypted, and stay so: --encrypt-secrets=false is for a new cluster",
			c.DataDir)
	case c.Extensible && c.AdvertiseAddress != wanted.AdvertiseAddress:
		return fmt.Errorf("the cluster in %s has, or had, control planes on other machines, which find this one at %s: the advertise address cannot change",
			c.DataDir, c.AdvertiseAddress)
	case len(lost) > 0: // what is on them would stay on the disk, and their Nodes in the API
		first := ""
		if !running {
			first = fmt.Sprintf(" (after bonsai --data-dir %s start)", c.DataDir)
		}
		return fmt.Errorf("the cluster in %s has the nodes %s, and up removes none. bonsai --data-dir %[1]s node remove NODE removes a node with everything on it%[3]s; "+
			"kubectl drain NODE before moves its pods", c.DataDir, strings.Join(lost, " "), first)
	case !running || c.CanBecome(wanted):
		return nil
	}
	return fmt.Errorf("the cluster in %s runs with other settings, and nothing changed. %s. To change them and keep everything in the "+
		"cluster: bonsai stop --data-dir %s, then the same bonsai up again (bonsai node add and bonsai node remove change nodes at once)",
		c.DataDir, Difference(c, wanted), c.DataDir)
}

// networking has the IP family and the subnets, for a message.
func networking(c Config) string {
	return fmt.Sprintf("%s with nodes %s, pods %s, Services %s",
		cmp.Or(string(c.IPFamily), "ipv4"), c.NodeSubnet, c.PodSubnet, c.ServiceSubnet)
}

// Difference lists the settings that would have to change for a running cluster to be as wanted, without secrets: logs
// and messages have it.
func Difference(is, wanted Config) string {
	var changes []string
	want := settings(wanted)
	shownIs, shownWant := settings(WithoutSecrets(is)), settings(WithoutSecrets(wanted))
	for i, s := range settings(is) {
		switch {
		case s == want[i]:
		case shownIs[i] == shownWant[i]:
			changes = append(changes, s.name+": another secret wanted")
		default:
			changes = append(changes, fmt.Sprintf("%s: %s now, %s wanted", s.name, orNone(shownIs[i].value),
				orNone(shownWant[i].value)))
		}
	}
	return strings.Join(changes, "; ")
}

// orNone returns the value as a message shows it.
func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

// pairs writes a map as key=value, in the order of the keys.
func pairs[V any](m map[string]V) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%s=%v", key, m[key]))
	}
	return strings.Join(all, " ")
}

// words writes a list with spaces, in its order.
func words[T fmt.Stringer](list []T) string {
	var all []string
	for _, one := range list {
		all = append(all, one.String())
	}
	return strings.Join(all, " ")
}

// String writes a mapping as --port takes it.
func (m PortMapping) String() string {
	text := fmt.Sprintf("%s:%d", m.Listens(), m.NodePort)
	if m.UDP {
		text += "/udp"
	}
	return text
}

// CanBecome reports whether a running cluster can become the wanted one without a stop. That is true for settings that
// the administrator tells the API server, that the supervisor publishes, that running nodes take (node.Keeper), or that
// this command writes.
func (c Config) CanBecome(wanted Config) bool {
	if len(c.Nodes) != len(wanted.Nodes) {
		return false
	}
	c.Nodes = slices.Clone(c.Nodes)
	for i, n := range wanted.Nodes {
		c.Nodes[i].Labels, c.Nodes[i].Taints = n.Labels, n.Taints
	}
	c.AddonChoices = wanted.AddonChoices
	c.PortMappings, c.KubeconfigMode = wanted.PortMappings, wanted.KubeconfigMode
	return reflect.DeepEqual(c, wanted)
}
