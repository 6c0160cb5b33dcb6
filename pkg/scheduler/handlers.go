package scheduler

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/model"
)

// PodChanged handles an added (old is nil), changed, or deleted (pod is nil) pod.
func (s *Scheduler) PodChanged(old, pod *corev1.Pod) {
	switch {
	case pod == nil:
		s.podGone(old)
	case pod.Spec.NodeName != "":
		s.podAssigned(old, pod)
	case s.profile(pod) != nil:
		s.podPending(old, pod)
	}
}

func (s *Scheduler) podGone(old *corev1.Pod) {
	s.Queue.Delete(old.UID)
	if s.Devices != nil {
		s.Devices.Gone(old)
	}
	if s.Nominator.Of(old.UID) != "" {
		s.nominateTo(model.NewPodInfo(old), "")
	}
	if p := s.profile(old); p != nil {
		if w := p.WaitingPod(old.UID); w != nil {
			w.Reject("", "the pod was deleted")
		}
	}
	if was := s.Cache.Remove(old.UID); was != nil {
		s.Queue.Moved(clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete, Old: was,
			Label: "AssignedPodDelete"})
	}
}

func (s *Scheduler) podAssigned(old, pod *corev1.Pod) {
	p := model.NewPodInfo(pod)
	if old == nil || old.Spec.NodeName == "" {
		s.Queue.Delete(pod.UID)
		s.Cache.Add(p)
		s.nominateTo(p, "")
		s.Queue.Moved(clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.Add, New: p,
			Label: "AssignedPodAdd"})
		return
	}
	s.Cache.Add(p)
	was := model.NewPodInfo(old)
	if a := podActions(was, p); a != 0 {
		s.Queue.Moved(clusterevent.Event{Kind: clusterevent.AssignedPod, Action: a, Old: was, New: p,
			Label: "AssignedPodUpdate"})
	}
}

func (s *Scheduler) podPending(old, pod *corev1.Pod) {
	p := model.NewPodInfo(pod)
	s.nominate(old, p)
	if old == nil {
		if pod.DeletionTimestamp == nil {
			s.Queue.Add(p)
		}
		return
	}
	if pod.DeletionTimestamp != nil {
		s.Queue.Delete(pod.UID)
		return
	}
	was := model.NewPodInfo(old)
	s.Queue.Update(p, clusterevent.Event{Kind: clusterevent.TargetPod, Action: podActions(was, p), Old: was, New: p,
		Label: "TargetPodUpdate"})
}

// nominate follows a waiting pod's nomination in the API, where that has changed. A nomination that this scheduler made
// itself and has not seen yet stays. The Nominator gets the newest state of the pod. A pod that has been given a node,
// or is going, waits no more.
func (s *Scheduler) nominate(old *corev1.Pod, p *model.PodInfo) {
	node := s.Nominator.Of(p.Pod.UID)
	if n := p.Pod.Status.NominatedNodeName; old == nil && n != "" || old != nil && old.Status.NominatedNodeName != n {
		node = n
	}
	if known, _ := s.Cache.Has(p.Pod.UID); known || p.Pod.DeletionTimestamp != nil {
		node = ""
	}
	s.nominateTo(p, node)
}

// nominateTo nominates a node for pod, "" for none. What was kept for it on another one is free then.
func (s *Scheduler) nominateTo(p *model.PodInfo, node string) {
	was := s.Nominator.Of(p.Pod.UID)
	s.Nominator.Set(p, node)
	if was != "" && was != node {
		s.freed(p)
	}
}

// freed reports that the room reserved for a nominated pod is free. For the pods that had to leave it free, that is as
// good as the deletion of a pod.
func (s *Scheduler) freed(p *model.PodInfo) {
	s.Queue.Moved(clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete, Old: p,
		Label: "AssignedPodDelete"})
}

// podActions returns what changed of a pod that plug-ins may wait for.
func podActions(was, p *model.PodInfo) clusterevent.Action {
	var a clusterevent.Action
	if !maps.Equal(was.Pod.Labels, p.Pod.Labels) {
		a |= clusterevent.UpdateLabels
	}
	if !was.Requests.Equal(&p.Requests) {
		a |= clusterevent.UpdateRequests
	}
	if len(was.Pod.Spec.Tolerations) != len(p.Pod.Spec.Tolerations) {
		a |= clusterevent.UpdateTolerations
	}
	if len(was.Pod.Spec.SchedulingGates) != len(p.Pod.Spec.SchedulingGates) {
		a |= clusterevent.UpdateGates
	}
	if !resourceclaim.PodStatusEqual(was.Pod.Status.ResourceClaimStatuses, p.Pod.Status.ResourceClaimStatuses) {
		a |= clusterevent.UpdateGeneratedClaims
	}
	if (was.Pod.DeletionTimestamp == nil) != (p.Pod.DeletionTimestamp == nil) {
		a |= clusterevent.UpdateOther
	}
	// Annotations are kept only if a plug-in or an extender reads them.
	if !maps.Equal(was.Pod.Annotations, p.Pod.Annotations) {
		a |= clusterevent.UpdateOther
	}
	return a
}

// NodeChanged handles an added (old is nil), changed, or deleted (node is nil) node.
func (s *Scheduler) NodeChanged(old, node *corev1.Node) {
	if node == nil {
		s.Cache.RemoveNode(old.Name)
		s.Queue.Moved(clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.Delete, Old: old,
			Label: "NodeDelete"})
		return
	}
	a := clusterevent.Add
	if old != nil {
		before, after := content(old), content(node)
		if equality.Semantic.DeepEqual(&before, &after) {
			return // a heartbeat
		}
		a = nodeActions(old, node)
	}
	s.Cache.SetNode(node)
	if a != 0 {
		s.Queue.Moved(clusterevent.Event{Kind: clusterevent.Node, Action: a, Old: old, New: node, Label: "NodeUpdate"})
	}
}

// content returns the node without what changes with every write and every heartbeat.
func content(n *corev1.Node) corev1.Node {
	c := *n
	c.ResourceVersion, c.Generation = "", 0
	c.Status.Conditions = slices.Clone(n.Status.Conditions)
	for i := range c.Status.Conditions {
		c.Status.Conditions[i].LastHeartbeatTime = metav1.Time{}
	}
	return c
}

// nodeActions returns what changed of a node that pods may wait for. Images and annotations only change scores. All
// that is kept of a node is read by some plug-in, so any other change is one, too.
func nodeActions(old, node *corev1.Node) clusterevent.Action {
	var a clusterevent.Action
	if !equality.Semantic.DeepEqual(old.Status.Allocatable, node.Status.Allocatable) {
		a |= clusterevent.UpdateAllocatable
	}
	if !maps.Equal(old.Labels, node.Labels) {
		a |= clusterevent.UpdateLabels
	}
	if old.Spec.Unschedulable != node.Spec.Unschedulable ||
		!equality.Semantic.DeepEqual(old.Spec.Taints, node.Spec.Taints) {
		a |= clusterevent.UpdateTaints
	}
	if !slices.Equal(old.Status.DeclaredFeatures, node.Status.DeclaredFeatures) {
		a |= clusterevent.UpdateDeclaredFeatures
	}
	before, after := rest(old), rest(node)
	if !equality.Semantic.DeepEqual(&before, &after) {
		a |= clusterevent.UpdateOther
	}
	return a
}

// rest returns what no other action is about.
func rest(n *corev1.Node) corev1.Node {
	c := content(n)
	c.Labels, c.Annotations = nil, nil
	c.Spec.Unschedulable, c.Spec.Taints = false, nil
	c.Status.Allocatable, c.Status.DeclaredFeatures, c.Status.Images = nil, nil, nil
	return c
}

// NamespaceChanged handles a change of a namespace's labels, which affinity terms may select by.
func (s *Scheduler) NamespaceChanged() {
	s.Queue.Moved(clusterevent.Event{Kind: clusterevent.Namespace, Action: clusterevent.Add | clusterevent.Update,
		Label: "NamespaceUpdate"})
}
