package framework

import (
	"context"
	"time"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/model"
)

// MaxNodeScore is the most that a plug-in gives a node after NormalizeScore; the least is 0.
const MaxNodeScore = 100

// Plugin is implemented by every plug-in, together with one or more of the extension points below.
type Plugin interface{ Name() string }

// PreEnqueue decides whether a pod may enter the active queue. A pod it turns down waits without being tried.
type PreEnqueue interface {
	Plugin
	PreEnqueue(pod *model.PodInfo) *Status
}

// QueueSort orders the active queue. Exactly one plug-in of a profile sorts.
type QueueSort interface {
	Plugin
	Less(a, b *QueuedPod) bool
}

// PreFilter prepares Filter for one pod, in the state, and may turn the pod down as a whole. Skip leaves the plug-in's
// Filter out. names, if not nil, are the only nodes on which the pod can run.
type PreFilter interface {
	Plugin
	PreFilter(state *CycleState, pod *model.PodInfo, s *model.Snapshot) (names map[string]bool, status *Status)
}

// PreFilterExtensions change what PreFilter prepared as if a pod were added to or removed from a node; preemption needs
// it.
type PreFilterExtensions interface {
	AddPod(state *CycleState, pod, added *model.PodInfo, node *model.NodeInfo)
	RemovePod(state *CycleState, pod, removed *model.PodInfo, node *model.NodeInfo)
}

// Filter decides whether pod can run on node.
type Filter interface {
	Plugin
	Filter(state *CycleState, pod *model.PodInfo, node *model.NodeInfo) *Status
}

// PostFilter is called when no node is left, with each node's status; it returns the node that the pod is nominated to
// from now on, which may be the one it was nominated to before, or "" for none.
type PostFilter interface {
	Plugin
	PostFilter(ctx context.Context, h Handle, state *CycleState, pod *model.PodInfo, d *Diagnosis) (
		nominated string, status *Status)
}

// PreScore prepares Score. Skip leaves the plug-in's Score out. nodes are those that passed all filters; a NodeLocal
// plug-in must not read them: they are nil where its results are kept.
type PreScore interface {
	Plugin
	PreScore(state *CycleState, pod *model.PodInfo, s *model.Snapshot, nodes []*model.NodeInfo) *Status
}

// Score rates a node that passed all filters; more is better. The number is from 0 to MaxNodeScore. That of a
// Normalizer may be larger or smaller, within 32 bits if the plug-in is NodeLocal: that is how its scores are kept.
type Score interface {
	Plugin
	Score(state *CycleState, pod *model.PodInfo, node *model.NodeInfo) int64
}

// Normalizer brings the scores of all nodes, one per node, into 0 to MaxNodeScore in place. It is called for
// each pod, so it may compare scores even if the plug-in is NodeLocal. Such a plug-in must not read nodes, which may be
// nil, and of the pod only what it declares with Reads.
type Normalizer interface {
	NormalizeScore(state *CycleState, pod *model.PodInfo, nodes []*model.NodeInfo, scores []int64)
}

// Reserve is called with the chosen node before binding begins. Unreserve undoes it, is called for every plug-in when
// anything later fails, and must be harmless when called twice or without Reserve.
type Reserve interface {
	Plugin
	Reserve(ctx context.Context, state *CycleState, pod *model.PodInfo, node string) *Status
	Unreserve(ctx context.Context, state *CycleState, pod *model.PodInfo, node string)
}

// Permit allows, refuses, or with Wait delays the binding for at most the given time.
type Permit interface {
	Plugin
	Permit(ctx context.Context, state *CycleState, pod *model.PodInfo, node string) (*Status, time.Duration)
}

// PreBind does what must be done before the pod is bound.
type PreBind interface {
	Plugin
	PreBind(ctx context.Context, state *CycleState, pod *model.PodInfo, node string) *Status
}

// Lingering PreBind plug-ins may wait for others, for long; a pod for which they do holds no binder meanwhile.
type Lingering interface {
	Lingers(state *CycleState, pod *model.PodInfo) bool
}

// Bind binds the pod. Skip hands it to the next plug-in.
type Bind interface {
	Plugin
	Bind(ctx context.Context, state *CycleState, pod *model.PodInfo, node string) *Status
}

// PostBind is called after a pod is bound.
type PostBind interface {
	Plugin
	PostBind(ctx context.Context, state *CycleState, pod *model.PodInfo, node string)
}

// Interested plug-ins say which events may help pods that they turned down. A plug-in that turns pods down without
// being Interested has its pods woken by every event.
type Interested interface {
	EventsToRegister() []clusterevent.Interest
}

// A plug-in with PreFilter, Filter, PreScore or Score declares what their results depend on, so that they can be kept
// from pod to pod: it is NodeLocal or Tracking. One that is neither is slow: all its extension points are called for
// all nodes, for each pod that it concerns.

// NodeLocal plug-ins depend on the one node, with the pods on it, on what they read from the pod, and on nothing else.
// Their results are kept for all pods from which they read the same values, until that node changes.
type NodeLocal interface {
	// Reads adds to k everything of the pod that the results depend on, and nothing of nodes. It adds nothing if the
	// results are the same for all pods. What it forgets is taken from another pod.
	Reads(pod *model.PodInfo, k *model.Key)
}

// Epochal plug-ins are NodeLocal except for a fact about all nodes; their scores are kept while ScoreEpoch is the same.
type Epochal interface{ ScoreEpoch(s *model.Snapshot) int64 }

// Tracking plug-ins depend on many nodes, through counts that can be kept up to date node by node. Their PreFilter
// refuses no pod as a whole and names no nodes.
type Tracking interface {
	// Track returns the tracker that answers for the pod. nominated are pods that may be counted on a node as well, as
	// if they were there already.
	Track(pod *model.PodInfo, s *model.Snapshot, nominated []*model.PodInfo) Tracked
}

// Tracked says which tracker answers for a pod.
type Tracked struct {
	// Key is of everything that the answers on the pod depend on besides the nodes: one Tracker serves all pods of
	// equal keys. What the pod has but the answers do not depend on, such as a label that no term asks for, must not be
	// in it.
	Key string
	// New returns an empty tracker, which Changed fills; nil when the plug-in has nothing to do for the pod.
	New func() Tracker
	// ScoresOnly says that the tracker refuses no node: it is not asked while only one node is possible.
	ScoresOnly bool
}

// Selective plug-ins have nothing to say about some pods: about these PreFilter, Filter, PreScore and Score would say
// what they say when the plug-in is not there, and may be left out. Others concern every pod.
type Selective interface{ Concerns(pod *model.PodInfo) bool }

// Tracker gives the verdicts and scores of one Tracking plug-in for alike pods. It must give what the plug-in's
// PreFilter, Filter, PreScore, Score and NormalizeScore would.
type Tracker interface {
	// Changed tells the state of a slot: nil when the node is gone.
	Changed(slot int, node *model.NodeInfo)
	// Begin is called before the verdicts of one pod are asked for.
	Begin()
	// Filter is the verdict on the node of a slot; the result is shared.
	Filter(slot int) *Status
	// Scores returns the normalized scores of the feasible slots, in out; false when all would be alike.
	Scores(feasible []int32, out []int64) bool
}
