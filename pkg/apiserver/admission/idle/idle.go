// Package idle has the admission plug-ins of Kubernetes that have nothing to do: what they look at belongs to APIs that
// Kubernetes does not serve by default, and that are not served here. They are on by default as in Kubernetes, and may
// be enabled and disabled.
package idle

import "bonsai/pkg/apiserver/admission"

// Plugins returns them.
func Plugins() []admission.Plugin {
	return []admission.Plugin{
		{Name: "PodGroupProtection", Idle: "PodGroups (scheduling.k8s.io/v1beta1) are not served"},
	}
}
