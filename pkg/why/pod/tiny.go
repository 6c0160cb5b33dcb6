package pod

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/why"
)

// tiny is a limit with which nothing can start, or stay.
type tiny struct {
	// container is nil for a limit of the whole pod.
	container *corev1.Container
	what      string // "container" or "init container"
	resource  corev1.ResourceName
	limit     resource.Quantity
}

// least are the limits, in bytes, up to which no container lives: the kernel counts memory in pages and needs dozens of
// them for one process, and an empty directory and a log take a block each.
var least = map[corev1.ResourceName]int64{
	corev1.ResourceMemory:           64 << 10,
	corev1.ResourceEphemeralStorage: 8 << 10,
}

// shownBy are the codes of what a tiny limit shows as: kubelets, runtimes and kernels find it at different steps, by
// what comes first, and by how large it is.
var shownBy = map[corev1.ResourceName][]string{
	corev1.ResourceMemory: {"FailedMount", "FailedCreatePodSandBox", "FailedCreatePodContainer", "FailedSync", "Failed",
		"OOMKilled", "MemoryLimitTooLow", "StartError", "Killed", "Starting", "NotSeenByKubelet",
		"RunContainerError", "CreateContainerError"},
	corev1.ResourceEphemeralStorage: {"Evicted"},
}

// tinyFirst puts limits that are too small for anything before the other causes of a pod, in place of what they show
// as. Causes that have nothing to do with them stay.
func tinyFirst(q *inquiry, causes []why.Cause) []why.Cause {
	var first, last []why.Cause
	for _, t := range tinies(q.pod) {
		shows := func(c why.Cause) bool { return slices.Contains(shownBy[t.resource], c.Code) || t.failed(c) }
		cause := explainTiny(q, t)
		switch i := slices.IndexFunc(causes, shows); {
		case i >= 0:
			if len(causes[i].Evidence) > 0 {
				cause.Evidence = append(cause.Evidence, causes[i].Evidence[0])
			}
			causes = slices.DeleteFunc(slices.Clone(causes), shows)
			first = append(first, cause)
		case len(first) > 0 && t.resource == corev1.ResourceMemory:
			first = append(first, cause) // what it shows as went with the one before
		case t.resource == corev1.ResourceMemory:
			last = append(last, cause)
		}
	}
	return slices.Concat(first, causes, last)
}

// failed reports whether a cause is the end of the container that has the limit.
func (t tiny) failed(c why.Cause) bool {
	return t.container != nil && t.resource == corev1.ResourceMemory && c.Code == "ContainerFailed" &&
		len(c.Evidence) > 0 && strings.Contains(c.Evidence[0].Field, fmt.Sprintf(`(@.name=="%s")`, t.container.Name))
}

// tinyDisk explains a ready pod that will be evicted for its tiny limit of ephemeral storage.
func tinyDisk(q *inquiry) (causes []why.Cause) {
	for _, t := range tinies(q.pod) {
		if t.resource == corev1.ResourceEphemeralStorage {
			causes = append(causes, explainTiny(q, t))
		}
	}
	return causes
}

// tinies are the tiny limits of a pod: of the whole, and of its containers. Memory counts for those that are not well.
func tinies(p *corev1.Pod) (list []tiny) {
	add := func(c *corev1.Container, what string, limits corev1.ResourceList, well bool) {
		for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
			if well && name == corev1.ResourceMemory {
				continue // it has started
			}
			if q, ok := limits[name]; ok && q.Sign() > 0 && q.CmpInt64(least[name]) <= 0 && len(list) < maxHints {
				list = append(list, tiny{c, what, name, q})
			}
		}
	}
	if r := p.Spec.Resources; r != nil {
		add(nil, "pod", r.Limits, isReady(p))
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		s := status(p.Status.InitContainerStatuses, c.Name)
		add(c, "init container", c.Resources.Limits, s != nil && s.Ready)
	}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		s := status(p.Status.ContainerStatuses, c.Name)
		add(c, "container", c.Resources.Limits, s != nil && s.Ready)
	}
	return list
}

// explainTiny says what a tiny limit is in bytes, and what was probably meant.
func explainTiny(q *inquiry, t tiny) why.Cause {
	thing, where := "memory limit", "resources.limits."+string(t.resource)
	if t.resource == corev1.ResourceEphemeralStorage {
		thing = "limit of ephemeral storage"
	}
	of, field := "the pod", ".spec."+where
	requested := corev1.ResourceList{}
	if t.container != nil {
		of, field = t.what+" "+t.container.Name, specField(t.what, t.container.Name, where)
		requested = t.container.Resources.Requests
	} else if q.pod.Spec.Resources != nil {
		requested = q.pod.Spec.Resources.Requests
	}
	meant, suffix := meantSize(&t.limit)
	text := fmt.Sprintf("The %s of %s is %s, which is %s", thing, of, t.limit.String(), inBytes(&t.limit))
	switch suffix {
	case "m":
		text += " (m is a thousandth)"
	case "":
		text += " (a number without a suffix counts bytes)"
	}
	text += ": no container can start in that, and what fails first differs from node to node."
	if t.resource == corev1.ResourceEphemeralStorage {
		text = strings.TrimSuffix(text, " no container can start in that, and what fails first differs from node to node.") +
			" the first line of a log takes more, and the kubelet evicts the pod."
	}
	cause := why.Cause{Code: "LimitTooSmall", Text: fmt.Sprintf("%s Probably %s was meant.", text, meant),
		Evidence: []why.Evidence{why.See(q.self, field, t.limit.String())}}
	r, alsoRequested := requested[t.resource]
	alsoRequested = alsoRequested && r.CmpInt64(least[t.resource]) <= 0
	cause.Fixes = []why.Fix{resized(q, t, meant, alsoRequested)}
	return cause
}

// meantSize is what was probably meant by a size that is far too small, and the suffix that it has: 64m is 64Mi. A
// number without a suffix counts gibibytes in its author's mind if it is small, and kibibytes if it is large.
func meantSize(q *resource.Quantity) (meant, suffix string) {
	text := q.String()
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	suffix = strings.TrimPrefix(text, number)
	switch {
	case suffix == "" && len(number) == 1:
		return number + "Gi", suffix
	case suffix == "" && len(number) > 4:
		return number + "Ki", suffix
	}
	return number + "Mi", suffix
}

// inBytes is a size in words: "0.064 bytes".
func inBytes(q *resource.Quantity) string {
	if v := q.AsApproximateFloat64(); v < 100 && v != float64(int64(v)) {
		return fmt.Sprintf("%.3g bytes", v)
	}
	return why.Count(int(q.Value()), "byte")
}

// resized is the change by which a pod has another limit, and the same request if that is tiny, too.
func resized(q *inquiry, t tiny, size string, alsoRequested bool) why.Fix {
	owner := q.workload()
	if owner == nil || !slices.Contains(withTemplates, owner.Kind) {
		f := why.Fix{Text: fmt.Sprintf("Make the pod again with %s.", size)}
		if owner != nil { // the templates of the other kinds cannot be changed, or change no pod that there is
			f.Text = fmt.Sprintf("Make %s again with %s in its template.", owner, size)
		}
		return f
	}
	f := why.Fix{Text: fmt.Sprintf("Set it to %s, or to what the program needs.", size)}
	if t.container == nil {
		requests := ""
		if alsoRequested {
			requests = fmt.Sprintf(`"requests":{%q:%q},`, t.resource, size)
		}
		f.Command = why.Command("kubectl patch %s%s -p %s", owner.Arg(), owner.Flag(), fmt.Sprintf(
			`{"spec":{"template":{"spec":{"resources":{%s"limits":{%q:%q}}}}}}`, requests, t.resource, size))
		return f
	}
	amount := why.Command("%s=%s", string(t.resource), size)
	f.Command = why.Command("kubectl set resources %s%s -c %s --limits=%s", owner.Arg(), owner.Flag(), t.container.Name,
		amount)
	if alsoRequested {
		f.Command += " --requests=" + amount
	}
	return f
}
