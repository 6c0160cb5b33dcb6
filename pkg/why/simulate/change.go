package simulate

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// ChooseBy sets how one of several equally good nodes is chosen: a number in [0, n). Without it the first is.
func (c *Cluster) ChooseBy(random func(n int) int) { c.plain.Random = random }

// Remove takes a pod off its node, or out of those that wait.
func (c *Cluster) Remove(pod *model.PodInfo) {
	c.Waiting = slices.DeleteFunc(c.Waiting, func(p *model.PodInfo) bool { return p.Pod.UID == pod.Pod.UID })
	n := c.Snapshot.Get(pod.Pod.Spec.NodeName)
	if n == nil {
		return
	}
	left := n.Clone()
	if left.RemovePod(pod.Pod) {
		c.Snapshot.Set(n.Slot, left)
	}
}

// SetNode adds a node, or changes one of that name, which keeps its pods.
func (c *Cluster) SetNode(node *corev1.Node) {
	old := c.Snapshot.Get(node.Name)
	if old == nil {
		n := model.NewNodeInfo(node)
		n.Slot = len(c.Snapshot.Nodes)
		n.VolumeLimits = c.limits[node.Name]
		c.Snapshot.Set(n.Slot, n)
		return
	}
	n := old.Clone()
	n.SetNode(node)
	c.Snapshot.Set(n.Slot, n)
}

// SetClaim adds a claim, or changes one of that name, with the volume that it is bound to; nil for none.
func (c *Cluster) SetClaim(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) {
	c.volumes.ClaimChanged(nil, claim)
	if volume != nil {
		c.volumes.VolumeChanged(nil, volume)
	}
}

// RemoveNode takes a node with its pods out of the cluster, and returns these.
func (c *Cluster) RemoveNode(name string) []*model.PodInfo {
	n := c.Snapshot.Get(name)
	if n == nil {
		return nil
	}
	c.Snapshot.Set(n.Slot, nil)
	return n.Pods
}

// Sort puts pods into the order in which the scheduler takes them: by the profile's queue, and by their age.
func (c *Cluster) Sort(pods []*model.PodInfo) {
	queued := map[*model.PodInfo]*framework.QueuedPod{}
	for _, p := range pods {
		queued[p] = &framework.QueuedPod{PodInfo: p, Added: p.Pod.CreationTimestamp.Time}
	}
	slices.SortStableFunc(pods, func(a, b *model.PodInfo) int {
		switch {
		case c.Profile.Sort.Less(queued[a], queued[b]):
			return -1
		case c.Profile.Sort.Less(queued[b], queued[a]):
			return 1
		}
		return cmp.Compare(a.Key(), b.Key())
	})
}
