package devicetainteviction

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	api "bonsai/api/resource"
	"bonsai/pkg/controller"
)

const (
	// manager is the field manager of the conditions, as upstream.
	manager = "device-taint-eviction-controller"
	// telling is how often the status of a rule is written while pods leave because of it.
	telling = 10 * time.Second
)

// tally knows what was said of each rule, and how many pods left because of it since the start of the controller.
type tally struct {
	mu      sync.Mutex
	evicted map[types.UID]int
	said    map[types.UID]metav1.Condition
}

func newTally() *tally {
	return &tally{evicted: map[types.UID]int{}, said: map[types.UID]metav1.Condition{}}
}

func (t *tally) count(rule types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.evicted[rule]++
}

// of returns the number of pods, and what the controller said last, which its cache may not show yet.
func (t *tally) of(rule types.UID) (evicted int, said metav1.Condition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.evicted[rule], t.said[rule]
}

func (t *tally) say(rule types.UID, is metav1.Condition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said[rule] = is
}

// keep drops the rules that are not among those that exist.
func (t *tally) keep(exist map[types.UID]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.evicted, func(rule types.UID, _ int) bool { return !exist[rule] })
	maps.DeleteFunc(t.said, func(rule types.UID, _ metav1.Condition) bool { return !exist[rule] })
}

// reconcileRule says in the status of a rule what its taint does, or would do. What a taint without effect would do is
// looked up once for each change of the rule, as the condition says.
func (c *Controller) reconcileRule(ctx context.Context, key controller.Key) (controller.Result, error) {
	r, ok := c.rules.Get(key)
	if !ok {
		exist := map[types.UID]bool{}
		for _, r := range c.rules.List() {
			exist[r.UID] = true
		}
		c.tally.keep(exist)
		return controller.Result{}, nil
	}
	evicted, said := c.tally.of(r.UID)
	has := &said
	if said.ObservedGeneration != r.Generation {
		has = apimeta.FindStatusCondition(r.Status.Conditions, resourcev1.DeviceTaintConditionEvictionInProgress)
	}
	current := has != nil && has.ObservedGeneration == r.Generation
	if current && r.Spec.Taint.Effect != resourcev1.DeviceTaintEffectNoExecute {
		return controller.Result{}, nil
	}
	if current && c.Now().Before(has.LastTransitionTime.Add(telling)) {
		return controller.Result{RequeueAfter: has.LastTransitionTime.Add(telling).Sub(c.Now())}, nil
	}
	is := c.condition(r, evicted)
	if !current || has.Status != is.Status || has.Reason != is.Reason || has.Message != is.Message {
		if err := c.writeCondition(ctx, r, is); err != nil {
			return controller.Result{}, err
		}
		c.tally.say(r.UID, is)
	}
	if is.Status == metav1.ConditionTrue {
		return controller.Result{RequeueAfter: telling}, nil
	}
	return controller.Result{}, nil
}

func (c *Controller) condition(r *resourcev1.DeviceTaintRule, evicted int) metav1.Condition {
	is := metav1.Condition{Type: resourcev1.DeviceTaintConditionEvictionInProgress, Status: metav1.ConditionFalse,
		ObservedGeneration: r.Generation, LastTransitionTime: metav1.NewTime(c.Now())}
	pods, namespaces, devices := c.victims(r)
	switch r.Spec.Taint.Effect {
	case resourcev1.DeviceTaintEffectNoExecute:
		var said []string
		is.Reason = "NotStarted"
		if evicted > 0 {
			is.Reason = "Completed"
		}
		if pods > 0 {
			is.Status, is.Reason = metav1.ConditionTrue, "PodsPendingEviction"
			said = append(said, fmt.Sprintf("%s to be evicted in %s.",
				count(pods, "pod needs", "pods need"), count(namespaces, "namespace", "different namespaces")))
		}
		if evicted > 0 {
			said = append(said, count(evicted, "pod", "pods")+" evicted since starting the controller.")
		}
		is.Message = strings.Join(said, " ")
	case resourcev1.DeviceTaintEffectNone:
		is.Reason = "NoEffect"
		is.Message = fmt.Sprintf("%s selected. %s selected. %s would be evicted in %s if the effect was NoExecute. "+
			"This information will not be updated again. Recreate the DeviceTaintRule to trigger an update.",
			count(c.published(r), "published device", "published devices"),
			count(devices, "allocated device", "allocated devices"), count(pods, "pod", "pods"),
			count(namespaces, "namespace", "different namespaces"))
	default:
		is.Reason, is.Message = "OtherEffect", "Eviction only happens for the NoExecute effect."
	}
	return is
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// victims counts the pods that have to leave if a rule's taint evicts, their namespaces, and the devices in claims that
// the rule is about.
func (c *Controller) victims(r *resourcev1.DeviceTaintRule) (pods, namespaces, devices int) {
	taint := r.Spec.Taint
	taint.Effect = resourcev1.DeviceTaintEffectNoExecute
	leave, in := map[types.UID]bool{}, map[string]bool{}
	for _, claim := range c.claims.List() {
		if claim.Status.Allocation == nil {
			continue
		}
		evicts := false
		for i := range claim.Status.Allocation.Devices.Results {
			d := &claim.Status.Allocation.Devices.Results[i]
			if !api.Taints(r, d.Driver, d.Pool, d.Device) {
				continue
			}
			devices++
			if _, ever := due(&taint, d.Tolerations); ever {
				evicts = true
			}
		}
		for _, consumer := range claim.Status.ReservedFor {
			if evicts && c.mayLeave(claim, &consumer) {
				leave[consumer.UID], in[claim.Namespace] = true, true
			}
		}
	}
	return len(leave), len(in), devices
}

// mayLeave reports whether a claim is reserved for a pod on a node that is not about to end.
func (c *Controller) mayLeave(claim *resourcev1.ResourceClaim, of *resourcev1.ResourceClaimConsumerReference) bool {
	if of.APIGroup != "" || of.Resource != "pods" {
		return false
	}
	p, ok := c.pods.Get(controller.Key{Namespace: claim.Namespace, Name: of.Name})
	return ok && evictable(p) && resourceclaim.IsReservedForPod(p, claim, false)
}

func evictable(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Spec.NodeName != "" && !controller.PodTerminal(p)
}

// published counts the devices that drivers show and a rule selects, of the newest generation of each pool.
func (c *Controller) published(r *resourcev1.DeviceTaintRule) int {
	all, newest := c.slices.List(), map[pool]int64{}
	for _, s := range all {
		newest[poolOf(s)] = max(newest[poolOf(s)], s.Spec.Pool.Generation)
	}
	n := 0
	for _, s := range all {
		for i := range s.Spec.Devices {
			if s.Spec.Pool.Generation == newest[poolOf(s)] &&
				api.Taints(r, s.Spec.Driver, s.Spec.Pool.Name, s.Spec.Devices[i].Name) {
				n++
			}
		}
	}
	return n
}

func (c *Controller) writeCondition(ctx context.Context, r *resourcev1.DeviceTaintRule, is metav1.Condition) error {
	config, err := json.Marshal(map[string]any{"apiVersion": resourcev1.SchemeGroupVersion.String(),
		"kind": "DeviceTaintRule", "metadata": map[string]any{"name": r.Name, "uid": r.UID},
		"status": map[string]any{"conditions": []metav1.Condition{is}}})
	if err != nil {
		return fmt.Errorf("encoding the status of the rule %s: %w", r.Name, err)
	}
	if _, err := c.ruleWrites.Apply(ctx, "", r.Name, manager, config, "status"); err != nil &&
		!apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // another rule of that name by now
		return fmt.Errorf("writing the status of the rule %s: %w", r.Name, err)
	}
	return nil
}
