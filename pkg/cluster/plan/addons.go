package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"bonsai/pkg/cluster/plan/tracestore"
)

// DNSAddon is the add-on of the cluster's DNS.
const DNSAddon = "coredns"

// storageAddon is the add-on of the default StorageClass.
const storageAddon = "local-path"

// optionalAddon is an add-on that a cluster can do without.
type optionalAddon struct {
	Name      string // its manifest's and, if it has one, its image's
	ByDefault bool
	HasImage  bool
}

// OptionalAddons are the add-ons that a user can switch on and off. The others give the components their permissions,
// and so every cluster has them.
var OptionalAddons = [...]optionalAddon{
	{Name: DNSAddon, ByDefault: true, HasImage: true},
	{Name: storageAddon, ByDefault: true},
	{Name: "metrics-server", HasImage: true},
	{Name: registryAddon, HasImage: true},
	{Name: "traefik", HasImage: true},
}

// HasAddon reports whether the cluster has an add-on. The add-on for joining follows from the advertised address, that
// for traces from NoTraces; any other that is not optional is always on.
func (c Config) HasAddon(name string) bool {
	switch name {
	case joinAddon:
		return c.IsJoinable()
	case tracestore.Addon:
		return hasTraces(c)
	}
	if on, said := c.AddonChoices[name]; said {
		return on
	}
	i := slices.IndexFunc(OptionalAddons[:], func(a optionalAddon) bool { return a.Name == name })
	return i < 0 || OptionalAddons[i].ByDefault
}

// WithAddon returns c with an optional add-on switched on or off; it is an error if there is none of that name.
// AddonChoices keeps only what differs from the default, so that a choice of the default equals no choice. It is a new
// map, so other copies of c do not change.
func (c Config) WithAddon(name string, on bool) (Config, error) {
	i := slices.IndexFunc(OptionalAddons[:], func(a optionalAddon) bool { return a.Name == name })
	if i < 0 {
		var names []string
		for _, a := range OptionalAddons {
			names = append(names, a.Name)
		}
		return c, fmt.Errorf("there is no such add-on (%s)", strings.Join(names, ", "))
	}
	c.AddonChoices = maps.Clone(c.AddonChoices)
	if delete(c.AddonChoices, name); on != OptionalAddons[i].ByDefault {
		if c.AddonChoices == nil {
			c.AddonChoices = map[string]bool{}
		}
		c.AddonChoices[name] = on
	}
	if len(c.AddonChoices) == 0 {
		c.AddonChoices = nil
	}
	return c, nil
}

// ParseAddons reads add-ons as a user lists them: NAME or NAME=true switches one on, NAME=false off.
func (c Config) ParseAddons(list []string) (Config, error) {
	for _, text := range list {
		name, value, given := strings.Cut(text, "=")
		on := true
		var err error
		if given {
			if on, err = strconv.ParseBool(value); err != nil {
				return c, fmt.Errorf("%s must be true or false, not %q", name, value)
			}
		}
		if c, err = c.WithAddon(name, on); err != nil {
			return c, fmt.Errorf("%s: %w", name, err)
		}
	}
	return c, nil
}
