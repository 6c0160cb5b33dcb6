package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/component-helpers/nodedeclaredfeatures"
	featuretypes "k8s.io/component-helpers/nodedeclaredfeatures/types"

	"bonsai/pkg/kubelet/runtime"
)

// Bounds of the node's image list, which every watcher of the Node receives: the names of each image, and the age of a
// list that is still shown.
const (
	maxImageNames = 5
	imagesMaxAge  = 30 * time.Second
)

// runtimeTimeout is how long the runtime may go without a successful check before it counts as down, and how long one
// check may take. An earlier error changes nothing: a runtime that restarts must not make its node NotReady.
const runtimeTimeout = 30 * time.Second

// check asks the runtime for its state. The status loop and starting pods call it, hence the atomic pointer.
func (n *Node) check(ctx context.Context) (runtime.Health, error) {
	h, err := n.cfg.Runtime.Health(ctx)
	if err == nil {
		n.checked.Store(&checked{h, n.cfg.Now()})
	}
	return h, err
}

// health returns the runtime's state. Until runtimeTimeout after the last successful check, its result still holds.
func (n *Node) health(ctx context.Context) (runtime.Health, error) {
	h, err := n.check(ctx)
	if err == nil {
		return h, nil
	}
	last, now := n.checked.Load(), n.cfg.Now()
	if last == nil || now.Sub(last.at) >= runtimeTimeout {
		return runtime.Health{}, err
	}
	n.cfg.Log.Warn("the container runtime did not tell its state", "node", n.cfg.Name, "downAfter",
		runtimeTimeout-now.Sub(last.at), "err", err)
	return last.health, nil
}

// NetworkReady returns why no pod of the pod network can start yet. It asks the runtime again only if the network was
// not ready at the last check: every start of a pod calls it.
func (n *Node) NetworkReady(ctx context.Context) error {
	if last := n.checked.Load(); last != nil && last.health.NetworkReady {
		return nil
	}
	h, err := n.check(ctx)
	if err != nil {
		return err
	}
	if !h.NetworkReady {
		return errors.New(networkNotReady(h))
	}
	n.cfg.Changed.Notify()
	return nil
}

// syncStatus computes the status and PATCHes it if it changed, if the last report is too old, or if this kubelet has
// reported none: until then nobody knows whether the Node speaks of its present life. ready reports whether the node
// is. If the PATCH fails, n.object stays as it is, and the next try sends the whole difference again.
func (n *Node) syncStatus(ctx context.Context) (ready bool, err error) {
	look, stop := context.WithTimeout(ctx, runtimeTimeout)
	defer stop()
	health, healthErr := n.health(look)
	old := n.object.Load()
	status := n.status(look, *old.Status.DeepCopy(), health, healthErr)
	ready = conditionTrue(status.Conditions, corev1.NodeReady)
	if n.reported && !changed(&old.Status, &status) && n.cfg.Now().Sub(heartbeat(old)) < n.cfg.Report {
		return ready, nil
	}
	patch, err := statusPatch(&old.Status, &status)
	if err != nil {
		return ready, err
	}
	try, cancel := context.WithTimeout(ctx, n.cfg.Interval)
	defer cancel()
	got, err := n.cfg.Client.PatchNode(try, n.cfg.Name, types.StrategicMergePatchType, patch, "status")
	if err != nil {
		return ready, fmt.Errorf("patch the Node's status: %w", err)
	}
	if conditionTrue(got.Status.Conditions, corev1.NodeReady) !=
		conditionTrue(old.Status.Conditions, corev1.NodeReady) {
		n.cfg.Log.Info("node readiness changed", "node", n.cfg.Name, "ready", ready)
	}
	n.seen(got)
	n.reported = true
	return ready, nil
}

// status computes the Node's next status from its present one and the present state. What others have set stays.
func (n *Node) status(ctx context.Context, s corev1.NodeStatus, health runtime.Health,
	healthErr error) corev1.NodeStatus {
	if !n.cfg.ExternalCloud || len(s.Addresses) == 0 {
		s.Addresses = n.addresses
	}
	s.DaemonEndpoints.KubeletEndpoint.Port = n.cfg.Port
	s.NodeInfo = n.cfg.Machine.Info()
	s.NodeInfo.KubeletVersion = n.cfg.Version
	s.DeclaredFeatures = declaredFeatures()
	if healthErr == nil {
		s.RuntimeHandlers, s.Features = runtimeHandlers(health), runtimeFeatures(health)
	}
	s.NodeInfo.OperatingSystem, s.NodeInfo.Architecture = goruntime.GOOS, goruntime.GOARCH
	v := n.cfg.Runtime.Version()
	s.NodeInfo.ContainerRuntimeVersion = v.Name + "://" + v.Version
	capacity := n.cfg.Machine.Capacity()
	devices, free := n.devices()
	s.Capacity, s.Allocatable = merge(s.Capacity, n.cfg.Resources.capacity(capacity)),
		merge(s.Allocatable, n.cfg.Resources.Allocatable(capacity))
	maps.Copy(s.Capacity, devices)
	maps.Copy(s.Allocatable, free)
	if images := n.imageList(ctx); images != nil {
		s.Images = images
	}
	if n.cfg.VolumesInUse != nil {
		inUse, err := n.cfg.VolumesInUse()
		// A volume whose record cannot be read may be mounted, so none is dropped after an error; new ones are added in
		// any case.
		if err != nil {
			n.cfg.Log.Error("volumes in use not all read", "node", n.cfg.Name, "err", err)
			inUse = slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.VolumesInUse, inUse))))
		}
		s.VolumesInUse = inUse
	}
	var pressure Pressure
	if n.cfg.Pressure != nil {
		pressure = n.cfg.Pressure()
	}
	now := n.cfg.Now()
	var relistErr, down error
	if n.cfg.Down != nil {
		down = n.cfg.Down()
	}
	if n.cfg.Relisted != nil {
		relistErr = n.cfg.Relisted(now)
	}
	s.Conditions = conditions(s.Conditions, pressure, notReady(health, healthErr, relistErr, down), metav1.NewTime(now))
	return s
}

// declaredFeatures returns those features that API servers and schedulers ask nodes for and that this kubelet has,
// sorted.
func declaredFeatures() []string {
	return nodedeclaredfeatures.DefaultFramework.DiscoverNodeFeatures(&nodedeclaredfeatures.NodeConfiguration{
		FeatureGates: featuretypes.FeatureGateMap{
			"InPlacePodLevelResourcesVerticalScaling": true, "InPlacePodVerticalScalingInitContainers": true,
			"RestartAllContainersOnContainerExits": true}})
}

// runtimeHandlers returns the runtime's handlers with their features, sorted: the order of the runtime's list may
// change, and that must not count as a change of the status.
func runtimeHandlers(h runtime.Health) []corev1.NodeRuntimeHandler {
	var out []corev1.NodeRuntimeHandler
	for _, x := range h.Handlers {
		out = append(out, corev1.NodeRuntimeHandler{Name: x.Name,
			Features: &corev1.NodeRuntimeHandlerFeatures{RecursiveReadOnlyMounts: &x.RecursiveReadOnlyMounts,
				UserNamespaces: &x.UserNamespaces}})
	}
	slices.SortFunc(out, func(a, b corev1.NodeRuntimeHandler) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// runtimeFeatures returns the runtime's features that do not depend on a handler, nil if it reports none.
func runtimeFeatures(h runtime.Health) *corev1.NodeFeatures {
	if h.SupplementalGroupsPolicy == nil {
		return nil
	}
	return &corev1.NodeFeatures{SupplementalGroupsPolicy: h.SupplementalGroupsPolicy}
}

// devices returns the resources of device plug-ins.
func (n *Node) devices() (capacity, allocatable corev1.ResourceList) {
	if n.cfg.Devices == nil {
		return nil, nil
	}
	return n.cfg.Devices()
}

// merge keeps the extended resources that others reported and sets ours. A "/" in the name marks an extended resource.
func merge(have, ours corev1.ResourceList) corev1.ResourceList {
	out := ours.DeepCopy()
	for name, q := range have {
		if _, ok := out[name]; !ok && strings.Contains(string(name), "/") {
			out[name] = q
		}
	}
	return out
}

// imageList returns the images, the largest first. The runtime is asked at most every half minute; nil keeps the last
// list. mu is held during the call, so that two callers do not both ask.
func (n *Node) imageList(ctx context.Context) []corev1.ContainerImage {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.cfg.Now()
	if n.cfg.Images == nil || !n.imagesAt.IsZero() && now.Sub(n.imagesAt) < imagesMaxAge {
		return n.images
	}
	images, err := n.cfg.Images(ctx)
	if err != nil {
		return n.images // the runtime's state shows what is wrong
	}
	n.images, n.imagesAt = shorten(images, n.cfg.MaxImages), now
	return n.images
}

// shorten returns the largest images, at most so many; negative: all.
func shorten(images []corev1.ContainerImage, most int) []corev1.ContainerImage {
	images = slices.Clone(images)
	slices.SortStableFunc(images, func(a, b corev1.ContainerImage) int {
		if a.SizeBytes != b.SizeBytes {
			return int(min(max(b.SizeBytes-a.SizeBytes, -1), 1))
		}
		return slices.Compare(a.Names, b.Names)
	})
	if most >= 0 {
		images = images[:min(len(images), most)]
	}
	for i := range images {
		images[i].Names = images[i].Names[:min(len(images[i].Names), maxImageNames)]
	}
	return images
}

// changed reports whether b differs from a, heartbeats aside.
func changed(a, b *corev1.NodeStatus) bool {
	x, y := a.DeepCopy(), b.DeepCopy()
	for _, s := range []*corev1.NodeStatus{x, y} {
		for i := range s.Conditions {
			s.Conditions[i].LastHeartbeatTime = metav1.Time{}
		}
	}
	return !equality.Semantic.DeepEqual(x, y)
}

// heartbeat returns when the kubelet last reported, from the condition Ready.
func heartbeat(node *corev1.Node) time.Time {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.LastHeartbeatTime.Time
		}
	}
	return time.Time{}
}

// statusPatch returns the strategic merge patch from old to status: conditions of other owners stay. Addresses are
// replaced as a whole, because two of one type (dual stack) would be merged into one.
func statusPatch(old, status *corev1.NodeStatus) ([]byte, error) {
	a, b := corev1.Node{Status: *old.DeepCopy()}, corev1.Node{Status: *status.DeepCopy()}
	a.Status.Addresses, b.Status.Addresses = nil, nil
	before, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("encode the old status: %w", err)
	}
	after, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode the new status: %w", err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Node{})
	if err != nil || equality.Semantic.DeepEqual(old.Addresses, status.Addresses) {
		return patch, err
	}
	var m map[string]any
	if err := json.Unmarshal(patch, &m); err != nil {
		return nil, fmt.Errorf("decode the patch: %w", err)
	}
	s, ok := m["status"].(map[string]any)
	if !ok {
		s = map[string]any{}
		m["status"] = s
	}
	addresses := []any{map[string]any{"$patch": "replace"}}
	for _, ad := range status.Addresses {
		addresses = append(addresses, ad)
	}
	s["addresses"] = addresses
	return json.Marshal(m)
}
