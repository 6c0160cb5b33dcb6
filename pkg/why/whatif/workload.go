package whatif

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/why"
	"bonsai/pkg/why/simulate"
)

// workload is what makes pods of a template.
type workload struct {
	owner     string // deployment/web
	namespace string
	template  corev1.PodTemplateSpec
	replicas  int
	// ref is the controller of its new pods.
	ref []metav1.OwnerReference
	// pods are those that exist, without those that end.
	pods []*model.PodInfo
	// claims are the templates of claims that each new pod gets, and ordinals the numbers in their names; nil if they
	// have none.
	claims   []corev1.PersistentVolumeClaim
	ordinals func() int
	// surge and unavailable are how many pods a rollout may have too many, and too few.
	surge, unavailable int
}

// kinds are the names of workloads in arguments.
var kinds = map[string]string{
	"deployment": "Deployment", "deployments": "Deployment", "deploy": "Deployment",
	"statefulset": "StatefulSet", "statefulsets": "StatefulSet", "sts": "StatefulSet",
	"replicaset": "ReplicaSet", "replicasets": "ReplicaSet", "rs": "ReplicaSet",
	"pod": "Pod", "pods": "Pod", "po": "Pod", "node": "Node", "nodes": "Node", "no": "Node",
}

// kindOf returns the kind that an argument names, "" if a change of it cannot be foreseen.
func kindOf(arg string) string {
	word, _, _ := strings.Cut(strings.ToLower(arg), ".")
	return kinds[word]
}

// find returns a workload with its pods.
func (f *future) find(ctx context.Context, kind, namespace, name string) (*workload, error) {
	w := &workload{owner: strings.ToLower(kindOf(kind)) + "/" + name, namespace: namespace}
	missing := func(known bool) error {
		if !known {
			return fmt.Errorf("%s in namespace %s could not be read", w.owner, namespace)
		}
		return fmt.Errorf("there is no %s in namespace %s", w.owner, namespace)
	}
	var owners []metav1.Object
	switch kindOf(kind) {
	case "Deployment":
		d, known := why.Get[appsv1.Deployment](ctx, f.World, namespace, name)
		if d == nil {
			return nil, missing(known)
		}
		w.template, w.replicas = d.Spec.Template, count(d.Spec.Replicas)
		w.surge, w.unavailable = rollout(d, w.replicas)
		sets, _ := why.List[appsv1.ReplicaSet](ctx, f.World, namespace, nil)
		for _, s := range sets {
			if metav1.IsControlledBy(s, d) {
				owners = append(owners, s)
			}
		}
		slices.SortStableFunc(owners, func(a, b metav1.Object) int { // the newest first
			return b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time)
		})
		if len(owners) > 0 {
			w.ref = []metav1.OwnerReference{*metav1.NewControllerRef(owners[0],
				appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
		}
	case "StatefulSet":
		s, known := why.Get[appsv1.StatefulSet](ctx, f.World, namespace, name)
		if s == nil {
			return nil, missing(known)
		}
		w.template, w.replicas = s.Spec.Template, count(s.Spec.Replicas)
		w.unavailable = 1
		owners = []metav1.Object{s}
		w.ref = []metav1.OwnerReference{*metav1.NewControllerRef(s, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
		w.claims = s.Spec.VolumeClaimTemplates
	case "ReplicaSet":
		s, known := why.Get[appsv1.ReplicaSet](ctx, f.World, namespace, name)
		if s == nil {
			return nil, missing(known)
		}
		w.template, w.replicas = s.Spec.Template, count(s.Spec.Replicas)
		owners = []metav1.Object{s}
		w.ref = []metav1.OwnerReference{*metav1.NewControllerRef(s, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	default:
		return nil, fmt.Errorf("%s: only deployments, replicasets and statefulsets can be scaled here", kind)
	}
	pods, _ := why.List[corev1.Pod](ctx, f.World, namespace, nil)
	for _, p := range pods {
		if p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed &&
			slices.ContainsFunc(owners, func(o metav1.Object) bool { return metav1.IsControlledBy(p, o) }) {
			w.pods = append(w.pods, simulate.Info(p))
		}
	}
	if kindOf(kind) == "StatefulSet" {
		w.ordinals = numbers(w.pods)
	}
	return w, nil
}

// numbers counts up the numbers of a StatefulSet's new pods, without those that it has.
func numbers(pods []*model.PodInfo) func() int {
	taken := map[string]bool{}
	for _, p := range pods {
		taken[p.Pod.Name[strings.LastIndexByte(p.Pod.Name, '-')+1:]] = true
	}
	next := -1
	return func() int {
		for next++; taken[strconv.Itoa(next)]; next++ {
		}
		return next
	}
}

// count returns the number of replicas, 1 by default.
func count(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}

// templates returns pods as the change would make them, for what must be read of them.
func (f *future) templates(ctx context.Context, ch Change) (pods []*corev1.Pod, err error) {
	if ch.Verb == Scale {
		w, err := f.find(ctx, ch.Kind, ch.Namespace, ch.Name)
		if err != nil {
			return nil, err
		}
		return []*corev1.Pod{example(ch.Namespace, w.template.Spec, w.claims)}, nil
	}
	for _, u := range ch.Objects {
		m, err := makerOf(u)
		if err != nil {
			return nil, err
		}
		if m != nil {
			pods = append(pods, example(u.GetNamespace(), m.template.Spec, m.claims))
		}
	}
	return pods, nil
}

// example is a pod that needs what new pods will need.
func example(namespace string, spec corev1.PodSpec, claims []corev1.PersistentVolumeClaim) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: spec}
	for i := range claims {
		p.Spec.Volumes = append(slices.Clone(p.Spec.Volumes), corev1.Volume{Name: claims[i].Name,
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: claims[i].Name}}})
	}
	return p
}

// more makes pods of a workload.
func (f *future) more(ctx context.Context, w *workload, n int) {
	for range n {
		f.pending = append(f.pending, f.create(ctx, w))
	}
}

// fewer ends pods of a workload, as its controller chooses them: those without a node, those that are not ready, and
// the newest.
func (f *future) fewer(ctx context.Context, w *workload, n int) {
	rank := func(p *model.PodInfo) int {
		switch {
		case p.Pod.Spec.NodeName == "":
			return 0
		case !ready(p.Pod):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(w.pods, func(a, b *model.PodInfo) int {
		if r := rank(a) - rank(b); r != 0 {
			return r
		}
		return b.Pod.CreationTimestamp.Compare(a.Pod.CreationTimestamp.Time)
	})
	for _, p := range w.pods[:min(n, len(w.pods))] {
		f.gone(ctx, p)
	}
	w.pods = w.pods[min(n, len(w.pods)):]
}

// gone ends a pod that its controller does not want any more.
func (f *future) gone(ctx context.Context, p *model.PodInfo) {
	f.cluster.Remove(p)
	f.refund(ctx, p.Pod)
	f.result.Ended = append(f.result.Ended, Ended{Pod: f.object(p), Node: p.Pod.Spec.NodeName})
}

func ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
