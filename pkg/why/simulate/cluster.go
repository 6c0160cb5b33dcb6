// Package simulate runs the scheduler's own plug-ins on a copy of a cluster: where a pod fits, what keeps it off each
// node, and what would change that. It decides nothing by itself, and nothing is written.
//
// The profile is that of a scheduler without a configuration file. The scheduler of a cluster may have another one; its
// words in the pod's condition show where it sees things differently.
package simulate

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/decide"
	"bonsai/pkg/scheduler/devices"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins"
	"bonsai/pkg/scheduler/plugins/noderesources"
	"bonsai/pkg/scheduler/preemption"
	"bonsai/pkg/scheduler/profile"
	"bonsai/pkg/scheduler/volumes"
	"bonsai/pkg/why"
)

// Cluster is a copy of a cluster as its scheduler sees it. Use it from one goroutine.
type Cluster struct {
	Snapshot *model.Snapshot
	// Waiting are the pods without a node that are not at their end, in no order.
	Waiting []*model.PodInfo
	// Complete says that all nodes and pods could be read. Otherwise the copy is of no use for decisions.
	Complete bool
	Profile  *profile.Profile
	Budgets  []*policyv1.PodDisruptionBudget

	nominator  *model.Nominator
	namespaces map[string]labels.Set
	plain      decide.Plain
	preemption *preemption.Plugin
	volumes    *volumes.Volumes
	devices    *devices.Devices
	limits     map[string]map[string]int64 // of volumes, by node and driver
	visits     int
	// MaxVisits bounds the work for one question: how often the filters are asked about a node, all trials together.
	MaxVisits int
}

// maxVisits is MaxVisits at first: some seconds of work.
const maxVisits = 1_000_000

// Read copies a cluster. pods are those that the question is about: what only other pods would need is not read, such
// as volumes if none of them has claims; no pods means that all is read.
func Read(ctx context.Context, w *why.World, now time.Time, pods ...*corev1.Pod) (*Cluster, error) {
	c := &Cluster{Snapshot: model.NewSnapshot(), nominator: model.NewNominator(), volumes: volumes.New(nil),
		devices:    devices.New(nil, func() time.Time { return now }),
		MaxVisits:  maxVisits,
		namespaces: map[string]labels.Set{}, limits: map[string]map[string]int64{}}
	c.plain = decide.Plain{Nominator: c.nominator, Random: func(int) int { return 0 }}
	c.preemption = &preemption.Plugin{Budgets: budgets{c}, Nominator: c.nominator, Start: func(int) int { return 0 }}
	var err error
	if c.Profile, err = profile.New("default-scheduler", plugins.Default(plugins.Config{
		Namespaces: c,
		Workloads:  readWorkloads(ctx, w),
		Fit:        noderesources.Fit{ByDevices: c.devices.GivenByClass},
		Volumes:    c.volumes,
		Devices:    c.devices,
		Node:       c.node,
	})); err != nil {
		return nil, fmt.Errorf("making the scheduler's profile: %w", err)
	}
	if needs(pods, hasClaims) {
		c.readStorage(ctx, w)
	}
	if needs(pods, hasDevices) {
		c.readDevices(ctx, w)
	}
	c.readPods(ctx, w)
	return c, nil
}

func needs(pods []*corev1.Pod, has func(*corev1.Pod) bool) bool {
	for _, p := range pods {
		if has(p) {
			return true
		}
	}
	return len(pods) == 0
}

func hasClaims(p *corev1.Pod) bool {
	info := model.NewPodInfo(p)
	return len(info.Claims) > 0
}

// hasDevices reports whether a pod asks for devices, by claims or by a resource for which a class may give some.
func hasDevices(p *corev1.Pod) bool {
	return len(p.Spec.ResourceClaims) > 0 || len(model.NewPodInfo(p).Requests.Scalar) > 0
}

// readPods puts the nodes with their pods into the snapshot.
func (c *Cluster) readPods(ctx context.Context, w *why.World) {
	nodes, allNodes := why.List[corev1.Node](ctx, w, "", nil)
	pods, allPods := why.List[corev1.Pod](ctx, w, "", nil)
	c.Complete = allNodes && allPods
	on := map[string][]*model.PodInfo{}
	selects := false
	for _, p := range pods {
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		info := Info(p)
		selects = selects || selectsNamespaces(info)
		switch {
		case p.Spec.NodeName != "":
			on[p.Spec.NodeName] = append(on[p.Spec.NodeName], info)
		case p.DeletionTimestamp == nil:
			c.Waiting = append(c.Waiting, info)
			c.nominator.Set(info, p.Status.NominatedNodeName)
		}
	}
	var infos []*model.NodeInfo
	for _, n := range nodes {
		info := model.NewNodeInfo(n, on[n.Name]...)
		info.VolumeLimits = c.limits[n.Name]
		infos = append(infos, info)
	}
	c.Snapshot = model.NewSnapshot(infos...)
	if !selects { // their labels matter to selectors alone
		return
	}
	namespaces, _ := why.List[corev1.Namespace](ctx, w, "", nil)
	for _, ns := range namespaces {
		c.namespaces[ns.Name] = ns.Labels
	}
}

func selectsNamespaces(p *model.PodInfo) bool {
	for t := range p.Terms.All {
		if _, selectable := t.NamespaceSelector.Requirements(); selectable {
			return true
		}
	}
	return false
}

// Info returns the facts of a pod. One without a UID, which only files have, gets its name as such: pods differ
// by it.
func Info(p *corev1.Pod) *model.PodInfo {
	if p.UID == "" {
		named := *p
		named.UID = types.UID(p.Namespace + "/" + p.Name)
		p = &named
	}
	return model.NewPodInfo(p)
}

// Unplaced returns the facts of a pod as if it had no node yet.
func Unplaced(p *corev1.Pod) *model.PodInfo {
	free := *p
	free.Spec.NodeName, free.Status.NominatedNodeName = "", ""
	return Info(&free)
}

// ReadBudgets reads the disruption budgets.
func (c *Cluster) ReadBudgets(ctx context.Context, w *why.World) {
	c.Budgets, _ = why.List[policyv1.PodDisruptionBudget](ctx, w, "", nil)
}

func (c *Cluster) node(name string) *corev1.Node {
	if n := c.Snapshot.Get(name); n != nil {
		return n.Node
	}
	return nil
}

// NamespaceLabels implements framework.Namespaces.
func (c *Cluster) NamespaceLabels(name string) labels.Set { return c.namespaces[name] }

// Epoch implements framework.Namespaces: the copy does not change.
func (c *Cluster) Epoch() int64 { return 0 }

// budgets gives preemption what was read.
type budgets struct{ c *Cluster }

// Budgets implements preemption.Budgets.
func (b budgets) Budgets() []*policyv1.PodDisruptionBudget { return b.c.Budgets }

// Exhausted reports whether the bound of the question's work is reached. Answers are then of what was tried so far.
func (c *Cluster) Exhausted() bool { return c.visits > c.MaxVisits }

var _ framework.Namespaces = (*Cluster)(nil)
