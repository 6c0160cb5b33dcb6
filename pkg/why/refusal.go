package why

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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
	serviceOf    = regexp.MustCompile(`https://([a-z0-9-]+)\.([a-z0-9-]+)\.svc(?::\d+)?/`)
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
						Text: fmt.Sprintf("Containers that say nothing get %s%s=%s from the LimitRange %s.", prefix, name,
							q.String(), r.Name), Evidence: []Evidence{See(o, ".spec.limits", q.String())},
						Fixes: []Fix{{Text: "Write the container's own, smaller, figures in the template."}}})
				}
			}
		}
	}
	slices.SortFunc(causes, func(a, b Cause) int { return strings.Compare(a.Text, b.Text) })
	return causes
}

// webhookConfiguration returns the kind and the name of the object that registers a webhook, "" if none was found.
func webhookConfiguration(ctx context.Context, c *Case, webhook string) (kind, name string) {
	validating, _ := List[admissionregistrationv1.ValidatingWebhookConfiguration](ctx, c.World, "", nil)
	for _, w := range validating {
		for i := range w.Webhooks {
			if w.Webhooks[i].Name == webhook {
				return "ValidatingWebhookConfiguration", w.Name
			}
		}
	}
	mutating, _ := List[admissionregistrationv1.MutatingWebhookConfiguration](ctx, c.World, "", nil)
	for _, w := range mutating {
		for i := range w.Webhooks {
			if w.Webhooks[i].Name == webhook {
				return "MutatingWebhookConfiguration", w.Name
			}
		}
	}
	return "", ""
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
			for name, hard := range q.Status.Hard {
				if used := q.Status.Used[name]; strings.Contains(m[2], string(name)+"=") {
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
			namespace,
			m[1], Quote(m[2]))
		cause.Evidence = append(cause.Evidence, See(Object{Kind: "Namespace", Name: namespace},
			`.metadata.labels.pod-security\.kubernetes\.io/enforce`, m[1]))
		cause.Fixes = []Fix{{Text: "Change the pods' securityContext as the message says."}}
		return cause
	}
	if m := webhookDown.FindStringSubmatch(message); m != nil {
		cause.Code = "WebhookDown"
		cause.Text = fmt.Sprintf("The admission webhook %s does not answer, and its failurePolicy is Fail: %s.", m[1],
			Quote(m[2]))
		if s := serviceOf.FindStringSubmatch(m[2]); s != nil {
			service := Object{Kind: "Service", Namespace: s[2], Name: s[1]}
			cause.Because, _ = c.Causes(ctx, service)
		}
		cause.Fixes = []Fix{{Text: "Bring the webhook's server back."}}
		if kind, name := webhookConfiguration(ctx, c, m[1]); name != "" {
			cause.Evidence = append(cause.Evidence, See(Object{Group: "admissionregistration.k8s.io", Kind: kind,
				Name: name},
				`.webhooks[?(@.name=="`+m[1]+`")].failurePolicy`, "Fail"))
			cause.Fixes = append(cause.Fixes, Fix{Text: "If the software behind it is gone for good, remove its " +
				"configuration.",
				Command: Command("kubectl delete %s %s", strings.ToLower(kind), name)})
		}
		return cause
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
	if limitRange.MatchString(message) {
		cause.Code = "LimitRange"
		cause.Text = fmt.Sprintf("A LimitRange of namespace %s does not allow what the pods ask for: %s.", namespace,
			Quote(message))
		return cause
	}
	if noNamespace.MatchString(message) {
		cause.Code, cause.Text = "NamespaceTerminating", fmt.Sprintf("Namespace %s is being deleted: nothing can be "+
			"created in it.", namespace)
	}
	return cause
}
