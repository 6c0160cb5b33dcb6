package rows

import (
	"slices"
	"testing"
)

// TestCountsGeneration: the kinds that count generations are those of a kube-apiserver v1.37.2, which was asked to
// create an object of each kind with generation 7: these had 1, all others kept 7. CSIDrivers are left out: there they
// keep 7, and here they start with 1.
func TestCountsGeneration(t *testing.T) {
	t.Parallel()
	want := []string{
		"admissionregistration.k8s.io/mutatingadmissionpolicies",
		"admissionregistration.k8s.io/mutatingadmissionpolicybindings",
		"admissionregistration.k8s.io/mutatingwebhookconfigurations",
		"admissionregistration.k8s.io/validatingadmissionpolicies",
		"admissionregistration.k8s.io/validatingadmissionpolicybindings",
		"admissionregistration.k8s.io/validatingwebhookconfigurations",
		"apiextensions.k8s.io/customresourcedefinitions",
		"apps/daemonsets", "apps/deployments", "apps/replicasets", "apps/statefulsets",
		"autoscaling/horizontalpodautoscalers",
		"batch/cronjobs", "batch/jobs",
		"core/pods", "core/podtemplates", "core/replicationcontrollers",
		"discovery.k8s.io/endpointslices",
		"flowcontrol.apiserver.k8s.io/flowschemas", "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
		"networking.k8s.io/ingressclasses", "networking.k8s.io/ingresses", "networking.k8s.io/networkpolicies",
		"policy/poddisruptionbudgets",
		"resource.k8s.io/deviceclasses", "resource.k8s.io/devicetaintrules", "resource.k8s.io/resourceslices",
		"scheduling.k8s.io/priorityclasses",
	}
	var got []string
	for _, row := range All() {
		if row.Strategy.SpecChanged == nil || row.Resource == "csidrivers" {
			continue
		}
		group := row.GVK.Group
		if group == "" {
			group = "core"
		}
		got = append(got, group+"/"+row.Resource)
	}
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}
