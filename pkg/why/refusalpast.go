package why

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// RefusedBefore explains why an API server did not take an earlier write: as Refused does, unless the reason is gone.
// Controllers leave the message of their last attempt, and after each failure wait longer for the next one.
func RefusedBefore(ctx context.Context, c *Case, namespace, message string, seen Evidence) Cause {
	now, evidence, ok := gone(ctx, c, namespace, message)
	if !ok {
		return Refused(ctx, c, namespace, message, seen)
	}
	return Cause{Code: "RefusedBefore",
		Text: fmt.Sprintf("The API server refused the last attempt: %s. That reason is gone: %s. The next attempt may "+
			"succeed; controllers wait longer after each failure.", Quote(message), now),
		Evidence: append([]Evidence{seen}, evidence...)}
}

// strictness orders the Pod Security Standards. A namespace without the label has privileged, unless the server's own
// default says otherwise.
var strictness = map[string]int{"": 0, "privileged": 0, "baseline": 1, "restricted": 2}

// gone reports whether the reason for which an API server refused a write no longer holds, and what is so instead. It
// is false if the reason could not be read.
func gone(ctx context.Context, c *Case, namespace, message string) (now string, evidence []Evidence, ok bool) {
	if m := noAccount.FindStringSubmatch(message); m != nil {
		if a, _ := Get[corev1.ServiceAccount](ctx, c.World, m[1], m[2]); a != nil {
			return fmt.Sprintf("ServiceAccount %s exists now", a.Name),
				[]Evidence{SeeMade(ObjectOf("", "ServiceAccount", a), a)}, true
		}
	}
	if m := noPriority.FindStringSubmatch(message); m != nil {
		if p, _ := Get[schedulingv1.PriorityClass](ctx, c.World, "", m[1]); p != nil {
			return fmt.Sprintf("PriorityClass %s exists now", p.Name),
				[]Evidence{SeeMade(ObjectOf(schedulingv1.GroupName, "PriorityClass", p), p)}, true
		}
	}
	if m := overQuota.FindStringSubmatch(message); m != nil {
		return roomNow(ctx, c, namespace, m[1], m[2])
	}
	if m := quotaNeeds.FindStringSubmatch(message); m != nil {
		return noQuotaNow(ctx, c, namespace, m[1])
	}
	if m := podSecurity.FindStringSubmatch(message); m != nil {
		const enforce = "pod-security.kubernetes.io/enforce"
		level, _, _ := strings.Cut(m[1], ":")
		if n, _ := Get[corev1.Namespace](ctx, c.World, "", namespace); n != nil &&
			strictness[n.Labels[enforce]] < strictness[level] {
			return fmt.Sprintf("namespace %s does not enforce %q now", namespace, level), []Evidence{See(
				ObjectOf("", "Namespace", n), `.metadata.labels.pod-security\.kubernetes\.io/enforce`,
				n.Labels[enforce])}, true
		}
	}
	if m := policyDenied.FindStringSubmatch(message); m != nil {
		b, known := Get[admissionregistrationv1.ValidatingAdmissionPolicyBinding](ctx, c.World, "", m[2])
		if b == nil && known {
			return fmt.Sprintf("ValidatingAdmissionPolicyBinding %s does not exist now", m[2]),
				[]Evidence{Absent("ValidatingAdmissionPolicyBinding", "", m[2])}, true
		}
	}
	return "", nil, false
}

// roomNow reports whether a quota that had no room for a request has it now, or is gone. requested is as in the
// message: "pods=1,requests.cpu=200m".
func roomNow(ctx context.Context, c *Case, namespace, name, requested string) (string, []Evidence, bool) {
	q, _ := Get[corev1.ResourceQuota](ctx, c.World, namespace, name)
	if q == nil {
		return noQuotaNow(ctx, c, namespace, name)
	}
	var evidence []Evidence
	for part := range strings.SplitSeq(requested, ",") {
		key, value, _ := strings.Cut(part, "=")
		want, err := resource.ParseQuantity(value)
		hard, bounded := q.Status.Hard[corev1.ResourceName(key)]
		if err != nil || !bounded {
			return "", nil, false
		}
		used := q.Status.Used[corev1.ResourceName(key)]
		want.Add(used)
		if want.Cmp(hard) > 0 {
			return "", nil, false
		}
		evidence = append(evidence, See(ObjectOf("", "ResourceQuota", q), ".status.used."+key,
			used.String()+" of "+hard.String()))
	}
	return fmt.Sprintf("ResourceQuota %s has room for it now", name), evidence, true
}

func noQuotaNow(ctx context.Context, c *Case, namespace, name string) (string, []Evidence, bool) {
	if q, known := Get[corev1.ResourceQuota](ctx, c.World, namespace, name); q != nil || !known {
		return "", nil, false
	}
	return fmt.Sprintf("ResourceQuota %s does not exist now", name),
		[]Evidence{Absent("ResourceQuota", namespace, name)}, true
}
