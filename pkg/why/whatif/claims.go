package whatif

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/storage/ephemeral"
	volumehelper "k8s.io/component-helpers/storage/volume"

	"bonsai/pkg/why"
)

// noProvisioner is the provisioner of classes whose volumes somebody makes by hand.
const noProvisioner = "kubernetes.io/no-provisioner"

// madeClaims makes the claims of a new pod that controllers would: those of a StatefulSet's templates, which the pod
// has as volumes then, and those of its ephemeral volumes. It returns why one would not be made, "" if all would.
func (f *future) madeClaims(ctx context.Context, pod *corev1.Pod, templates []corev1.PersistentVolumeClaim) string {
	for i := range templates {
		claim := templates[i].DeepCopy()
		volume := claim.Name
		claim.Namespace, claim.Name = pod.Namespace, fmt.Sprintf("%s-%s", volume, pod.Name)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}})
		if message := f.makeClaim(ctx, claim); message != "" {
			return fmt.Sprintf("its claim %s cannot be made: %s", claim.Name, message)
		}
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Ephemeral == nil || v.Ephemeral.VolumeClaimTemplate == nil {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{Spec: *v.Ephemeral.VolumeClaimTemplate.Spec.DeepCopy(),
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: ephemeral.VolumeClaimName(pod, v),
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod,
					corev1.SchemeGroupVersion.WithKind("Pod"))}}}
		if message := f.makeClaim(ctx, claim); message != "" {
			return fmt.Sprintf("its claim %s cannot be made: %s", claim.Name, message)
		}
	}
	return ""
}

// makeClaim makes a claim that is not there yet.
func (f *future) makeClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) string {
	old, known := why.Get[corev1.PersistentVolumeClaim](ctx, f.World, claim.Namespace, claim.Name)
	if old != nil || !known {
		return ""
	}
	if message := f.admission.Claim(ctx, claim); message != "" {
		return message
	}
	claims := corev1.Resource("persistentvolumeclaims")
	if message := f.ledger.charge(ctx, claim.Namespace, claims, claim, nil); message != "" {
		return message
	}
	return f.bind(ctx, claim)
}

// bind puts a new claim into the world, with the volume that its controller would give it. A class that waits for a pod
// leaves the choice to the scheduler; a volume that would be made is taken to be within reach of all nodes.
func (f *future) bind(ctx context.Context, claim *corev1.PersistentVolumeClaim) string {
	claim.Status.Phase = corev1.ClaimPending
	class, _ := why.Get[storagev1.StorageClass](ctx, f.World, "", volumehelper.GetPersistentVolumeClaimClass(claim))
	waits := class != nil && class.VolumeBindingMode != nil &&
		*class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	var volume *corev1.PersistentVolume
	if claim.Spec.VolumeName == "" && !waits {
		volumes, _ := why.List[corev1.PersistentVolume](ctx, f.World, "", nil)
		found, err := volumehelper.FindMatchingVolume(claim, volumes, nil, nil, false, true)
		switch {
		case err != nil:
			return fmt.Sprintf("the claim's rules cannot be read: %v", err)
		case found != nil:
			volume = found.DeepCopy()
		case class != nil && class.Provisioner != noProvisioner:
			f.Note(fmt.Sprintf("Where the volumes that %s would make can be reached is not known: they are taken to be in "+
				"reach of all nodes.", class.Provisioner))
			volume = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("new-%s-%s", claim.Namespace, claim.Name)},
				Spec: corev1.PersistentVolumeSpec{StorageClassName: class.Name, AccessModes: claim.Spec.AccessModes,
					VolumeMode: claim.Spec.VolumeMode, Capacity: claim.Spec.Resources.Requests}}
		}
	}
	if volume != nil {
		volume.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace,
			Name: claim.Name, UID: claim.UID}
		volume.Status.Phase = corev1.VolumeBound
		claim.Spec.VolumeName, claim.Status.Phase = volume.Name, corev1.ClaimBound
		annotations := map[string]string{volumehelper.AnnBindCompleted: "yes"}
		maps.Copy(annotations, claim.Annotations)
		claim.Annotations = annotations
		supposed(f.World, volume, "PersistentVolume")
	}
	supposed(f.World, claim, "PersistentVolumeClaim")
	if f.cluster != nil { // otherwise it is read with all others
		f.cluster.SetClaim(claim, volume)
	}
	return ""
}

// supposed puts a typed object of the core group into the world.
func supposed[T any](w *why.World, o *T, kind string) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return // types of the API always convert
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	w.Suppose(why.ResourceOf[T](), u)
}
