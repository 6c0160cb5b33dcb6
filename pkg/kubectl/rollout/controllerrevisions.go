package rollout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"bonsai/pkg/kubectl/resource"
)

var errNoRevision = errors.New("no last revision to roll back to")

func byNumber(a, b revision) int { return cmp.Compare(a.number, b.number) }

// controllerRevisions reads the history of w from its ControllerRevisions, the oldest first. Each holds a strategic
// merge patch that restores an older template. Applied to w as it is now, it shows the object of that revision. Others
// that the selector matches, but that w does not control, are left out. empty returns a workload to decode into.
func controllerRevisions(ctx context.Context, c *resource.Client, w workload, selector *metav1.LabelSelector,
	empty func() workload) ([]revision, error) {
	m, err := c.Mapping("controllerrevisions.apps")
	if err != nil {
		return nil, err
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err
	}
	list, err := c.List(ctx, m, w.GetNamespace(), metav1.ListOptions{LabelSelector: s.String()})
	if err != nil {
		return nil, err
	}
	now, err := json.Marshal(w.object())
	if err != nil {
		return nil, err
	}
	var out []revision
	for i := range list.Items {
		cr := &appsv1.ControllerRevision{}
		if err := resource.FromUnstructured(&list.Items[i], cr); err != nil {
			return nil, err
		}
		if owner := metav1.GetControllerOf(cr); owner == nil || owner.UID != w.GetUID() {
			continue
		}
		then := empty()
		data, err := strategicpatch.StrategicMergePatch(now, cr.Data.Raw, then.object())
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, then.object()); err != nil {
			return nil, err
		}
		out = append(out, revision{
			number: cr.Revision, cause: cr.Annotations[causeAnnotation], template: *then.podTemplate(),
			object: then.object(),
			patch:  types.StrategicMergePatchType, back: cr.Data.Raw,
		})
	}
	slices.SortFunc(out, byNumber)
	return out, nil
}
