// Package history keeps the history of a workload's pod template, as ControllerRevisions.
package history

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/owned"
)

// ErrNameTaken is what Settle returns when the revision's name belongs to another one: two snapshots have the same
// hash. The owner raises status.collisionCount, which gives the next try another hash.
var ErrNameTaken = errors.New("the name of the revision is taken")

// Revisions keeps the ControllerRevisions of one owner: a numbered snapshot of each pod template it has had.
type Revisions struct {
	// Claim settles which revisions are the owner's.
	Claim owned.Claim[*appsv1.ControllerRevision]
	Cache *controller.Informer[*appsv1.ControllerRevision]
	// Merge is called before the revision from is deleted, because to has the same data; nil does nothing.
	Merge func(ctx context.Context, from, to *appsv1.ControllerRevision) error
}

// Draft describes the revision of the owner's present template.
type Draft struct {
	// Data is what Snapshot made of the template.
	Data []byte
	// Hash tells the template from others; the revision is named after the owner and it.
	Hash                string
	Labels, Annotations map[string]string
}

// Snapshot is the data of a revision: a patch that sets the owner's template back. Kubernetes writes the same bytes, by
// which it reports whether two revisions are one.
func Snapshot(template *corev1.PodTemplateSpec) ([]byte, error) {
	text, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("taking a snapshot of a pod template: %w", err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("taking a snapshot of a pod template: %w", err)
	}
	m["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": m}})
}

// Settle finds the revision with the draft's data, making it or moving it to the end of the history if need be, and the
// others, ordered from the first.
func (h Revisions) Settle(ctx context.Context, d Draft) (now *appsv1.ControllerRevision,
	old []*appsv1.ControllerRevision, err error) {
	owner := h.Claim.Owner
	all, err := h.Claim.Settle(ctx, append(h.Cache.OwnedBy(owner.GetUID()), h.Cache.Orphans(owner.GetNamespace())...))
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(all, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
	var same []*appsv1.ControllerRevision
	for _, r := range all {
		if bytes.Equal(r.Data.Raw, d.Data) {
			same = append(same, r)
		} else {
			old = append(old, r)
		}
	}
	next := int64(1)
	if len(old) > 0 {
		next = old[len(old)-1].Revision + 1
	}
	if len(same) == 0 {
		now, err = h.create(ctx, d, next)
		return now, old, err
	}
	now, err = h.keepLast(ctx, same)
	if err != nil || now.Revision >= next {
		return now, old, err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"revision":%d}`, now.UID, next)
	now, err = h.Claim.Children.Patch(ctx, now.Namespace, now.Name, types.MergePatchType, patch)
	return now, old, err
}

func (h Revisions) create(ctx context.Context, d Draft, number int64) (*appsv1.ControllerRevision, error) {
	owner := h.Claim.Owner
	draft := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.GetNamespace(), Name: owner.GetName() + "-" + d.Hash, Labels: d.Labels,
			Annotations:     maps.Clone(d.Annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, h.Claim.Kind)},
		},
		Data: runtime.RawExtension{Raw: d.Data}, Revision: number,
	}
	made, err := h.Claim.Children.Create(ctx, draft)
	if !apierrors.IsAlreadyExists(err) {
		return made, err
	}
	there, err := h.Claim.Children.Get(ctx, draft.Namespace, draft.Name)
	if err != nil {
		return nil, err
	}
	if ref := metav1.GetControllerOfNoCopy(there); ref != nil && ref.UID == owner.GetUID() &&
		bytes.Equal(there.Data.Raw, d.Data) {
		return there, nil // the cache does not have it yet
	}
	return nil, fmt.Errorf("creating ControllerRevision %s/%s: %w", draft.Namespace, draft.Name, ErrNameTaken)
}

// keepLast keeps one of several revisions with the same data, the newest.
func (h Revisions) keepLast(ctx context.Context, same []*appsv1.ControllerRevision) (*appsv1.ControllerRevision,
	error) {
	last := same[len(same)-1]
	for _, r := range same[:len(same)-1] {
		if h.Merge != nil {
			if err := h.Merge(ctx, r, last); err != nil {
				return nil, err
			}
		}
		if err := h.delete(ctx, r); err != nil {
			return nil, err
		}
	}
	return last, nil
}

// MovePods gives the pods of revision from to revision to, which has the same template; label says on a pod which it is
// of.
func MovePods(ctx context.Context, r *apiclient.Resource[*corev1.Pod], pods []*corev1.Pod, label, from,
	to string) error {
	for _, p := range pods {
		if p.Labels[label] != from || from == to {
			continue
		}
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:%q}}}`, p.UID, label, to)
		if _, err := r.Patch(ctx, p.Namespace, p.Name, types.StrategicMergePatchType, patch); err != nil {
			return fmt.Errorf("giving pod %s/%s to another revision: %w", p.Namespace, p.Name, err)
		}
	}
	return nil
}

// Trim deletes the oldest revisions that are not in use, so that no more than limit old ones are left. old is ordered
// from the first.
func (h Revisions) Trim(ctx context.Context, old []*appsv1.ControllerRevision, limit int,
	inUse func(*appsv1.ControllerRevision) bool) error {
	for _, r := range expired(old, limit, inUse) {
		if err := h.delete(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func expired(old []*appsv1.ControllerRevision, limit int,
	inUse func(*appsv1.ControllerRevision) bool) []*appsv1.ControllerRevision {
	idle := slices.DeleteFunc(slices.Clone(old), inUse)
	return idle[:min(max(len(old)-limit, 0), len(idle))]
}

func (h Revisions) delete(ctx context.Context, r *appsv1.ControllerRevision) error {
	if err := h.Claim.Children.Delete(ctx, r.Namespace, r.Name, r.UID); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting ControllerRevision %s/%s: %w", r.Namespace, r.Name, err)
	}
	return nil
}
