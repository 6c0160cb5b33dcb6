package network

import (
	"context"
	"encoding/json"
	"iter"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/why"
)

// workload returns a workload whose template has the labels of the Service's selector: one that should have made its
// pods.
func (q *inquiry) workload(ctx context.Context) *why.Object {
	selector := labels.Set(q.service.Spec.Selector).AsSelector()
	fits := func(t corev1.PodTemplateSpec) bool { return selector.Matches(labels.Set(t.Labels)) }
	ns := q.service.Namespace
	if list, _ := why.List[appsv1.Deployment](ctx, q.World, ns, nil); list != nil {
		for _, d := range list {
			if fits(d.Spec.Template) {
				return object("Deployment", d)
			}
		}
	}
	if list, _ := why.List[appsv1.StatefulSet](ctx, q.World, ns, nil); list != nil {
		for _, s := range list {
			if fits(s.Spec.Template) {
				return object("StatefulSet", s)
			}
		}
	}
	if list, _ := why.List[appsv1.ReplicaSet](ctx, q.World, ns, nil); list != nil {
		for _, s := range list {
			if metav1.GetControllerOf(s) == nil && fits(s.Spec.Template) {
				return object("ReplicaSet", s)
			}
		}
	}
	if list, _ := why.List[appsv1.DaemonSet](ctx, q.World, ns, nil); list != nil {
		for _, s := range list {
			if fits(s.Spec.Template) {
				return object("DaemonSet", s)
			}
		}
	}
	return nil
}

func object(kind string, m metav1.Object) *why.Object {
	o := why.ObjectOf("apps", kind, m)
	return &o
}

// alike reports whether two values differ by little, as a spelling mistake does: by at most two characters that are
// inserted, removed or replaced.
func alike(a, b string) bool {
	const most = 2
	if len(a) < 3 || len(b) < 3 || len(a)-len(b) > most || len(b)-len(a) > most {
		return false
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before := row[0] // that of the row above, one to the left
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := before
			if a[i-1] != b[j-1] {
				cost++
			}
			before = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)] <= most
}

func keysOf(m map[string]string) iter.Seq[string] { return maps.Keys(m) }

func jsonMap(m map[string]string) string {
	b, err := json.Marshal(m)
	if err != nil {
		return "{}" // strings always encode
	}
	return string(b)
}
