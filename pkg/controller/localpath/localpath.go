// Package localpath provisions directories of nodes as persistent volumes: a claim that was given to a node gets a
// directory there, and a volume that is to be deleted with its claim has its directory removed before it goes.
//
// What happens on a node, a pod does that is bound to it and sees nothing but the directory of all volumes (helper.go).
// The rest is in objects: the claim says that a volume is wanted, the volume that there is one, the pod what has been
// done. So the controller may be killed at any time. Before a directory is removed, the server is asked, not a cache.
package localpath

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apicore "bonsai/api/core"
	"bonsai/api/core/volumebinding"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/storage"
	"bonsai/pkg/controller"
)

// Provisioner is the name by which classes ask for this provisioner.
const Provisioner = "bonsai.io/local-path"

// finalizer keeps a volume until its directory is gone; it is the name that upstream's provisioners use.
const finalizer = "external-provisioner.volume.kubernetes.io/finalizer"

// Config says where the volumes are.
type Config struct {
	// Root is the directory on every node that holds those of the volumes, absolute and clean.
	Root string
}

// settingsName is the ConfigMap beside the helpers that says what they run, as with upstream's provisioner of this
// kind. Its key settingsImage names an image that has sh, mkdir and rm.
const (
	settingsName  = "local-path-config"
	settingsImage = "image"
)

// Controller reconciles volumes by the names that they have or are to have.
type Controller struct {
	controller.Deps
	cfg     Config
	claims  *controller.Informer[*corev1.PersistentVolumeClaim]
	volumes *controller.Informer[*corev1.PersistentVolume]
	classes *controller.Informer[*storagev1.StorageClass]
	nodes   *controller.Informer[*corev1.Node]
	pods    *controller.Informer[*corev1.Pod]

	claimWrites  *apiclient.Resource[*corev1.PersistentVolumeClaim]
	volumeWrites *apiclient.Resource[*corev1.PersistentVolume]
	podWrites    *apiclient.Resource[*corev1.Pod]
	settings     *apiclient.Resource[*corev1.ConfigMap]
	loop         *controller.Loop[key]
}

// key is a volume and the claim that it is for.
type key struct {
	volume string
	claim  controller.Key
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps, cfg Config) (*Controller, error) {
	c := &Controller{
		Deps: d, cfg: cfg,
		claims:  controller.InformerFor(d.Informers, core.PersistentVolumeClaims),
		volumes: controller.InformerFor(d.Informers, core.PersistentVolumes),
		classes: controller.InformerFor(d.Informers, storage.StorageClasses),
		nodes:   controller.InformerFor(d.Informers, core.Nodes), pods: controller.InformerFor(d.Informers, core.Pods),
		claimWrites: core.PersistentVolumeClaims(d.Client), volumeWrites: core.PersistentVolumes(d.Client),
		podWrites: core.Pods(d.Client),
		settings:  core.ConfigMaps(d.Client),
	}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "localpath", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.reconcile)
	return c, errors.Join(
		controller.Watch(c.loop, c.claims, controller.All(func(claim *corev1.PersistentVolumeClaim) {
			if claim.Annotations[volumebinding.StorageProvisioner] == Provisioner {
				c.loop.Add(key{nameFor(claim), controller.KeyOf(claim)})
			}
		})),
		controller.Watch(c.loop, c.volumes, controller.All(func(v *corev1.PersistentVolume) {
			if r := v.Spec.ClaimRef; ours(v) && r != nil {
				c.loop.Add(key{v.Name, controller.Key{Namespace: r.Namespace, Name: r.Name}})
			}
		})),
		controller.Watch(c.loop, c.pods, controller.All(func(p *corev1.Pod) {
			if h, ok := helperOf(p); ok {
				c.loop.Add(key{h.volume, h.claim})
			}
		})),
		controller.Watch(c.loop, c.classes, controller.Handlers[*storagev1.StorageClass]{}),
		controller.Watch(c.loop, c.nodes, controller.Handlers[*corev1.Node]{}),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// nameFor is the name of the volume that a claim gets, as upstream's provisioners name theirs.
func nameFor(claim *corev1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) }

// ours reports whether a volume was provisioned here.
func ours(v *corev1.PersistentVolume) bool {
	return v.Annotations[volumebinding.ProvisionedBy] == Provisioner
}

func (c *Controller) reconcile(ctx context.Context, k key) (controller.Result, error) {
	v := view{name: k.volume, root: c.cfg.Root, now: c.Now(), creator: c.helper(create, k.volume),
		remover: c.helper(remove, k.volume)}
	if claim, ok := c.claims.Get(k.claim); ok && nameFor(claim) == k.volume {
		v.claim = claim
		v.class, _ = c.classes.Get(controller.Key{Name: apicore.ClaimClass(claim)})
		v.node, _ = c.nodes.Get(controller.Key{Name: claim.Annotations[volumebinding.SelectedNode]})
	}
	if volume, ok := c.volumes.Get(controller.Key{Name: k.volume}); ok && ours(volume) {
		v.volume = volume
	}
	v.nodes, v.full = map[string]string{}, map[string]bool{}
	for _, n := range c.nodes.List() {
		v.nodes[n.Labels[corev1.LabelHostname]] = n.Name
		v.full[n.Name] = lacksDisk(n)
	}
	return c.act(ctx, k, decide(v))
}

// lacksDisk reports whether a node says that it is under disk pressure.
func lacksDisk(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeDiskPressure && c.Status == corev1.ConditionTrue
	})
}

// helper returns the pod that does this with the volume's directory, nil if there is none.
func (c *Controller) helper(do verb, volume string) *helper {
	p, ok := c.pods.Get(controller.Key{Namespace: helperNamespace, Name: helperName(do, volume)})
	if !ok {
		return nil
	}
	if h, ours := helperOf(p); ours {
		return &h
	}
	return nil
}

// act does what was decided.
func (c *Controller) act(ctx context.Context, k key, a action) (controller.Result, error) {
	var err error
	switch {
	case a.start != nil:
		err = c.start(ctx, k, *a.start)
	case a.dismiss != nil:
		err = c.podWrites.DeleteWith(ctx, helperNamespace, a.dismiss.pod.Name,
			metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)),
				Preconditions: metav1.NewUIDPreconditions(string(a.dismiss.pod.UID))})
	case a.create != nil:
		_, err = c.volumeWrites.Create(ctx, a.create)
	case a.update != nil:
		_, err = c.volumeWrites.Update(ctx, a.update)
	case a.delete != nil:
		err = c.volumeWrites.DeleteWith(ctx, "", a.delete.Name,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &a.delete.UID,
				ResourceVersion: &a.delete.ResourceVersion}})
	case a.reschedule != nil:
		_, err = c.claimWrites.Update(ctx, a.reschedule)
	}
	if apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) { // done before, as the cache does not know yet
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, fmt.Errorf("volume %s of claim %s: %w", k.volume, k.claim, err)
	}
	for _, e := range a.events {
		c.Events.Event(e.on, e.kind, e.reason, e.text)
	}
	return controller.Result{RequeueAfter: a.again}, nil
}

// start creates a helper. Before one that removes a directory, start asks the server (free): the cache may be
// behind, and the data would be lost.
func (c *Controller) start(ctx context.Context, k key, j job) error {
	if j.verb == remove {
		free, err := c.free(ctx, k, j)
		if err != nil || !free {
			return err
		}
	}
	image, err := c.image(ctx)
	if err != nil {
		return err
	}
	_, err = c.podWrites.Create(ctx, newHelper(k, j, c.cfg.Root, image))
	return err
}

// image is the helpers' image. It is read for each helper: helpers are rare, and a watch on that namespace's
// configuration would cost more.
func (c *Controller) image(ctx context.Context) (string, error) {
	settings, err := c.settings.Get(ctx, helperNamespace, settingsName)
	if err != nil {
		// not wrapped: that this is missing says nothing of volumes
		return "", fmt.Errorf("find the image of helpers: %s", err)
	}
	if settings.Data[settingsImage] == "" {
		return "", fmt.Errorf("the ConfigMap %s/%s names no %s", helperNamespace, settingsName, settingsImage)
	}
	return settings.Data[settingsImage], nil
}

// free asks the server whether the volume is as it was judged, or if there is none, whether its claim is gone, too.
func (c *Controller) free(ctx context.Context, k key, j job) (bool, error) {
	v, err := c.volumeWrites.Get(ctx, "", k.volume)
	switch {
	case err == nil:
		return j.volume != nil && v.UID == j.volume.UID && v.ResourceVersion == j.volume.ResourceVersion, nil
	case !apierrors.IsNotFound(err) || j.volume != nil:
		return false, ignoreMissing(err)
	}
	claim, err := c.claimWrites.Get(ctx, k.claim.Namespace, k.claim.Name)
	if err == nil {
		return nameFor(claim) != k.volume || claim.Spec.VolumeName != "" && claim.Spec.VolumeName != k.volume, nil
	}
	return apierrors.IsNotFound(err), ignoreMissing(err)
}

func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// without returns the volume without our finalizer.
func without(v *corev1.PersistentVolume) *corev1.PersistentVolume {
	v = v.DeepCopy()
	v.Finalizers = slices.DeleteFunc(v.Finalizers, func(f string) bool { return f == finalizer })
	return v
}
