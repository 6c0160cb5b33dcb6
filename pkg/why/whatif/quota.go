package whatif

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/quota"
	"bonsai/pkg/why"
)

// bound is a ResourceQuota with what would be used of it.
type bound struct {
	*corev1.ResourceQuota
	used corev1.ResourceList
}

// ledger is what quotas count while the future goes on.
type ledger struct {
	*why.Case
	quotas map[string][]*bound // by namespace, as far as they were asked for
}

// forget has the quotas of a namespace read again, after one was changed.
func (l *ledger) forget(namespace string) { delete(l.quotas, namespace) }

// of returns the quotas of a namespace with what is used of them at this point of the future.
func (l *ledger) of(ctx context.Context, namespace string) []*bound {
	list, ok := l.quotas[namespace]
	if ok {
		return list
	}
	found, _ := why.List[corev1.ResourceQuota](ctx, l.World, namespace, nil)
	for _, q := range found {
		used := q.Status.Used.DeepCopy()
		if used == nil { // one that would be made: its controller counts first
			used = l.counted(ctx, q)
		}
		list = append(list, &bound{q, used})
	}
	l.quotas[namespace] = list
	return list
}

// counted is what a quota's controller would count that sees it for the first time.
func (l *ledger) counted(ctx context.Context, q *corev1.ResourceQuota) corev1.ResourceList {
	used, seen := corev1.ResourceList{}, map[schema.GroupResource]bool{}
	for name := range q.Spec.Hard {
		for _, gr := range quota.Counted(name) {
			r, served := l.Resource(gr.Group, gr.Resource)
			if seen[gr] || !served {
				continue
			}
			seen[gr] = true
			items, _ := l.All(ctx, r, q.Namespace)
			for i := range items {
				if o := typed(&items[i]); quota.InScope(&q.Spec, gr, o) {
					usage := quota.Usage(gr, o, l.Now, quota.Known{})
					quota.AddTo(used, quota.Mask(usage, quota.Matching(gr, q.Spec.Hard)))
				}
			}
		}
	}
	return used
}

// typed returns an object as the type that quotas look into; any other as it is.
func typed(u *unstructured.Unstructured) runtime.Object {
	var o runtime.Object
	switch u.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "Pod"}:
		o = &corev1.Pod{}
	case schema.GroupKind{Kind: "Service"}:
		o = &corev1.Service{}
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		o = &corev1.PersistentVolumeClaim{}
	default:
		return u
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o) != nil {
		return u
	}
	return o
}

// charge returns why a ResourceQuota of the namespace would refuse a new object, "" if none would; then the object
// counts from now on. before is what was there in its place, nil for nothing.
func (l *ledger) charge(ctx context.Context, namespace string, gr schema.GroupResource,
	o, before runtime.Object) string {
	usage := quota.Usage(gr, o, l.Now, quota.Known{})
	if before != nil {
		usage = quota.Subtract(usage, quota.Usage(gr, before, l.Now, quota.Known{}))
	}
	var counting []*bound
	for _, b := range l.of(ctx, namespace) {
		names := quota.Matching(gr, b.Spec.Hard)
		if len(names) == 0 || !quota.InScope(&b.Spec, gr, o) {
			continue
		}
		if pod, ok := o.(*corev1.Pod); ok {
			if err := quota.Unspecified(pod, names); err != nil {
				return fmt.Sprintf("failed quota: %s: %v", b.Name, err)
			}
		}
		wanted := corev1.ResourceList{}
		for name, q := range quota.Mask(usage, names) {
			if q.Sign() > 0 { // what an object gives back is never refused
				wanted[name] = q
			}
		}
		after := quota.Mask(quota.Add(b.used, wanted), quota.Names(wanted))
		if beyond := quota.Beyond(after, b.Spec.Hard); len(beyond) > 0 {
			return fmt.Sprintf("exceeded quota: %s, requested: %s, used: %s, limited: %s", b.Name,
				quota.Text(quota.Mask(usage, beyond)), quota.Text(quota.Mask(b.used, beyond)),
				quota.Text(quota.Mask(b.Spec.Hard, beyond)))
		}
		counting = append(counting, b)
	}
	for _, b := range counting {
		quota.AddTo(b.used, quota.Mask(usage, quota.Matching(gr, b.Spec.Hard)))
	}
	return ""
}

// refund gives quotas back what a pod has used.
func (l *ledger) refund(ctx context.Context, pod *corev1.Pod) {
	pods := corev1.Resource("pods")
	usage := quota.Usage(pods, pod, l.Now, quota.Known{})
	for _, b := range l.of(ctx, pod.Namespace) {
		if quota.InScope(&b.Spec, pods, pod) {
			b.used = quota.Subtract(b.used, quota.Mask(usage, quota.Matching(pods, b.Spec.Hard)))
		}
	}
}

// refund gives quotas back what a pod that ends has used. Controllers try again what quotas refuse, so the room is
// there for the pod that is made in its place, at some moment.
func (f *future) refund(ctx context.Context, pod *corev1.Pod) {
	if _, fresh := f.fresh[pod.UID]; fresh && !f.charged[pod.UID] {
		return
	}
	delete(f.charged, pod.UID)
	f.ledger.refund(ctx, pod)
}

// notMade returns why a new pod would not be made, "" if it would; then it counts against the quotas.
func (f *future) notMade(ctx context.Context, pod *corev1.Pod) string {
	if _, fresh := f.fresh[pod.UID]; !fresh || f.charged[pod.UID] {
		return ""
	}
	if message := f.refusals[pod.UID]; message != "" {
		return message
	}
	message := f.ledger.charge(ctx, pod.Namespace, corev1.Resource("pods"), pod, nil)
	f.charged[pod.UID] = message == ""
	return message
}
