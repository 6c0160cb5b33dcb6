package whatif

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/pkg/why"
	"bonsai/pkg/why/simulate"
)

// change makes the change on the copy; the pods that it makes are pending then.
func (f *future) change(ctx context.Context, ch Change) error {
	switch ch.Verb {
	case Scale:
		w, err := f.find(ctx, ch.Kind, ch.Namespace, ch.Name)
		if err != nil {
			return err
		}
		return f.scale(ctx, w, ch.Replicas)
	case Cordon, Uncordon:
		return f.cordon(ch.Name, ch.Verb == Cordon)
	case Drain:
		return f.drain(ctx, ch.Name)
	case Delete:
		return f.remove(ctx, ch)
	case Apply:
		for _, u := range ch.Objects {
			if err := f.apply(ctx, u); err != nil {
				return fmt.Errorf("%s/%s: %w", strings.ToLower(u.GetKind()), u.GetName(), err)
			}
		}
		return nil
	}
	return fmt.Errorf("unknown change %q", ch.Verb)
}

func (f *future) scale(ctx context.Context, w *workload, replicas int) error {
	if replicas > maxReplicas {
		return fmt.Errorf("%d replicas: at most %d can be foreseen", replicas, maxReplicas)
	}
	if n := replicas - len(w.pods); n > 0 {
		f.more(ctx, w, n)
	} else {
		f.fewer(ctx, w, -n)
	}
	return nil
}

// remove deletes a node, a pod or a workload.
func (f *future) remove(ctx context.Context, ch Change) error {
	switch kindOf(ch.Kind) {
	case "Node":
		return f.lose(ctx, ch.Name)
	case "Pod":
		p, _ := why.Get[corev1.Pod](ctx, f.World, ch.Namespace, ch.Name)
		if p == nil {
			return fmt.Errorf("there is no pod %s in namespace %s", ch.Name, ch.Namespace)
		}
		f.pending = append(f.pending, f.end(ctx, simulate.Info(p))...)
		return nil
	case "":
		return fmt.Errorf("deleting a %s cannot be foreseen: name a node, pod, deployment, replicaset or statefulset",
			ch.Kind)
	}
	w, err := f.find(ctx, ch.Kind, ch.Namespace, ch.Name)
	if err != nil {
		return err
	}
	return f.scale(ctx, w, 0)
}

// maker is an object of a file that makes pods.
type maker struct {
	template corev1.PodTemplateSpec
	replicas int
	claims   []corev1.PersistentVolumeClaim
}

// makerOf returns what pods an object makes and how many; nil for one that makes none.
func makerOf(u *unstructured.Unstructured) (m *maker, err error) {
	into := func(o any) { err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o) }
	switch u.GetKind() {
	case "Deployment":
		var o appsv1.Deployment
		into(&o)
		return &maker{template: o.Spec.Template, replicas: count(o.Spec.Replicas)}, err
	case "StatefulSet":
		var o appsv1.StatefulSet
		into(&o)
		return &maker{o.Spec.Template, count(o.Spec.Replicas), o.Spec.VolumeClaimTemplates}, err
	case "ReplicaSet":
		var o appsv1.ReplicaSet
		into(&o)
		return &maker{template: o.Spec.Template, replicas: count(o.Spec.Replicas)}, err
	case "DaemonSet": // how many it makes, the nodes say
		var o appsv1.DaemonSet
		into(&o)
		return &maker{template: o.Spec.Template}, err
	case "Job":
		var o batchv1.Job
		into(&o)
		if o.Spec.Suspend != nil && *o.Spec.Suspend {
			return &maker{template: o.Spec.Template}, err
		}
		return &maker{template: o.Spec.Template, replicas: atOnce(&o.Spec)}, err
	case "Pod":
		var o corev1.Pod
		into(&o)
		return &maker{template: corev1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}, replicas: 1}, err
	}
	return nil, nil
}

// atOnce is how many pods a Job makes at first: no more than it has to complete.
func atOnce(s *batchv1.JobSpec) int {
	n := count(s.Parallelism)
	if s.Completions != nil {
		n = min(n, int(*s.Completions))
	}
	return n
}

// apply foresees one object of a file that makes pods: it is made, or changed from what it is.
func (f *future) apply(ctx context.Context, u *unstructured.Unstructured) error {
	gvk := u.GroupVersionKind()
	if !makers[gvk.GroupKind()] {
		return nil // suppose has made it
	}
	if gvk.Kind == "Node" {
		var n corev1.Node
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &n); err != nil {
			return err
		}
		fresh := f.cluster.Snapshot.Get(n.Name) == nil
		f.cluster.SetNode(&n)
		if fresh {
			f.added(ctx, &n)
		}
		return nil
	}
	m, err := makerOf(u)
	switch {
	case err != nil:
		return err
	case m.replicas > maxReplicas:
		return fmt.Errorf("%d pods: at most %d can be foreseen", m.replicas, maxReplicas)
	}
	old, _ := f.ByKind(ctx, gvk.Group, gvk.Kind, u.GetNamespace(), u.GetName())
	if gvk.Kind == "DaemonSet" {
		return f.applyDaemon(ctx, u, old != nil)
	}
	if old == nil {
		if f.made(ctx, u) {
			w := &workload{owner: strings.ToLower(u.GetKind()) + "/" + u.GetName(), namespace: u.GetNamespace(),
				template: m.template, claims: m.claims}
			if gvk.Kind == "StatefulSet" {
				w.ordinals = numbers(nil)
			}
			f.more(ctx, w, m.replicas)
		}
		return nil
	}
	if gvk.Kind == "Job" || gvk.Kind == "Pod" {
		return errors.New("it exists, and its pods cannot be changed")
	}
	w, err := f.find(ctx, gvk.Kind, u.GetNamespace(), u.GetName())
	if err != nil {
		return err
	}
	replicas := m.replicas
	if _, said, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); !said {
		replicas = w.replicas // an apply leaves it
	}
	before, _, _ := unstructured.NestedMap(old.Object, "spec", "template")
	after, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	if gvk.Kind == "ReplicaSet" || within(after, before) {
		return f.scale(ctx, w, replicas)
	}
	if gvk.Kind == "StatefulSet" {
		w.ordinals = nil // a pod of the new template takes the name of one that ends
		if len(w.claims) > 0 {
			f.Note("Where the volumes of " + w.owner + " can be reached is not looked at.")
		}
		w.claims = nil
	}
	return f.roll(ctx, w, m.template, replicas)
}

// applyDaemon foresees a new DaemonSet.
func (f *future) applyDaemon(ctx context.Context, u *unstructured.Unstructured, exists bool) error {
	if exists {
		f.Note(fmt.Sprintf("Changes of the DaemonSet %s, which exists, are not foreseen.", u.GetName()))
		return nil
	}
	var ds appsv1.DaemonSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &ds); err != nil {
		return err
	}
	if f.made(ctx, u) {
		f.daemon(ctx, &ds, nodesOf(f.cluster))
	}
	return nil
}

// within reports whether a file says nothing that the object has not: what a server adds as defaults is no difference.
func within(file, object any) bool {
	switch a := file.(type) {
	case map[string]any:
		b, ok := object.(map[string]any)
		if !ok {
			return len(a) == 0
		}
		for k, v := range a {
			if !within(v, b[k]) {
				return false
			}
		}
		return true
	case []any:
		b, ok := object.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !within(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(file, object)
}

// rollout returns how many pods a Deployment's rollout may have too many and too few.
func rollout(d *appsv1.Deployment, replicas int) (surge, unavailable int) {
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return 0, replicas
	}
	most := func(v *intstr.IntOrString, up bool) int {
		if v == nil {
			v = &intstr.IntOrString{Type: intstr.String, StrVal: "25%"}
		}
		n, err := intstr.GetScaledValueFromIntOrPercent(v, replicas, up)
		if err != nil {
			return 0
		}
		return n
	}
	if r := d.Spec.Strategy.RollingUpdate; r != nil {
		surge, unavailable = most(r.MaxSurge, true), most(r.MaxUnavailable, false)
	} else {
		surge, unavailable = most(nil, true), most(nil, false)
	}
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

// roll replaces a workload's pods by those of another template, as many at once as it allows. A rollout whose new pods
// find no node stops, and the old pods stay.
func (f *future) roll(ctx context.Context, w *workload, t corev1.PodTemplateSpec, replicas int) error {
	w.template = t
	placed, stuck := 0, 0
	for len(w.pods) > 0 || placed+stuck < replicas {
		n := min(replicas-placed-stuck, replicas+w.surge-len(w.pods)-placed-stuck)
		f.more(ctx, w, max(n, 0))
		before := len(f.result.Placed)
		if err := f.place(ctx, f.queue()); err != nil {
			return err
		}
		came := 0
		for _, p := range f.result.Placed[before:] {
			if p.Owner == w.owner && p.New {
				came++
			}
		}
		stuck = 0
		for _, p := range f.result.Waiting {
			if p.Owner == w.owner && p.New {
				stuck++
			}
		}
		placed += came
		spare := min(len(w.pods)+placed-(replicas-w.unavailable), len(w.pods))
		if spare <= 0 && came == 0 {
			break
		}
		if spare > 0 {
			f.fewer(ctx, w, spare)
			f.retry()
		}
	}
	return nil
}
