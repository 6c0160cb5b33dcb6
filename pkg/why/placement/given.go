package placement

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"bonsai/api/podspec"
	"bonsai/pkg/why"
)

// Admission gives pods what their authors have not written: a runtime's overhead, the node selector of a RuntimeClass
// or of a namespace, what a webhook sets. What is not in the template cannot be removed there: its origin is the cause.

// namespaceSelector is the annotation by which a namespace gives its pods a node selector.
const namespaceSelector = "scheduler.alpha.kubernetes.io/node-selector"

// lastApplied is the annotation in which kubectl apply keeps what its file had.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// written is the pod's spec as its author wrote it, nil if nothing says it: the template that the pod was made from, or
// the file that was applied.
func (q *inquiry) written(o owner) *corev1.PodSpec {
	if o.kind != "Pod" {
		return o.spec
	}
	var file struct {
		Spec *corev1.PodSpec `json:"spec"`
	}
	if json.Unmarshal([]byte(q.pod.Annotations[lastApplied]), &file) != nil {
		return nil
	}
	return file.Spec
}

// runtimeClass returns the RuntimeClass that the pod names, nil if it names none or it cannot be read.
func (q *inquiry) runtimeClass(ctx context.Context) *nodev1.RuntimeClass {
	if q.pod.Spec.RuntimeClassName == nil {
		return nil
	}
	class, _ := why.Get[nodev1.RuntimeClass](ctx, q.World, "", *q.pod.Spec.RuntimeClassName)
	return class
}

// givenLabel explains a label of the node selector that the pod's author has not written; nothing if he has.
func (q *inquiry) givenLabel(ctx context.Context, key, value string) []why.Cause {
	author := q.written(ownerOf(ctx, q.Case, q.pod))
	if author == nil {
		return nil
	}
	if _, ok := author.NodeSelector[key]; ok {
		return nil
	}
	cause := why.Cause{Code: "GivenByAdmission",
		Text: fmt.Sprintf("The pod's author has not written %s=%s: something adds it when pods are made, such as a mutating "+
			"webhook.", key, value),
		Evidence: []why.Evidence{why.See(q.self, fmt.Sprintf(".spec.nodeSelector['%s']", key), value)}}
	if class := q.runtimeClass(ctx); class != nil && class.Scheduling != nil {
		if v, ok := class.Scheduling.NodeSelector[key]; ok && v == value {
			o := why.ObjectOf(nodev1.GroupName, "RuntimeClass", class)
			cause.Text = fmt.Sprintf("The pod's author has not written %s=%s: the RuntimeClass %s gives it to all of its pods.",
				key, value, class.Name)
			cause.Evidence = []why.Evidence{why.See(o, fmt.Sprintf(".scheduling.nodeSelector['%s']", key), value)}
			cause.Fixes = []why.Fix{{Text: "Change the RuntimeClass, and make the pod again.",
				Command: "kubectl edit " + o.Arg()}}
			return []why.Cause{cause}
		}
	}
	namespace, _ := why.Get[corev1.Namespace](ctx, q.World, "", q.pod.Namespace)
	if namespace == nil || namespace.Annotations[namespaceSelector] == "" {
		return []why.Cause{cause}
	}
	cause.Text = fmt.Sprintf("The pod's author has not written %s=%s: namespace %s gives its pods a node selector.", key, value,
		namespace.Name)
	cause.Evidence = []why.Evidence{why.See(why.ObjectOf("", "Namespace", namespace),
		".metadata.annotations['"+namespaceSelector+"']", namespace.Annotations[namespaceSelector])}
	return []why.Cause{cause}
}

// composed explains a request that is more than the sum of what the pod's containers ask for: the scheduler counts the
// largest init container, sidecars, what the pod asks for as a whole, and the overhead of its runtime.
func (w *writer) composed(ctx context.Context, name corev1.ResourceName) (causes []why.Cause) {
	spec := &w.pod.Spec
	var sum int64
	for i := range spec.Containers {
		sum += value(name, spec.Containers[i].Resources.Requests[name])
	}
	field := func(list, name, what string) string {
		return fmt.Sprintf(`.spec.%s[?(@.name=="%s")].resources.requests['%s']`, list, name, what)
	}
	whole := corev1.ResourceList{}
	if spec.Resources != nil {
		whole = spec.Resources.Requests
	}
	if q, ok := whole[name]; ok && resourcehelper.IsSupportedPodLevelResource(name) {
		if asked := value(name, q); asked > sum {
			causes = append(causes, why.Cause{Code: "PodLevelRequest",
				Text: fmt.Sprintf("The pod as a whole asks for %s %s; its containers alone for %s.", amount(name, asked),
					called(name), amount(name, sum)),
				Evidence: []why.Evidence{why.See(w.self, fmt.Sprintf(".spec.resources.requests['%s']", name),
					q.String())}})
		}
		return append(causes, w.overhead(ctx, name, value(name, q))...)
	}
	var beside int64 // what sidecars that have started ask for
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		q := c.Resources.Requests[name]
		asked := value(name, q)
		if podspec.IsSidecar(c) {
			if beside += asked; asked > 0 {
				causes = append(causes, why.Cause{Code: "SidecarRequest",
					Text: fmt.Sprintf("The sidecar %s asks for %s %s beside the pod's containers, which ask for %s.", c.Name,
						amount(name, asked), called(name), amount(name, sum)),
					Evidence: []why.Evidence{why.See(w.self, field("initContainers", c.Name, string(name)),
						q.String())}})
			}
		} else if asked+beside > sum+w.sidecars(name) {
			causes = append(causes, why.Cause{Code: "InitContainerRequest",
				Text: fmt.Sprintf("Init container %s asks for %s %s, and the pod's containers only for %s: the node must "+
					"have as much as the largest step of the pod needs.", c.Name, amount(name, asked), called(name),
					amount(name, sum)),
				Evidence: []why.Evidence{why.See(w.self, field("initContainers", c.Name, string(name)), q.String())},
				Fixes:    []why.Fix{{Text: fmt.Sprintf("Let init container %s ask for less.", c.Name)}}})
		}
	}
	return append(causes, w.overhead(ctx, name, sum)...)
}

// sidecars is what all sidecars of the pod ask for.
func (w *writer) sidecars(name corev1.ResourceName) (sum int64) {
	for i := range w.pod.Spec.InitContainers {
		if c := &w.pod.Spec.InitContainers[i]; podspec.IsSidecar(c) {
			sum += value(name, c.Resources.Requests[name])
		}
	}
	return sum
}

// overhead explains what a runtime takes beside the containers, which ask for own.
func (w *writer) overhead(ctx context.Context, name corev1.ResourceName, own int64) []why.Cause {
	q, ok := w.pod.Spec.Overhead[name]
	if !ok || q.IsZero() {
		return nil
	}
	cause := why.Cause{Code: "RuntimeOverhead",
		Text: fmt.Sprintf("Of this, %s %s is the overhead of the pod's runtime; its containers ask for %s.", q.String(),
			called(name), amount(name, own)),
		Evidence: []why.Evidence{why.See(w.self, fmt.Sprintf(".spec.overhead['%s']", name), q.String())}}
	class := w.pod.Spec.RuntimeClassName
	if class == nil {
		return []why.Cause{cause}
	}
	o := why.Object{Group: nodev1.GroupName, Kind: "RuntimeClass", Name: *class}
	cause.Text = fmt.Sprintf("Of this, %s %s is the overhead that the RuntimeClass %s adds to each of its pods; the containers "+
		"ask for %s.", q.String(), called(name), *class, amount(name, own))
	cause.Fixes = []why.Fix{{Text: "Lower the overhead of the RuntimeClass or name another one, and make the pod again.",
		Command: "kubectl edit " + o.Arg()}}
	if c := w.runtimeClass(ctx); c != nil && c.Overhead != nil {
		now := c.Overhead.PodFixed[name]
		cause.Evidence = append(cause.Evidence, why.See(o, fmt.Sprintf(".overhead.podFixed['%s']", name), now.String()))
	}
	return []why.Cause{cause}
}
