// Package imagelocality prefers nodes that have the pod's images already, those of its volumes included.
package imagelocality

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// name of the plug-in.
const name = "ImageLocality"

// Images smaller than least count nothing; more than most per container and image volume counts no more.
const (
	mb    int64 = 1024 * 1024
	least       = 23 * mb
	most        = 1000 * mb
)

// Plugin is the ImageLocality plug-in.
type Plugin struct{}

var (
	_ framework.PreScore    = Plugin{}
	_ framework.Score       = Plugin{}
	_ framework.NodeLocal   = Plugin{}
	_ framework.Epochal     = Plugin{}
	_ framework.FieldReader = Plugin{}
)

// Name is the plug-in's name.
func (Plugin) Name() string { return name }

// Fields returns the images that a pod's containers need and a node has. Those of volumes are always kept.
func (Plugin) Fields() framework.Fields {
	return framework.Fields{
		Pod:  []string{"spec.containers.image", "spec.initContainers.image"},
		Node: []string{"status.images"},
	}
}

// Reads the images.
func (Plugin) Reads(pod *model.PodInfo, k *model.Key) {
	for _, list := range [][]corev1.Container{pod.Pod.Spec.InitContainers, pod.Pod.Spec.Containers} {
		k.Num(int64(len(list)))
		for i := range list {
			k.Str(list[i].Image)
		}
	}
	for i := range pod.Pod.Spec.Volumes {
		if v := pod.Pod.Spec.Volumes[i].Image; v != nil {
			k.Str(v.Reference)
		}
	}
}

// ScoreEpoch changes when images or nodes come and go: the score depends on how many nodes have an image.
func (Plugin) ScoreEpoch(s *model.Snapshot) int64 { return s.ImagesEpoch }

type state struct {
	images  []string
	snap    *model.Snapshot
	highest int64
}

// PreScore collects the images; with none of them on any node there is nothing to score.
func (Plugin) PreScore(cs *framework.CycleState, pod *model.PodInfo, s *model.Snapshot,
	_ []*model.NodeInfo) *framework.Status {
	st := &state{snap: s}
	known := false
	add := func(image string) {
		image = normalized(image)
		st.images = append(st.images, image)
		known = known || s.Images[image].Nodes > 0
	}
	for i := range pod.Pod.Spec.InitContainers {
		add(pod.Pod.Spec.InitContainers[i].Image)
	}
	for i := range pod.Pod.Spec.Containers {
		add(pod.Pod.Spec.Containers[i].Image)
	}
	for i := range pod.Pod.Spec.Volumes {
		if v := pod.Pod.Spec.Volumes[i].Image; v != nil {
			add(v.Reference)
		}
	}
	if !known {
		return framework.NewStatus(framework.Skip)
	}
	st.highest = most * int64(len(st.images))
	cs.Write(name, st)
	return nil
}

// Score adds the sizes of the images on the node, each times the part of nodes that have it, so that pods do not all
// run after the one node with the image, and scales to 0 to 100.
func (Plugin) Score(cs *framework.CycleState, _ *model.PodInfo, node *model.NodeInfo) int64 {
	st, ok := cs.Read(name).(*state)
	if !ok || st.snap.Count == 0 {
		return 0
	}
	var sum int64
	for _, image := range st.images {
		if _, ok := node.Images[image]; ok {
			is := st.snap.Images[image]
			sum += int64(float64(is.Size) * float64(is.Nodes) / float64(st.snap.Count))
		}
	}
	sum = min(max(sum, least), st.highest)
	return framework.MaxNodeScore * (sum - least) / (st.highest - least)
}

// normalized adds the tag that nodes report for images named without one.
func normalized(image string) string {
	if strings.LastIndex(image, ":") <= strings.LastIndex(image, "/") {
		return image + ":latest"
	}
	return image
}
