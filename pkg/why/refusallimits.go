package why

import (
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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

// outOfRatio explains a limit that is too many times its request for a LimitRange. most is the largest ratio that it
// allows, and has what was asked for, "" if one of both was not given.
func outOfRatio(ctx context.Context, c *Case, namespace, name, kind, most, has string, cause Cause) Cause {
	cause.Code = "LimitRangeRatio"
	who, value := "A LimitRange", corev1.ResourceName(name)
	ranges, _ := List[corev1.LimitRange](ctx, c.World, namespace, nil)
	for _, r := range ranges {
		for i := range r.Spec.Limits {
			l := &r.Spec.Limits[i]
			ratio, bounded := l.MaxLimitRequestRatio[value]
			if string(l.Type) != kind || !bounded {
				continue
			}
			o := ObjectOf("", "LimitRange", r)
			who = "LimitRange " + r.Name
			cause.Evidence = append(cause.Evidence, See(o, fmt.Sprintf(".spec.limits[%d].maxLimitRequestRatio['%s']", i,
				name), ratio.String()))
			if given, ok := l.Default[value]; ok {
				cause.Because = append(cause.Because, givenLimit(o, i, name, &given, &ratio))
			}
		}
	}
	cause.Text = fmt.Sprintf("%s of namespace %s allows a limit of %s of at most %s times the request.", who, namespace,
		name, most)
	if has != "" {
		cause.Text = fmt.Sprintf("%s of namespace %s allows a limit of %s of at most %s times the request, and this one is %s "+
			"times.", who, namespace, name, most, strings.TrimSuffix(strings.TrimRight(has, "0"), "."))
	}
	cause.Fixes = []Fix{{Text: fmt.Sprintf("Write both the request and the limit of %s in the template, the limit at most "+
		"%s times the request.", name, most)}}
	return cause
}

// givenLimit explains a limit that nobody wrote: the LimitRange gives it to containers that say none, whatever they
// request.
func givenLimit(o Object, i int, name string, given, ratio *resource.Quantity) Cause {
	cause := Cause{Code: "LimitRangeDefault",
		Text: fmt.Sprintf("Containers without a limit of their own get limits.%s=%s, the default of the same LimitRange, "+
			"however little they request.", name, given.String()),
		Evidence: []Evidence{See(o, fmt.Sprintf(".spec.limits[%d].default['%s']", i, name), given.String())}}
	if r := ratio.AsApproximateFloat64(); r >= 1 {
		least := resource.NewMilliQuantity(int64(float64(given.MilliValue())/r+0.999), given.Format)
		cause.Fixes = []Fix{{Text: fmt.Sprintf("Give the containers a limit of their own, or request at least %s.", least)}}
	}
	return cause
}

// keptJobs explains a quota of Jobs that is used up although none runs: those that have ended count until they are
// deleted. requested is what the quota counted: "count/jobs.batch=1".
func keptJobs(ctx context.Context, c *Case, namespace, requested string) []Cause {
	if !strings.Contains(requested, "count/jobs.batch=") {
		return nil
	}
	jobs, _ := List[batchv1.Job](ctx, c.World, namespace, nil)
	var ended []string
	for _, j := range jobs {
		if slices.ContainsFunc(j.Status.Conditions, func(cond batchv1.JobCondition) bool {
			return cond.Status == corev1.ConditionTrue &&
				(cond.Type == batchv1.JobComplete || cond.Type == batchv1.JobFailed)
		}) {
			ended = append(ended, j.Name)
		}
	}
	if len(ended) == 0 {
		return nil
	}
	first := Object{Group: batchv1.GroupName, Kind: "Job", Namespace: namespace, Name: ended[0]}
	return []Cause{{Code: "EndedJobsCount",
		Text:     fmt.Sprintf("Jobs that have ended count until they are deleted: %s.", And(ended)),
		Evidence: []Evidence{See(first, ".status.conditions", "ended")},
		Fixes: []Fix{{Text: "Delete it, and give such Jobs ttlSecondsAfterFinished: they then go by themselves.",
			Command: "kubectl delete " + first.Arg() + first.Flag()}}}}
}
