package storage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// Volume explains a PersistentVolume.
func Volume(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	v, known := why.Get[corev1.PersistentVolume](ctx, c.World, "", o.Name)
	if v == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	self := why.ObjectOf("", "PersistentVolume", v)
	a := why.Answer{Subject: self, State: fmt.Sprintf("%s is %s.", self, v.Status.Phase)}
	if v.DeletionTimestamp != nil {
		a.State = fmt.Sprintf("%s has been terminating for %s.", self, why.Span(c.Now.Sub(v.DeletionTimestamp.Time)))
		var err error
		a.Causes, err = why.Finalizers(ctx, c, self, v)
		if ref := v.Spec.ClaimRef; ref != nil && len(a.Causes) > 0 {
			claim := why.Object{Kind: "PersistentVolumeClaim", Namespace: ref.Namespace, Name: ref.Name}
			bound := why.Cause{Code: "VolumeBound", Text: fmt.Sprintf("It is bound to %s, and goes after that.", claim),
				Evidence: []why.Evidence{why.See(self, ".spec.claimRef", ref.Namespace+"/"+ref.Name)},
				Fixes: []why.Fix{{Text: "Delete the claim, too, if its data is not needed any more.",
					Command: "kubectl delete pvc " + why.Word(ref.Name) + claim.Flag()}}}
			a.Causes[0].Because = append(a.Causes[0].Because, bound)
		}
		return a, err
	}
	switch v.Status.Phase {
	case corev1.VolumeBound, corev1.VolumeAvailable:
		a.Well = true
	case corev1.VolumeReleased:
		a.Causes = []why.Cause{{Code: "Released",
			Text: fmt.Sprintf("Its claim %s/%s is gone, and its reclaim policy is %s: the data is kept, and no "+
				"other claim gets the volume until somebody removes its claimRef.", v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name,
				v.Spec.PersistentVolumeReclaimPolicy),
			Evidence: []why.Evidence{why.See(self, ".spec.persistentVolumeReclaimPolicy",
				string(v.Spec.PersistentVolumeReclaimPolicy))},
			Fixes: []why.Fix{{Text: "Offer the volume, with its data, to other claims.", Command: why.Command(
				`kubectl patch pv %s --type=json -p '[{"op":"remove","path":"/spec/claimRef"}]'`, v.Name)}}}}
	case corev1.VolumeFailed:
		a.Causes = []why.Cause{{Code: "ReclaimFailed", Text: "Its reclaim failed: " + why.Quote(v.Status.Message) + ".",
			Evidence: []why.Evidence{why.See(self, ".status.message", v.Status.Message)}}}
	}
	return a, nil
}
