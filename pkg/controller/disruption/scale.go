package disruption

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/apps"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/served"
	"bonsai/pkg/controller"
)

// scale is how many pods a controller is asked to have.
type scale struct {
	uid      types.UID
	replicas int32
}

// finder finds the scale of pods' controllers: those of the known workloads in their caches, any other by its
// subresource.
type finder struct {
	client      *apiclient.Client
	kinds       *served.Finder
	deployments *controller.Informer[*appsv1.Deployment]
	replicas    *controller.Informer[*appsv1.ReplicaSet]
	sets        *controller.Informer[*appsv1.StatefulSet]
	controllers *controller.Informer[*corev1.ReplicationController]
}

func newFinder(d controller.Deps) *finder {
	return &finder{
		client: d.Client, kinds: served.NewFinder(served.By(d.Client), d.Now),
		deployments: controller.InformerFor(d.Informers, apps.Deployments),
		replicas:    controller.InformerFor(d.Informers, apps.ReplicaSets),
		sets:        controller.InformerFor(d.Informers, apps.StatefulSets),
		controllers: controller.InformerFor(d.Informers, core.ReplicationControllers),
	}
}

// watch makes l wait for the workloads, and calls wake with their pods' labels when they are scaled: pods that are
// missing do not say so.
func (f *finder) watch(l *controller.Loop[controller.Key], wake func(namespace string, of labels.Set)) error {
	return errors.Join(
		controller.Watch(l, f.deployments, scaled(wake, func(d *appsv1.Deployment) (*int32, map[string]string) {
			return d.Spec.Replicas, d.Spec.Template.Labels
		})),
		controller.Watch(l, f.replicas, scaled(wake, func(r *appsv1.ReplicaSet) (*int32, map[string]string) {
			return r.Spec.Replicas, r.Spec.Template.Labels
		})),
		controller.Watch(l, f.sets, scaled(wake, func(s *appsv1.StatefulSet) (*int32, map[string]string) {
			return s.Spec.Replicas, s.Spec.Template.Labels
		})),
		controller.Watch(l, f.controllers,
			scaled(wake, func(r *corev1.ReplicationController) (*int32, map[string]string) {
				if r.Spec.Template == nil {
					return r.Spec.Replicas, nil
				}
				return r.Spec.Replicas, r.Spec.Template.Labels
			})),
	)
}

func scaled[T apiclient.Object](wake func(string, labels.Set),
	look func(T) (*int32, map[string]string)) controller.Handlers[T] {
	return controller.Handlers[T]{Update: func(old, o T) {
		before, _ := look(old)
		if after, of := look(o); number(before) != number(after) {
			wake(o.GetNamespace(), of)
		}
	}}
}

// number is the value of spec.replicas, 1 where it is left out.
func number(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// find returns the scale of the controller that ref names, or of the Deployment above it; ok is false if there is none
// any more.
func (f *finder) find(ctx context.Context, ns string, ref *metav1.OwnerReference) (s scale, ok bool, err error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return scale{}, false, err
	}
	if s, ok := f.cached(ns, gv.WithKind(ref.Kind).GroupKind(), ref); ok {
		return s, true, nil
	}
	return f.asked(ctx, ns, gv.WithKind(ref.Kind), ref)
}

// cached looks among the known workloads.
func (f *finder) cached(ns string, kind schema.GroupKind, ref *metav1.OwnerReference) (scale, bool) {
	key := controller.Key{Namespace: ns, Name: ref.Name}
	switch kind {
	case schema.GroupKind{Kind: "ReplicationController"}:
		o, ok := f.controllers.Get(key)
		return found(o, ok, ref, func() *int32 { return o.Spec.Replicas })
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}:
		o, ok := f.sets.Get(key)
		return found(o, ok, ref, func() *int32 { return o.Spec.Replicas })
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}:
		o, ok := f.deployments.Get(key)
		return found(o, ok, ref, func() *int32 { return o.Spec.Replicas })
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"}:
		o, ok := f.replicas.Get(key)
		s, ok := found(o, ok, ref, func() *int32 { return o.Spec.Replicas })
		if !ok {
			return s, false
		}
		if d, ok := f.deploymentOf(o); ok {
			return d, true
		}
		return s, true
	}
	return scale{}, false
}

// deploymentOf is the scale of the Deployment that made a ReplicaSet, which its pods outlive.
func (f *finder) deploymentOf(r *appsv1.ReplicaSet) (scale, bool) {
	above := metav1.GetControllerOfNoCopy(r)
	deployment := appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind()
	if above == nil || schema.FromAPIVersionAndKind(above.APIVersion, above.Kind).GroupKind() != deployment {
		return scale{}, false
	}
	return f.cached(r.Namespace, deployment, above)
}

func found(o metav1.Object, ok bool, ref *metav1.OwnerReference, replicas func() *int32) (scale, bool) {
	if !ok || o.GetUID() != ref.UID {
		return scale{}, false
	}
	return scale{o.GetUID(), number(replicas())}, true
}

// asked reads the subresource scale.
func (f *finder) asked(ctx context.Context, ns string, kind schema.GroupVersionKind, ref *metav1.OwnerReference) (scale,
	bool, error) {
	r, err := f.kinds.ForKind(ctx, kind)
	if err != nil {
		return scale{}, false, err
	}
	if !slices.Contains(r.Subresources, "scale") {
		return scale{}, false, fmt.Errorf("%s does not implement the scale subresource", r.GroupResource())
	}
	var s autoscalingv1.Scale
	err = apiclient.NewResource(f.client, r.GroupVersion(), r.Resource, &s).GetSub(ctx, ns, ref.Name, "scale", &s)
	if apierrors.IsNotFound(err) {
		return scale{}, false, nil
	}
	if err != nil || s.UID != ref.UID {
		return scale{}, false, err
	}
	return scale{s.UID, s.Spec.Replicas}, true, nil
}
