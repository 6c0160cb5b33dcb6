package why

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// builtin are the finalizers of Kubernetes itself: what each waits for.
var builtin = map[string]string{
	"kubernetes.io/pvc-protection": "a pod still uses the claim",
	"kubernetes.io/pv-protection":  "the volume is still bound to a claim",
	"foregroundDeletion":           "objects that it owns, and that block its deletion, are still there",
	"orphan":                       "the garbage collector still takes its name out of the objects that it owns",
	"batch.kubernetes.io/job-tracking": "the Job's controller has not counted the pod yet: kube-controller-manager " +
		"does not run, or the Job is gone",
	"service.kubernetes.io/load-balancer-cleanup":                    "its load balancer has not been removed yet",
	"resource.kubernetes.io/delete-protection":                       "a pod still uses the devices",
	"customresourcecleanup.apiextensions.k8s.io":                     "its custom resources are still being deleted",
	"storage.k8s.io/volumeattributesclass-protection":                "a claim or a volume still uses the class",
	"snapshot.storage.kubernetes.io/volumesnapshot-bound-protection": "its snapshot has not been deleted yet",
}

// Finalizers explains an object that was deleted and that its finalizers keep: whose they are, and whether anybody is
// there to remove them.
func Finalizers(ctx context.Context, c *Case, o Object, m metav1.Object) ([]Cause, error) {
	var causes []Cause
	for _, f := range m.GetFinalizers() {
		see := See(o, ".metadata.finalizers", f)
		if waits, ok := builtin[f]; ok {
			cause := Cause{Code: "Finalizer", Text: fmt.Sprintf("The finalizer %s keeps it: %s.", f, waits),
				Evidence: []Evidence{see}}
			switch f {
			case "kubernetes.io/pvc-protection":
				cause.Because = usersOf(ctx, c, o)
			case metav1.FinalizerDeleteDependents:
				cause.Because = dependents(ctx, c, m)
			}
			causes = append(causes, cause)
			continue
		}
		cause := Cause{Code: "FinalizerOfOthers",
			Text:     fmt.Sprintf("The finalizer %s keeps it, which a controller outside Kubernetes must remove.", f),
			Evidence: []Evidence{see},
			Fixes: []Fix{{Text: "Let that controller run again. Only if it will never come back: remove the " +
				"finalizer, and clean up by hand what it would have.", Command: removal(o, m.GetFinalizers(), f)}}}
		manager := setBy(m, f)
		if manager != "" {
			cause.Text += fmt.Sprintf(" The field manager %q has set it.", manager)
		}
		cause.Because = append(cause.Because, alive(ctx, c, f, manager)...)
		causes = append(causes, cause)
	}
	return causes, nil
}

// removal is the command that removes one finalizer and leaves the others.
func removal(o Object, all []string, f string) CommandLine {
	i := slices.Index(all, f)
	patch := fmt.Sprintf(`[{"op":"test","path":"/metadata/finalizers/%d","value":%q},{"op":"remove","path":"/metadata/finalizers/%d"}]`,
		i, f, i)
	return Command("kubectl patch %s%s --type=json -p %s", o.Arg(), o.Flag(), patch)
}

// setBy returns the field manager that set a finalizer, "" if the object does not say.
func setBy(m metav1.Object, finalizer string) string {
	for _, e := range m.GetManagedFields() {
		if e.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Metadata struct {
				Finalizers map[string]json.RawMessage `json:"f:finalizers"`
			} `json:"f:metadata"`
		}
		if json.Unmarshal(e.FieldsV1.Raw, &fields) != nil {
			continue
		}
		if _, ok := fields.Metadata.Finalizers[fmt.Sprintf("v:%q", finalizer)]; ok {
			return e.Manager
		}
	}
	return ""
}

// alive explains what is known about the controller behind a finalizer: whether its API group is served at all, and
// whether any pod looks like it.
func alive(ctx context.Context, c *Case, finalizer, manager string) (causes []Cause) {
	domain, _, _ := strings.Cut(finalizer, "/")
	if domain == "" || !strings.Contains(domain, ".") {
		return nil
	}
	if crds, complete := List[apiextensionsv1.CustomResourceDefinition](ctx, c.World, "", nil); complete {
		related := slices.ContainsFunc(crds, func(d *apiextensionsv1.CustomResourceDefinition) bool {
			return d.Spec.Group == domain || strings.HasSuffix(domain, "."+d.Spec.Group) ||
				strings.HasSuffix(d.Spec.Group, "."+domain)
		})
		if !related {
			causes = append(causes, Cause{Code: "OperatorGone",
				Text: fmt.Sprintf("No CustomResourceDefinition of %s exists: the software that the finalizer "+
					"belongs to seems to be uninstalled.", domain)})
		}
	}
	pods, complete := List[corev1.Pod](ctx, c.World, "", nil)
	if !complete {
		return causes
	}
	words := controllerWords(domain, manager)
	for _, p := range pods {
		if p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning {
			continue
		}
		for _, w := range words {
			if strings.Contains(p.Name, w) || strings.Contains(p.Namespace, w) {
				return append(causes, Cause{Code: "ControllerRuns",
					Text: fmt.Sprintf("Pod %s/%s may be that controller, and runs: its logs may say why it does not "+
						"remove the finalizer.", p.Namespace, p.Name),
					Evidence: []Evidence{See(ObjectOf("", "Pod", p), ".status.phase", string(p.Status.Phase))},
					Fixes: []Fix{{Text: "Read its logs.",
						Command: Command("kubectl logs %s -n %s", p.Name, p.Namespace)}}})
			}
		}
	}
	return append(causes, Cause{Code: "ControllerNotFound",
		Text: fmt.Sprintf("No running pod is named like that controller (%s).", And(words))})
}

// controllerWords are the words by which a controller's pods are recognized: the field manager, and the first parts of
// its domain.
func controllerWords(domain, manager string) (words []string) {
	if manager != "" && !strings.HasPrefix(manager, "kubectl") && len(manager) > 3 {
		words = append(words, manager)
	}
	first, _, _ := strings.Cut(domain, ".")
	if one := strings.TrimSuffix(first, "s"); len(one) > 3 {
		first = one // the controller of widgets.example.com is a widget-operator
	}
	return append(words, first)
}

// dependents are the objects that m owns, that block its deletion in the foreground and that are still there, with why
// they do not go.
func dependents(ctx context.Context, c *Case, m metav1.Object) (causes []Cause) {
	const most = 5
	for _, k := range []GroupKind{{"", "Pod"}, {"apps", "ReplicaSet"}, {"apps", "StatefulSet"}, {"apps", "Deployment"},
		{"batch", "Job"}, {"", "PersistentVolumeClaim"}} {
		r, served := c.Served(k.Group, k.Kind)
		if !served {
			continue
		}
		items, _ := c.All(ctx, r, m.GetNamespace())
		for i := range items {
			u := &items[i]
			owned := slices.ContainsFunc(u.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
				return r.UID == m.GetUID() && r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
			})
			if !owned || len(causes) == most {
				continue
			}
			o := ObjectOf(k.Group, k.Kind, u)
			cause := Cause{Code: "DependentRemains", Text: fmt.Sprintf("%s is still there.", o),
				Evidence: []Evidence{See(o, ".metadata.ownerReferences", m.GetName())}}
			cause.Because, _ = c.Causes(ctx, o)
			causes = append(causes, cause)
		}
	}
	return causes
}

// usersOf are the pods that use a claim.
func usersOf(ctx context.Context, c *Case, o Object) (causes []Cause) {
	pods, _ := List[corev1.Pod](ctx, c.World, o.Namespace, nil)
	for _, p := range pods {
		for _, v := range p.Spec.Volumes {
			claim := ""
			if v.PersistentVolumeClaim != nil {
				claim = v.PersistentVolumeClaim.ClaimName
			} else if v.Ephemeral != nil {
				claim = p.Name + "-" + v.Name
			}
			if claim != o.Name {
				continue
			}
			pod := ObjectOf("", "Pod", p)
			text := fmt.Sprintf("Pod %s uses it.", p.Name)
			if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
				text = fmt.Sprintf("Pod %s has ended (%s) and still counts: a claim is in use until the pod is deleted.", p.Name,
					p.Status.Phase)
			}
			causes = append(causes, Cause{Code: "ClaimInUse", Text: text,
				Evidence: []Evidence{See(pod, ".spec.volumes", v.Name)},
				Fixes: []Fix{{Text: "Delete the pod, or scale its workload to 0.",
					Command: "kubectl delete " + pod.Arg() + pod.Flag()}}})
		}
	}
	return causes
}
