package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"bonsai/pkg/cluster/supervise"
)

// canBecome reports whether a running cluster can become the wanted one without a stop: by what the administrator says to the API server, what
// the supervisor publishes, and what this command writes. The registry is in the settings of the nodes' containerd, which are read at a start.
func (c Config) canBecome(wanted Config) bool {
	if len(c.Nodes) != len(wanted.Nodes) {
		return false
	}
	c.Nodes = slices.Clone(c.Nodes)
	for i, n := range wanted.Nodes {
		c.Nodes[i].Labels, c.Nodes[i].Taints = n.Labels, n.Taints
	}
	if c.hasAddon(registryAddon) == wanted.hasAddon(registryAddon) {
		c.AddonChoices = wanted.AddonChoices
	}
	c.PortMappings, c.KubeconfigMode = wanted.PortMappings, wanted.KubeconfigMode
	return reflect.DeepEqual(c, wanted)
}

// changeFrom has the supervisor of the running cluster old go on with c, of which canBecome holds, or changes nothing.
func (c Config) changeFrom(ctx context.Context, home Home, old Config) error {
	if err := c.preflight(ctx); err != nil {
		return err
	}
	m, err := c.machine(home)
	if err != nil {
		return err
	}
	// Whether a port is free shows when the supervisor takes it: it has some of them itself.
	if claims := m.claimed(c); len(claims) > 0 {
		return describeClaims(claims)
	}
	supervisor := c.layout().socket("supervisor")
	if err := errors.Join(c.save(), supervise.Reload(ctx, supervisor)); err != nil {
		return errors.Join(err, old.save(), supervise.Reload(context.WithoutCancel(ctx), supervisor))
	}
	return nil
}

// newImages are the archives of local images that c has and old has not.
func (c Config) newImages(old Config) []string {
	had := old.localImages()
	return slices.DeleteFunc(c.localImages(), func(image string) bool { return slices.Contains(had, image) })
}

// loadOnNodes imports local images on nodes that run, once they are Ready: a node's own registry has those that there were at its start.
func (c Config) loadOnNodes(ctx context.Context, images []string) error {
	if err := c.waitNodes(ctx); err != nil {
		return err
	}
	stores := c.images()
	for _, name := range images {
		if _, err := stores.LoadArchive(ctx, c.image(name), nil); err != nil {
			return fmt.Errorf("%s: %w", c.image(name), err)
		}
	}
	return nil
}

// sayLeftAddons says how to delete the objects of add-ons that old has and c has not: they may hold what the user still wants.
func (c Config) sayLeftAddons(old Config, out io.Writer) error {
	for _, a := range optionalAddons {
		if !old.hasAddon(a.name) || c.hasAddon(a.name) {
			continue
		}
		objects, err := old.readAddon(a.name)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "The add-on %s is off, and its objects are still there. To delete them:\n", a.name)
		named := map[string][]string{} // by namespace
		for _, obj := range objects {
			gvk := obj.GroupVersionKind()
			kind := strings.ToLower(gvk.Kind)
			if gvk.Group != "" {
				kind += "." + gvk.Group
			}
			named[obj.GetNamespace()] = append(named[obj.GetNamespace()], kind+"/"+obj.GetName())
		}
		for _, namespace := range slices.Sorted(maps.Keys(named)) {
			where := ""
			if namespace != "" {
				where = " -n " + namespace
			}
			fmt.Fprintf(out, "  kubectl --context %s%s delete --ignore-not-found %s\n", c.Context(), where, strings.Join(named[namespace], " "))
		}
	}
	return nil
}
