package main

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/apps"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/policy"
	"bonsai/pkg/apiclient/resource"
	"bonsai/pkg/apiclient/storage"
	"bonsai/pkg/scheduler"
	"bonsai/pkg/scheduler/devices"
	"bonsai/pkg/scheduler/volumes"
	"bonsai/pkg/scheduler/workloads"
)

// world follows everything on the API server that decisions depend on.
type world struct {
	pods        *apiclient.Mirror[*corev1.Pod]
	nodes       *apiclient.Mirror[*corev1.Node]
	namespaces  *apiclient.Mirror[*corev1.Namespace]
	services    *apiclient.Mirror[*corev1.Service]
	controllers *apiclient.Mirror[*corev1.ReplicationController]
	replicas    *apiclient.Mirror[*appsv1.ReplicaSet]
	sets        *apiclient.Mirror[*appsv1.StatefulSet]
	disruptions *apiclient.Mirror[*policyv1.PodDisruptionBudget]
	claims      *apiclient.Mirror[*corev1.PersistentVolumeClaim]
	volumes     *apiclient.Mirror[*corev1.PersistentVolume]
	classes     *apiclient.Mirror[*storagev1.StorageClass]
	drivers     *apiclient.Mirror[*storagev1.CSIDriver]
	csiNodes    *apiclient.Mirror[*storagev1.CSINode]
	capacities  *apiclient.Mirror[*storagev1.CSIStorageCapacity]
	attachments *apiclient.Mirror[*storagev1.VolumeAttachment]
	slices      *apiclient.Mirror[*resourcev1.ResourceSlice]
	devices     *apiclient.Mirror[*resourcev1.DeviceClass]
	reserved    *apiclient.Mirror[*resourcev1.ResourceClaim]
	budgets     *budgets
	workloads   *workloads.Workloads
	epoch       atomic.Int64
}

func newWorld(c *apiclient.Client, log *slog.Logger) *world {
	all := apiclient.Selection{}
	w := &world{
		pods:        apiclient.NewMirror(core.Pods(c), apiclient.Selection{Fields: "status.phase!=Succeeded,status.phase!=Failed"}, log),
		nodes:       apiclient.NewMirror(core.Nodes(c), all, log),
		namespaces:  apiclient.NewMirror(core.Namespaces(c), all, log),
		services:    apiclient.NewMirror(core.Services(c), all, log),
		controllers: apiclient.NewMirror(core.ReplicationControllers(c), all, log),
		replicas:    apiclient.NewMirror(apps.ReplicaSets(c), all, log),
		sets:        apiclient.NewMirror(apps.StatefulSets(c), all, log),
		disruptions: apiclient.NewMirror(policy.PodDisruptionBudgets(c), all, log),
		claims:      apiclient.NewMirror(core.PersistentVolumeClaims(c), all, log),
		volumes:     apiclient.NewMirror(core.PersistentVolumes(c), all, log),
		classes:     apiclient.NewMirror(storage.StorageClasses(c), all, log),
		drivers:     apiclient.NewMirror(storage.CSIDrivers(c), all, log),
		csiNodes:    apiclient.NewMirror(storage.CSINodes(c), all, log),
		capacities:  apiclient.NewMirror(storage.CSIStorageCapacities(c), all, log),
		attachments: apiclient.NewMirror(storage.VolumeAttachments(c), all, log),
		slices:      apiclient.NewMirror(resource.ResourceSlices(c), all, log),
		devices:     apiclient.NewMirror(resource.DeviceClasses(c), all, log),
		reserved:    apiclient.NewMirror(resource.ResourceClaims(c), all, log),
	}
	w.claims.Slim, w.volumes.Slim, w.classes.Slim = volumes.SlimClaim, volumes.SlimVolume, volumes.SlimClass
	w.attachments.Slim = volumes.SlimAttachment
	w.slices.Slim, w.devices.Slim, w.reserved.Slim = devices.SlimSlice, devices.SlimClass, devices.SlimClaim
	// Servers before v1.34 do not serve them by default.
	w.slices.Optional, w.devices.Optional, w.reserved.Optional = true, true, true
	w.pods.Slim, w.nodes.Slim = scheduler.SlimPod, scheduler.SlimNode
	w.namespaces.Slim = func(n *corev1.Namespace) { *n = corev1.Namespace{ObjectMeta: slimMeta(n.ObjectMeta)} }
	w.services.Slim = func(s *corev1.Service) {
		*s = corev1.Service{ObjectMeta: slimMeta(s.ObjectMeta), Spec: corev1.ServiceSpec{Selector: s.Spec.Selector}}
	}
	w.controllers.Slim = func(r *corev1.ReplicationController) {
		*r = corev1.ReplicationController{ObjectMeta: slimMeta(r.ObjectMeta), Spec: corev1.ReplicationControllerSpec{Selector: r.Spec.Selector}}
	}
	w.replicas.Slim = func(r *appsv1.ReplicaSet) {
		*r = appsv1.ReplicaSet{ObjectMeta: slimMeta(r.ObjectMeta), Spec: appsv1.ReplicaSetSpec{Selector: r.Spec.Selector}}
	}
	w.sets.Slim = func(s *appsv1.StatefulSet) {
		*s = appsv1.StatefulSet{ObjectMeta: slimMeta(s.ObjectMeta), Spec: appsv1.StatefulSetSpec{Selector: s.Spec.Selector}}
	}
	w.disruptions.Optional = true // pods are scheduled, and preempted, also by a server without budgets
	w.budgets = newBudgets(w.disruptions)
	w.workloads = workloads.New(w.ownerSelector)
	w.services.Changed = w.workloads.ServiceChanged
	return w
}

// slimMeta keeps a name, its identity and its labels.
func slimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Labels: m.Labels}
}

// feed connects the mirrors to the scheduler.
func (w *world) feed(s *scheduler.Scheduler) {
	w.pods.Changed = s.PodChanged
	w.nodes.Changed = s.NodeChanged
	w.namespaces.Changed = func(old, ns *corev1.Namespace) {
		if old != nil && ns != nil && maps.Equal(old.Labels, ns.Labels) {
			return
		}
		w.epoch.Add(1)
		s.NamespaceChanged()
	}
	w.claims.Changed, w.volumes.Changed, w.classes.Changed = s.ClaimChanged, s.VolumeChanged, s.ClassChanged
	w.drivers.Changed, w.csiNodes.Changed, w.capacities.Changed = s.DriverChanged, s.CSINodeChanged, s.CapacityChanged
	w.attachments.Changed = s.AttachmentChanged
	w.slices.Changed, w.devices.Changed, w.reserved.Changed = s.ResourceSliceChanged, s.DeviceClassChanged, s.ResourceClaimChanged
}

// node returns a node, nil if there is none of that name.
func (w *world) node(name string) *corev1.Node {
	n, _ := w.nodes.Get(name)
	return n
}

func (w *world) runners() []interface {
	Run(context.Context)
	Synced() bool
} {
	return []interface {
		Run(context.Context)
		Synced() bool
	}{w.pods, w.nodes, w.namespaces, w.services, w.controllers, w.replicas, w.sets, w.disruptions,
		w.claims, w.volumes, w.classes, w.drivers, w.csiNodes, w.capacities, w.attachments, w.slices, w.devices, w.reserved}
}

// run follows until ctx ends.
func (w *world) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, r := range w.runners() {
		all.Go(func() { r.Run(ctx) })
	}
	all.Wait()
}

// synced is true once all that is there has been seen.
func (w *world) synced() bool {
	for _, r := range w.runners() {
		if !r.Synced() {
			return false
		}
	}
	return true
}

// wait blocks until synced; false says that ctx ended before.
func (w *world) wait(ctx context.Context) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !w.synced() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// NamespaceLabels returns a namespace's labels.
func (w *world) NamespaceLabels(name string) labels.Set {
	if ns, ok := w.namespaces.Get(name); ok {
		return ns.Labels
	}
	return nil
}

// Epoch changes with the labels of any namespace.
func (w *world) Epoch() int64 { return w.epoch.Load() }

// ownerSelector returns the selector of the controller that ref names; see workloads.Owner.
func (w *world) ownerSelector(namespace string, ref *metav1.OwnerReference) labels.Selector {
	key := namespace + "/" + ref.Name
	switch ref.APIVersion + " " + ref.Kind {
	case "v1 ReplicationController":
		if o, ok := w.controllers.Get(key); ok && o.UID == ref.UID {
			return labels.SelectorFromValidatedSet(o.Spec.Selector)
		}
	case "apps/v1 ReplicaSet":
		if o, ok := w.replicas.Get(key); ok && o.UID == ref.UID {
			return selector(o.Spec.Selector)
		}
	case "apps/v1 StatefulSet":
		if o, ok := w.sets.Get(key); ok && o.UID == ref.UID {
			return selector(o.Spec.Selector)
		}
	}
	return nil
}

// selector parses s; nil if that cannot be done.
func selector(s *metav1.LabelSelector) labels.Selector {
	sel, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil
	}
	return sel
}
