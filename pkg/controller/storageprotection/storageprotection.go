// Package storageprotection keeps storage objects from disappearing while they are used. It adds a finalizer to objects
// that lack it, and removes it when an object is being deleted and is no longer used. There are three such controllers:
// for claims, for persistent volumes and for volume attributes classes. The one for claims also says which of them no
// pod uses.
package storageprotection

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"bonsai/api/core/volumebinding"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/storage"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/podindex"
)

// Controller reconciles the objects of one kind.
type Controller[T apiclient.Object] struct {
	controller.Deps
	finalizer string
	objects   *controller.Informer[T]
	writes    *apiclient.Resource[T]
	// used reports whether somebody uses an object that is being deleted. What it overlooks loses its object.
	used func(context.Context, T) (bool, error)
	// also, if not nil, is done for an object whose finalizers are right.
	also func(context.Context, T) error
	loop *controller.Loop[controller.Key]
}

func build[T apiclient.Object](d controller.Deps, name, finalizer string,
	kind func(*apiclient.Client) *apiclient.Resource[T]) (*Controller[T], error) {
	c := &Controller[T]{Deps: d, finalizer: finalizer, objects: controller.InformerFor(d.Informers, kind),
		writes: kind(d.Client)}
	c.loop = controller.NewLoop(controller.LoopConfig{Name: name, Workers: d.Workers, Log: d.Log, Metrics: d.Metrics},
		c.Reconcile)
	return c, controller.WatchKeys(c.loop, c.objects)
}

// NewClaims returns the controller of claims. A claim is used while there is a pod with it that has a node, whatever
// has become of the pod: the node may not have let go of the volume. A pod without a node cannot get one any more.
func NewClaims(d controller.Deps) (*Controller[*corev1.PersistentVolumeClaim], error) {
	c, err := build(d, "pvcprotection", volumebinding.ClaimProtection, core.PersistentVolumeClaims)
	pods, live := controller.InformerFor(d.Informers, core.Pods), core.Pods(d.Client)
	users := podindex.NewByClaim(pods)
	c.used = func(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
		if slices.ContainsFunc(users.Using(controller.KeyOf(claim)), func(p *corev1.Pod) bool {
			return holds(p, claim)
		}) {
			return true, nil
		}
		// The cache may be behind, and what is gone does not come back.
		all, err := live.List(ctx, claim.Namespace, metav1.ListOptions{})
		return slices.ContainsFunc(all, func(p *corev1.Pod) bool { return holds(p, claim) }), err
	}
	c.also = unused(c, users)
	wake := func(p *corev1.Pod) {
		for i := range p.Spec.Volumes {
			if name := controller.ClaimOf(p, &p.Spec.Volumes[i]); name != "" {
				c.loop.Add(controller.Key{Namespace: p.Namespace, Name: name})
			}
		}
	}
	return c, errors.Join(err, controller.Watch(c.loop, pods, controller.Handlers[*corev1.Pod]{
		Add: wake,
		Update: func(old, p *corev1.Pod) {
			if controller.PodActive(old) != controller.PodActive(p) {
				wake(p)
			}
		},
		Delete: wake,
	}))
}

// holds reports whether a pod may have the claim's volume on a node.
func holds(p *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	return p.Spec.NodeName != "" && p.Namespace == claim.Namespace && mounts(p, claim)
}

// mounts reports whether a pod of the claim's namespace has it among its volumes. A claim that is made for a pod is
// used by that pod alone.
func mounts(p *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return controller.ClaimOf(p, &v) == claim.Name && (v.Ephemeral == nil || metav1.IsControlledBy(claim, p))
	})
}

// NewVolumes returns the controller of persistent volumes. A volume is used while it is bound.
func NewVolumes(d controller.Deps) (*Controller[*corev1.PersistentVolume], error) {
	c, err := build(d, "pvprotection", volumebinding.VolumeProtection, core.PersistentVolumes)
	c.used = func(_ context.Context, v *corev1.PersistentVolume) (bool, error) {
		return v.Status.Phase == corev1.VolumeBound, nil
	}
	return c, err
}

// NewAttributesClasses returns the controller of volume attributes classes. A class is used while a volume or claim has
// it or is to have it.
func NewAttributesClasses(d controller.Deps) (*Controller[*storagev1.VolumeAttributesClass], error) {
	c, err := build(d, "vacprotection", volumebinding.AttributesProtection, storage.VolumeAttributesClasses)
	claims, volumes := controller.InformerFor(d.Informers, core.PersistentVolumeClaims),
		controller.InformerFor(d.Informers, core.PersistentVolumes)
	liveClaims, liveVolumes := core.PersistentVolumeClaims(d.Client), core.PersistentVolumes(d.Client)
	c.used = func(ctx context.Context, class *storagev1.VolumeAttributesClass) (bool, error) {
		ofClaim := func(claim *corev1.PersistentVolumeClaim) bool {
			return slices.Contains(classesOf(claim), class.Name)
		}
		ofVolume := func(v *corev1.PersistentVolume) bool {
			return ptr.Deref(v.Spec.VolumeAttributesClassName, "") == class.Name
		}
		if slices.ContainsFunc(claims.List(), ofClaim) || slices.ContainsFunc(volumes.List(), ofVolume) {
			return true, nil
		}
		cs, err := liveClaims.List(ctx, "", metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		vs, err := liveVolumes.List(ctx, "", metav1.ListOptions{})
		return slices.ContainsFunc(cs, ofClaim) || slices.ContainsFunc(vs, ofVolume), err
	}
	wake := func(names ...string) {
		for _, name := range names {
			if class, ok := c.objects.Get(controller.Key{Name: name}); ok && class.DeletionTimestamp != nil {
				c.loop.Add(controller.KeyOf(class))
			}
		}
	}
	return c, errors.Join(err,
		controller.Watch(c.loop, claims, controller.Handlers[*corev1.PersistentVolumeClaim]{
			Update: func(old, _ *corev1.PersistentVolumeClaim) { wake(classesOf(old)...) },
			Delete: func(claim *corev1.PersistentVolumeClaim) { wake(classesOf(claim)...) },
		}),
		controller.Watch(c.loop, volumes, controller.Handlers[*corev1.PersistentVolume]{
			Update: func(old, _ *corev1.PersistentVolume) { wake(ptr.Deref(old.Spec.VolumeAttributesClassName, "")) },
			Delete: func(v *corev1.PersistentVolume) { wake(ptr.Deref(v.Spec.VolumeAttributesClassName, "")) },
		}),
	)
}

// classesOf are the attributes classes that a claim asks for, has, and is being changed to; some may be "".
func classesOf(claim *corev1.PersistentVolumeClaim) []string {
	out := []string{ptr.Deref(claim.Spec.VolumeAttributesClassName, ""),
		ptr.Deref(claim.Status.CurrentVolumeAttributesClassName, "")}
	if m := claim.Status.ModifyVolumeStatus; m != nil {
		out = append(out, m.TargetVolumeAttributesClassName)
	}
	return out
}

// Run reconciles until ctx ends.
func (c *Controller[T]) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile puts the finalizer on an object that is to stay, and takes it off one that is to go and is not used.
func (c *Controller[T]) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	o, ok := c.objects.Get(key)
	if !ok {
		return controller.Result{}, nil
	}
	leaving, protected := o.GetDeletionTimestamp() != nil, slices.Contains(o.GetFinalizers(), c.finalizer)
	if leaving != protected {
		if c.also != nil {
			return controller.Result{}, c.also(ctx, o)
		}
		return controller.Result{}, nil
	}
	want := append(slices.Clone(o.GetFinalizers()), c.finalizer)
	if leaving {
		used, err := c.used(ctx, o)
		if err != nil || used {
			return controller.Result{}, err
		}
		want = slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == c.finalizer })
	}
	o = o.DeepCopyObject().(T)
	o.SetFinalizers(want)
	if _, err := c.writes.Update(ctx, o); err != nil && !apierrors.IsNotFound(err) {
		return controller.Result{}, fmt.Errorf("writing the finalizers of %s %s: %w", c.writes.GVR().Resource, key, err)
	}
	return controller.Result{}, nil
}
