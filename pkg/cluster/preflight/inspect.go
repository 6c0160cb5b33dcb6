package preflight

// Inspect returns what every rule has to say about a machine on which a cluster is wanted.
func Inspect(m Machine, n Needs) []Finding {
	var found []Finding
	for _, rule := range [...]func(Machine, Needs) []Finding{kernelRelease, kernelFeatures, kernelMarks, controlGroups,
		sysctls, programs, storage, memory, clock, confinement, firewall} {
		found = append(found, rule(m, n)...)
	}
	if m.Account != nil {
		return append(InspectAccount(*m.Account, m.Sysctls, m.Distribution), asRoot(found)...)
	}
	return found
}
