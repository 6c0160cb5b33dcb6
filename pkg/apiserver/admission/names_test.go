package admission

import (
	"slices"
	"strings"
	"testing"
)

// TestNames compares with what kube-apiserver v1.37.2 says in --help: which plug-ins are on by default, in which order,
// and which there are.
func TestNames(t *testing.T) {
	t.Parallel()
	on := strings.Split("NamespaceLifecycle, LimitRanger, ServiceAccount, TaintNodesByCondition, PodSecurity, Priority, DefaultTolerationSeconds, DefaultStorageClass, "+
		"StorageObjectInUseProtection, PodGroupProtection, PersistentVolumeClaimResize, RuntimeClass, CertificateApproval, CertificateSigning, ClusterTrustBundleAttest, "+
		"CertificateSubjectRestriction, DefaultIngressClass, PodTopologyLabels, NodeDeclaredFeatureValidator, PodResizeValidator, "+
		"MutatingAdmissionPolicy, MutatingAdmissionWebhook, ValidatingAdmissionPolicy, ValidatingAdmissionWebhook, ResourceQuota", ", ")
	all := strings.Split("AlwaysAdmit, AlwaysDeny, AlwaysPullImages, CertificateApproval, CertificateSigning, CertificateSubjectRestriction, ClusterTrustBundleAttest, "+
		"DefaultIngressClass, DefaultStorageClass, DefaultTolerationSeconds, DenyServiceExternalIPs, EventRateLimit, ExtendedResourceToleration, ImagePolicyWebhook, "+
		"LimitPodHardAntiAffinityTopology, LimitRanger, MutatingAdmissionPolicy, MutatingAdmissionWebhook, NamespaceAutoProvision, NamespaceExists, "+
		"NamespaceLifecycle, NodeDeclaredFeatureValidator, NodeRestriction, OwnerReferencesPermissionEnforcement, PersistentVolumeClaimResize, PodGroupProtection, "+
		"PodNodeSelector, PodResizeValidator, PodSecurity, PodTolerationRestriction, PodTopologyLabels, Priority, ResourceQuota, RuntimeClass, "+
		"ServiceAccount, StorageObjectInUseProtection, TaintNodesByCondition, ValidatingAdmissionPolicy, ValidatingAdmissionWebhook", ", ")
	if got := defaultOn(); !slices.Equal(got, on) {
		t.Errorf("on by default: %v, want %v", got, on)
	}
	if got := slices.Sorted(slices.Values(order())); !slices.Equal(got, all) {
		t.Errorf("all: %v, want %v", got, all)
	}
	// What is on by default runs in the order of the list above.
	running := slices.DeleteFunc(order(), func(name string) bool { return !slices.Contains(on, name) })
	if !slices.Equal(running, on) {
		t.Errorf("they run as %v, want %v", running, on)
	}
}
