package whatif

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources/rows"
	"bonsai/pkg/why"
)

// makers are the kinds of a file that make pods or take them.
var makers = map[schema.GroupKind]bool{{Kind: "Node"}: true, {Kind: "Pod"}: true,
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "ReplicaSet"}: true, {Group: "apps", Kind: "DaemonSet"}: true,
	{Group: "batch", Kind: "Job"}: true}

// suppose makes the objects of a file that make no pods: claims, quotas, classes, limits and whatever else. They count
// against quotas, and pods of the same file see them.
func (f *future) suppose(ctx context.Context, objects []*unstructured.Unstructured) error {
	quotasFirst := slices.SortedStableFunc(slices.Values(objects), func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(rank(a), rank(b))
	})
	for _, u := range quotasFirst {
		gvk := u.GroupVersionKind()
		if makers[gvk.GroupKind()] {
			continue
		}
		_, template, _ := unstructured.NestedMap(u.Object, "spec", "template")
		_, jobs, _ := unstructured.NestedMap(u.Object, "spec", "jobTemplate")
		if template || jobs {
			f.Note(fmt.Sprintf("Pods that the %s %s would make are not foreseen.", gvk.Kind, u.GetName()))
		}
		r, served := f.Served(gvk.Group, gvk.Kind)
		if !served {
			f.Note(fmt.Sprintf("The server does not serve %s %s: it was left out.", gvk.Kind, u.GetName()))
			continue
		}
		r.Version = gvk.Version
		if err := f.supposeOne(ctx, r, u); err != nil {
			return err
		}
	}
	return nil
}

// rank puts quotas before what they count.
func rank(u *unstructured.Unstructured) int {
	if u.GetKind() == "ResourceQuota" {
		return 0
	}
	return 1
}

func (f *future) supposeOne(ctx context.Context, r schema.GroupVersionResource, u *unstructured.Unstructured) error {
	old, _ := f.Object(ctx, r, u.GetNamespace(), u.GetName())
	then := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(u.Object)}
	var before runtime.Object
	if old != nil {
		before = typed(old)
		then.Object = merged(runtime.DeepCopyJSON(old.Object), then.Object)
	} else if err := defaulted(then); err != nil {
		return err
	}
	o := typed(then)
	claim, isClaim := o.(*corev1.PersistentVolumeClaim)
	message := ""
	if isClaim && before == nil {
		message = f.admission.Claim(ctx, claim)
	}
	if message == "" {
		message = f.ledger.charge(ctx, u.GetNamespace(), r.GroupResource(), o, before)
	}
	if message == "" && isClaim && before == nil {
		if message = f.bind(ctx, claim); message == "" {
			return nil
		}
	}
	if message != "" {
		f.refuse(ctx, u, message)
		return nil
	}
	f.Suppose(r, then)
	if rank(u) == 0 {
		f.ledger.forget(u.GetNamespace())
	}
	return nil
}

// made counts an object that makes pods, and what it makes beside them, and reports whether it would be made.
func (f *future) made(ctx context.Context, u *unstructured.Unstructured) bool {
	gvk := u.GroupVersionKind()
	if gvk.Kind == "Pod" { // its pod counts itself
		return true
	}
	r, _ := meta.UnsafeGuessKindToResource(gvk)
	for _, gr := range []schema.GroupResource{r.GroupResource(), appsv1.Resource("replicasets")} {
		if gr == appsv1.Resource("replicasets") && gvk.Kind != "Deployment" {
			continue
		}
		if message := f.ledger.charge(ctx, u.GetNamespace(), gr, u, nil); message != "" {
			f.refuse(ctx, u, message)
			return false
		}
	}
	return true
}

// refuse records that an object of the file would not be made.
func (f *future) refuse(ctx context.Context, u *unstructured.Unstructured, message string) {
	o := why.ObjectOf(u.GroupVersionKind().Group, u.GetKind(), u)
	f.result.Refused = append(f.result.Refused, Refused{Object: o, Message: message})
	f.explain(ctx, o.Namespace, message)
}

// explain keeps why the API server would refuse something, for the answer.
func (f *future) explain(ctx context.Context, namespace, message string) {
	if _, ok := f.result.refusals[message]; !ok {
		f.result.refusals[message] = why.Refused(ctx, f.Case, namespace, message, why.Evidence{})
	}
}

// merged is an object after an apply: what the file says comes before what was there. Lists are replaced as a whole.
func merged(old, file map[string]any) map[string]any {
	for k, v := range file {
		a, ok := old[k].(map[string]any)
		b, isMap := v.(map[string]any)
		if ok && isMap {
			old[k] = merged(a, b)
			continue
		}
		old[k] = v
	}
	return old
}

// defaulted fills in what the API server would in a new object of its own kinds.
func defaulted(u *unstructured.Unstructured) error {
	for _, row := range rows.All() {
		if row.GVK != u.GroupVersionKind() || row.Strategy.Default == nil {
			continue
		}
		o := row.New()
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
			return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
		row.Strategy.Default(o)
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
		u.Object = fields
		u.SetGroupVersionKind(row.GVK)
	}
	return nil
}
