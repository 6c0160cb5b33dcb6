package why

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The sentences by which API servers refuse a write. They are messages of the API, which v1.36.3 was seen to send.
var (
	overQuota    = regexp.MustCompile(`exceeded quota: ([^,]+), requested: (.+), used: (.+), limited: (.+)`)
	quotaNeeds   = regexp.MustCompile(`failed quota: ([^:]+): must specify (.+)`)
	denied       = regexp.MustCompile(`admission webhook "([^"]+)" denied the request(?: without explanation)?(?:: )?(.*)`)
	webhookDown  = regexp.MustCompile(`failed calling webhook "([^"]+)": (?:failed to call webhook: )?(.*)`)
	policyDenied = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)' with binding '([^']+)' denied request: (.*)`)
	podSecurity  = regexp.MustCompile(`violates PodSecurity "([^"]+)": (.*)`)
	noAccount    = regexp.MustCompile(`error looking up service account ([^/]+)/([^:]+): serviceaccount "([^"]+)" not found`)
	noPriority   = regexp.MustCompile(`no PriorityClass with name (\S+) was found`)
	limitRange   = regexp.MustCompile(`(maximum|minimum) (\S+) usage per (Container|Pod|PersistentVolumeClaim) is (\S+?),? but (?:request|limit) (?:is|of) `)
	noNamespace  = regexp.MustCompile(`unable to create new content in namespace (\S+) because it is being terminated`)
)

// defaulted explains a quantity that nobody has written: a LimitRange of the namespace gives it to containers that say
// none. requested is what the quota counted: "limits.memory=512Mi".
func defaulted(ctx context.Context, c *Case, namespace, requested string) (causes []Cause) {
	ranges, _ := List[corev1.LimitRange](ctx, c.World, namespace, nil)
	for _, r := range ranges {
		for _, l := range r.Spec.Limits {
			given := map[string]corev1.ResourceList{"limits.": l.Default, "requests.": l.DefaultRequest}
			for prefix, list := range given {
				for name, q := range list {
					if !strings.Contains(requested, prefix+string(name)+"=") {
						continue
					}
					o := ObjectOf("", "LimitRange", r)
					causes = append(causes, Cause{Code: "LimitRangeDefault",
						Text: fmt.Sprintf("Containers without a figure of their own get %s%s=%s, the default of "+
							"the LimitRange %s.", prefix, name, q.String(), r.Name),
						Evidence: []Evidence{See(o, ".spec.limits", q.String())},
						Fixes:    []Fix{{Text: "Write the container's own, smaller, figures in the template."}}})
				}
			}
		}
	}
	slices.SortFunc(causes, func(a, b Cause) int { return strings.Compare(a.Text, b.Text) })
	return causes
}

// outOfRange explains what is outside of a LimitRange: the one that bounds the resource, and who wrote what is asked
// for.
func outOfRange(ctx context.Context, c *Case, namespace, message, resource, kind string, cause Cause) Cause {
	cause.Code = "LimitRange"
	who := "A LimitRange"
	ranges, _ := List[corev1.LimitRange](ctx, c.World, namespace, nil)
	for _, r := range ranges {
		for i := range r.Spec.Limits {
			l := &r.Spec.Limits[i]
			name := corev1.ResourceName(resource)
			most, bounded := l.Max[name]
			least, floored := l.Min[name]
			if string(l.Type) != kind || !bounded && !floored {
				continue
			}
			o := ObjectOf("", "LimitRange", r)
			who = "LimitRange " + r.Name
			if bounded {
				cause.Evidence = append(cause.Evidence, See(o, fmt.Sprintf(".spec.limits[%d].max['%s']", i, name),
					most.String()))
			}
			if floored {
				cause.Evidence = append(cause.Evidence, See(o, fmt.Sprintf(".spec.limits[%d].min['%s']", i, name),
					least.String()))
			}
			cause.Fixes = []Fix{{Text: "Ask for what the LimitRange allows, or change it.",
				Command: "kubectl edit " + o.Arg() + o.Flag()}}
		}
	}
	cause.Text = fmt.Sprintf("%s of namespace %s does not allow what is asked for: %s.", who, namespace, Quote(message))
	if kind == "Pod" {
		cause.Text += " What all containers of a pod ask for counts together."
	}
	part := "requests."
	if strings.Contains(message, "but limit is") {
		part = "limits."
	}
	for _, given := range defaulted(ctx, c, namespace, part+resource+"=") {
		// One container's figure is in the message; that of a pod is a sum.
		if kind == "Pod" || kind == "Container" && strings.HasSuffix(message, " is "+given.Evidence[0].Value) {
			cause.Because = append(cause.Because, given)
		}
	}
	return cause
}

// Refused explains why an API server did not take a write, by its answer. seen is where the answer stands.
func Refused(ctx context.Context, c *Case, namespace, message string, seen Evidence) Cause {
	cause := Cause{Code: "Refused", Text: "The API server refuses it: " + Quote(message) + ".",
		Evidence: []Evidence{seen}}
	if m := overQuota.FindStringSubmatch(message); m != nil {
		quota := Object{Kind: "ResourceQuota", Namespace: namespace, Name: m[1]}
		cause.Code = "QuotaExceeded"
		cause.Text = fmt.Sprintf("The ResourceQuota %s of namespace %s is used up: %s are used of %s, and this asks "+
			"for %s.",
			m[1], namespace, m[3], m[4], m[2])
		if q, _ := Get[corev1.ResourceQuota](ctx, c.World, namespace, m[1]); q != nil {
			for _, name := range slices.Sorted(maps.Keys(q.Status.Hard)) {
				hard, used := q.Status.Hard[name], q.Status.Used[name]
				if strings.Contains(m[2], string(name)+"=") {
					cause.Evidence = append(cause.Evidence, See(quota, ".status.used."+string(name),
						used.String()+" of "+hard.String()))
				}
			}
		}
		cause.Because = defaulted(ctx, c, namespace, m[2])
		cause.Fixes = []Fix{{Text: "Ask for less, remove what uses it, or raise the quota.",
			Command: "kubectl edit " + quota.Arg() + quota.Flag()}}
		return cause
	}
	if m := quotaNeeds.FindStringSubmatch(message); m != nil {
		cause.Code = "QuotaNeedsResources"
		cause.Text = fmt.Sprintf("The ResourceQuota %s of namespace %s counts resources that the pods do not "+
			"specify: %s.",
			m[1], namespace, m[2])
		cause.Fixes = []Fix{{Text: "Set these requests and limits, or give the namespace a LimitRange with defaults."}}
		return cause
	}
	if m := podSecurity.FindStringSubmatch(message); m != nil {
		cause.Code = "PodSecurity"
		cause.Text = fmt.Sprintf("Namespace %s enforces the Pod Security Standard %q, which the pods violate: %s.",
			namespace, m[1], Quote(m[2]))
		level, _, _ := strings.Cut(m[1], ":") // the version is a label of its own
		cause.Evidence = append(cause.Evidence, See(Object{Kind: "Namespace", Name: namespace},
			`.metadata.labels.pod-security\.kubernetes\.io/enforce`, level))
		cause.Fixes = []Fix{{Text: "Change the pods' securityContext as the message says."}}
		return cause
	}
	if m := webhookDown.FindStringSubmatch(message); m != nil {
		cause.Code = "WebhookDown"
		cause.Text = fmt.Sprintf("The admission webhook %s does not answer, and its failurePolicy is Fail: %s.", m[1],
			Quote(m[2]))
		return unreachable(ctx, c, m[1], m[2], cause)
	}
	if m := denied.FindStringSubmatch(message); m != nil {
		cause.Code, cause.Text = "WebhookDenied", fmt.Sprintf("The admission webhook %s refuses it: %s.", m[1],
			Quote(m[2]))
		return cause
	}
	if m := policyDenied.FindStringSubmatch(message); m != nil {
		cause.Code = "PolicyDenied"
		cause.Text = fmt.Sprintf("The ValidatingAdmissionPolicy %s (binding %s) refuses it: %s.", m[1], m[2],
			Quote(m[3]))
		return cause
	}
	if m := noAccount.FindStringSubmatch(message); m != nil {
		cause.Code = "ServiceAccountMissing"
		cause.Text = fmt.Sprintf("The ServiceAccount %s, which the pods name, does not exist in namespace %s.",
			m[2], m[1])
		cause.Evidence = append(cause.Evidence, Absent("ServiceAccount", m[1], m[2]))
		cause.Fixes = []Fix{{Text: "Create it.", Command: Command("kubectl create serviceaccount %s -n %s",
			m[2], m[1])}}
		return cause
	}
	if m := noPriority.FindStringSubmatch(message); m != nil {
		cause.Code, cause.Text = "PriorityClassMissing", fmt.Sprintf("The PriorityClass %s, which the pods name, "+
			"does not exist.", m[1])
		return cause
	}
	if m := limitRange.FindStringSubmatch(message); m != nil {
		return outOfRange(ctx, c, namespace, message, m[2], m[3], cause)
	}
	if noNamespace.MatchString(message) {
		if going, err := NamespaceGoing(ctx, c, namespace); err == nil && going != nil {
			going.Evidence = append(going.Evidence, seen)
			return *going
		}
		cause.Code, cause.Text = namespaceTerminating, fmt.Sprintf("Namespace %s is being deleted: no new objects are "+
			"made in it.", namespace)
	}
	return cause
}
