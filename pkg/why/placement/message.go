package placement

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// patience is how long a scheduler that runs may be silent about a new pod.
const patience = 15 * time.Second

// leaseOld is when a scheduler that has not renewed its lease no longer runs.
const leaseOld = time.Minute

// said is the evidence of what the cluster's scheduler says about the pod.
func (q *inquiry) said() []why.Evidence {
	if c := q.scheduled(); c != nil {
		return []why.Evidence{why.See(q.self, `.status.conditions[?(@.type=="PodScheduled")].message`, c.Message,
			c.LastTransitionTime)}
	}
	return nil
}

// silent explains a pod about which no scheduler has said anything: none of its name runs. It returns nothing about a
// pod that is new.
func (q *inquiry) silent(ctx context.Context) []why.Cause {
	name := q.pod.Spec.SchedulerName
	young := q.Now.Sub(q.pod.CreationTimestamp.Time) < patience
	if q.scheduled() != nil || young && (name == corev1.DefaultSchedulerName || q.schedules(ctx, name)) {
		return nil
	}
	for _, e := range q.Events(ctx, q.self) {
		if e.Reason == "FailedScheduling" {
			return nil
		}
	}
	cause := why.Cause{Code: "NoScheduler",
		Text: fmt.Sprintf("The pod asks for the scheduler %s, and none of that name has said anything about it.",
			name),
		Evidence: []why.Evidence{why.See(q.self, ".spec.schedulerName", name)}}
	if name != corev1.DefaultSchedulerName {
		cause.Fixes = []why.Fix{{Text: "Run that scheduler."},
			{Text: "Ask for " + corev1.DefaultSchedulerName + " as schedulerName.",
				Command: ownerOf(ctx, q.Case, q.pod).replace("/schedulerName", corev1.DefaultSchedulerName)}}
		return []why.Cause{cause}
	}
	const namespace, lease = "kube-system", "kube-scheduler"
	l, known := why.Get[coordinationv1.Lease](ctx, q.World, namespace, lease)
	o := why.Object{Group: "coordination.k8s.io", Kind: "Lease", Namespace: namespace, Name: lease}
	cause.Fixes = []why.Fix{{Text: "Start kube-scheduler, or look at its logs."}}
	switch {
	case l != nil && l.Spec.RenewTime != nil && q.Now.Sub(l.Spec.RenewTime.Time) < leaseOld:
		cause.Text = "The default scheduler runs, and has said nothing about the pod."
		cause.Evidence = append(cause.Evidence, why.Evidence{Object: o, Field: ".spec.renewTime",
			Value: l.Spec.RenewTime.UTC().Format(time.RFC3339), Time: &l.Spec.RenewTime.Time})
		cause.Fixes = []why.Fix{{Text: "Look at the logs of kube-scheduler."}}
	case l != nil && l.Spec.RenewTime != nil:
		cause.Text = fmt.Sprintf("The default scheduler does not run: it last renewed its lease %s ago.",
			why.Span(q.Now.Sub(l.Spec.RenewTime.Time)))
		cause.Evidence = append(cause.Evidence, why.Evidence{Object: o, Field: ".spec.renewTime",
			Value: l.Spec.RenewTime.UTC().Format(time.RFC3339), Time: &l.Spec.RenewTime.Time})
	case known:
		cause.Text = "The default scheduler does not seem to run: it has said nothing about the pod, and has no lease."
		cause.Evidence = append(cause.Evidence, why.Absent("Lease", namespace, lease))
	}
	return []why.Cause{cause}
}

// schedules reports whether a scheduler of that name has said something about any pod.
func (q *inquiry) schedules(ctx context.Context, name string) bool {
	pods, _ := why.List[corev1.Pod](ctx, q.World, "", nil)
	return slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
		return p.Spec.SchedulerName == name && (&inquiry{pod: p}).scheduled() != nil
	})
}

// counted is where a reason begins in a scheduler's message: "0/3 nodes are available: 1 Insufficient cpu, 2 …".
var counted = regexp.MustCompile(`(?:^|, )(\d+) `)

// reasons splits a scheduler's message into reasons and the number of nodes of each; nil if it is no such message.
// Taints are left out of the reasons, since versions of Kubernetes differ by where they write them.
func reasons(message string) map[string]int {
	_, list, ok := strings.Cut(message, " nodes are available: ")
	if !ok {
		return nil
	}
	list, _, _ = strings.Cut(list, " preemption: ")
	list, _, _ = strings.Cut(list, " no new claims to deallocate")
	list = strings.TrimRight(strings.TrimSpace(list), ".")
	at := counted.FindAllStringSubmatchIndex(list, -1)
	out := map[string]int{}
	for i, m := range at {
		end := len(list)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		n, _ := strconv.Atoi(list[m[2]:m[3]]) // digits; too many are none
		out[reason(list[m[1]:end])] += n
	}
	if len(at) == 0 {
		out[reason(list)] = 0
	}
	return out
}

func reason(text string) string {
	text = strings.TrimRight(strings.TrimSpace(text), ".")
	if strings.Contains(text, "untolerated taint") {
		return "node(s) had untolerated taint(s)"
	}
	return text
}

// known are the reasons of Kubernetes' plug-ins, by how they begin, with their codes.
var known = []struct{ begin, code string }{
	{"Insufficient ", insufficientResource}, {"Too many pods", tooManyPods},
	{"node(s) had untolerated taint", untoleratedTaint}, {"node(s) were unschedulable", nodeCordoned},
	{"node(s) didn't match Pod's node affinity/selector", affinityMismatch},
	{"node(s) didn't have free ports", hostPortTaken},
	{"node(s) didn't match pod affinity rules", podAffinity},
	{"node(s) didn't match pod anti-affinity rules", podAntiAffinity},
	{"node(s) didn't satisfy existing pods anti-affinity", podAntiAffinity},
	{"node(s) didn't match pod topology spread", topologySpread},
	{"node(s) had volume node affinity conflict", volumeElsewhere},
	{"node(s) didn't match PersistentVolume's node affinity", volumeElsewhere},
	{"node(s) had no available volume zone", volumeElsewhere},
	{"node(s) didn't find available persistent volumes", volumeUnavailable},
	{"node(s) did not have enough free storage", volumeUnavailable},
	{"node(s) unavailable due to one or more pvc(s)", volumeUnavailable},
	{"node(s) exceed max volume count", volumeLimit}, {"node(s) had no available disk", volumeInUse},
	{"node(s) unavailable due to PersistentVolumeClaim with", volumeInUse},
	{"pod has unbound immediate PersistentVolumeClaims", claimNotBound}, {"persistentvolumeclaim ", claimMissing},
	{"cannot allocate all claims", deviceUnavailable}, {"resourceclaim", deviceUnavailable},
	{"node(s) didn't satisfy plugin", affinityMismatch},
	{"node(s) didn't match the requested node name", affinityMismatch},
	{"node(s) didn't match Pod's required features", otherRefusal},
}

func codeOf(reason string) (string, bool) {
	for _, k := range known {
		if strings.HasPrefix(reason, k.begin) {
			return k.code, true
		}
	}
	return otherRefusal, false
}

// quoted explains a pod by what the cluster's scheduler says alone, for callers who may not read nodes and pods.
func (q *inquiry) quoted() (causes []why.Cause) {
	c := q.scheduled()
	if c == nil || c.Status == corev1.ConditionTrue {
		return nil
	}
	all := reasons(c.Message)
	if len(all) == 0 {
		return []why.Cause{{Code: otherRefusal, Text: "The scheduler says: " + why.Quote(c.Message) + ".",
			Evidence: q.said()}}
	}
	names := slices.SortedStableFunc(maps.Keys(all), func(a, b string) int {
		if all[a] != all[b] {
			return all[b] - all[a]
		}
		return strings.Compare(a, b)
	})
	for _, r := range names {
		code, _ := codeOf(r)
		text := "The scheduler says: " + why.Quote(r) + "."
		if all[r] > 0 {
			text = fmt.Sprintf("The scheduler says of %s: %s.", why.Count(all[r], "node"), why.Quote(r))
		}
		causes = append(causes, why.Cause{Code: code, Text: text, Evidence: q.said()})
	}
	return causes
}

// compared adds to the causes what the cluster's scheduler says that the plug-ins here do not: a reason that they do
// not know comes first, since its scheduler has the last word.
func (q *inquiry) compared(causes []why.Cause, ours string) []why.Cause {
	c := q.scheduled()
	if c == nil || c.Status == corev1.ConditionTrue {
		return causes
	}
	theirs, here := reasons(c.Message), reasons(ours)
	if theirs == nil || maps.Equal(theirs, here) {
		return causes
	}
	for r := range theirs {
		if _, ok := codeOf(r); !ok {
			return append([]why.Cause{{Code: otherRefusal, Evidence: q.said(),
				Text: fmt.Sprintf("The cluster's scheduler has a reason of its own: %s.", why.Quote(r))}}, causes...)
		}
	}
	return append(causes, why.Cause{Code: "SchedulerDiffers", Evidence: q.said(),
		Text: fmt.Sprintf("The cluster's scheduler saw it differently when it last tried, %s ago, by another "+
			"configuration or before something changed: %s.", why.Span(q.Now.Sub(c.LastTransitionTime.Time)),
			why.Quote(c.Message))})
}
