package plan

// LocalImages returns the names of the archives in bin/images that the cluster's nodes serve themselves.
func (c Config) LocalImages() []string {
	names := []string{"pause"}
	for _, a := range OptionalAddons {
		if a.HasImage && c.HasAddon(a.Name) {
			names = append(names, a.Name)
		}
	}
	return append(names, "busybox")
}

// DefaultImages returns the archives that a cluster with the default add-ons needs.
func DefaultImages() []string { return Config{}.LocalImages() }
