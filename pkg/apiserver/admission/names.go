package admission

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// order returns the names of all plug-ins that Kubernetes has, in the order they run. Those that are not built may be
// disabled, but not enabled.
func order() []string {
	return []string{
		"AlwaysAdmit", "NamespaceAutoProvision", "NamespaceLifecycle", "NamespaceExists",
		"LimitPodHardAntiAffinityTopology",
		"LimitRanger", "ServiceAccount", "NodeRestriction", "TaintNodesByCondition", "AlwaysPullImages",
		"ImagePolicyWebhook",
		"PodSecurity", "PodNodeSelector", "Priority", "DefaultTolerationSeconds", "PodTolerationRestriction",
		"EventRateLimit",
		"ExtendedResourceToleration", "DefaultStorageClass", "StorageObjectInUseProtection", "PodGroupProtection",
		"OwnerReferencesPermissionEnforcement",
		"PersistentVolumeClaimResize", "RuntimeClass", "CertificateApproval", "CertificateSigning",
		"ClusterTrustBundleAttest",
		"CertificateSubjectRestriction", "DefaultIngressClass", "DenyServiceExternalIPs", "PodTopologyLabels",
		"PodGroupWorkloadExists",
		"NodeDeclaredFeatureValidator", "JobValidation", "PodResizeValidator", "MutatingAdmissionPolicy",
		"MutatingAdmissionWebhook",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook", "ResourceQuota", "AlwaysDeny",
	}
}

// defaultOn returns those that are on unless --disable-admission-plugins says otherwise.
func defaultOn() []string {
	return []string{
		"NamespaceLifecycle", "LimitRanger", "ServiceAccount", "TaintNodesByCondition", "PodSecurity", "Priority",
		"DefaultTolerationSeconds", "DefaultStorageClass", "StorageObjectInUseProtection", "PodGroupProtection",
		"PersistentVolumeClaimResize",
		"RuntimeClass", "CertificateApproval", "CertificateSigning", "ClusterTrustBundleAttest",
		"CertificateSubjectRestriction",
		"DefaultIngressClass", "PodTopologyLabels", "PodGroupWorkloadExists", "NodeDeclaredFeatureValidator",
		"JobValidation", "PodResizeValidator",
		"MutatingAdmissionPolicy",
		"MutatingAdmissionWebhook", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook", "ResourceQuota",
	}
}

// Known are the names of all plug-ins that Kubernetes has.
func Known() []string { return order() }

func nameOf(obj runtime.Object) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return m.GetName()
}
