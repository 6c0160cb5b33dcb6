// Package persistentvolume binds claims to persistent volumes, requests a volume from a provisioner where there is
// none, and decides what becomes of a volume whose claim is gone.
//
// A binding is four writes to two objects, and the controller may be killed between any two of them. So it plans no
// sequence: it looks at the objects, makes the one write that comes next (step.go), and looks again. The volume's
// claimRef decides. If two controllers choose the same volume, its resourceVersion lets only one of them write.
//
// Two loops, of claims and of volumes, share the state and wake each other. The claim's side drives a binding; the
// volume's side says what the volume is, and what becomes of it when the claim is gone. The rules are those of
// https://kubernetes.io/docs/concepts/storage/persistent-volumes/.
package persistentvolume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	apicore "bonsai/api/core"
	"bonsai/api/core/volumebinding"
	"bonsai/api/storage"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	storageclient "bonsai/pkg/apiclient/storage"
	"bonsai/pkg/controller"
)

// Config is what flags say.
type Config struct {
	// Period is how often waiting claims are looked at, and get an event, although nothing changes; more than 0.
	Period time.Duration
	// Provisions lets claims without a volume be given to their class's provisioner.
	Provisions bool
}

// Controller reconciles claims and volumes.
//
// choosing is held for no request: the choice is made from caches, and the write follows after it is released.
type Controller struct {
	controller.Deps
	cfg     Config
	claims  *written[*corev1.PersistentVolumeClaim]
	volumes *written[*corev1.PersistentVolume]
	classes *controller.Informer[*storagev1.StorageClass]
	pods    *controller.Informer[*corev1.Pod]
	indices indices

	claimWrites  *apiclient.Resource[*corev1.PersistentVolumeClaim]
	volumeWrites *apiclient.Resource[*corev1.PersistentVolume]
	metrics      *metrics

	// choosing guards chosen, and is held from the choice of a volume until it is noted there, so that two workers
	// never choose the same one. chosen has the claims that are about to be written into volumes, by the volume; an
	// entry goes when its write has ended, whatever came of it.
	choosing sync.Mutex
	chosen   map[string]types.UID

	claimLoop, volumeLoop *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps, cfg Config) (*Controller, error) {
	c := &Controller{
		Deps: d, cfg: cfg,
		claims:      newWritten(controller.InformerFor(d.Informers, core.PersistentVolumeClaims)),
		volumes:     newWritten(controller.InformerFor(d.Informers, core.PersistentVolumes)),
		classes:     controller.InformerFor(d.Informers, storageclient.StorageClasses),
		pods:        controller.InformerFor(d.Informers, core.Pods),
		claimWrites: core.PersistentVolumeClaims(d.Client), volumeWrites: core.PersistentVolumes(d.Client),
		chosen: map[string]types.UID{},
	}
	c.indices = newIndices(c.claims.cache, c.volumes.cache, c.pods)
	c.metrics = newMetrics(d.Metrics, c.claims.cache, c.volumes.cache)
	c.claimLoop = controller.NewLoop(
		controller.LoopConfig{Name: "claims", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.reconcileClaim)
	c.volumeLoop = controller.NewLoop(
		controller.LoopConfig{Name: "volumes", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.reconcileVolume)
	var errs []error
	// Both loops wait for all caches: what one of them does not find in a cache that is still empty it would take for
	// lost.
	for _, l := range []*controller.Loop[controller.Key]{c.claimLoop, c.volumeLoop} {
		first := l == c.claimLoop
		errs = append(errs,
			controller.Watch(l, c.claims.cache, when(first, controller.All(c.claimChanged))),
			controller.Watch(l, c.volumes.cache, when(first, controller.All(c.volumeChanged))),
			controller.Watch(l, c.classes, when(first, controller.All(c.classChanged))),
			controller.Watch(l, c.pods, controller.Handlers[*corev1.Pod]{}),
		)
	}
	return c, errors.Join(errs...)
}

// when returns the handlers, or none.
func when[T apiclient.Object](ok bool, h controller.Handlers[T]) controller.Handlers[T] {
	if ok {
		return h
	}
	return controller.Handlers[T]{}
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.claimLoop.Run(ctx) })
	g.Go(func() error { return c.volumeLoop.Run(ctx) })
	return g.Wait()
}

// claimChanged wakes the claim, and the volumes that name it: what they are depends on it.
func (c *Controller) claimChanged(claim *corev1.PersistentVolumeClaim) {
	key := controller.KeyOf(claim)
	c.claims.seen(key)
	c.claimLoop.Add(key)
	for _, v := range c.indices.volumesNaming(key) {
		c.volumeLoop.Add(controller.KeyOf(v))
	}
}

// volumeChanged wakes the claim that the volume names, the claims that name the volume, and those that may get it.
//
// A free volume wakes every claim that it could serve. All but one of them will look in vain, which costs no request.
func (c *Controller) volumeChanged(v *corev1.PersistentVolume) {
	c.volumes.seen(controller.KeyOf(v))
	c.volumeLoop.Add(controller.KeyOf(v))
	for _, claim := range c.indices.claimsNaming(v.Name) {
		c.claimLoop.Add(controller.KeyOf(claim))
	}
	if r := v.Spec.ClaimRef; r != nil {
		c.claimLoop.Add(controller.Key{Namespace: r.Namespace, Name: r.Name})
		return
	}
	for _, claim := range c.indices.unbound(apicore.VolumeClass(v)) {
		if volumebinding.Claimable(v, claim) {
			c.claimLoop.Add(controller.KeyOf(claim))
		}
	}
}

// classChanged wakes the claims that wait for the class, and those that wait for a default.
func (c *Controller) classChanged(class *storagev1.StorageClass) {
	waiting := c.indices.unbound(class.Name)
	if storage.IsDefault(class) {
		waiting = append(waiting, c.indices.unbound("")...)
	}
	for _, claim := range waiting {
		c.claimLoop.Add(controller.KeyOf(claim))
	}
}

// reconcileClaim brings one claim as far as it comes.
func (c *Controller) reconcileClaim(ctx context.Context, key controller.Key) (controller.Result, error) {
	return c.reconcile(ctx, func() (step, bool, error) {
		claim, ok := c.claims.get(key)
		if !ok {
			return step{}, false, nil
		}
		next, err := c.stepOfClaim(ctx, claim)
		return next, true, err
	})
}

// reconcileVolume brings one volume as far as it comes.
func (c *Controller) reconcileVolume(ctx context.Context, key controller.Key) (controller.Result, error) {
	return c.reconcile(ctx, func() (step, bool, error) {
		v, ok := c.volumes.get(key)
		if !ok {
			return step{}, false, nil
		}
		claim, err := c.claimOf(ctx, v)
		if err != nil {
			return step{}, false, err
		}
		next := stepVolume(volumeView{v, claim})
		if next.claim {
			c.claimLoop.Add(controller.Key{Namespace: v.Spec.ClaimRef.Namespace, Name: v.Spec.ClaimRef.Name})
		}
		return next, true, nil
	})
}

// mostSteps bounds how long a worker stays with one object: a binding has four writes, and each may be preceded by one
// that makes way.
const mostSteps = 10

// reconcile takes steps until there is none; judge gives the next one, false if the object is gone.
//
// It goes on without waiting for the watch: written has what the last step wrote. An error ends it, and the loop judges
// everything again later, with what is stored by then.
func (c *Controller) reconcile(ctx context.Context, judge func() (step, bool, error)) (controller.Result, error) {
	for range mostSteps {
		next, there, err := judge()
		if err != nil || !there {
			return controller.Result{}, err
		}
		if next.change != nil {
			if err := c.write(ctx, next.change); err != nil {
				return controller.Result{}, err
			}
		}
		for _, e := range next.events {
			c.Events.Event(e.on, e.kind, e.reason, e.text)
		}
		if next.change == nil {
			if next.awaits {
				return controller.Result{RequeueAfter: c.cfg.Period}, nil
			}
			return controller.Result{}, nil
		}
	}
	// More steps than a binding has: two writers may be undoing each other's work.
	return controller.Result{Backoff: true}, nil
}

// stepOfClaim gathers what the claim's next step depends on. A choice is noted before the next one is made.
//
// A claim that names its volume needs no choice, and no lock.
func (c *Controller) stepOfClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (step, error) {
	s := claimView{claim: claim, provisions: c.cfg.Provisions}
	if name := claim.Spec.VolumeName; name != "" {
		v, err := c.volume(ctx, name, claim)
		if err != nil {
			return step{}, err
		}
		s.volume, s.missed = v, c.missed(name, claim)
		return stepClaim(s), nil
	}
	class := apicore.ClaimClass(claim)
	s.class, _ = c.classes.Get(controller.Key{Name: class})
	s.fallback = storage.DefaultClass(c.classes.List())
	s.waiting = waiting(c.indices.users.Using(controller.KeyOf(claim)))
	c.choosing.Lock()
	defer c.choosing.Unlock()
	s.candidates = c.candidates(claim, class)
	next := stepClaim(s)
	if ch := next.change; ch != nil && ch.volume != nil && !ch.status {
		c.chosen[ch.volume.Name] = claim.UID
	}
	return next, nil
}

// candidates are the volumes that name the claim or that it may have, as last written. Those are left out that another
// worker is about to give to another claim, and those that another claim had.
//
// The caller holds choosing. Volumes that were just written are added (pending), because the indices do not have them
// yet; get returns each in its newest state, so that one which is no longer free is refused by Claimable.
func (c *Controller) candidates(claim *corev1.PersistentVolumeClaim, class string) []*corev1.PersistentVolume {
	var out []*corev1.PersistentVolume
	for _, cached := range slices.Concat(c.indices.volumesNaming(controller.KeyOf(claim)),
		c.indices.unclaimed(class), c.volumes.pending()) {
		if by, taken := c.chosen[cached.Name]; taken && by != claim.UID || c.missed(cached.Name, claim) {
			continue
		}
		if v, ok := c.volumes.get(controller.KeyOf(cached)); ok {
			out = append(out, v)
		}
	}
	return out
}

// missed reports whether another claim than this one had the volume and still names it.
//
// Such a volume was released by a deletion of its object and came back, perhaps from a backup: its data is that
// claim's.
func (c *Controller) missed(volume string, by *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(c.indices.claimsNaming(volume),
		func(other *corev1.PersistentVolumeClaim) bool {
			_, had := other.Annotations[volumebinding.BindCompleted]
			return had && other.UID != by.UID
		})
}

// volume returns the volume of that name. A volume that is missing from the cache may be newer than the cache: before a
// bound claim becomes Lost, volume reads it from the server.
func (c *Controller) volume(ctx context.Context, name string,
	claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	v, ok := c.volumes.get(controller.Key{Name: name})
	if _, had := claim.Annotations[volumebinding.BindCompleted]; ok || !had || claim.Status.Phase == corev1.ClaimLost {
		return v, nil
	}
	return live(ctx, c.volumeWrites, "", name)
}

// claimOf returns the claim that a volume names, nil if there is none. Before a volume becomes Released, claimOf reads
// the claim from the server: the reclaim policy that follows may delete data.
func (c *Controller) claimOf(ctx context.Context, v *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, error) {
	r := v.Spec.ClaimRef
	if r == nil || r.UID == "" {
		return nil, nil
	}
	claim, ok := c.claims.get(controller.Key{Namespace: r.Namespace, Name: r.Name})
	if ok && claim.UID == r.UID || settled(v) {
		return claim, nil
	}
	return live(ctx, c.claimWrites, r.Namespace, r.Name)
}

// live reads an object from the server; nil if there is none.
func live[T apiclient.Object](ctx context.Context, r *apiclient.Resource[T], ns, name string) (T, error) {
	var none T
	o, err := r.Get(ctx, ns, name)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("reading %s %s: %w", r.GVR().Resource, name, err)
	}
	return o, nil
}

// waiting are the names of those pods that have no node yet.
func waiting(pods []*corev1.Pod) []string {
	var out []string
	for _, p := range pods {
		if p.Spec.NodeName == "" && controller.PodActive(p) {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return out
}

// write makes a change. It is refused if the object was changed since it was read, and then judged again.
//
// A volume's choice ends here in any case: written, or refused and free again.
func (c *Controller) write(ctx context.Context, ch *change) error {
	if ch.volume != nil {
		defer c.decided(ch.volume.Name)
		return send(ctx, c.volumes, c.volumeWrites, ch.volume, ch.status)
	}
	err := send(ctx, c.claims, c.claimWrites, ch.claim, ch.status)
	if ch.givesClass {
		c.metrics.gaveClass(err)
	}
	return err
}

// decided forgets a choice: it is written now, or the volume is free.
func (c *Controller) decided(volume string) {
	c.choosing.Lock()
	defer c.choosing.Unlock()
	delete(c.chosen, volume)
}

func send[T apiclient.Object](ctx context.Context, w *written[T], r *apiclient.Resource[T], o T, status bool) error {
	update := r.Update
	if status {
		update = r.UpdateStatus
	}
	stored, err := update(ctx, o)
	if err != nil {
		return fmt.Errorf("writing %s %s: %w", r.GVR().Resource, o.GetName(), err)
	}
	w.put(stored)
	return nil
}
