package resources

import "k8s.io/apimachinery/pkg/runtime/schema"

// Status is the subresource that writes only an object's status.
func Status(s Strategy) Subresource {
	return Subresource{Name: "status", Verbs: []string{"get", "patch", "update"}, Strategy: &s}
}

// Scale is the subresource that shows an object's replicas as an autoscaling/v1 Scale.
func Scale() Subresource {
	return Subresource{
		Name:  "scale",
		GVK:   &schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"},
		Verbs: []string{"get", "patch", "update"},
	}
}

// Action is a subresource of another kind than the object's, with the given verbs.
func Action(name string, gvk schema.GroupVersionKind, verbs ...string) Subresource {
	return Subresource{Name: name, GVK: &gvk, Verbs: verbs}
}
