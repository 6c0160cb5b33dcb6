package pod

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"bonsai/pkg/why"
)

// attachedElsewhere explains a volume that cannot be attached because another node has it: which pods use the claim
// there, and whether the node still answers.
func attachedElsewhere(ctx context.Context, q *inquiry, message string) (causes []why.Cause) {
	if !strings.Contains(message, "Multi-Attach") {
		return nil
	}
	claims := map[string]bool{}
	for _, v := range q.pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			claims[v.PersistentVolumeClaim.ClaimName] = true
		}
	}
	pods, _ := why.List[corev1.Pod](ctx, q.World, q.pod.Namespace, nil)
	for _, p := range pods {
		if p.Name == q.pod.Name || p.Spec.NodeName == "" || p.Spec.NodeName == q.pod.Spec.NodeName {
			continue
		}
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim == nil || !claims[v.PersistentVolumeClaim.ClaimName] {
				continue
			}
			o := why.ObjectOf("", "Pod", p)
			cause := why.Cause{Code: "VolumeInUse",
				Text: fmt.Sprintf("Pod %s on node %s uses the claim %s: its volume can be attached to one node at a time.",
					p.Name, p.Spec.NodeName, v.PersistentVolumeClaim.ClaimName),
				Evidence: []why.Evidence{why.See(o, ".spec.nodeName", p.Spec.NodeName)},
				Fixes: []why.Fix{{Text: "End that pod first: a Deployment does so with the strategy Recreate. Or use a volume " +
					"that many nodes can write (ReadWriteMany)."}}}
			if p.DeletionTimestamp != nil {
				cause.Text += " It is being deleted, and is still there."
				cause.Because, _ = q.Causes(ctx, o)
			}
			causes = append(causes, cause)
		}
	}
	if len(causes) > 0 {
		return causes
	}
	attachments, _ := why.List[storagev1.VolumeAttachment](ctx, q.World, "", nil)
	for _, t := range attachments {
		if v := t.Spec.Source.PersistentVolumeName; v != nil && strings.Contains(message, *v) &&
			t.Spec.NodeName != q.pod.Spec.NodeName {
			causes = append(causes, why.Cause{Code: "VolumeAttachedElsewhere",
				Text: fmt.Sprintf("The volume %s is still attached to node %s, where no pod uses it any more.", *v,
					t.Spec.NodeName),
				Evidence: []why.Evidence{why.See(why.ObjectOf(storagev1.GroupName, "VolumeAttachment", t),
					".spec.nodeName", t.Spec.NodeName)},
				Fixes: []why.Fix{{Text: "Wait until it is detached. If that node is off for good, taint it as " +
					"node.kubernetes.io/out-of-service.", Command: why.Command("kubectl taint nodes %s "+
					"node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", t.Spec.NodeName)}}})
		}
	}
	return causes
}
