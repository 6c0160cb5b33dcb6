package statefulset

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"

	"bonsai/pkg/controller/history"
	"bonsai/pkg/controller/owned"
)

// hashLabel is on a revision: the hash that its name ends with.
const hashLabel = "controller.kubernetes.io/hash"

// revision is a template and the name of the ControllerRevision that holds it.
type revision struct {
	name     string
	template *corev1.PodTemplateSpec
}

// hashOf names a snapshot, the same as Kubernetes does: FNV-1 of the data and the decimal collision count.
//
// The bytes matter: after an upgrade from Kubernetes the same template must find its revision, or every pod would count
// as outdated.
func hashOf(data []byte, collisions int32) string {
	h := fnv.New32()
	h.Write(data)
	h.Write(strconv.AppendInt(nil, int64(collisions), 10))
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// templateOf reads the template from a revision's snapshot.
func templateOf(r *appsv1.ControllerRevision) (revision, error) {
	var data struct {
		Spec struct {
			Template *corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
		return revision{}, fmt.Errorf("reading ControllerRevision %s/%s: %w", r.Namespace, r.Name, err)
	}
	if data.Spec.Template == nil {
		return revision{}, fmt.Errorf("reading ControllerRevision %s/%s: it has no template", r.Namespace, r.Name)
	}
	return revision{name: r.Name, template: data.Spec.Template}, nil
}

// history is the StatefulSet's; pods are its own.
func (c *Controller) history(set *appsv1.StatefulSet, sel labels.Selector, pods []*corev1.Pod) history.Revisions {
	return history.Revisions{
		Cache: c.revisions,
		Claim: owned.Claim[*appsv1.ControllerRevision]{Owner: set, Kind: kind(), Selector: sel,
			Children: c.writeRevisions, Fresh: c.fresh(set)},
		Merge: func(ctx context.Context, from, to *appsv1.ControllerRevision) error {
			return history.MovePods(ctx, c.control.Pods, pods, appsv1.StatefulSetRevisionLabel, from.Name, to.Name)
		},
	}
}

// settle returns the revision of the present template and the old ones, oldest first. A name that another template's
// revision has raises status.collisionCount, and the next round finds another hash.
func (c *Controller) settle(ctx context.Context, h history.Revisions,
	set *appsv1.StatefulSet) (now *appsv1.ControllerRevision, old []*appsv1.ControllerRevision, err error) {
	data, err := history.Snapshot(&set.Spec.Template)
	if err != nil {
		return nil, nil, err
	}
	collisions := count(set.Status.CollisionCount)
	hash := hashOf(data, collisions)
	marks := map[string]string{hashLabel: hash}
	maps.Copy(marks, set.Spec.Template.Labels)
	now, old, err = h.Settle(ctx, history.Draft{Data: data, Hash: hash, Labels: marks, Annotations: set.Annotations})
	if errors.Is(err, history.ErrNameTaken) {
		set = set.DeepCopy()
		set.Status.CollisionCount = new(collisions + 1)
		_, more := c.writeSets.UpdateStatus(ctx, set)
		err = errors.Join(err, more)
	}
	return now, old, err
}

// templates gives the state its two revisions: the one to update to, and the one that pods were at before; they are the
// same for a new set, and when the latter was deleted.
//
// The current revision is what pods below the partition are made from. If it was deleted its template is lost, and the
// update revision takes its place.
func (c *Controller) templates(ctx context.Context, s *state, now *appsv1.ControllerRevision,
	old []*appsv1.ControllerRevision) (err error) {
	if s.update, err = templateOf(now); err != nil {
		return err
	}
	s.current = s.update
	name := cmp.Or(s.set.Status.CurrentRevision, now.Name)
	if name == now.Name {
		return nil
	}
	i := slices.IndexFunc(old, func(r *appsv1.ControllerRevision) bool { return r.Name == name })
	if i >= 0 {
		s.current, err = templateOf(old[i])
		return err
	}
	// The cache of revisions may be behind the cache of sets. A wrong guess here would create pods from the new
	// template below the partition.
	r, err := c.writeRevisions.Get(ctx, s.set.Namespace, name)
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(r, s.set) {
		return nil
	}
	if err == nil {
		s.current, err = templateOf(r)
	}
	return err
}

// idle are the revisions that neither the set nor a pod is at. Only these count against revisionHistoryLimit.
func (s *state) idle(old []*appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	return slices.DeleteFunc(slices.Clone(old), func(r *appsv1.ControllerRevision) bool {
		return r.Name == s.current.name || r.Name == s.set.Status.CurrentRevision ||
			slices.ContainsFunc(s.pods, func(p *corev1.Pod) bool { return revisionOf(p) == r.Name })
	})
}

// none is for a history whose revisions in use were sorted out already.
func none(*appsv1.ControllerRevision) bool { return false }
