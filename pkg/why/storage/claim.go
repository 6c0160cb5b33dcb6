// Package storage explains PersistentVolumeClaims and PersistentVolumes: why one is not bound or does not go.
package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/why"
)

// noProvisioner is the provisioner of classes whose volumes somebody makes by hand.
const noProvisioner = "kubernetes.io/no-provisioner"

// defaultClass marks the class of claims that name none.
const defaultClass = "storageclass.kubernetes.io/is-default-class"

// Claim explains a PersistentVolumeClaim.
func Claim(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	claim, known := why.Get[corev1.PersistentVolumeClaim](ctx, c.World, o.Namespace, o.Name)
	if claim == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	self := why.ObjectOf("", "PersistentVolumeClaim", claim)
	a := why.Answer{Subject: self}
	switch {
	case claim.DeletionTimestamp != nil:
		a.State = fmt.Sprintf("%s has been terminating for %s.", self,
			why.Span(c.Now.Sub(claim.DeletionTimestamp.Time)))
		var err error
		a.Causes, err = why.Finalizers(ctx, c, self, claim)
		return a, err
	case claim.Status.Phase == corev1.ClaimBound:
		a.State, a.Well = fmt.Sprintf("%s is bound to the volume %s.", self, claim.Spec.VolumeName), true
		a.Causes = resizing(self, claim)
		a.Well = len(a.Causes) == 0
		return a, nil
	case claim.Status.Phase == corev1.ClaimLost:
		a.State = fmt.Sprintf("%s has lost its volume.", self)
		a.Causes = []why.Cause{{Code: "VolumeLost",
			Text: fmt.Sprintf("The volume %s, which it was bound to, does not exist any more: its data may be "+
				"lost.", claim.Spec.VolumeName),
			Evidence: []why.Evidence{why.Absent("PersistentVolume", "", claim.Spec.VolumeName)}}}
		return a, nil
	}
	a.State = fmt.Sprintf("%s has been pending for %s.", self, why.Span(c.Now.Sub(claim.CreationTimestamp.Time)))
	q := &inquiry{Case: c, claim: claim, self: self}
	if claim.Spec.VolumeName != "" {
		a.Causes = q.named(ctx)
		return a, nil
	}
	var err error
	a.Causes, err = q.pending(ctx)
	return a, err
}

// inquiry is one question about one claim.
type inquiry struct {
	*why.Case
	claim *corev1.PersistentVolumeClaim
	self  why.Object
}

// pending explains a claim that names no volume: by its class, or by the volumes that exist.
func (q *inquiry) pending(ctx context.Context) ([]why.Cause, error) {
	classes, complete := why.List[storagev1.StorageClass](ctx, q.World, "", nil)
	name := ""
	if q.claim.Spec.StorageClassName != nil {
		name = *q.claim.Spec.StorageClassName
	}
	if name == "" {
		return q.withoutClass(ctx, classes), nil
	}
	i := slices.IndexFunc(classes, func(k *storagev1.StorageClass) bool { return k.Name == name })
	if i < 0 {
		if volumes := q.volumes(ctx, name); len(volumes) > 0 || !complete {
			return q.unfit(volumes), nil
		}
		var names []string
		for _, k := range classes {
			names = append(names, k.Name)
		}
		return []why.Cause{{Code: "StorageClassMissing",
			Text: fmt.Sprintf("Its StorageClass %s does not exist, and no volume has that class. There are: "+
				"%s.", name, why.And(names)),
			Evidence: []why.Evidence{why.Absent("StorageClass", "", name), why.See(q.self, ".spec.storageClassName",
				name)},
			Fixes: []why.Fix{{Text: "Create that class, or make the claim again with another one: a claim's class " +
				"cannot be changed."}}}}, nil
	}
	class := classes[i]
	o := why.ObjectOf("storage.k8s.io", "StorageClass", class)
	if e := q.event(ctx, "ProvisioningFailed"); e != nil {
		return []why.Cause{{Code: "ProvisioningFailed",
			Text: fmt.Sprintf("The provisioner %s cannot make the volume: %s.", class.Provisioner,
				why.Quote(e.Message)),
			Evidence: []why.Evidence{why.SeeEvent(e)}}}, nil
	}
	if waits(class) && q.claim.Annotations["volume.kubernetes.io/selected-node"] == "" {
		return q.firstConsumer(ctx, o)
	}
	if class.Provisioner == noProvisioner {
		return q.unfit(q.volumes(ctx, name)), nil
	}
	return q.provisioner(ctx, class, o), nil
}

func waits(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// withoutClass explains a claim that names no class: a cluster without a default class, or a claim that asks for a
// volume without one.
func (q *inquiry) withoutClass(ctx context.Context, classes []*storagev1.StorageClass) []why.Cause {
	volumes := q.volumes(ctx, "")
	if q.claim.Spec.StorageClassName != nil { // "" on purpose
		return q.unfit(volumes)
	}
	hasDefault := slices.ContainsFunc(classes, func(k *storagev1.StorageClass) bool {
		return k.Annotations[defaultClass] == "true"
	})
	if hasDefault {
		return nil
	}
	var names []string
	for _, k := range classes {
		names = append(names, k.Name)
	}
	cause := why.Cause{Code: "NoDefaultStorageClass",
		Text: fmt.Sprintf("It names no StorageClass, and the cluster has no default one. There are: %s.",
			why.And(names)),
		Evidence: []why.Evidence{why.See(q.self, ".spec.storageClassName", "not set")}}
	if len(names) > 0 {
		cause.Fixes = []why.Fix{{Text: "Make a class the default; the claim gets it then.", Command: why.Command(
			"kubectl annotate storageclass %s %s=true", names[0], defaultClass)}}
	}
	if len(volumes) > 0 {
		cause.Because = q.unfit(volumes)
	}
	return []why.Cause{cause}
}

// firstConsumer explains a claim whose class waits for a pod: there is none, or it has not been scheduled.
func (q *inquiry) firstConsumer(ctx context.Context, class why.Object) ([]why.Cause, error) {
	cause := why.Cause{Code: "WaitForFirstConsumer", Text: fmt.Sprintf("Its StorageClass %s makes the volume when a "+
		"pod that uses the claim has been scheduled.", class.Name),
		Evidence: []why.Evidence{why.See(class, ".volumeBindingMode",
			string(storagev1.VolumeBindingWaitForFirstConsumer))}}
	users := q.users(ctx)
	if len(users) == 0 {
		cause.Text += " No pod uses it yet."
		return []why.Cause{cause}, nil
	}
	cause.Text += fmt.Sprintf(" Pod %s uses it and has not been scheduled.", users[0].Name)
	because, err := q.Causes(ctx, why.ObjectOf("", "Pod", users[0]))
	cause.Because = because
	return []why.Cause{cause}, err
}

// users are the pods that use the claim and have not ended.
func (q *inquiry) users(ctx context.Context) (list []*corev1.Pod) {
	pods, _ := why.List[corev1.Pod](ctx, q.World, q.claim.Namespace, nil)
	for _, p := range pods {
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == q.claim.Name ||
				v.Ephemeral != nil && p.Name+"-"+v.Name == q.claim.Name {
				list = append(list, p)
				break
			}
		}
	}
	return list
}

// provisioner explains a claim that a provisioner has said nothing about.
func (q *inquiry) provisioner(ctx context.Context, class *storagev1.StorageClass, o why.Object) []why.Cause {
	cause := why.Cause{Code: "ProvisionerSilent",
		Text: fmt.Sprintf("The provisioner %s of its StorageClass %s has not made a volume, and has said nothing "+
			"about it.",
			class.Provisioner, class.Name),
		Evidence: []why.Evidence{why.See(o, ".provisioner", class.Provisioner)}}
	if e := q.event(ctx, "ExternalProvisioning", "Provisioning"); e != nil {
		cause.Evidence = append(cause.Evidence, why.SeeEvent(e))
	}
	driver, known := why.Get[storagev1.CSIDriver](ctx, q.World, "", class.Provisioner)
	if driver == nil && known && !strings.HasPrefix(class.Provisioner, "kubernetes.io/") {
		cause.Text += fmt.Sprintf(" No CSIDriver named %s is installed; a provisioner without one may still run as "+
			"a pod.", class.Provisioner)
	}
	cause.Fixes = []why.Fix{{Text: "Look whether the provisioner's pod runs, and at its logs."}}
	return []why.Cause{cause}
}

// volumes are those of a class that are not bound to another claim.
func (q *inquiry) volumes(ctx context.Context, class string) (list []*corev1.PersistentVolume) {
	all, _ := why.List[corev1.PersistentVolume](ctx, q.World, "", nil)
	for _, v := range all {
		if v.Spec.StorageClassName == class {
			list = append(list, v)
		}
	}
	return list
}

// unfit explains why none of the volumes is bound to the claim, each by the first thing that is wrong with it.
func (q *inquiry) unfit(volumes []*corev1.PersistentVolume) []why.Cause {
	cause := why.Cause{Code: "NoVolume", Text: "No PersistentVolume of its class exists, and nothing makes one.",
		Evidence: []why.Evidence{why.See(q.self, ".spec.storageClassName", className(q.claim))}}
	if className(q.claim) == "" {
		cause.Text = "Its storageClassName is empty, which asks for a PersistentVolume without a class, and there " +
			"is none."
		cause.Evidence[0].Value = `""`
	}
	if len(volumes) == 0 {
		return []why.Cause{cause}
	}
	cause.Code = "NoVolumeFits"
	which := why.Count(len(volumes), "PersistentVolume")
	cause.Text = fmt.Sprintf("None of %s of its class fits.", which)
	switch name := q.claim.Spec.StorageClassName; {
	case len(volumes) == 1:
		cause.Text = fmt.Sprintf("The PersistentVolume %s does not fit.", volumes[0].Name)
	case name != nil && *name == "":
		cause.Text = fmt.Sprintf("None of %s without a class fits.", which)
	}
	if name := q.claim.Spec.StorageClassName; name != nil && *name == "" && q.claim.Spec.VolumeName == "" {
		cause.Text = `Its storageClassName is "": it takes only a volume that has no class. ` + cause.Text
	}
	want := q.claim.Spec.Resources.Requests[corev1.ResourceStorage]
	for i, v := range volumes {
		if i == 5 {
			break
		}
		o := why.ObjectOf("", "PersistentVolume", v)
		add := func(code, field, value, text string) {
			cause.Because = append(cause.Because, why.Cause{Code: code, Text: fmt.Sprintf("Volume %s %s.", v.Name,
				text),
				Evidence: []why.Evidence{why.See(o, field, value)}})
		}
		size := v.Spec.Capacity[corev1.ResourceStorage]
		selector, err := metav1.LabelSelectorAsSelector(q.claim.Spec.Selector)
		switch {
		case v.DeletionTimestamp != nil:
			add("VolumeTerminating", ".metadata.deletionTimestamp", v.DeletionTimestamp.String(), "is being deleted")
		case v.Spec.ClaimRef != nil && (v.Spec.ClaimRef.Name != q.claim.Name ||
			v.Spec.ClaimRef.Namespace != q.claim.Namespace):
			state := "is bound to"
			if v.Status.Phase == corev1.VolumeReleased {
				state = "still has the data of"
			}
			add("VolumeTaken", ".spec.claimRef", v.Spec.ClaimRef.Namespace+"/"+v.Spec.ClaimRef.Name,
				fmt.Sprintf("%s claim %s/%s", state, v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name))
		case v.Spec.ClaimRef != nil && v.Spec.ClaimRef.UID != "" && v.Spec.ClaimRef.UID != q.claim.UID:
			add("VolumeReleased", ".spec.claimRef.uid", string(v.Spec.ClaimRef.UID),
				"is Released: it still has the data of an earlier claim of this name, which its claimRef means")
			cause.Because[len(cause.Because)-1].Fixes = []why.Fix{{
				Text: "Remove the claimRef's uid; the claim then gets the volume with its data.", Command: why.Command(
					`kubectl patch pv %s --type=json -p '[{"op":"remove","path":"/spec/claimRef/uid"}]'`, v.Name)}}
		case size.Cmp(want) < 0:
			add("VolumeTooSmall", ".spec.capacity.storage", size.String(),
				fmt.Sprintf("has %s, and the claim asks for %s",
					size.String(), want.String()))
		case !hasModes(v.Spec.AccessModes, q.claim.Spec.AccessModes):
			add("AccessModes", ".spec.accessModes", fmt.Sprint(v.Spec.AccessModes),
				fmt.Sprintf("allows %v, and the claim asks for %v", v.Spec.AccessModes, q.claim.Spec.AccessModes))
		case mode(v.Spec.VolumeMode) != mode(q.claim.Spec.VolumeMode):
			add("VolumeMode", ".spec.volumeMode", string(mode(v.Spec.VolumeMode)),
				fmt.Sprintf("is of mode %s, and the claim asks for %s",
					mode(v.Spec.VolumeMode), mode(q.claim.Spec.VolumeMode)))
		case q.claim.Spec.Selector != nil && err == nil && !selector.Matches(labels.Set(v.Labels)):
			add("VolumeSelector", ".metadata.labels", labels.Set(v.Labels).String(),
				fmt.Sprintf("has the labels %q, and the claim selects %s",
					labels.Set(v.Labels).String(), selector))
		}
	}
	return []why.Cause{cause}
}

// named explains a claim that names its volume.
func (q *inquiry) named(ctx context.Context) []why.Cause {
	name := q.claim.Spec.VolumeName
	v, known := why.Get[corev1.PersistentVolume](ctx, q.World, "", name)
	if v == nil {
		if !known {
			return nil
		}
		return []why.Cause{{Code: "VolumeMissing", Text: fmt.Sprintf("The PersistentVolume %s, which it names, does "+
			"not exist.", name),
			Evidence: []why.Evidence{why.Absent("PersistentVolume", "", name), why.See(q.self, ".spec.volumeName",
				name)}}}
	}
	if v.Spec.StorageClassName != className(q.claim) {
		return []why.Cause{{Code: "StorageClassDiffers",
			Text: fmt.Sprintf("It names the volume %s of class %q, but is itself of class %q.", name,
				v.Spec.StorageClassName,
				className(q.claim)),
			Evidence: []why.Evidence{why.See(why.ObjectOf("", "PersistentVolume", v), ".spec.storageClassName",
				v.Spec.StorageClassName)}}}
	}
	return q.unfit([]*corev1.PersistentVolume{v})
}

// event returns the newest event about the claim with one of these reasons, nil if there is none.
func (q *inquiry) event(ctx context.Context, reasons ...string) *corev1.Event {
	for _, e := range q.Events(ctx, q.self) {
		if slices.Contains(reasons, e.Reason) {
			return e
		}
	}
	return nil
}

// resizing explains a bound claim that does not get the size that it asks for.
func resizing(self why.Object, claim *corev1.PersistentVolumeClaim) (causes []why.Cause) {
	want, has := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	if has.Cmp(want) >= 0 {
		return nil
	}
	cause := why.Cause{Code: "NotResized", Text: fmt.Sprintf("It asks for %s and still has %s.", want.String(),
		has.String()),
		Evidence: []why.Evidence{why.See(self, ".status.capacity.storage", has.String())}}
	for _, c := range claim.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			cause.Evidence = append(cause.Evidence, why.Condition(self, string(c.Type), string(c.Status), c.Reason,
				c.Message, c.LastTransitionTime))
			if c.Type == corev1.PersistentVolumeClaimFileSystemResizePending {
				cause.Text += " Its file system grows when a pod mounts it."
			}
		}
	}
	return []why.Cause{cause}
}

func className(c *corev1.PersistentVolumeClaim) string {
	if c.Spec.StorageClassName == nil {
		return ""
	}
	return *c.Spec.StorageClassName
}

func hasModes(has, want []corev1.PersistentVolumeAccessMode) bool {
	for _, m := range want {
		if !slices.Contains(has, m) {
			return false
		}
	}
	return true
}

func mode(m *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if m == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *m
}
