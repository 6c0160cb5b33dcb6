package placement

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/why"
	"bonsai/pkg/why/simulate"
)

// holders explains what takes a resource of a node: its pods that ask for most of it.
func (w *writer) holders(name corev1.ResourceName, n *model.NodeInfo) []why.Cause {
	pods := slices.DeleteFunc(slices.Clone(n.Pods), func(p *model.PodInfo) bool { return p.Requests.Of(name) == 0 })
	if len(pods) == 0 {
		return nil
	}
	slices.SortStableFunc(pods, func(a, b *model.PodInfo) int {
		return cmp.Or(cmp.Compare(b.Requests.Of(name), a.Requests.Of(name)), cmp.Compare(a.Key(), b.Key()))
	})
	c := why.Cause{Code: "Reserved"}
	var list []string
	for i, p := range pods {
		text := fmt.Sprintf("%s for %s", p.Key(), amount(name, p.Requests.Of(name)))
		if model.Priority(p.Pod) > model.Priority(w.pod) {
			text += " with a higher priority"
			if p.Pod.Spec.PriorityClassName != "" {
				text += " (" + p.Pod.Spec.PriorityClassName + ")"
			}
		}
		list = append(list, text)
		if i < maxNodes {
			c.Evidence = append(c.Evidence, why.See(why.ObjectOf("", "Pod", p.Pod),
				fmt.Sprintf(".spec.containers[*].resources.requests['%s']", name), amount(name, p.Requests.Of(name))))
		}
	}
	c.Text = fmt.Sprintf("Pods on node %s ask for %s %s: %s.", n.Name(), amount(name, n.Requested.Of(name)),
		called(name),
		why.And(list))
	return []why.Cause{c}
}

// limitRanger is the annotation in which admission says what it has set by a LimitRange.
const limitRanger = "kubernetes.io/limit-ranger"

// limitRanges explains a request that the pod's author has not written.
func (w *writer) limitRanges(ctx context.Context, name corev1.ResourceName) (causes []why.Cause) {
	said := w.pod.Annotations[limitRanger]
	if !strings.Contains(said, string(name)+" request") {
		return nil
	}
	ranges, _ := why.List[corev1.LimitRange](ctx, w.World, w.pod.Namespace, nil)
	for _, r := range ranges {
		for i, limit := range r.Spec.Limits {
			q, ok := limit.DefaultRequest[name]
			field := "defaultRequest"
			if !ok {
				q, ok = limit.Default[name]
				field = "default"
			}
			if limit.Type != corev1.LimitTypeContainer || !ok {
				continue
			}
			causes = append(causes, why.Cause{Code: "LimitRangeDefault",
				Text: fmt.Sprintf("The pod itself does not say how much %s it asks for; the LimitRange %s gives each "+
					"container %s.", called(name), r.Name, q.String()),
				Evidence: []why.Evidence{why.See(why.ObjectOf("", "LimitRange", r),
					fmt.Sprintf(".spec.limits[%d].%s['%s']", i, field, name), q.String()),
					why.See(w.self, ".metadata.annotations['"+limitRanger+"']", said)},
				Fixes: []why.Fix{{Text: "Say in the pod how much it asks for."}}})
		}
	}
	return causes
}

// eviction explains what preemption does for the pod: nothing, although it is more important than others, or soon.
func (q *inquiry) eviction(ctx context.Context, cluster *simulate.Cluster, info *model.PodInfo) []why.Cause {
	if q.pod.Status.NominatedNodeName != "" {
		return nil
	}
	lower := false
	for n := range cluster.Snapshot.All {
		lower = lower || n.Lowest < model.Priority(q.pod)
	}
	if !lower {
		return nil
	}
	cluster.ReadBudgets(ctx, q.World)
	node, victims, message := cluster.Victims(ctx, info)
	priority := why.See(q.self, ".spec.priority", fmt.Sprint(model.Priority(q.pod)))
	class := ""
	if name := q.pod.Spec.PriorityClassName; name != "" {
		class = fmt.Sprintf(", by its PriorityClass %s", name)
	}
	switch policy := q.pod.Spec.PreemptionPolicy; {
	case policy != nil && *policy == corev1.PreemptNever:
		return []why.Cause{{Code: "PreemptionNever",
			Text: "There are pods of lower priority. The scheduler evicts none of them for this one, since its " +
				"preemptionPolicy is Never" + class + ".",
			Evidence: append(q.priorityClass(ctx), priority, why.See(q.self, ".spec.preemptionPolicy",
				string(*policy))),
			Fixes: []why.Fix{{Text: "Make the pod again with a PriorityClass whose preemptionPolicy is " +
				"PreemptLowerPriority."}}}}
	case node != "":
		var names []string
		for _, v := range victims {
			names = append(names, v.Key())
		}
		return []why.Cause{{Code: "WillPreempt", Evidence: []why.Evidence{priority},
			Text: fmt.Sprintf("The scheduler can make room by its priority: it would evict %s from node %s.",
				why.And(names),
				node)}}
	case message != "":
		return []why.Cause{{Code: "PreemptionDoesNotHelp", Evidence: []why.Evidence{priority},
			Text: "There are pods of lower priority, and evicting them would not help: " + why.Quote(message) + "."}}
	}
	return nil
}

// priorityClass is the evidence of what the pod's PriorityClass says about preemption.
func (q *inquiry) priorityClass(ctx context.Context) []why.Evidence {
	name := q.pod.Spec.PriorityClassName
	if name == "" {
		return nil
	}
	class, _ := why.Get[schedulingv1.PriorityClass](ctx, q.World, "", name)
	if class == nil || class.PreemptionPolicy == nil {
		return nil
	}
	return []why.Evidence{why.See(why.ObjectOf(schedulingv1.GroupName, "PriorityClass", class), ".preemptionPolicy",
		string(*class.PreemptionPolicy))}
}

// below puts why nobody makes room for the pod below the first cause that others' pods would have to make room for: a
// pod of high priority waits for both. Room that is about to be made is a cause of its own.
func below(causes, eviction []why.Cause) []why.Cause {
	if len(eviction) == 0 || eviction[0].Code == "WillPreempt" {
		return append(causes, eviction...)
	}
	for i := range causes {
		switch causes[i].Code {
		case insufficientResource, tooManyPods, hostPortTaken, podAntiAffinity, topologySpread, volumeLimit,
			volumeInUse:
			causes[i].Because = append(causes[i].Because, eviction...)
			return causes
		}
	}
	return append(causes, eviction...)
}
