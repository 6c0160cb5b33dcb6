package node

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/podspec"
)

// volumes is the graph as the follow.Handler of PersistentVolumes. The follower calls it on its own goroutine; requests
// read the graph under the same mu.
type volumes struct{ g *graph }

// Put implements follow.Handler. Most changes of a volume concern its status only: they leave the graph as it is, and
// wake nobody.
func (h volumes) Put(key string, obj runtime.Object) {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok {
		return
	}
	name := path.Base(key)
	v := boundVolume{}
	if c := pv.Spec.ClaimRef; c != nil {
		v = boundVolume{claim: object{podspec.RefClaims, c.Namespace, c.Name}, secrets: volumeSecrets(pv)}
	}
	h.g.mu.Lock()
	defer h.g.mu.Unlock()
	if old := h.g.volumes[name]; old.claim == v.claim && slices.Equal(old.secrets, v.secrets) {
		return
	}
	h.g.removeVolumeLocked(name)
	if v.claim.name == "" {
		return
	}
	h.g.volumes[name] = v
	for _, s := range v.secrets {
		if h.g.secrets[s] == nil {
			h.g.secrets[s] = map[string]bool{}
		}
		h.g.secrets[s][name] = true
	}
	h.g.tellLocked()
}

// Delete implements follow.Handler.
func (h volumes) Delete(key string) {
	h.g.mu.Lock()
	defer h.g.mu.Unlock()
	h.g.removeVolumeLocked(path.Base(key))
}

// removeVolumeLocked forgets a volume. It also drops the reverse edges, or a node could go on to read the secrets of a
// volume that is gone.
func (g *graph) removeVolumeLocked(name string) {
	for _, s := range g.volumes[name].secrets {
		delete(g.secrets[s], name)
		if len(g.secrets[s]) == 0 {
			delete(g.secrets, s)
		}
	}
	delete(g.volumes, name)
}

// volumeSecrets are the secrets that a node needs to use a volume. One without a namespace is in the claim's.
func volumeSecrets(pv *corev1.PersistentVolume) []object {
	var list []object
	add := func(namespace, name string) {
		if namespace == "" {
			namespace = pv.Spec.ClaimRef.Namespace
		}
		list = append(list, object{podspec.RefSecrets, namespace, name})
	}
	ref := func(r *corev1.SecretReference) {
		if r != nil {
			add(r.Namespace, r.Name)
		}
	}
	switch s := &pv.Spec.PersistentVolumeSource; {
	case s.CSI != nil:
		for _, r := range []*corev1.SecretReference{s.CSI.NodeStageSecretRef, s.CSI.NodePublishSecretRef,
			s.CSI.NodeExpandSecretRef} {
			ref(r)
		}
	case s.ISCSI != nil:
		ref(s.ISCSI.SecretRef)
	case s.FlexVolume != nil:
		ref(s.FlexVolume.SecretRef)
	case s.CephFS != nil:
		ref(s.CephFS.SecretRef)
	case s.Cinder != nil:
		ref(s.Cinder.SecretRef)
	case s.RBD != nil:
		ref(s.RBD.SecretRef)
	case s.ScaleIO != nil:
		ref(s.ScaleIO.SecretRef)
	case s.AzureFile != nil:
		namespace := ""
		if s.AzureFile.SecretNamespace != nil {
			namespace = *s.AzureFile.SecretNamespace
		}
		add(namespace, s.AzureFile.SecretName)
	case s.StorageOS != nil && s.StorageOS.SecretRef != nil:
		add(s.StorageOS.SecretRef.Namespace, s.StorageOS.SecretRef.Name)
	}
	return list
}
