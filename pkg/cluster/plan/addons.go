package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// dnsAddon is the cluster's DNS among the optional add-ons.
const DNSAddon = "coredns"

// storageAddon is the default StorageClass.
const storageAddon = "local-path"

// optionalAddon is one that a cluster can be without.
type OptionalAddon struct {
	Name      string // its manifest's and, if it has one, its image's
	ByDefault bool
	HasImage  bool
}

// optionalAddons can be switched; the others give the components their rights.
var OptionalAddons = [...]OptionalAddon{
	{Name: DNSAddon, ByDefault: true, HasImage: true},
	{Name: storageAddon, ByDefault: true},
	{Name: "metrics-server", HasImage: true},
	{Name: registryAddon, HasImage: true},
	{Name: "traefik", HasImage: true},
}

// hasAddon reports whether the cluster gets an add-on: one that cannot be switched, or is on by what was said or by
// default.
func (c Config) HasAddon(name string) bool {
	if name == joinAddon {
		return c.IsJoinable()
	}
	if on, said := c.AddonChoices[name]; said {
		return on
	}
	i := slices.IndexFunc(OptionalAddons[:], func(a OptionalAddon) bool { return a.Name == name })
	return i < 0 || OptionalAddons[i].ByDefault
}

// WithAddon returns c with an add-on switched on or off; an error if there is none of that name.
func (c Config) WithAddon(name string, on bool) (Config, error) {
	i := slices.IndexFunc(OptionalAddons[:], func(a OptionalAddon) bool { return a.Name == name })
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

// ParseAddons reads add-ons as a user lists them: NAME or NAME=true to switch one on, NAME=false to switch it off.
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
