package discovery

// priorityOf is the place of a built-in group: the numbers are upstream's group priority minimum and version priority.
func priorityOf(group string) priority {
	for i, name := range builtInOrder() {
		if name == group {
			return priority{group: 18000 - i*10, version: 15}
		}
	}
	return priority{group: 1000, version: 100}
}

// builtInOrder lists upstream's groups as its /apis shows them.
func builtInOrder() []string {
	return []string{
		"", "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "autoscaling",
		"batch", "certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io",
		"admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io", "coordination.k8s.io", "node.k8s.io",
		"discovery.k8s.io", "resource.k8s.io", "flowcontrol.apiserver.k8s.io",
	}
}
