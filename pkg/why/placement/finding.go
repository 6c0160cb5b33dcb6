package placement

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/why/simulate"
)

// Codes of causes.
const (
	insufficientResource = "InsufficientResource"
	tooManyPods          = "TooManyPods"
	untoleratedTaint     = "UntoleratedTaint"
	nodeCordoned         = "Cordoned"
	nodeNotReady         = "NodeNotReady"
	networkUnavailable   = "NetworkUnavailable"
	selectorMismatch     = "NodeSelector"
	affinityMismatch     = "NodeAffinity"
	hostPortTaken        = "HostPortTaken"
	podAffinity          = "PodAffinityUnsatisfied"
	podAntiAffinity      = "PodAntiAffinityConflict"
	topologySpread       = "TopologySpreadViolated"
	volumeElsewhere      = "VolumeNodeConflict"
	volumeUnavailable    = "VolumeUnavailable"
	volumeLimit          = "VolumeLimitReached"
	volumeInUse          = "VolumeInUse"
	claimMissing         = "ClaimMissing"
	claimNotBound        = "ClaimNotBound"
	deviceUnavailable    = "DeviceUnavailable"
	otherRefusal         = "SchedulerRefusal"
)

// finding is one reason that keeps the pod off a node.
type finding struct {
	code string
	// what tells findings of one code apart that are causes of their own: a resource, a taint.
	what   string
	status *framework.Status
	taint  *corev1.Taint
}

// key is equal for findings that are one cause.
func (f finding) key() string { return f.code + " " + f.what }

// chosen reports whether the finding follows from the nodes that the pod's author chose: by labels, or by where its
// volumes are.
func (f finding) chosen() bool {
	return slices.Contains([]string{selectorMismatch, affinityMismatch, volumeElsewhere}, f.code)
}

// intent reports whether the finding follows from where the pod is meant to run, rather than from what is the case
// there now.
func (f finding) intent() bool { return f.code == untoleratedTaint || f.chosen() }

// ill reports whether the finding is about the node itself, whatever the pod.
func (f finding) ill() bool {
	return slices.Contains([]string{nodeCordoned, nodeNotReady, networkUnavailable, string(corev1.NodeMemoryPressure),
		string(corev1.NodeDiskPressure), string(corev1.NodePIDPressure)}, f.code)
}

// seat is a node with all that keeps the pod off it.
type seat struct {
	node     *model.NodeInfo
	findings []finding
}

// Levels of how much a pod is meant for a node.
const (
	otherNode = iota // its author chose others
	tainted          // nothing else speaks against the node than taints that the pod does not tolerate
	meantNode        // a node such as the author has in mind
)

func (s *seat) level() int {
	switch {
	case slices.ContainsFunc(s.findings, finding.chosen):
		return otherNode
	case slices.ContainsFunc(s.findings, finding.intent):
		return tainted
	}
	return meantNode
}

// meantFor returns the nodes that a pod is meant for most; none if it is meant for none, and what speaks against all of
// them is the cause.
func meantFor(all []*seat) map[*seat]bool {
	best := otherNode
	for _, s := range all {
		best = max(best, s.level())
	}
	list := map[*seat]bool{}
	for _, s := range all {
		if best > otherNode && s.level() == best {
			list[s] = true
		}
	}
	return list
}

// seats returns all nodes with their findings, in the order of their names.
func seats(t *simulate.Trial, pod *model.PodInfo, s *model.Snapshot) []*seat {
	var all []*seat
	for n := range s.All {
		st := &seat{node: n}
		for _, refusal := range t.On(n) {
			for _, f := range findings(refusal, pod, n) {
				if !slices.ContainsFunc(st.findings, func(have finding) bool { return have.key() == f.key() }) {
					st.findings = append(st.findings, f)
				}
			}
		}
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b *seat) int { return cmp.Compare(a.node.Name(), b.node.Name()) })
	return all
}

// findings returns what a plug-in's refusal of a node says.
func findings(st *framework.Status, pod *model.PodInfo, n *model.NodeInfo) (list []finding) {
	one := func(code, what string) []finding { return []finding{{code: code, what: what, status: st}} }
	switch st.Plugin {
	case "NodeResourcesFit":
		for _, r := range st.Reasons {
			if name, ok := strings.CutPrefix(r, "Insufficient "); ok {
				list = append(list, finding{code: insufficientResource, what: name, status: st})
			} else {
				list = append(list, finding{code: tooManyPods, status: st})
			}
		}
		return list
	case "TaintToleration":
		return taints(st, pod.Pod, n.Node)
	case "NodeUnschedulable":
		return one(nodeCordoned, "")
	case "NodeAffinity", "NodeName":
		if mismatched(pod.Pod.Spec.NodeSelector, n.Node) {
			return one(selectorMismatch, "")
		}
		return one(affinityMismatch, "")
	case "NodePorts":
		return one(hostPortTaken, "")
	case "InterPodAffinity":
		if strings.Contains(st.Message(), "anti-affinity") {
			return one(podAntiAffinity, st.Message())
		}
		return one(podAffinity, "")
	case "PodTopologySpread":
		return one(topologySpread, st.Message())
	case "VolumeRestrictions":
		return one(volumeInUse, "")
	case "NodeVolumeLimits":
		return one(volumeLimit, "")
	case "VolumeZone":
		return one(volumeElsewhere, "")
	case "VolumeBinding":
		return one(volumeCode(st), st.Message())
	case "DynamicResources":
		return one(deviceUnavailable, st.Message())
	}
	return one(otherRefusal, st.Plugin+": "+st.Message())
}

// volumeCode is the code of a refusal by VolumeBinding.
func volumeCode(st *framework.Status) string {
	m := st.Message()
	switch {
	case strings.Contains(m, "node affinity"):
		return volumeElsewhere
	case strings.Contains(m, "unbound immediate"):
		return claimNotBound
	case strings.Contains(m, "persistentvolumeclaim") || strings.Contains(m, "ephemeral volume controller"):
		return claimMissing
	}
	return volumeUnavailable
}

func mismatched(selector map[string]string, n *corev1.Node) bool {
	for k, v := range selector {
		if have, ok := n.Labels[k]; !ok || have != v {
			return true
		}
	}
	return false
}

// taints returns a finding for each taint that keeps the pod off a node. Those that Kubernetes sets itself say
// something about the node.
func taints(st *framework.Status, pod *corev1.Pod, n *corev1.Node) (list []finding) {
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		if t.Effect != corev1.TaintEffectNoSchedule && t.Effect != corev1.TaintEffectNoExecute ||
			model.Tolerated(pod, t) {
			continue
		}
		f := finding{code: untoleratedTaint, what: taintText(t), status: st, taint: t}
		switch t.Key {
		case corev1.TaintNodeUnschedulable:
			f.code, f.what = nodeCordoned, ""
		case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, "node.cloudprovider.kubernetes.io/uninitialized":
			f.code, f.what = nodeNotReady, ""
		case corev1.TaintNodeNetworkUnavailable:
			f.code, f.what = networkUnavailable, ""
		case corev1.TaintNodeMemoryPressure:
			f.code, f.what = string(corev1.NodeMemoryPressure), ""
		case corev1.TaintNodeDiskPressure:
			f.code, f.what = string(corev1.NodeDiskPressure), ""
		case corev1.TaintNodePIDPressure:
			f.code, f.what = string(corev1.NodePIDPressure), ""
		}
		list = append(list, f)
	}
	return list
}

// taintText writes a taint as kubectl does: key=value:effect.
func taintText(t *corev1.Taint) string {
	if t.Value == "" {
		return t.Key + ":" + string(t.Effect)
	}
	return t.Key + "=" + t.Value + ":" + string(t.Effect)
}

// controlPlane reports whether a taint reserves nodes for the control plane.
func controlPlane(t *corev1.Taint) bool {
	return t != nil && (t.Key == "node-role.kubernetes.io/control-plane" || t.Key == "node-role.kubernetes.io/master")
}

// group is a cause with its nodes.
type group struct {
	finding
	// seats are its nodes: those that the pod is meant for, if there are any.
	seats []*seat
	meant int // how many the pod is meant for
	order int // that of the plug-ins, for equals
}

// groups joins the findings of nodes to causes, the one that matters most first: what keeps the pod off the nodes that
// it is meant for, then what most nodes have. The control plane's own taint comes last, since nearly no pod is meant to
// tolerate it.
func groups(all []*seat) []*group {
	byKey, meant := map[string]*group{}, meantFor(all)
	var list []*group
	for _, s := range all {
		for _, f := range s.findings {
			g := byKey[f.key()]
			if g == nil {
				g = &group{finding: f, order: len(list)}
				byKey[f.key()] = g
				list = append(list, g)
			}
			g.seats = append(g.seats, s)
			if meant[s] {
				g.meant++
			}
		}
	}
	for _, g := range list {
		if g.meant > 0 { // the others are out anyway
			g.seats = slices.DeleteFunc(g.seats, func(s *seat) bool { return !meant[s] })
		}
	}
	last := func(g *group) int {
		if controlPlane(g.taint) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b *group) int {
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(b.meant, a.meant),
			cmp.Compare(len(b.seats), len(a.seats)), cmp.Compare(a.order, b.order))
	})
	return list
}
