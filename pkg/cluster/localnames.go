package cluster

// localImages are the archives in bin/images that the cluster's nodes serve themselves.
func (c Config) localImages() []string {
	names := []string{"pause"}
	for _, a := range optionalAddons {
		if a.image && c.hasAddon(a.name) {
			names = append(names, a.name)
		}
	}
	return append(names, "busybox")
}

// DefaultImages are those that a cluster with the add-ons that it has by default needs.
func DefaultImages() []string { return Config{}.localImages() }
