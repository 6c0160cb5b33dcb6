package localpath

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	apicore "bonsai/api/core"
	"bonsai/api/core/volumebinding"
	"bonsai/pkg/apiclient"
)

const (
	// retry is how long a helper that failed is kept before the next one tries.
	retry = 10 * time.Second
	// told is the time after which a claim or volume that was refused is looked at again, and the event repeated, even
	// if no object has changed.
	told = time.Minute
)

// view is what is known of one volume that exists or that a claim asks for; each of the pointers may be nil.
type view struct {
	name, root string
	claim      *corev1.PersistentVolumeClaim
	class      *storagev1.StorageClass
	node       *corev1.Node // that was selected for the claim
	volume     *corev1.PersistentVolume
	// creator and remover are the pods that make and remove the directory.
	creator, remover *helper
	// nodes are the names of all nodes by their host names, which volumes say. full are those that lack disk.
	nodes map[string]string
	full  map[string]bool
	now   time.Time
}

// action is what to do: one of the pointers at most is set. What follows is decided when that has come back in the
// caches.
type action struct {
	events  []event
	start   *job
	dismiss *helper
	create  *corev1.PersistentVolume
	update  *corev1.PersistentVolume
	delete  *corev1.PersistentVolume
	// reschedule is the claim without its node, so that the scheduler selects another one.
	reschedule *corev1.PersistentVolumeClaim
	// again, if positive, is the time after which to decide again even if nothing has changed.
	again time.Duration
}

// event is recorded once the action is done.
type event struct {
	on                 apiclient.Object
	kind, reason, text string
}

// decide returns what is to be done next.
func decide(v view) action {
	switch {
	case v.volume == nil && wanted(v.claim):
		return v.provision()
	case v.volume == nil && v.creator != nil &&
		(v.claim == nil || v.claim.Spec.VolumeName != "" && v.claim.Spec.VolumeName != v.name):
		return v.abandon()
	case v.volume != nil && leaving(v.volume):
		return v.reclaim()
	case v.volume != nil && v.creator != nil && v.creator.finished():
		return action{dismiss: v.creator}
	case v.creator == nil && v.remover != nil && v.remover.finished():
		return action{dismiss: v.remover}
	}
	return action{}
}

// wanted reports whether a claim waits for us to provision it.
func wanted(c *corev1.PersistentVolumeClaim) bool {
	return c != nil && c.DeletionTimestamp == nil && c.Spec.VolumeName == "" &&
		c.Annotations[volumebinding.StorageProvisioner] == Provisioner
}

// leaving reports whether a volume is to be deleted and has no claim any more.
func leaving(v *corev1.PersistentVolume) bool {
	if v.Status.Phase == corev1.VolumeBound {
		return false
	}
	released := v.Status.Phase == corev1.VolumeReleased || v.Status.Phase == corev1.VolumeFailed
	return v.DeletionTimestamp != nil ||
		released && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}

// provision makes a directory on the node of the claim, and then the volume that stands for it.
func (v *view) provision() action {
	// it was another when the claim was given to us, and may be again
	if v.class == nil || v.class.Provisioner != Provisioner {
		return action{again: told}
	}
	if why := refusal(v.claim, v.class); why != "" {
		return action{events: v.failed(why), again: told}
	}
	switch name := v.claim.Annotations[volumebinding.SelectedNode]; {
	case name == "": // the binder asks for no volume of a class that waits before there is a node
		return action{}
	case v.node == nil:
		c := v.claim.DeepCopy()
		delete(c.Annotations, volumebinding.SelectedNode)
		return action{reschedule: c, events: v.failed(fmt.Sprintf("node %q not found", name))}
	}
	done, next := v.run(v.creator, job{verb: create, node: v.node.Name, dir: v.name}, v.failed)
	if done {
		next.create = v.newVolume()
		next.events = []event{{v.claim, corev1.EventTypeNormal, "ProvisioningSucceeded",
			"Successfully provisioned volume " + v.name}}
	} else if next.start != nil {
		next.events = []event{{v.claim, corev1.EventTypeNormal, "Provisioning",
			fmt.Sprintf("External provisioner is provisioning volume for claim %q",
				v.claim.Namespace+"/"+v.claim.Name)}}
	}
	return next
}

// failed returns the event that the claim could not be provisioned.
func (v *view) failed(why string) []event {
	return []event{{v.claim, corev1.EventTypeWarning, "ProvisioningFailed",
		fmt.Sprintf("failed to provision volume with StorageClass %q: %s", apicore.ClaimClass(v.claim), why)}}
}

// refusal says why a claim cannot have a directory, "" if it can.
func refusal(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) string {
	switch {
	case ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) !=
		storagev1.VolumeBindingWaitForFirstConsumer:
		return "the class must have volumeBindingMode WaitForFirstConsumer, as a directory is on a node"
	case c.Spec.Selector != nil:
		return "claim.Spec.Selector is not supported"
	case c.Spec.DataSource != nil || c.Spec.DataSourceRef != nil:
		return "a directory starts empty, dataSource is not supported"
	case ptr.Deref(c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) != corev1.PersistentVolumeFilesystem:
		return "volumeMode must be Filesystem"
	case slices.ContainsFunc(c.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
		return m != corev1.ReadWriteOnce && m != corev1.ReadWriteOncePod
	}):
		return "only the access modes ReadWriteOnce and ReadWriteOncePod are supported, as a directory is on one node"
	}
	return ""
}

// run has helper pods do a job, where p is the one there is, or nil. If p has done this very job, it returns true and
// an empty action; otherwise what is to be done for it: to start a helper, to wait, or to dismiss one that failed or
// that worked at another job. failed makes the events of a failure.
func (v *view) run(p *helper, j job, failed func(string) []event) (done bool, next action) {
	switch {
	case p == nil:
		return false, action{start: &j}
	case !p.finished():
		return false, action{}
	case p.pod.Status.Phase == corev1.PodSucceeded && p.dir == j.dir && p.pod.Spec.NodeName == j.node:
		return true, action{}
	case p.pod.Status.Phase == corev1.PodSucceeded: // the claim was given to another node since
		return false, action{dismiss: p}
	default:
		if left := retry - v.now.Sub(p.pod.CreationTimestamp.Time); left > 0 {
			return false, action{again: left}
		}
		return false, action{dismiss: p, events: failed(p.said())}
	}
}

// newVolume returns the volume of the claim's directory.
func (v *view) newVolume() *corev1.PersistentVolume {
	c, host := v.claim, v.node.Labels[corev1.LabelHostname]
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: v.name,
			Annotations: map[string]string{volumebinding.ProvisionedBy: Provisioner}, Finalizers: []string{finalizer}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: c.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes: c.Spec.AccessModes, VolumeMode: c.Spec.VolumeMode, StorageClassName: v.class.Name,
			MountOptions:                  v.class.MountOptions,
			PersistentVolumeReclaimPolicy: ptr.Deref(v.class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete),
			ClaimRef: &corev1.ObjectReference{
				APIVersion: corev1.SchemeGroupVersion.String(), Kind: "PersistentVolumeClaim", Namespace: c.Namespace,
				Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				Local: &corev1.LocalVolumeSource{Path: filepath.Join(v.root, v.name)}},
			NodeAffinity: &corev1.VolumeNodeAffinity{
				Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{host}}},
				}}}},
		},
	}
}

// abandon removes the directory of a claim that was deleted, or bound to another volume, while the directory was made.
func (v *view) abandon() action {
	if !v.creator.finished() {
		return action{}
	}
	done, next := v.clean(job{verb: remove, node: v.creator.pod.Spec.NodeName, dir: v.creator.dir})
	if done {
		return action{dismiss: v.creator}
	}
	return next
}

// reclaim removes the directory of a volume, and then the volume. That of a volume with the policy Retain stays.
func (v *view) reclaim() action {
	if v.volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		j, ok := v.removal()
		if !ok {
			return action{events: v.kept("its directory is not one of this provisioner's"), again: told}
		}
		if done, next := v.clean(j); !done {
			return next
		}
	}
	switch {
	case v.volume.DeletionTimestamp == nil:
		return action{delete: v.volume}
	case slices.Contains(v.volume.Finalizers, finalizer):
		return action{update: without(v.volume)}
	}
	return action{}
}

// removal returns the job of removing a volume's directory; ok is false if that is not one in the root, on one node.
func (v *view) removal() (j job, ok bool) {
	local, affinity := v.volume.Spec.Local, v.volume.Spec.NodeAffinity
	if local == nil || affinity == nil || affinity.Required == nil || len(affinity.Required.NodeSelectorTerms) != 1 {
		return job{}, false
	}
	terms := affinity.Required.NodeSelectorTerms[0].MatchExpressions
	if local.Path != filepath.Join(v.root, v.volume.Name) || strings.ContainsRune(v.volume.Name, '/') ||
		len(terms) != 1 || terms[0].Key != corev1.LabelHostname || len(terms[0].Values) != 1 {
		return job{}, false
	}
	return job{verb: remove, node: v.nodes[terms[0].Values[0]], dir: v.volume.Name, volume: v.volume}, true
}

// clean has a directory removed, as run does. If its node is no more, the directory counts as removed. A node that
// lacks disk takes critical pods only, and what is removed may be what it lacks.
func (v *view) clean(j job) (done bool, next action) {
	if !slices.Contains(slices.Collect(maps.Values(v.nodes)), j.node) {
		return true, action{}
	}
	j.critical = v.full[j.node]
	return v.run(v.remover, j, v.kept)
}

// kept returns the event that a volume could not be deleted. If only a directory is left, and neither claim nor volume
// exists, there is no object for an event.
func (v *view) kept(why string) []event {
	if v.volume == nil {
		return nil
	}
	return []event{{v.volume, corev1.EventTypeWarning, "VolumeFailedDelete", why}}
}
