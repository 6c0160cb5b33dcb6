package whatif

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"bonsai/api/quota"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/why"
	"bonsai/pkg/why/admit"
	"bonsai/pkg/why/simulate"
)

// maxVisits bounds the work: some ten seconds. Pods that are left then are not tried, and the result says so.
const maxVisits = 20_000_000

// Random chooses one of several equally good nodes; nil takes the first.
type Random func(n int) int

// Foresee returns what would follow from a change.
func Foresee(ctx context.Context, c *why.Case, ch Change, random Random) (Result, error) {
	f := &future{Case: c, result: Result{Change: ch.String(), Placed: []Placed{}, Waiting: []Waiting{},
		Ended:   []Ended{},
		Budgets: []Budget{}, refusals: map[string]why.Cause{}}, names: map[string]int{},
		fresh: map[types.UID]string{}, refusals: map[types.UID]string{}, charged: map[types.UID]bool{},
		node: nodeOf(ch), ledger: &ledger{c, map[string][]*bound{}}, admission: admit.New(c)}
	if err := f.suppose(ctx, ch.Objects); err != nil {
		return Result{}, err
	}
	pods, _ := why.List[corev1.Pod](ctx, c.World, "", nil)
	var concerned []*corev1.Pod
	for _, p := range pods {
		if p.Spec.NodeName == "" || p.Spec.NodeName == ch.Name {
			concerned = append(concerned, p)
		}
	}
	template, err := f.templates(ctx, ch)
	if err != nil {
		return Result{}, err
	}
	concerned = append(concerned, template...)
	if len(concerned) == 0 {
		concerned = []*corev1.Pod{{}} // none needs more than nodes
	}
	if f.cluster, err = simulate.Read(ctx, c.World, c.Now, concerned...); err != nil {
		return Result{}, err
	}
	if !f.cluster.Complete {
		return Result{}, fmt.Errorf("cannot foresee placement without all nodes and pods: %s",
			strings.Join(c.Finish(why.Answer{}).Unseen, " "))
	}
	f.cluster.MaxVisits = maxVisits
	if random != nil {
		f.cluster.ChooseBy(random)
	}
	f.cluster.ReadBudgets(ctx, c.World)
	if err := f.change(ctx, ch); err != nil {
		return Result{}, err
	}
	if err := f.place(ctx, f.queue()); err != nil {
		return Result{}, err
	}
	f.result.Unseen = c.Finish(why.Answer{}).Unseen
	return f.result, nil
}

// nodeOf is the node that a change takes away, "" for none.
func nodeOf(ch Change) string {
	if ch.Verb == Drain || ch.Verb == Cordon || ch.Verb == Delete && kindOf(ch.Kind) == "Node" {
		return ch.Name
	}
	return ""
}

// future is the cluster while a change is foreseen.
type future struct {
	*why.Case
	cluster *simulate.Cluster
	result  Result
	// pending are pods that the change makes and that have no node yet.
	pending   []*model.PodInfo
	waiting   []*model.PodInfo // those of result.Waiting
	node      string           // that is drained, cordoned or deleted; "" for other changes
	admission *admit.Admission
	ledger    *ledger
	names     map[string]int       // of new pods, by the name of their owner
	fresh     map[types.UID]string // the owners of pods that do not exist yet
	// refusals are why pods that do not exist yet would not be made; charged are those that count against quotas.
	refusals map[types.UID]string
	charged  map[types.UID]bool
}

// queue returns the pods without a node in the scheduler's order.
func (f *future) queue() []*model.PodInfo {
	list := slices.Concat(f.cluster.Waiting, f.pending)
	f.cluster.Waiting, f.pending = nil, nil
	f.cluster.Sort(list)
	return list
}

// place lets the scheduler decide about each pod, as if those before it ran. Pods that are evicted for others and made
// again come last.
func (f *future) place(ctx context.Context, list []*model.PodInfo) error {
	refused := map[string]string{} // the message, by owner, until something changes
	for len(list) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		pod := list[0]
		list = list[1:]
		owner := f.owner(pod)
		if f.cluster.Exhausted() {
			f.Note(fmt.Sprintf("%s were not tried: the bound of the work was reached.", why.Count(len(list)+1, "pod")))
			return nil
		}
		if message := f.notMade(ctx, pod.Pod); message != "" {
			f.wait(ctx, pod, message, nil)
			f.result.Waiting[len(f.result.Waiting)-1].Refused = true
			f.explain(ctx, pod.Pod.Namespace, message)
			continue
		}
		if message, ok := refused[owner]; ok && f.isNew(pod) && alike(owner, pod) {
			f.wait(ctx, pod, message, nil)
			continue
		}
		if message := f.held(pod); message != "" {
			f.wait(ctx, pod, message, nil)
			continue
		}
		decided, diagnosis, err := f.cluster.Decide(ctx, pod)
		if err != nil {
			f.wait(ctx, pod, err.Error(), nil)
			continue
		}
		p := Placed{Pod: f.object(pod), Owner: owner, New: f.isNew(pod), Node: decided.Node, Nodes: decided.Best}
		if diagnosis != nil {
			message := diagnosis.Message()
			node, victims, _ := f.cluster.Victims(ctx, pod)
			if node == "" {
				refused[owner] = message
				f.wait(ctx, pod, message, diagnosis)
				continue
			}
			p.Node, p.Nodes = node, []string{node}
			for _, v := range victims {
				p.Evicted = append(p.Evicted, f.object(v))
				list = append(list, f.end(ctx, v)...)
			}
		}
		slices.Sort(p.Nodes)
		if err := f.cluster.Place(ctx, pod, p.Node); err != nil {
			f.wait(ctx, pod, err.Error(), nil)
			continue
		}
		clear(refused) // affinity may be satisfied now
		f.result.Placed = append(f.result.Placed, p)
	}
	return nil
}

// alike reports whether the new pods of an owner all fit on the same nodes: those of DaemonSets have a node each, and
// claims may reach different ones.
func alike(owner string, pod *model.PodInfo) bool {
	return owner != "" && !strings.HasPrefix(owner, "daemonset/") && len(pod.Claims) == 0
}

// held returns why no scheduler looks at a pod, "" if one does. A pod that asks for another scheduler than the default
// one counts as looked at if that has said something about it.
func (f *future) held(pod *model.PodInfo) string {
	if st := f.cluster.Gate(pod); !st.IsSuccess() {
		return st.Message()
	}
	name := pod.Pod.Spec.SchedulerName
	seen := slices.ContainsFunc(pod.Pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled
	})
	if name != "" && name != corev1.DefaultSchedulerName && !seen && !f.isNew(pod) {
		return "the scheduler " + name + " has not looked at it"
	}
	return ""
}

// taintPlugin is the scheduler's plug-in that keeps pods off nodes with taints.
const taintPlugin = "TaintToleration"

// wait records a pod that finds no node; d is why, nil if no node was asked.
func (f *future) wait(ctx context.Context, pod *model.PodInfo, message string, d *framework.Diagnosis) {
	w := Waiting{Pod: f.object(pod), Owner: f.owner(pod), New: f.isNew(pod), Message: message,
		Asks: quota.Text(resourcehelper.PodRequests(pod.Pod, resourcehelper.PodResourcesOptions{}))}
	if d != nil {
		for node, st := range d.Statuses {
			if len(w.Refusals) == maxRefusals {
				break
			}
			// Of the nodes that no change of their pods would help, those with a taint are of interest: the others are
			// not meant for the pod.
			switch {
			case st.Code == framework.Unschedulable:
				w.Refusals = append(w.Refusals, Refusal{node, strings.Join(st.Reasons, ", ")})
			case st.Plugin == taintPlugin:
				reason := fmt.Sprintf("it has the taint %s, which the pod does not tolerate",
					untolerated(pod.Pod, f.cluster.Snapshot.Get(node)))
				w.Refusals = append(w.Refusals, Refusal{node, reason})
			}
		}
		slices.SortFunc(w.Refusals, func(a, b Refusal) int { return strings.Compare(a.Node, b.Node) })
	}
	w.Holds = f.holds(ctx, pod, d)
	w.Already = !w.New
	f.result.Waiting = append(f.result.Waiting, w)
	f.waiting = append(f.waiting, pod)
}

// untolerated is the first taint that keeps a pod off a node, "" for none.
func untolerated(pod *corev1.Pod, n *model.NodeInfo) string {
	if n == nil {
		return ""
	}
	for i := range n.Node.Spec.Taints {
		t := &n.Node.Spec.Taints[i]
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !model.Tolerated(pod, t) {
			return t.ToString()
		}
	}
	return ""
}

// retry has the pods that found no node tried again, since something has ended.
func (f *future) retry() {
	f.pending = append(f.pending, f.waiting...)
	f.waiting, f.result.Waiting = nil, []Waiting{}
}

func (f *future) object(p *model.PodInfo) why.Object {
	o := why.ObjectOf("", "Pod", p.Pod)
	if f.isNew(p) {
		o.UID = ""
	}
	return o
}

func (f *future) isNew(p *model.PodInfo) bool {
	_, ok := f.fresh[p.Pod.UID]
	return ok
}

// owner names the workload of a pod: deployment/web; "" for none.
func (f *future) owner(p *model.PodInfo) string {
	if o, ok := f.fresh[p.Pod.UID]; ok {
		return o
	}
	if ref := metav1.GetControllerOf(p.Pod); ref != nil {
		return strings.ToLower(ref.Kind) + "/" + ref.Name
	}
	return ""
}

// create returns a new pod from a spec, of an owner that makes it, as admission would leave it.
func (f *future) create(ctx context.Context, w *workload) *model.PodInfo {
	_, base, _ := strings.Cut(w.owner, "/")
	key := w.namespace + "/" + w.owner
	f.names[key]++
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace,
		Name: fmt.Sprintf("%s-new-%d", base, f.names[key]), Labels: w.template.Labels,
		Annotations:     maps.Clone(w.template.Annotations),
		OwnerReferences: w.ref, CreationTimestamp: metav1.NewTime(f.Now)}, Spec: *w.template.Spec.DeepCopy()}
	p.UID = types.UID(fmt.Sprintf("new %s %d", key, f.names[key]))
	if w.ordinals != nil {
		p.Name = fmt.Sprintf("%s-%d", base, w.ordinals())
	}
	p.Spec.NodeName = ""
	f.fresh[p.UID] = w.owner
	message := f.admission.Pod(ctx, p)
	if message == "" {
		message = f.madeClaims(ctx, p, w.claims)
	}
	if message != "" {
		f.refusals[p.UID] = message
	}
	if withoutDevices(p) {
		f.Note("The devices that new pods would claim by templates are not looked at.")
	}
	return simulate.Unplaced(p)
}

// withoutDevices leaves out claims on devices that a controller would make for a new pod, and reports whether there are
// any: which devices are free then is not looked at.
func withoutDevices(p *corev1.Pod) bool {
	before := len(p.Spec.ResourceClaims)
	p.Spec.ResourceClaims = slices.DeleteFunc(p.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool {
		return c.ResourceClaimTemplateName != nil
	})
	return len(p.Spec.ResourceClaims) < before
}

// end takes a pod away and returns the one that its controller makes in its place.
func (f *future) end(ctx context.Context, p *model.PodInfo) []*model.PodInfo {
	again := remade(p.Pod)
	f.cluster.Remove(p)
	f.refund(ctx, p.Pod)
	f.result.Ended = append(f.result.Ended, Ended{Pod: f.object(p), Node: p.Pod.Spec.NodeName, Lost: !again})
	if !again {
		return nil
	}
	t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Pod.Labels, Annotations: p.Pod.Annotations},
		Spec: p.Pod.Spec}
	return []*model.PodInfo{f.create(ctx, &workload{owner: f.owner(p), namespace: p.Pod.Namespace,
		ref: p.Pod.OwnerReferences, template: t})}
}

// remade reports whether a controller makes a pod again elsewhere.
func remade(p *corev1.Pod) bool {
	ref := metav1.GetControllerOf(p)
	return ref != nil && ref.Kind != "DaemonSet" && ref.Kind != "Node"
}

// resident reports whether a pod belongs to its node: drain leaves it there.
func resident(p *corev1.Pod) bool {
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	ref := metav1.GetControllerOf(p)
	return mirror || ref != nil && ref.Kind == "DaemonSet"
}
