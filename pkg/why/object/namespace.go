package object

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"bonsai/pkg/why"
)

// remaining finds what a namespace's condition says is left: "widgets.example.com has 1 resource instances" and
// "example.com/finalizer in 1 resource instances".
var remaining = regexp.MustCompile(`([a-z0-9.-]+) has (\d+) resource instances`)

// Namespace explains a namespace: what is not well in it, and if it is being deleted, why it does not go.
func Namespace(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	n, known := why.Get[corev1.Namespace](ctx, c.World, "", o.Name)
	if n == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	self := why.ObjectOf("", "Namespace", n)
	if n.DeletionTimestamp == nil {
		return active(ctx, c, self, n)
	}
	a := why.Answer{Subject: self, State: fmt.Sprintf("%s has been terminating for %s.", self,
		why.Span(c.Now.Sub(n.DeletionTimestamp.Time)))}
	for _, cond := range n.Status.Conditions {
		if cond.Status != corev1.ConditionTrue {
			continue
		}
		evidence := why.Condition(self, string(cond.Type), string(cond.Status), cond.Reason, cond.Message,
			cond.LastTransitionTime)
		switch cond.Type {
		case corev1.NamespaceDeletionDiscoveryFailure, corev1.NamespaceDeletionGVParsingFailure:
			cause := why.Cause{Code: "DiscoveryFailed",
				Text: fmt.Sprintf("The API server cannot list every kind, so that nobody knows whether the "+
					"namespace is empty: %s.",
					why.Quote(cond.Message)),
				Evidence: []why.Evidence{evidence}, Because: downServices(ctx, c)}
			a.Causes = append(a.Causes, cause)
		case corev1.NamespaceContentRemaining:
			causes, err := content(ctx, c, n, cond.Message, evidence)
			if err != nil {
				return a, err
			}
			a.Causes = append(a.Causes, causes...)
		case corev1.NamespaceDeletionContentFailure:
			cause := why.Cause{Code: "DeletionFailed", Text: "Its content cannot be deleted: " +
				why.Quote(cond.Message) + ".", Evidence: []why.Evidence{evidence}}
			if service, ok := why.CalledService(cond.Message); ok {
				cause.Because, _ = c.Causes(ctx, service)
				cause.Fixes = []why.Fix{{Text: fmt.Sprintf("Bring %s back, which the API server calls to read these objects.",
					service)}}
				if strings.Contains(cond.Message, "conversion webhook") {
					cause.Fixes = append(cause.Fixes, why.Fix{Text: "If its software is gone for good, let the " +
						"CustomResourceDefinition convert nothing (spec.conversion.strategy: None), or remove it."})
				}
			}
			a.Causes = append(a.Causes, cause)
		}
	}
	if len(a.Causes) == 0 { // its controller has said nothing yet
		causes, err := left(ctx, c, n, corev1.SchemeGroupVersion.WithResource("pods"))
		if err != nil {
			return a, err
		}
		a.Causes = causes[:min(len(causes), maxGroups)]
	}
	for _, f := range n.Spec.Finalizers {
		if f == corev1.FinalizerKubernetes {
			continue
		}
		a.Causes = append(a.Causes, why.Cause{Code: "NamespaceFinalizer",
			Text: fmt.Sprintf("The finalizer %s in its spec keeps it, which a controller outside Kubernetes must "+
				"remove.", f),
			Evidence: []why.Evidence{why.See(self, ".spec.finalizers", string(f))}})
	}
	causes, err := why.Finalizers(ctx, c, self, n)
	return why.Answer{Subject: self, State: a.State, Causes: append(a.Causes, causes...)}, err
}

// downServices explains the APIServices that do not answer.
func downServices(ctx context.Context, c *why.Case) (causes []why.Cause) {
	list, _ := why.List[apiregistrationv1.APIService](ctx, c.World, "", nil)
	for _, s := range list {
		for _, cond := range s.Status.Conditions {
			if cond.Type == apiregistrationv1.Available && cond.Status == apiregistrationv1.ConditionFalse {
				o := why.ObjectOf(apiregistrationv1.GroupName, "APIService", s)
				because, err := c.Causes(ctx, o)
				if err != nil || len(because) == 0 {
					continue
				}
				causes = append(causes, why.Cause{Code: "APIServiceDown", Text: fmt.Sprintf("%s is not available.", o),
					Because: because})
			}
		}
	}
	return causes
}

// maxGroups is how many causes of what is left are named.
const maxGroups = 5

// content explains what is left in a namespace: pods, and the objects with finalizers, which alone can stay. Objects of
// one kind with the same cause are named together.
func content(ctx context.Context, c *why.Case, n *corev1.Namespace, message string,
	evidence why.Evidence) (causes []why.Cause, err error) {
	for _, m := range remaining.FindAllStringSubmatch(message, 10) {
		resource, group, _ := strings.Cut(m[1], ".")
		r, ok := c.Resource(group, resource)
		if !ok {
			continue
		}
		found, err := left(ctx, c, n, r, evidence)
		if err != nil {
			return nil, err
		}
		causes = append(causes, found...)
	}
	if len(causes) == 0 {
		causes = append(causes, why.Cause{Code: "ContentRemains", Text: "Some of its content is left: " +
			why.Quote(message) + ".", Evidence: []why.Evidence{evidence}})
	}
	return causes[:min(len(causes), maxGroups)], nil
}

// left explains the objects of a resource that are left in a namespace.
func left(ctx context.Context, c *why.Case, n *corev1.Namespace, r schema.GroupVersionResource,
	evidence ...why.Evidence) (causes []why.Cause, err error) {
	items, _ := c.All(ctx, r, n.Name)
	var objects []why.Object
	for i := range items {
		u := &items[i]
		if len(u.GetFinalizers()) > 0 || u.GetDeletionTimestamp() == nil || u.GetKind() == "Pod" {
			objects = append(objects, why.ObjectOf(r.Group, u.GetKind(), u))
		}
	}
	groups, err := why.Alike(ctx, c, objects)
	for _, g := range groups {
		causes = append(causes, why.Cause{Code: "ContentRemains", Text: g.Remaining(r.Resource), Because: g.Causes,
			Evidence: evidence})
	}
	return causes, err
}
