package podautoscaler

import (
	"context"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/served"
)

// target is what an autoscaler scales: anything with a subresource scale, custom resources as well.
type target struct {
	access *apiclient.Resource[*autoscalingv1.Scale]
	scale  *autoscalingv1.Scale
}

// errSpec is an error that lies in the autoscaler.
//
// The metrics count it as "spec": waiting does not help, only a change of the autoscaler does.
type errSpec struct{ error }

func (e errSpec) Unwrap() error { return e.error }

// find reads the target's scale.
//
// The version of the reference is not used, only its group and kind: the server is asked in the version that it
// prefers.
func find(ctx context.Context, c *apiclient.Client, kinds *served.Finder,
	a *autoscalingv2.HorizontalPodAutoscaler) (*target, error) {
	ref := a.Spec.ScaleTargetRef
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil, errSpec{err}
	}
	r, err := kinds.ForGroupKind(ctx, schema.GroupKind{Group: gv.Group, Kind: ref.Kind})
	if err != nil {
		return nil, err
	}
	t := &target{access: apiclient.NewResource(c, r.GroupVersion(), r.Resource, &autoscalingv1.Scale{}),
		scale: &autoscalingv1.Scale{}}
	return t, t.access.GetSub(ctx, a.Namespace, ref.Name, "scale", t.scale)
}

// resize writes another size into the scale that was read, with its resourceVersion: if somebody scaled the target
// since, it is a conflict, and the next round decides again.
func (t *target) resize(ctx context.Context, replicas int32) error {
	s := t.scale.DeepCopy()
	s.Spec.Replicas = replicas
	_, err := t.access.UpdateSub(ctx, s, "scale")
	return err
}
