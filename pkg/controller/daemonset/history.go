package daemonset

import (
	"context"
	"errors"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/controller/history"
	"bonsai/pkg/controller/owned"
	"bonsai/pkg/controller/podtemplate"
)

// revisionOf is the hash of a revision, which its pods carry too.
func revisionOf(o apiclient.Object) string {
	return o.GetLabels()[appsv1.DefaultDaemonSetUniqueLabelKey]
}

// history returns the ControllerRevisions of the DaemonSet, which kubectl rollout history and undo read; pods are its
// own.
//
// When several revisions hold the same template, all but the newest go. Merge first relabels their pods, or they would
// count as outdated and be replaced for nothing.
func (c *Controller) history(ds *appsv1.DaemonSet, sel labels.Selector, pods []*corev1.Pod) history.Revisions {
	return history.Revisions{
		Cache: c.revisions,
		Claim: owned.Claim[*appsv1.ControllerRevision]{
			Owner: ds, Kind: kind(), Selector: sel, Children: c.writeRevisions,
			Fresh: func(ctx context.Context) (metav1.Object, error) {
				return c.writeSets.Get(ctx, ds.Namespace, ds.Name)
			},
		},
		Merge: func(ctx context.Context, from, to *appsv1.ControllerRevision) error {
			return history.MovePods(ctx, c.control.Pods, pods, appsv1.DefaultDaemonSetUniqueLabelKey, revisionOf(from),
				revisionOf(to))
		},
	}
}

// settle returns the revision of the present template and the old ones, oldest first. A hash that another template has
// already taken raises status.collisionCount and returns the error: the next round has a new hash.
func (c *Controller) settle(ctx context.Context, h history.Revisions,
	ds *appsv1.DaemonSet) (now *appsv1.ControllerRevision, old []*appsv1.ControllerRevision, err error) {
	data, err := history.Snapshot(&ds.Spec.Template)
	if err != nil {
		return nil, nil, err
	}
	hash := podtemplate.Hash(&ds.Spec.Template, ds.Status.CollisionCount)
	marks := map[string]string{appsv1.DefaultDaemonSetUniqueLabelKey: hash}
	maps.Copy(marks, ds.Spec.Template.Labels)
	now, old, err = h.Settle(ctx, history.Draft{Data: data, Hash: hash, Labels: marks, Annotations: ds.Annotations})
	if errors.Is(err, history.ErrNameTaken) {
		err = errors.Join(err, c.countCollision(ctx, ds))
	}
	return now, old, err
}

// countCollision raises the collision count, which gives the next revision another name.
func (c *Controller) countCollision(ctx context.Context, ds *appsv1.DaemonSet) error {
	ds = ds.DeepCopy()
	ds.Status.CollisionCount = new(count(ds.Status.CollisionCount) + 1)
	_, err := c.writeSets.UpdateStatus(ctx, ds)
	return err
}

func count(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

// inUse reports whether some pod is of the revision. Trim keeps such a revision even beyond revisionHistoryLimit:
// without it the template of a running pod would be lost.
func inUse(pods []*corev1.Pod) func(*appsv1.ControllerRevision) bool {
	return func(r *appsv1.ControllerRevision) bool {
		return slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return revisionOf(p) == revisionOf(r) })
	}
}
