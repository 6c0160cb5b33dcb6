package workload

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/why"
)

// heldNames explains a StatefulSet whose next pod cannot be made because its name, or that of one of its claims, is
// taken: by a pod of somebody else, or by a claim that is being deleted.
func heldNames(ctx context.Context, c *why.Case, self why.Object, set *appsv1.StatefulSet, pods []*corev1.Pod,
	want int32) (causes []why.Cause, err error) {
	start := int32(0)
	if set.Spec.Ordinals != nil {
		start = set.Spec.Ordinals.Start
	}
	there := map[string]bool{}
	for _, p := range pods {
		there[p.Name] = true
	}
	for i := start; i < start+want && len(causes) == 0; i++ {
		name := fmt.Sprintf("%s-%d", set.Name, i)
		if there[name] {
			continue
		}
		if p, _ := why.Get[corev1.Pod](ctx, c.World, set.Namespace, name); p != nil {
			o := why.ObjectOf("", "Pod", p)
			who := "nobody"
			if ref := metav1.GetControllerOf(p); ref != nil {
				who = ref.Kind + " " + ref.Name
			}
			causes = append(causes, why.Cause{Code: "PodNameTaken",
				Text: fmt.Sprintf("Its pod %s cannot be made: a pod of that name exists that is not its own (%s controls it, or "+
					"its labels do not match).", name, who),
				Evidence: []why.Evidence{why.See(o, ".metadata.ownerReferences", who)},
				Fixes:    []why.Fix{{Text: "Remove that pod.", Command: "kubectl delete " + o.Arg() + o.Flag()}}})
		}
		for _, t := range set.Spec.VolumeClaimTemplates {
			claim, _ := why.Get[corev1.PersistentVolumeClaim](ctx, c.World, set.Namespace, t.Name+"-"+name)
			if claim == nil || claim.DeletionTimestamp == nil {
				continue
			}
			o := why.ObjectOf("", "PersistentVolumeClaim", claim)
			cause := why.Cause{Code: "ClaimTerminating",
				Text: fmt.Sprintf("Its pod %s is not made: an older claim of the name %s is being deleted, and is still "+
					"there. The pod's own claim can be made when it is gone.", name, claim.Name),
				Evidence: []why.Evidence{why.SeeDeleted(o, claim),
					why.See(self, ".spec.volumeClaimTemplates[*].metadata.name", t.Name)}}
			if cause.Because, err = c.Causes(ctx, o); err != nil {
				return nil, err
			}
			causes = append(causes, cause)
		}
	}
	return causes, nil
}
