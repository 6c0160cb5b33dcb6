package podsecurity

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"bonsai/pkg/apiserver/admission"
)

// The bounds of looking at the pods that a namespace has, as Kubernetes documents them: it must not hold up the request
// that makes the namespace stricter.
const (
	mostPods = 3000
	mostTime = time.Second
)

// tellOfPods warns of the pods of a namespace that break the rule that it is going to enforce. They stay as they are.
// It never refuses the request because of a pod. The deadline is checked between two pods; the list itself is not
// bounded by it.
func (p *plugin) tellOfPods(ctx context.Context, a *admission.Attributes, ns string, level api.LevelVersion) error {
	if a.Warn == nil {
		return nil
	}
	standards, err := p.standards()
	if err != nil {
		return err
	}
	deadline := p.Now().Add(mostTime)
	objs, err := p.Pods.List(ctx, ns, "")
	if err != nil {
		a.Warn("failed to list pods while checking new PodSecurity enforce level")
		return nil
	}
	pods := make([]*corev1.Pod, 0, len(objs))
	for _, obj := range objs {
		if pod, ok := obj.(*corev1.Pod); ok {
			pods = append(pods, pod)
		}
	}
	pods = oneOfEachFirst(pods)
	byReason, checked := map[string][]string{}, 0
	for _, pod := range pods {
		if checked == mostPods || p.Now().After(deadline) {
			break
		}
		checked++
		if p.Configuration.sandboxed(&pod.Spec) {
			continue
		}
		if result := policy.AggregateCheckResults(
			standards.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec)); !result.Allowed {
			reason := result.ForbiddenReason()
			byReason[reason] = append(byReason[reason], pod.Name)
		}
	}
	if checked < len(pods) {
		a.Warn(fmt.Sprintf("new PodSecurity enforce level only checked against the first %d of %d existing pods",
			checked, len(pods)))
	}
	if len(byReason) > 0 {
		a.Warn(fmt.Sprintf("existing pods in namespace %q violate the new PodSecurity enforce level %q", ns,
			level.String()))
	}
	for _, text := range grouped(byReason) {
		a.Warn(text)
	}
	return nil
}

// oneOfEachFirst puts one pod of each controller, and those without one, before the others: should the bounds cut the
// check short, it has seen as many different pods as it could.
func oneOfEachFirst(pods []*corev1.Pod) []*corev1.Pod {
	seen := map[types.UID]bool{}
	var first, others []*corev1.Pod
	for _, pod := range pods {
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner != nil && seen[owner.UID] {
			others = append(others, pod)
			continue
		}
		if owner != nil {
			seen[owner.UID] = true
		}
		first = append(first, pod)
	}
	return append(first, others...)
}

// grouped says of each reason the first pod that breaks the rule for it and how many others do, in the order of those
// names.
func grouped(byReason map[string][]string) []string {
	type group struct {
		reason string
		names  []string
	}
	var groups []group
	for reason, names := range byReason {
		slices.Sort(names)
		groups = append(groups, group{reason, names})
	}
	slices.SortFunc(groups, func(x, y group) int {
		return cmp.Or(strings.Compare(x.names[0], y.names[0]), strings.Compare(x.reason, y.reason))
	})
	out := make([]string, len(groups))
	for i, g := range groups {
		switch others := len(g.names) - 1; others {
		case 0:
			out[i] = fmt.Sprintf("%s: %s", g.names[0], g.reason)
		case 1:
			out[i] = fmt.Sprintf("%s (and 1 other pod): %s", g.names[0], g.reason)
		default:
			out[i] = fmt.Sprintf("%s (and %d other pods): %s", g.names[0], others, g.reason)
		}
	}
	return out
}
