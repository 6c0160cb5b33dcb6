package rows

import (
	"slices"
	"testing"

	"bonsai/api/resources"
)

// How often a kube-apiserver v1.36.3 tells of a label that is wrong and of a finalizer that is no name in a PUT: 3 and
// 1 times where the kind's rules look at the change, 3 and 2 where they look at the whole, 4 and 2 where at both, and 2
// and 1 where at neither.
func TestRecheck(t *testing.T) {
	t.Parallel()
	want := map[resources.Recheck][]string{
		resources.RecheckWhole: {"csinodes", "endpointslices", "flowschemas", "limitranges",
			"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
			"prioritylevelconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
			"validatingwebhookconfigurations", "volumeattachments"},
		resources.RecheckBoth: {"apiservices", "certificatesigningrequests", "clusterrolebindings", "clusterroles",
			"configmaps", "controllerrevisions", "csistoragecapacities", "deviceclasses",
			"endpoints", "ingressclasses", "ingresses", "ipaddresses", "jobs", "namespaces", "nodes",
			"persistentvolumeclaims", "persistentvolumes", "pods", "resourceclaims",
			"resourceclaimtemplates", "rolebindings", "roles", "runtimeclasses", "secrets", "serviceaccounts",
			"storageclasses", "volumeattributesclasses"},
		resources.RecheckNothing: {"poddisruptionbudgets"},
	}
	got := map[resources.Recheck][]string{}
	var plain []string
	for _, r := range All() {
		if r.Recheck != resources.RecheckChange {
			got[r.Recheck] = append(got[r.Recheck], r.Resource)
		}
		if r.PlainFinalizers {
			plain = append(plain, r.Resource)
		}
	}
	for how, names := range want {
		slices.Sort(got[how])
		if !slices.Equal(got[how], names) {
			t.Errorf("%d: %q", how, got[how])
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
