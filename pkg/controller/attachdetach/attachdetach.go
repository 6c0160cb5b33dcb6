// Package attachdetach has volumes of CSI drivers attached to the nodes whose pods use them, and detached when none
// does: it makes and deletes VolumeAttachments, which the drivers' attachers carry out, and says in a node's status
// what is attached.
//
// What is attached is read off the VolumeAttachments, never remembered, so that nothing is lost with the controller.
// Only what is about to be attached is held in memory, until it is seen (hold.go); a controller that takes over begins
// with what the server has by then.
package attachdetach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/core/volumebinding"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/storage"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/podindex"
)

// Config is what flags say.
type Config struct {
	// Period is how often nodes with volumes are looked at although nothing changes; 0 is never.
	Period time.Duration
	// KeepOnTimeout means that a volume is never detached before its node reports it as unmounted, unless the node has
	// the out-of-service taint.
	KeepOnTimeout bool
}

// Controller reconciles nodes.
//
// waits, holds and departed have locks of their own; handlers of events and workers use them.
type Controller struct {
	controller.Deps
	cfg         Config
	nodes       *controller.Informer[*corev1.Node]
	pods        *controller.Informer[*corev1.Pod]
	podsByNode  podindex.ByNode
	podsByClaim podindex.ByClaim
	claims      *controller.Informer[*corev1.PersistentVolumeClaim]
	volumes     *controller.Informer[*corev1.PersistentVolume]
	drivers     *controller.Informer[*storagev1.CSIDriver]
	attachments *controller.Informer[*storagev1.VolumeAttachment]
	nodeWrites  *apiclient.Resource[*corev1.Node]
	writes      *apiclient.Resource[*storagev1.VolumeAttachment]
	waits       waits
	holds       holds
	departed    departures
	metrics     *metrics
	loop        *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps, cfg Config) (*Controller, error) {
	c := &Controller{
		Deps: d, cfg: cfg,
		nodes: controller.InformerFor(d.Informers, core.Nodes), pods: controller.InformerFor(d.Informers, core.Pods),
		claims:      controller.InformerFor(d.Informers, core.PersistentVolumeClaims),
		volumes:     controller.InformerFor(d.Informers, core.PersistentVolumes),
		drivers:     controller.InformerFor(d.Informers, storage.CSIDrivers),
		attachments: controller.InformerFor(d.Informers, storage.VolumeAttachments),
		nodeWrites:  core.Nodes(d.Client), writes: storage.VolumeAttachments(d.Client),
		waits: waits{since: map[string]time.Time{}}, holds: holds{of: map[string]hold{}},
		departed: departures{of: map[string]departed{}},
	}
	c.podsByNode, c.podsByClaim = podindex.NewByNode(c.pods), podindex.NewByClaim(c.pods)
	c.metrics = newMetrics(c)
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "attachdetach", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	ofPod := func(p *corev1.Pod) {
		if p.Spec.NodeName != "" && slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
			return controller.ClaimOf(p, &v) != ""
		}) {
			c.wake(p.Spec.NodeName)
		}
	}
	return c, errors.Join(
		controller.Watch(c.loop, c.nodes, controller.Handlers[*corev1.Node]{Add: c.nodeAdded, Delete: c.nodeDeleted,
			Update: func(old, n *corev1.Node) {
				if concerns(old, n) {
					c.wake(n.Name)
				}
			}}),
		controller.Watch(c.loop, c.pods, controller.All(ofPod)),
		controller.Watch(c.loop, c.claims, controller.All(func(claim *corev1.PersistentVolumeClaim) {
			for _, p := range c.podsByClaim.Using(controller.KeyOf(claim)) {
				ofPod(p)
			}
		})),
		controller.Watch(c.loop, c.volumes, controller.All(func(v *corev1.PersistentVolume) {
			if r := v.Spec.ClaimRef; r != nil && v.Spec.CSI != nil {
				for _, p := range c.podsByClaim.Using(controller.Key{Namespace: r.Namespace, Name: r.Name}) {
					ofPod(p)
				}
			}
		})),
		controller.Watch(c.loop, c.drivers, controller.All(func(*storagev1.CSIDriver) {
			for _, n := range c.nodes.List() {
				c.wake(n.Name)
			}
		})),
		controller.Watch(c.loop, c.attachments, controller.Handlers[*storagev1.VolumeAttachment]{
			Add: c.attachmentSeen, Update: func(_, a *storagev1.VolumeAttachment) { c.attachmentSeen(a) },
			Delete: func(a *storagev1.VolumeAttachment) { c.waits.end(a.Name); c.attachmentChanged(a) },
		}),
	)
}

func (c *Controller) wake(node string) { c.loop.Add(controller.Key{Name: node}) }

// nodeAdded forgets an earlier node of the name: from now on the new one reports what is in use.
func (c *Controller) nodeAdded(n *corev1.Node) {
	c.departed.forget(n.Name)
	c.wake(n.Name)
}

// nodeDeleted remembers what the node's kubelet reported last. Deleting the object does not stop the kubelet's
// containers.
func (c *Controller) nodeDeleted(n *corev1.Node) {
	c.departed.note(n)
	c.wake(n.Name)
}

// attachmentSeen ends the hold that stood for an attachment. Its deletion does not: that may be of an earlier one of
// the same name.
func (c *Controller) attachmentSeen(a *storagev1.VolumeAttachment) {
	if name := a.Spec.Source.PersistentVolumeName; name != nil {
		c.holds.end(*name, a.Spec.NodeName)
	}
	c.attachmentChanged(a)
}

// attachmentChanged wakes the attachment's node, and when it went those whose pods wait for the volume to be free.
func (c *Controller) attachmentChanged(a *storagev1.VolumeAttachment) {
	c.wake(a.Spec.NodeName)
	name := a.Spec.Source.PersistentVolumeName
	if name == nil {
		return
	}
	if v, ok := c.volumes.Get(controller.Key{Name: *name}); ok && v.Spec.ClaimRef != nil {
		for _, p := range c.podsByClaim.Using(
			controller.Key{Namespace: v.Spec.ClaimRef.Namespace, Name: v.Spec.ClaimRef.Name}) {
			if p.Spec.NodeName != "" {
				c.wake(p.Spec.NodeName)
			}
		}
	}
}

// concerns reports whether a change of a node may matter: heartbeats do not.
//
// A node's status changes often; without the filter each change would have all of its volumes judged.
func concerns(old, n *corev1.Node) bool {
	return !slices.Equal(old.Status.VolumesInUse, n.Status.VolumesInUse) ||
		!slices.Equal(old.Status.VolumesAttached, n.Status.VolumesAttached) ||
		outOfService(old) != outOfService(n) || ready(old) != ready(n) || managed(old) != managed(n)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile looks at one node's pods and attachments, and takes one step for each volume.
//
// A worker of the loop calls it, for one node at a time. Every round judges the node as a whole and takes the steps
// that are possible now. Order matters twice: a volume leaves the node's status before it is detached, and a hold
// stands before its attachment is created. The cost is one pass over all VolumeAttachments.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	s := state{name: key.Name, now: c.Now(), force: !c.cfg.KeepOnTimeout, waits: &c.waits}
	s.node, _ = c.nodes.Get(key)
	all := c.attachments.List()
	for _, a := range all {
		if a.Spec.NodeName == key.Name && a.Spec.Source.PersistentVolumeName != nil {
			s.attachments = append(s.attachments, a)
		}
	}
	if s.node == nil {
		if len(s.attachments) == 0 {
			c.departed.forget(key.Name)
		}
		s.left = c.departed.last(key.Name)
	}
	s.handle = func(a *storagev1.VolumeAttachment) (string, bool) {
		v, ok := c.volumes.Get(controller.Key{Name: *a.Spec.Source.PersistentVolumeName})
		if !ok || v.Spec.CSI == nil {
			return "", false
		}
		return v.Spec.CSI.VolumeHandle, true
	}
	p := c.judge(&s, all)
	for _, e := range p.events {
		c.Events.Event(e.pod, e.kind, e.reason, e.text)
	}
	var errs []error
	if p.report != nil {
		// What is to be detached leaves the status first, so that the kubelet mounts it no more.
		errs = append(errs, c.report(ctx, key.Name, *p.report))
	}
	for _, a := range p.attach {
		_, err := c.writes.Create(ctx, a)
		c.holds.asked(*a.Spec.Source.PersistentVolumeName, key.Name, err, c.Now())
		if err != nil && !apierrors.IsAlreadyExists(err) {
			errs = append(errs, fmt.Errorf("attaching volume %s to node %s: %w", *a.Spec.Source.PersistentVolumeName,
				key.Name, err))
		}
	}
	for _, a := range p.detach {
		if err := c.writes.Delete(ctx, "", a.Name, a.UID); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("detaching volume %s from node %s: %w", *a.Spec.Source.PersistentVolumeName,
				key.Name, err))
			continue
		}
		if why := p.forced[a.Name]; why != "" {
			c.metrics.forced.WithLabelValues(why).Inc()
		}
	}
	again, err := c.checkHolds(ctx, &s)
	errs = append(errs, err)
	res := controller.Result{RequeueAfter: p.again}
	if again > 0 {
		res.RequeueAfter = again
	}
	if res.RequeueAfter == 0 && len(s.attachments)+len(s.wanted) > 0 {
		res.RequeueAfter = c.cfg.Period
	}
	return res, errors.Join(errs...)
}

// judge decides about a node, and notes what is about to be attached before another node is judged.
//
// The lock makes the choice and the hold one step: two nodes that want one volume are judged one after the other.
func (c *Controller) judge(s *state, all []*storagev1.VolumeAttachment) plan {
	c.holds.mu.Lock()
	defer c.holds.mu.Unlock()
	s.wanted = c.wanted(s.name, all)
	p := decide(*s)
	for _, a := range p.attach {
		c.holds.take(*a.Spec.Source.PersistentVolumeName, s.name)
	}
	return p
}

// checkHolds asks the server about holds that keep volumes from the node: an attachment that it does not have ends the
// hold. It returns when to look again, 0 if there is nothing to wait for.
//
// Only holds whose request has ended are asked about; until then the server may still carry it out. The worker asks
// without the lock, and missed compares the hold, because it may have changed meanwhile.
func (c *Controller) checkHolds(ctx context.Context, s *state) (time.Duration, error) {
	var again time.Duration
	var errs []error
	for _, u := range s.wanted {
		if len(u.elsewhere) == 0 {
			continue
		}
		v := u.volume
		h, due := c.holds.due(v.Name, s.name, c.Now())
		if h.node == "" {
			continue
		}
		again = holdCheck
		if !due {
			continue
		}
		_, err := c.writes.Get(ctx, "", attachmentName(v.Spec.CSI.VolumeHandle, v.Spec.CSI.Driver, h.node))
		switch {
		case apierrors.IsNotFound(err):
			c.holds.missed(v.Name, h)
			c.wake(s.name)
		case err != nil:
			errs = append(errs, fmt.Errorf("asking whether volume %s is attached to node %s: %w", v.Name, h.node, err))
		}
	}
	return again, errors.Join(errs...)
}

// report replaces what the node's status says is attached.
//
// The list is replaced as a whole: this controller is its only writer.
func (c *Controller) report(ctx context.Context, node string, attached []corev1.AttachedVolume) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"volumesAttached": attached}})
	if err != nil {
		return err
	}
	if _, err := c.nodeWrites.Patch(ctx, "", node, types.MergePatchType, patch, "status"); err != nil &&
		!apierrors.IsNotFound(err) {
		return fmt.Errorf("writing what is attached to node %s: %w", node, err)
	}
	return nil
}

// wanted are the volumes that pods of the node use and that have to be attached. The caller holds the lock of holds.
//
// A volume that several pods share is in it once, with all of them.
func (c *Controller) wanted(node string, all []*storagev1.VolumeAttachment) []use {
	var out []use
	for _, p := range c.podsByNode.On(node) {
		if controller.PodTerminal(p) {
			continue
		}
		for i := range p.Spec.Volumes {
			v := c.volumeOf(p, &p.Spec.Volumes[i])
			if v == nil {
				continue
			}
			at := slices.IndexFunc(out, func(u use) bool { return u.volume.Name == v.Name })
			if at < 0 {
				others := elsewhere(v, node, c.holds.of[v.Name].node, all)
				out = append(out, use{volume: v, elsewhere: others, holders: c.holders(v, others)})
				at = len(out) - 1
			}
			out[at].pods = append(out[at].pods, p)
		}
	}
	return out
}

// volumeOf is the persistent volume behind a pod's volume, nil if there is none, if it is not bound, or if nothing
// attaches it.
//
// A driver without a CSIDriver object is attached: attachRequired defaults to true.
func (c *Controller) volumeOf(p *corev1.Pod, vol *corev1.Volume) *corev1.PersistentVolume {
	name := controller.ClaimOf(p, vol)
	if name == "" {
		return nil
	}
	claim, ok := c.claims.Get(controller.Key{Namespace: p.Namespace, Name: name})
	if !ok || claim.Status.Phase != corev1.ClaimBound {
		return nil
	}
	v, ok := c.volumes.Get(controller.Key{Name: claim.Spec.VolumeName})
	if !ok || v.Spec.CSI == nil || !volumebinding.Meant(v, claim) {
		return nil
	}
	d, ok := c.drivers.Get(controller.Key{Name: v.Spec.CSI.Driver})
	if ok && d.Spec.AttachRequired != nil && !*d.Spec.AttachRequired {
		return nil
	}
	return v
}

// holders are the names of the pods on the nodes that use the volume, sorted.
//
// They are only for the message of the event.
func (c *Controller) holders(v *corev1.PersistentVolume, nodes []string) []string {
	r := v.Spec.ClaimRef
	if len(nodes) == 0 || r == nil {
		return nil
	}
	var out []string
	for _, p := range c.podsByClaim.Using(controller.Key{Namespace: r.Namespace, Name: r.Name}) {
		if slices.Contains(nodes, p.Spec.NodeName) && !controller.PodTerminal(p) {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return out
}

// elsewhere are the other nodes that a volume is attached to, or about to be, if it may be at one at a time.
//
// The access modes decide, as in Kubernetes: a volume that allows several nodes is never held back. Attachments count
// until their object is gone, not until detaching begins.
func elsewhere(v *corev1.PersistentVolume, node, about string, all []*storagev1.VolumeAttachment) []string {
	shared := slices.ContainsFunc(v.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
		return m == corev1.ReadOnlyMany || m == corev1.ReadWriteMany
	})
	if shared {
		return nil
	}
	var out []string
	if about != "" && about != node {
		out = append(out, about)
	}
	for _, a := range all {
		if n := a.Spec.Source.PersistentVolumeName; n != nil && *n == v.Name && a.Spec.NodeName != node {
			out = append(out, a.Spec.NodeName)
		}
	}
	return out
}
