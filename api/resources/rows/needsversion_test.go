package rows

import (
	"slices"
	"testing"
)

// A kube-apiserver v1.36.3 refuses a PUT of these that does not say which version it replaces
// ("metadata.resourceVersion: Invalid value: 0: must be specified for an update").
func TestNeedsVersion(t *testing.T) {
	t.Parallel()
	var got []string
	for _, r := range All() {
		if r.Strategy.NeedsVersion {
			got = append(got, r.Resource)
		}
	}
	slices.Sort(got)
	want := []string{"apiservices", "clustertrustbundles", "csidrivers", "csinodes", "csistoragecapacities",
		"customresourcedefinitions", "devicetaintrules", "leases", "mutatingadmissionpolicies",
		"mutatingadmissionpolicybindings", "mutatingwebhookconfigurations", "podcertificaterequests",
		"poddisruptionbudgets", "runtimeclasses", "storageversionmigrations", "validatingadmissionpolicies",
		"validatingadmissionpolicybindings",
		"validatingwebhookconfigurations", "volumeattachments"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
