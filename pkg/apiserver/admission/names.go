package admission

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// Whether a plug-in of Kubernetes runs without being enabled.
const on, off = true, false

// known is a plug-in that Kubernetes has.
type known struct {
	name      string
	byDefault bool
}

// kubernetes returns all plug-ins that Kubernetes has, in the order they run, and which of them run unless
// --disable-admission-plugins names them.
func kubernetes() []known {
	return []known{
		{"AlwaysAdmit", off},
		{"NamespaceAutoProvision", off},
		{"NamespaceLifecycle", on},
		{"NamespaceExists", off},
		{"LimitPodHardAntiAffinityTopology", off},
		{"LimitRanger", on},
		{"ServiceAccount", on},
		{"NodeRestriction", off},
		{"TaintNodesByCondition", on},
		{"AlwaysPullImages", off},
		{"ImagePolicyWebhook", off},
		{"PodSecurity", on},
		{"PodNodeSelector", off},
		{"Priority", on},
		{"DefaultTolerationSeconds", on},
		{"PodTolerationRestriction", off},
		{"EventRateLimit", off},
		{"ExtendedResourceToleration", off},
		{"DefaultStorageClass", on},
		{"StorageObjectInUseProtection", on},
		{"PodGroupProtection", on},
		{"OwnerReferencesPermissionEnforcement", off},
		{"PersistentVolumeClaimResize", on},
		{"RuntimeClass", on},
		{"CertificateApproval", on},
		{"CertificateSigning", on},
		{"ClusterTrustBundleAttest", on},
		{"CertificateSubjectRestriction", on},
		{"DefaultIngressClass", on},
		{"DenyServiceExternalIPs", off},
		{"PodTopologyLabels", on},
		{"NodeDeclaredFeatureValidator", on},
		{"PodResizeValidator", on},
		{"MutatingAdmissionPolicy", on},
		{"MutatingAdmissionWebhook", on},
		{"ValidatingAdmissionPolicy", on},
		{"ValidatingAdmissionWebhook", on},
		{"ResourceQuota", on},
		{"AlwaysDeny", off},
	}
}

// order returns the names of Kubernetes' plug-ins in the order they run.
func order() []string {
	var names []string
	for _, k := range kubernetes() {
		names = append(names, k.name)
	}
	return names
}

// defaultOn returns those that are on unless --disable-admission-plugins says otherwise.
func defaultOn() []string {
	var names []string
	for _, k := range kubernetes() {
		if k.byDefault {
			names = append(names, k.name)
		}
	}
	return names
}

// Known are the names of all plug-ins that Kubernetes has.
func Known() []string { return order() }

func nameOf(obj runtime.Object) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return cmp.Or(m.GetName(), m.GetGenerateName()) // the name may not be generated yet
}
