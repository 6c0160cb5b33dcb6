package podspec

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
)

// Reference names one object that a pod makes its node read, by its resource. All but cluster trust bundles are in the
// pod's own namespace.
type Reference struct{ Resource, Name string }

// The resources of pod references.
const (
	RefSecrets             = "secrets"
	RefConfigMaps          = "configmaps"
	RefClaims              = "persistentvolumeclaims"
	RefServiceAccounts     = "serviceaccounts"
	RefResourceClaims      = "resourceclaims"
	RefClusterTrustBundles = "clustertrustbundles"
)

// References visits everything that p refers to; an object may come more than once. This is the one place that knows
// where a pod can name an object: the node authorizer opens what is visited to the pod's node, and admission forbids it
// to mirror pods. A field that is left out here would be closed to kubelets; one that is known in two places could be
// forgotten in one.
//
// The name is empty where the object is not named: an optional name that is not set, a token of the pod's own account,
// claims whose name another component chooses.
func References(p *corev1.Pod) iter.Seq[Reference] {
	return func(yield func(Reference) bool) {
		v := &visitor{yield: yield}
		v.pod(p)
	}
}

// visitor yields references until the consumer has had enough.
type visitor struct {
	yield func(Reference) bool
	over  bool
}

// add yields one reference, unless the consumer has had enough.
func (v *visitor) add(resource, name string) {
	v.over = v.over || !v.yield(Reference{resource, name})
}

func (v *visitor) pod(p *corev1.Pod) {
	if name := p.Spec.ServiceAccountName; name != "" {
		v.add(RefServiceAccounts, name)
	}
	for _, s := range p.Spec.ImagePullSecrets {
		v.add(RefSecrets, s.Name)
	}
	for i := range p.Spec.InitContainers {
		v.environment(p.Spec.InitContainers[i].EnvFrom, p.Spec.InitContainers[i].Env)
	}
	for i := range p.Spec.Containers {
		v.environment(p.Spec.Containers[i].EnvFrom, p.Spec.Containers[i].Env)
	}
	for i := range p.Spec.EphemeralContainers {
		v.environment(p.Spec.EphemeralContainers[i].EnvFrom, p.Spec.EphemeralContainers[i].Env)
	}
	for i := range p.Spec.Volumes {
		v.volume(p.Name, &p.Spec.Volumes[i])
	}
	v.resourceClaims(p)
}

func (v *visitor) environment(from []corev1.EnvFromSource, env []corev1.EnvVar) {
	for _, f := range from {
		if f.SecretRef != nil {
			v.add(RefSecrets, f.SecretRef.Name)
		}
		if f.ConfigMapRef != nil {
			v.add(RefConfigMaps, f.ConfigMapRef.Name)
		}
	}
	for _, e := range env {
		if e.ValueFrom == nil {
			continue
		}
		if k := e.ValueFrom.SecretKeyRef; k != nil {
			v.add(RefSecrets, k.Name)
		}
		if k := e.ValueFrom.ConfigMapKeyRef; k != nil {
			v.add(RefConfigMaps, k.Name)
		}
	}
}

// volume visits every source that is set: validation allows one, and does not come before all that ask.
func (v *visitor) volume(pod string, vol *corev1.Volume) {
	for _, name := range volumeSecrets(vol) {
		v.add(RefSecrets, name)
	}
	if vol.ConfigMap != nil {
		v.add(RefConfigMaps, vol.ConfigMap.Name)
	}
	if vol.PersistentVolumeClaim != nil {
		v.add(RefClaims, vol.PersistentVolumeClaim.ClaimName)
	}
	if vol.Ephemeral != nil {
		v.add(RefClaims, pod+"-"+vol.Name)
	}
	if vol.Projected == nil {
		return
	}
	for _, s := range vol.Projected.Sources {
		if s.Secret != nil {
			v.add(RefSecrets, s.Secret.Name)
		}
		if s.ConfigMap != nil {
			v.add(RefConfigMaps, s.ConfigMap.Name)
		}
		if s.ServiceAccountToken != nil || s.PodCertificate != nil {
			v.add(RefServiceAccounts, "")
		}
		if b := s.ClusterTrustBundle; b != nil {
			name := ""
			if b.Name != nil {
				name = *b.Name
			}
			v.add(RefClusterTrustBundles, name)
		}
	}
}

// volumeSecrets are the secrets that a volume's own source names.
func volumeSecrets(vol *corev1.Volume) []string {
	var names []string
	if s := vol.Secret; s != nil {
		names = append(names, s.SecretName)
	}
	if s := vol.AzureFile; s != nil {
		names = append(names, s.SecretName)
	}
	local := func(ref *corev1.LocalObjectReference) {
		if ref != nil {
			names = append(names, ref.Name)
		}
	}
	if s := vol.CSI; s != nil {
		local(s.NodePublishSecretRef)
	}
	if s := vol.ISCSI; s != nil {
		local(s.SecretRef)
	}
	if s := vol.FlexVolume; s != nil {
		local(s.SecretRef)
	}
	if s := vol.CephFS; s != nil {
		local(s.SecretRef)
	}
	if s := vol.Cinder; s != nil {
		local(s.SecretRef)
	}
	if s := vol.RBD; s != nil {
		local(s.SecretRef)
	}
	if s := vol.ScaleIO; s != nil {
		local(s.SecretRef)
	}
	if s := vol.StorageOS; s != nil {
		local(s.SecretRef)
	}
	return names
}

// resourceClaims visits the claims that the spec names, and those that were made from templates and for extended
// resources, which the status names.
func (v *visitor) resourceClaims(p *corev1.Pod) {
	for _, c := range p.Spec.ResourceClaims {
		name := ""
		if c.ResourceClaimName != nil {
			name = *c.ResourceClaimName
		}
		v.add(RefResourceClaims, name)
	}
	for _, c := range p.Status.ResourceClaimStatuses {
		if c.ResourceClaimName != nil {
			v.add(RefResourceClaims, *c.ResourceClaimName)
		}
	}
	if s := p.Status.ExtendedResourceClaimStatus; s != nil {
		v.add(RefResourceClaims, s.ResourceClaimName)
	}
}
