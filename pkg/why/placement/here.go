package placement

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
	"bonsai/pkg/why/simulate"
)

// here explains why a pod is on its node: what the scheduler's plug-ins would say of the nodes now, without the pod.
func (q *inquiry) here(ctx context.Context) (why.Answer, error) {
	node := q.pod.Spec.NodeName
	a := why.Answer{Subject: q.self, State: fmt.Sprintf("%s is on node %s.", q.self, node), Well: true}
	if _, mirror := q.pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		a.Causes = []why.Cause{{Code: "StaticPod", Text: fmt.Sprintf("The pod is a static pod of node %s: its kubelet "+
			"runs it from a file, and no scheduler is asked.", node),
			Evidence: []why.Evidence{why.See(q.self, ".metadata.annotations['"+corev1.MirrorPodAnnotationKey+"']",
				"set")}}}
		return a, nil
	}
	cluster, err := simulate.Read(ctx, q.World, q.Now, q.pod)
	if err != nil {
		return why.Answer{}, err
	}
	info := simulate.Unplaced(q.pod)
	n := cluster.Snapshot.Get(node)
	if !cluster.Complete || n == nil || info.Err != nil {
		return a, nil
	}
	without := n.Clone()
	without.RemovePod(info.Pod)
	cluster.With(without, func() { a.Causes = q.compare(cluster.Try(info), without.Name(), cluster) })
	return a, nil
}

// compare explains the node by the scores of all nodes on which the pod fits.
func (q *inquiry) compare(t *simulate.Trial, node string, cluster *simulate.Cluster) []why.Cause {
	here := why.See(q.self, ".spec.nodeName", node)
	if c := q.scheduled(); c != nil && c.Status == corev1.ConditionTrue {
		here.Time = &c.LastTransitionTime.Time
	}
	scores, err := t.Scores()
	at := slices.Index(scores.Nodes, node)
	switch {
	case err != nil:
		return nil
	case at < 0:
		return []why.Cause{{Code: "WouldNotFitNow", Evidence: []why.Evidence{here},
			Text: fmt.Sprintf("The pod would not be placed on node %s again now: %s. That does not end it.", node,
				messages(t, cluster, node))}}
	case len(scores.Nodes) == 1:
		return []why.Cause{{Code: "OnlyNode", Evidence: []why.Evidence{here},
			Text: fmt.Sprintf("Node %s is the only one on which the pod fits now.", node)}}
	}
	text := fmt.Sprintf("The pod fits on %s now. ", why.Count(len(scores.Nodes), "node"))
	best := slices.Max(scores.Total)
	code := "HighestScore"
	switch {
	case scores.Total[at] == best:
		text += fmt.Sprintf("Of these, %s has the highest score: %s.", node, totals(scores, at))
	default:
		code = "OtherNodeBetterNow"
		text += fmt.Sprintf("Now another one has a higher score than %s: %s. Pods are not moved for that.", node,
			totals(scores, at))
	}
	return []why.Cause{{Code: code, Text: text, Evidence: []why.Evidence{here}, Because: parts(scores, at)}}
}

// messages are the reasons why the pod would not fit on a node.
func messages(t *simulate.Trial, cluster *simulate.Cluster, node string) string {
	var list []string
	for _, st := range t.On(cluster.Snapshot.Get(node)) {
		list = append(list, why.Quote(st.Message()))
	}
	return strings.Join(list, ", ")
}

// totals names the scores of a node and of the best others.
func totals(s simulate.Score, at int) string {
	others := make([]int, 0, len(s.Nodes))
	for i := range s.Nodes {
		if i != at {
			others = append(others, i)
		}
	}
	slices.SortStableFunc(others, func(a, b int) int { return cmp.Compare(s.Total[b], s.Total[a]) })
	list := []string{fmt.Sprintf("%s %d", s.Nodes[at], s.Total[at])}
	for _, i := range others {
		list = append(list, fmt.Sprintf("%s %d", s.Nodes[i], s.Total[i]))
	}
	return why.And(list)
}

// parts explains the sum by the plug-ins, those that tell the nodes apart first.
func parts(s simulate.Score, at int) (list []why.Cause) {
	spread := func(p simulate.PluginScore) int64 {
		return (slices.Max(p.Scores) - slices.Min(p.Scores)) * p.Weight
	}
	plugins := slices.Clone(s.Plugins)
	slices.SortStableFunc(plugins, func(a, b simulate.PluginScore) int { return cmp.Compare(spread(b), spread(a)) })
	for _, p := range plugins {
		if spread(p) == 0 {
			continue
		}
		others := append(slices.Clone(p.Scores[:at]), p.Scores[at+1:]...)
		text := fmt.Sprintf("%s gives %s %d of 100, and the others %d", p.Name, s.Nodes[at], p.Scores[at],
			slices.Min(others))
		if most := slices.Max(others); most > slices.Min(others) {
			text += fmt.Sprintf(" to %d", most)
		}
		if p.Weight > 1 {
			text += fmt.Sprintf("; it counts %d times", p.Weight)
		}
		list = append(list, why.Cause{Code: "PluginScore", Text: text + "."})
	}
	return list
}
