package rows

import (
	"slices"
	"testing"
)

// Finalizers of these kinds may lack a domain, as in a kube-apiserver v1.36.3.
func TestPlainFinalizers(t *testing.T) {
	t.Parallel()
	var plain []string
	for _, r := range All() {
		if r.PlainFinalizers {
			plain = append(plain, r.Resource)
		}
	}
	slices.Sort(plain)
	if want := []string{"apiservices", "customresourcedefinitions", "leases", "mutatingadmissionpolicies",
		"mutatingadmissionpolicybindings", "mutatingwebhookconfigurations", "poddisruptionbudgets",
		"runtimeclasses", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
		"validatingwebhookconfigurations"}; !slices.Equal(plain, want) {
		t.Errorf("plain finalizers: %q", plain)
	}
}
