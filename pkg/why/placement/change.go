package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/why"
)

// change is something that may make the pod fit on a node. It is tried on a copy.
type change struct {
	// kind is equal for changes that are the same to a user; of these one is shown.
	kind string
	text string
	// command is empty if no single command makes the change.
	command why.CommandLine
	// cost orders changes, the smallest first: how much else they change. Small are those that one command undoes and
	// that take nothing from others; see the constants.
	cost float64
	pod  func(*corev1.Pod)
	node func(*model.NodeInfo)
}

// Costs of changes. Between two kinds it is the order that matters; within asking for less, the part that goes.
const (
	costUncordon      = 5
	costAskLess       = 10 // and up to 40 more, by the part of the request that goes
	costTypo          = 12
	costSpreadTaints  = 18
	costTolerate      = 25
	costLabel         = 27
	costDropRule      = 30
	costUntaint       = 40
	costMovePod       = 45
	costDeletePod     = 55
	costControlPlane  = 65 // more than any change to one's own pods
	costOrphan        = 15 // more, for a pod that nobody makes again
	costOtherPriority = 20 // more, for a pod that is at least as important
)

// changes returns what could remove a finding of a node, without having tried it.
func (s *search) changes(f finding, n *model.NodeInfo) []change {
	switch f.code {
	case insufficientResource:
		return s.askLess(f, n)
	case untoleratedTaint:
		return s.taintChanges(f, n)
	case nodeCordoned:
		return []change{{kind: "uncordon " + n.Name(), cost: costUncordon, text: "Uncordon node " + n.Name(),
			command: "kubectl uncordon " + why.Word(n.Name()), node: uncordon}}
	case selectorMismatch:
		return s.selectorChanges(n)
	case affinityMismatch:
		return s.affinityChanges()
	case hostPortTaken:
		return []change{{kind: "ports", cost: costDropRule, text: "Ask for no host port",
			command: s.owner.dropPorts(), pod: dropPorts}}
	case podAffinity:
		return []change{{kind: "pod affinity", cost: costDropRule, text: "Drop the required pod affinity",
			command: s.owner.remove("/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution"),
			pod: func(p *corev1.Pod) {
				if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
					a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
				}
			}}}
	case podAntiAffinity:
		return []change{{kind: "pod anti-affinity", cost: costDropRule, text: "Drop the required pod anti-affinity",
			command: s.owner.remove("/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution"),
			pod: func(p *corev1.Pod) {
				if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
					a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
				}
			}}}
	case topologySpread:
		return s.spreadChanges()
	}
	return nil
}

func uncordon(n *model.NodeInfo) {
	node := n.Node.DeepCopy()
	node.Spec.Unschedulable = false
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeUnschedulable
	})
	n.Node = node
}

// taintChanges are a toleration of the pod, and a node without the taint.
func (s *search) taintChanges(f finding, n *model.NodeInfo) []change {
	t := *f.taint
	cost := 0.0
	if controlPlane(&t) {
		cost = costControlPlane
	}
	toleration := corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect}
	if t.Value == "" {
		toleration.Operator = corev1.TolerationOpExists
	}
	return []change{
		{kind: "tolerate " + f.what, cost: max(costTolerate, cost), text: "Tolerate the taint " + f.what,
			command: s.owner.tolerate(toleration),
			pod:     func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, toleration) }},
		{kind: "untaint", cost: max(costUntaint, cost+1), text: fmt.Sprintf("Remove the taint %s from node %s", f.what,
			n.Name()), command: "kubectl taint nodes " + why.Word(n.Name()) + " " + why.Word(f.what+"-"),
			node: func(n *model.NodeInfo) {
				node := n.Node.DeepCopy()
				node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(o corev1.Taint) bool {
					return o.Key == t.Key && o.Value == t.Value && o.Effect == t.Effect
				})
				n.Node = node
			}},
	}
}

// selectorChanges make the nodeSelector and the node's labels equal, from either side.
func (s *search) selectorChanges(n *model.NodeInfo) (list []change) {
	wrong := map[string]string{}
	for k, v := range s.pod.Spec.NodeSelector {
		if have, ok := n.Node.Labels[k]; !ok || have != v {
			wrong[k] = v
		}
	}
	keys := slices.Sorted(maps.Keys(wrong))
	// What admission adds comes back with the next pod: it is not to be dropped from a template that lacks it.
	added := slices.ContainsFunc(keys, func(k string) bool {
		if s.author == nil {
			return false
		}
		_, ok := s.author.NodeSelector[k]
		return !ok
	})
	if len(keys) == 1 && !added {
		if have, ok := n.Node.Labels[keys[0]]; ok {
			list = append(list, s.selectOther(keys[0], wrong[keys[0]], have))
		}
	}
	if !slices.ContainsFunc(keys, reserved) {
		var pairs, overwrite why.CommandLine
		for _, k := range keys {
			pairs += " " + why.Word(k+"="+wrong[k])
			if _, ok := n.Node.Labels[k]; ok {
				overwrite = " --overwrite"
			}
		}
		list = append(list, change{kind: "label", cost: costLabel, text: fmt.Sprintf("Give node %s the label %s",
			n.Name(), pairsText(keys, wrong)), node: relabel(wrong),
			command: "kubectl label node " + why.Word(n.Name()) + pairs + overwrite})
	}
	if added {
		return list
	}
	var paths []string
	for _, k := range keys {
		paths = append(paths, "/nodeSelector/"+pointer(k))
	}
	return append(list, change{kind: "selector", cost: costDropRule,
		text: "Drop " + pairsText(keys, wrong) + " from the nodeSelector", command: s.owner.remove(paths...),
		pod: func(p *corev1.Pod) {
			for _, k := range keys {
				delete(p.Spec.NodeSelector, k)
			}
		}})
}

// selectOther asks for the value that a node has. A value that differs by a letter or two is taken for a typing error.
func (s *search) selectOther(key, want, have string) change {
	cost := float64(costDropRule - 1)
	if near(want, have) {
		cost = costTypo
	}
	return change{kind: "select other", cost: cost,
		text:    fmt.Sprintf("Ask for %s=%s instead of %s=%s in the nodeSelector", key, have, key, want),
		command: s.owner.replace("/nodeSelector/"+pointer(key), have),
		pod:     func(p *corev1.Pod) { p.Spec.NodeSelector[key] = have }}
}

// near reports whether two words differ by a letter that is another one, missing or too much; long words by two. Short
// words that differ more are different ones: ssd and hdd.
func near(a, b string) bool {
	const short, long, longest = 3, 6, 63
	most := 1
	if min(len(a), len(b)) >= long {
		most = 2
	}
	if min(len(a), len(b)) < short || max(len(a), len(b)) > longest {
		return false
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := last
			if a[i] != b[j] {
				change++
			}
			last = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)] <= most
}

// reserved reports whether a label is Kubernetes' own, which says what a node is: another value would be a lie.
func reserved(key string) bool {
	prefix, _, ok := strings.Cut(key, "/")
	return ok && (strings.HasSuffix(prefix, "kubernetes.io") || strings.HasSuffix(prefix, "k8s.io")) &&
		prefix != "node-role.kubernetes.io"
}

func relabel(labels map[string]string) func(*model.NodeInfo) {
	return func(n *model.NodeInfo) {
		node := n.Node.DeepCopy()
		if node.Labels == nil {
			node.Labels = map[string]string{}
		}
		maps.Copy(node.Labels, labels)
		n.Node = node
	}
}

func pairsText(keys []string, values map[string]string) string {
	var list []string
	for _, k := range keys {
		list = append(list, k+"="+values[k])
	}
	return strings.Join(list, ", ")
}

// affinityChanges drop the required node affinity; that of a DaemonSet's pod names its node and stays.
func (s *search) affinityChanges() []change {
	a := s.pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil ||
		s.owner.kind == "DaemonSet" {
		return nil
	}
	return []change{{kind: "affinity", cost: costDropRule, text: "Drop the required node affinity",
		command: s.owner.remove("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"),
		pod: func(p *corev1.Pod) {
			p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
		}}}
}

// spreadChanges relax one constraint each: nodes with taints do not count, or it only rates nodes.
func (s *search) spreadChanges() (list []change) {
	honor := corev1.NodeInclusionPolicyHonor
	for i := range s.pod.Spec.TopologySpreadConstraints {
		c := &s.pod.Spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		at := fmt.Sprintf("/topologySpreadConstraints/%d", i)
		if c.NodeTaintsPolicy == nil || *c.NodeTaintsPolicy != honor {
			list = append(list, change{kind: "spread taints " + at, cost: costSpreadTaints,
				text: fmt.Sprintf("Leave nodes with taints that the pod does not tolerate out of the spread over %s "+
					"(nodeTaintsPolicy: Honor)", c.TopologyKey),
				command: s.owner.add(at+"/nodeTaintsPolicy", string(honor)),
				pod:     func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints[i].NodeTaintsPolicy = &honor }})
		}
		list = append(list, change{kind: "spread " + at, cost: costDropRule,
			text:    fmt.Sprintf("Let the spread over %s be a wish (whenUnsatisfiable: ScheduleAnyway)", c.TopologyKey),
			command: s.owner.replace(at+"/whenUnsatisfiable", string(corev1.ScheduleAnyway)),
			pod: func(p *corev1.Pod) {
				p.Spec.TopologySpreadConstraints[i].WhenUnsatisfiable = corev1.ScheduleAnyway
			}})
	}
	return list
}

func dropPorts(p *corev1.Pod) {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			for j := range list[i].Ports {
				list[i].Ports[j].HostPort = 0
			}
		}
	}
}
