package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"bonsai/pkg/why"
)

// HorizontalPodAutoscaler explains an autoscaler that does not move.
func HorizontalPodAutoscaler(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	h, known := why.Get[autoscalingv2.HorizontalPodAutoscaler](ctx, c.World, o.Namespace, o.Name)
	if h == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	self := why.ObjectOf("autoscaling", "HorizontalPodAutoscaler", h)
	if h.DeletionTimestamp != nil {
		return going(ctx, c, self, h)
	}
	least := int32(1)
	if h.Spec.MinReplicas != nil {
		least = *h.Spec.MinReplicas
	}
	target := h.Spec.ScaleTargetRef
	a := why.Answer{Subject: self, State: fmt.Sprintf("%s keeps %s %s at %d replicas (%d to %d are allowed).", self,
		target.Kind, target.Name, h.Status.CurrentReplicas, least, h.Spec.MaxReplicas)}
	group, _, found := strings.Cut(target.APIVersion, "/")
	if !found {
		group = ""
	}
	scaled, seen := c.ByKind(ctx, group, target.Kind, h.Namespace, target.Name)
	if scaled == nil && seen {
		a.State = fmt.Sprintf("%s scales nothing: its target, %s %s, is not found.", self, target.Kind, target.Name)
		if _, served := c.Served(group, target.Kind); !served {
			a.Causes = []why.Cause{unserved(ctx, c, h, self)}
			return a, nil
		}
		a.Causes = []why.Cause{{Code: "ScaleTargetMissing",
			Text: fmt.Sprintf("The %s %s, which it scales, does not exist in namespace %s.", target.Kind,
				target.Name, h.Namespace),
			Evidence: []why.Evidence{why.Absent(target.Kind, h.Namespace, target.Name), why.See(self,
				".spec.scaleTargetRef", target.Kind+"/"+target.Name)}}}
		return a, nil
	}
	for i := range h.Status.Conditions {
		cond := &h.Status.Conditions[i]
		evidence := why.Condition(self, string(cond.Type), string(cond.Status), cond.Reason, cond.Message,
			cond.LastTransitionTime)
		switch {
		case cond.Type == autoscalingv2.AbleToScale && cond.Status == corev1.ConditionFalse:
			a.Causes = append(a.Causes, why.Cause{Code: "UnableToScale", Evidence: []why.Evidence{evidence},
				Text: "It cannot scale its target: " + why.Quote(cond.Message) + "."})
		case cond.Type == autoscalingv2.ScalingActive && cond.Status == corev1.ConditionFalse:
			a.Causes = append(a.Causes, inactive(ctx, c, h, self, scaled, cond, evidence))
		case cond.Type == autoscalingv2.ScalingLimited && cond.Status == corev1.ConditionTrue:
			a.Causes = append(a.Causes, limited(h, self, least, cond, evidence))
		}
	}
	if len(h.Status.Conditions) == 0 {
		a.Causes = append(a.Causes, why.Cause{Code: "NotObserved", Text: "The controller has not looked at it yet. " +
			"Does kube-controller-manager run?", Evidence: []why.Evidence{why.See(self, ".status.conditions", "empty")}})
	}
	a.Well = len(a.Causes) == 0
	a.Causes = append(a.Causes, noLess(h, self)...) // as its owner wants it
	for i := range h.Status.Conditions {
		cond := &h.Status.Conditions[i]
		if cond.Type != autoscalingv2.AbleToScale || cond.Reason != "ScaleDownStabilized" {
			continue
		}
		seconds := int32(300)
		if b := h.Spec.Behavior; b != nil && b.ScaleDown != nil && b.ScaleDown.StabilizationWindowSeconds != nil {
			seconds = *b.ScaleDown.StabilizationWindowSeconds
		}
		a.Causes = append(a.Causes, why.Cause{Code: "ScaleDownStabilized",
			Text: fmt.Sprintf("It would scale down, and waits: it takes the highest number of the last %d s "+
				"(stabilizationWindowSeconds), so that the load does not make it flap.", seconds),
			Evidence: []why.Evidence{why.Condition(self, string(cond.Type), string(cond.Status), cond.Reason,
				cond.Message, cond.LastTransitionTime),
				why.See(self, ".spec.behavior.scaleDown.stabilizationWindowSeconds", fmt.Sprint(seconds))}})
	}
	return a, nil
}

// noLess explains an autoscaler that must not scale down or up.
func noLess(h *autoscalingv2.HorizontalPodAutoscaler, self why.Object) (causes []why.Cause) {
	b := h.Spec.Behavior
	if b == nil || h.Status.DesiredReplicas != h.Status.CurrentReplicas {
		return nil
	}
	for _, d := range []struct {
		name  string
		rules *autoscalingv2.HPAScalingRules
	}{{"scaleDown", b.ScaleDown}, {"scaleUp", b.ScaleUp}} {
		if d.rules == nil || d.rules.SelectPolicy == nil ||
			*d.rules.SelectPolicy != autoscalingv2.DisabledPolicySelect {
			continue
		}
		causes = append(causes, why.Cause{Code: "ScalingDisabled",
			Text: fmt.Sprintf("Its behavior forbids %s (selectPolicy: Disabled).", d.name),
			Evidence: []why.Evidence{why.See(self, ".spec.behavior."+d.name+".selectPolicy",
				string(*d.rules.SelectPolicy))},
			Fixes: []why.Fix{{Text: "Remove that policy.", Command: why.Command("kubectl patch hpa %s%s --type=merge -p %s",
				h.Name, self.Flag(), fmt.Sprintf(`{"spec":{"behavior":{%q:{"selectPolicy":null}}}}`, d.name))}}})
	}
	return causes
}

// homes are the groups of the kinds that most autoscalers scale.
var homes = map[string]string{"Deployment": "apps", "ReplicaSet": "apps", "StatefulSet": "apps",
	"ReplicationController": ""}

// unserved explains a reference to a kind in an API group that the server does not serve, such as one of old manifests.
func unserved(ctx context.Context, c *why.Case, h *autoscalingv2.HorizontalPodAutoscaler, self why.Object) why.Cause {
	target := h.Spec.ScaleTargetRef
	cause := why.Cause{Code: "ScaleTargetNotServed",
		Text: fmt.Sprintf("Its scaleTargetRef has the apiVersion %q, and the server serves no kind %s there.",
			target.APIVersion, target.Kind),
		Evidence: []why.Evidence{why.See(self, ".spec.scaleTargetRef.apiVersion", target.APIVersion)}}
	group, known := homes[target.Kind]
	if !known {
		return cause
	}
	r, served := c.Served(group, target.Kind)
	if !served {
		return cause
	}
	version := r.GroupVersion().String()
	cause.Text += fmt.Sprintf(" A %s is of %s.", target.Kind, version)
	if there, _ := c.ByKind(ctx, group, target.Kind, h.Namespace, target.Name); there != nil {
		cause.Text += fmt.Sprintf(" %s %s exists there.", target.Kind, target.Name)
	}
	cause.Fixes = []why.Fix{{Text: "Write that apiVersion.", Command: why.Command(
		"kubectl patch hpa %s%s --type=merge -p %s", h.Name, self.Flag(),
		fmt.Sprintf(`{"spec":{"scaleTargetRef":{"apiVersion":%q}}}`, version))}}
	return cause
}

// limited explains an autoscaler that wants another number than its bounds allow.
func limited(h *autoscalingv2.HorizontalPodAutoscaler, self why.Object, least int32,
	cond *autoscalingv2.HorizontalPodAutoscalerCondition, evidence why.Evidence) why.Cause {
	cause := why.Cause{Code: cond.Reason, Text: "It is held back: " + why.Quote(cond.Message) + ".",
		Evidence: []why.Evidence{evidence}}
	switch cond.Reason {
	case "TooManyReplicas":
		cause.Text = fmt.Sprintf("It would use more replicas than maxReplicas (%d) allows.", h.Spec.MaxReplicas)
		cause.Evidence = append(cause.Evidence, why.See(self, ".spec.maxReplicas", fmt.Sprint(h.Spec.MaxReplicas)))
		cause.Fixes = []why.Fix{{Text: "Raise maxReplicas.", Command: why.Command(
			`kubectl patch hpa %s%s --type=merge -p '{"spec":{"maxReplicas":%d}}'`, h.Name, self.Flag(),
			2*h.Spec.MaxReplicas)}}
	case "TooFewReplicas":
		cause.Text = fmt.Sprintf("It would use fewer replicas than minReplicas (%d) allows.", least)
		cause.Evidence = append(cause.Evidence, why.See(self, ".spec.minReplicas", fmt.Sprint(least)))
	}
	return cause
}

// inactive explains an autoscaler that does not know its metrics.
func inactive(ctx context.Context, c *why.Case, h *autoscalingv2.HorizontalPodAutoscaler, self why.Object,
	scaled *unstructured.Unstructured, cond *autoscalingv2.HorizontalPodAutoscalerCondition,
	evidence why.Evidence) why.Cause {
	cause := why.Cause{Code: cond.Reason, Text: "It does not know its metrics: " + why.Quote(cond.Message) + ".",
		Evidence: []why.Evidence{evidence}}
	if cond.Reason == "ScalingDisabled" {
		target := h.Spec.ScaleTargetRef
		cause.Text = fmt.Sprintf("Its target, %s %s, is scaled to 0, which switches the autoscaler off.",
			target.Kind, target.Name)
		cause.Fixes = []why.Fix{{Text: "Scale it up; the autoscaler goes on from there.", Command: why.Command(
			"kubectl scale %s/%s%s --replicas=1", strings.ToLower(target.Kind), target.Name, self.Flag())}}
		return cause
	}
	if cond.Reason == "AmbiguousSelector" || cond.Reason == "InvalidSelector" {
		cause.Text = "It does not know its pods: " + why.Quote(cond.Message) + "."
		cause.Because = sharing(ctx, c, h)
		cause.Fixes = []why.Fix{{Text: "Give each workload a selector that matches its own pods alone. A Deployment's cannot be " +
			"changed: make it again."}}
		return cause
	}
	if name := missingRequest(h, scaled, cond.Message); name != "" {
		cause.Code = "RequestMissing"
		cause.Text = fmt.Sprintf("It scales by a percentage of the requested %s, and a container of its pods "+
			"requests none: %s.",
			name, why.Quote(cond.Message))
		cause.Fixes = []why.Fix{{Text: fmt.Sprintf("Give every container a request of %s.", name),
			Command: why.Command("kubectl set resources %s/%s%s --requests=%s=100m",
				strings.ToLower(h.Spec.ScaleTargetRef.Kind),
				h.Spec.ScaleTargetRef.Name, self.Flag(), name)}}
		return cause
	}
	for _, group := range metricGroups(h) {
		s, known := why.Get[apiregistrationv1.APIService](ctx, c.World, "", group)
		if s == nil {
			if known {
				cause.Code = "MetricsUnknown"
				cause.Text = "It does not know its metrics, since nothing serves them."
				cause.Because = append(cause.Because, why.Cause{Code: "MetricsAPIMissing",
					Text: fmt.Sprintf("Nothing serves the API %s: the cluster has no metrics-server, or no adapter "+
						"of these metrics.", group), Evidence: []why.Evidence{why.Absent("APIService", "", group)}})
			}
			continue
		}
		for _, ac := range s.Status.Conditions {
			if ac.Type == apiregistrationv1.Available && ac.Status != apiregistrationv1.ConditionTrue {
				o := why.ObjectOf("apiregistration.k8s.io", "APIService", s)
				cause.Because = append(cause.Because, why.Cause{Code: "MetricsAPIDown",
					Text: fmt.Sprintf("The API %s is not available: %s.", group, why.Quote(ac.Message)),
					Evidence: []why.Evidence{why.Condition(o, string(ac.Type), string(ac.Status), ac.Reason, ac.Message,
						ac.LastTransitionTime)}})
			}
		}
	}
	return cause
}

// sharing are the other autoscalers of the namespace with their targets: one of them selects the same pods.
func sharing(ctx context.Context, c *why.Case, h *autoscalingv2.HorizontalPodAutoscaler) (causes []why.Cause) {
	all, _ := why.List[autoscalingv2.HorizontalPodAutoscaler](ctx, c.World, h.Namespace, nil)
	for _, other := range all {
		if other.Name == h.Name || len(causes) == 5 {
			continue
		}
		o := why.ObjectOf("autoscaling", "HorizontalPodAutoscaler", other)
		target := other.Spec.ScaleTargetRef.Kind + " " + other.Spec.ScaleTargetRef.Name
		causes = append(causes, why.Cause{Code: "OtherAutoscaler",
			Text:     fmt.Sprintf("HorizontalPodAutoscaler %s scales %s.", other.Name, target),
			Evidence: []why.Evidence{why.See(o, ".spec.scaleTargetRef", target)}})
	}
	return causes
}

// metricGroups are the APIServices that an autoscaler's metrics come from.
func metricGroups(h *autoscalingv2.HorizontalPodAutoscaler) (groups []string) {
	for _, m := range h.Spec.Metrics {
		group := "v1beta1.metrics.k8s.io"
		switch m.Type {
		case autoscalingv2.PodsMetricSourceType, autoscalingv2.ObjectMetricSourceType:
			group = "v1beta2.custom.metrics.k8s.io"
		case autoscalingv2.ExternalMetricSourceType:
			group = "v1beta1.external.metrics.k8s.io"
		}
		if !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return groups
}

// missingRequest returns the resource that a container of the target does not request, although the autoscaler scales
// by a percentage of the requests.
func missingRequest(h *autoscalingv2.HorizontalPodAutoscaler, scaled *unstructured.Unstructured,
	message string) string {
	if scaled == nil && !strings.Contains(message, "missing request for") {
		return ""
	}
	var containers []any
	if scaled != nil {
		containers, _, _ = unstructured.NestedSlice(scaled.Object, "spec", "template", "spec", "containers")
	}
	for _, m := range h.Spec.Metrics {
		if m.Resource == nil || m.Resource.Target.AverageUtilization == nil {
			continue
		}
		name := string(m.Resource.Name)
		if strings.Contains(message, "missing request for "+name) {
			return name
		}
		for _, one := range containers {
			container, _ := one.(map[string]any)
			_, request, _ := unstructured.NestedFieldNoCopy(container, "resources", "requests", name)
			_, limit, _ := unstructured.NestedFieldNoCopy(container, "resources", "limits", name)
			if container != nil && !request && !limit {
				return name
			}
		}
	}
	return ""
}
