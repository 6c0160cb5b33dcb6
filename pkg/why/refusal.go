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
	limitRatio   = regexp.MustCompile(`(\S+) max limit to request ratio per (Container|Pod) is (\S+), but (?:provided ratio is (\S+)|no (?:request|limit) is specified|\S+ is 0)`)
	noNamespace  = regexp.MustCompile(`unable to create new content in namespace (\S+) because it is being terminated`)
)

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
		cause.Because = append(defaulted(ctx, c, namespace, m[2]), keptJobs(ctx, c, namespace, m[2])...)
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
		if strings.Contains(m[3], "no params found") {
			cause.Because = noParams(ctx, c, namespace, m[2])
		}
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
	if m := limitRatio.FindStringSubmatch(message); m != nil {
		return outOfRatio(ctx, c, namespace, m[1], m[2], m[3], m[4], cause)
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
