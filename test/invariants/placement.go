package invariants

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// checkPlaced: the node of p has room for it, and its claims allow it there.
func (w *world) checkPlaced(p *corev1.Pod) {
	n := w.nodes[p.Spec.NodeName]
	if n == nil {
		w.report(overcommit, "pod %s is given node %s, which there is not", name(p), p.Spec.NodeName)
		return
	}
	pods, used := int64(0), corev1.ResourceList{}
	for _, o := range w.pods {
		if o.Spec.NodeName != n.Name || terminal(o) {
			continue
		}
		pods++
		for _, c := range o.Spec.Containers {
			for r, q := range c.Resources.Requests {
				sum := used[r]
				sum.Add(q)
				used[r] = sum
			}
		}
	}
	used[corev1.ResourcePods] = *resource.NewQuantity(pods, resource.DecimalSI)
	for r, q := range used {
		if has := n.Status.Allocatable[r]; q.Cmp(has) > 0 {
			w.report(overcommit, "with pod %s node %s gives %s of %s, and has %s", name(p), n.Name, q.String(), r,
				has.String())
		}
	}
	for _, claim := range claimsOf(p) {
		c := w.claims[p.Namespace+"/"+claim]
		if c == nil || !slices.Contains(c.Spec.AccessModes, corev1.ReadWriteOncePod) {
			continue
		}
		for _, o := range w.pods {
			if o.UID != p.UID && o.Namespace == p.Namespace && o.Spec.NodeName != "" && !terminal(o) &&
				slices.Contains(claimsOf(o), claim) {
				w.report(oncePod, "claim %s is used by pods %s and %s", claim, o.Name, p.Name)
			}
		}
	}
}

func claimsOf(p *corev1.Pod) []string {
	var out []string
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			out = append(out, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return out
}

// checkBound: a volume belongs to one claim.
func (w *world) checkBound(c *corev1.PersistentVolumeClaim, gone bool) {
	if gone || c.Spec.VolumeName == "" {
		return
	}
	for _, o := range w.claims {
		if o.UID != c.UID && o.Spec.VolumeName == c.Spec.VolumeName {
			w.report(boundTwice, "volume %s has claims %s and %s", c.Spec.VolumeName, name(o), name(c))
		}
	}
}

// applyNode takes a node's new state. A node mounts a volume after it has said that it uses it, if it is then told that
// it is attached.
func (w *world) applyNode(n *corev1.Node, gone bool) {
	put(w.nodes, n.Name, n, gone)
	mounted := map[corev1.UniqueVolumeName]bool{}
	for _, v := range n.Status.VolumesInUse {
		mounted[v] = w.mounted[n.Name][v] ||
			slices.ContainsFunc(n.Status.VolumesAttached, func(a corev1.AttachedVolume) bool {
				return a.Name == v
			})
	}
	put(w.mounted, n.Name, mounted, gone)
}

// applyAttachment: a volume for one node is asked to be attached to no other while an attachment is there, and to be
// detached only when its node cannot have mounted it.
func (w *world) applyAttachment(a *storagev1.VolumeAttachment, gone bool) {
	before := w.attachments[a.Name]
	put(w.attachments, a.Name, a, gone)
	v := w.volumes[volumeOf(a)]
	if v == nil || v.Spec.CSI == nil {
		return
	}
	if before == nil && !gone && !slices.Contains(v.Spec.AccessModes, corev1.ReadWriteMany) {
		for _, o := range w.attachments {
			if volumeOf(o) == v.Name && o.Spec.NodeName != a.Spec.NodeName {
				w.report(attachTwice, "volume %s goes to node %s, and is at %s", v.Name, a.Spec.NodeName,
					o.Spec.NodeName)
			}
		}
	}
	if before != nil && before.DeletionTimestamp == nil && (gone || a.DeletionTimestamp != nil) &&
		w.mounted[a.Spec.NodeName][corev1.UniqueVolumeName("kubernetes.io/csi/"+v.Spec.CSI.Driver+"^"+
			v.Spec.CSI.VolumeHandle)] {
		w.report(detachedUsed, "volume %s of node %s", v.Name, a.Spec.NodeName)
	}
}

func volumeOf(a *storagev1.VolumeAttachment) string {
	if p := a.Spec.Source.PersistentVolumeName; p != nil {
		return *p
	}
	return ""
}
