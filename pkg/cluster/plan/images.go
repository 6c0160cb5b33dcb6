package plan

// localImages are the archives in bin/images that the cluster's nodes serve themselves.
func (c Config) LocalImages() []string {
	names := []string{"pause"}
	for _, a := range OptionalAddons {
		if a.HasImage && c.HasAddon(a.Name) {
			names = append(names, a.Name)
		}
	}
	return append(names, "busybox")
}

// DefaultImages are those that a cluster with the add-ons that it has by default needs.
func DefaultImages() []string { return Config{}.LocalImages() }
