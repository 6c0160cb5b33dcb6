package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"text/tabwriter"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// Annotations and labels that the deployment controller keeps.
const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	causeAnnotation    = "kubernetes.io/change-cause"
)

// revisions are the deployment's ReplicaSets, oldest first.
func revisions(ctx context.Context, o *options, d *appsv1.Deployment) ([]appsv1.ReplicaSet, error) {
	m, err := o.client.Mapping("replicasets.apps")
	if err != nil {
		return nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, err
	}
	list, err := o.client.List(ctx, m, d.Namespace, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, err
	}
	var out []appsv1.ReplicaSet
	for i := range list.Items {
		rs := appsv1.ReplicaSet{}
		if err := resource.FromUnstructured(&list.Items[i], &rs); err != nil {
			return nil, err
		}
		if owner := metav1.GetControllerOf(&rs); owner != nil && owner.UID == d.UID && revision(&rs) > 0 {
			out = append(out, rs)
		}
	}
	sort.Slice(out, func(i, j int) bool { return revision(&out[i]) < revision(&out[j]) })
	return out, nil
}

func revision(o metav1.Object) int64 {
	n, err := strconv.ParseInt(o.GetAnnotations()[revisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func history(ctx context.Context, o *options, i *resource.Info) error {
	d, err := deployment(i, fmt.Sprintf("no history viewer has been implemented for %q", i.Mapping.GroupVersionKind.GroupKind()))
	if err != nil {
		return err
	}
	all, err := revisions(ctx, o, d)
	if err != nil {
		return err
	}
	switch {
	case o.revision > 0:
		return o.showRevision(i, all)
	case o.Print.Output != "" || o.Print.Template != "":
		return o.showObjects(all...)
	}
	fmt.Fprintf(o.Out, "%s \n", i.ResourceName())
	if len(all) == 0 {
		fmt.Fprintln(o.Out, "No rollout history found.")
		return nil
	}
	t := tabwriter.NewWriter(o.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "REVISION\tCHANGE-CAUSE")
	for _, rs := range all {
		cause := rs.Annotations[causeAnnotation]
		if cause == "" {
			cause = "<none>"
		}
		fmt.Fprintf(t, "%d\t%s\n", revision(&rs), cause)
	}
	fmt.Fprintln(t)
	return t.Flush()
}

// showRevision shows what the pods of one revision are made of.
func (o *options) showRevision(i *resource.Info, all []appsv1.ReplicaSet) error {
	for _, rs := range all {
		if revision(&rs) != o.revision {
			continue
		}
		if o.Print.Output != "" || o.Print.Template != "" {
			return o.showObjects(rs)
		}
		fmt.Fprintf(o.Out, "%s with revision #%d\n", i.ResourceName(), o.revision)
		if cause := rs.Annotations[causeAnnotation]; cause != "" {
			metav1.SetMetaDataAnnotation(&rs.Spec.Template.ObjectMeta, causeAnnotation, cause)
		}
		o.template(o.Out, rs.Spec.Template)
		fmt.Fprintln(o.Out)
		return nil
	}
	if len(all) == 0 {
		fmt.Fprintln(o.Out, "No rollout history found.")
		return nil
	}
	return fmt.Errorf("unable to find the specified revision")
}

// showObjects shows what keeps the revisions in the format of -o.
func (o *options) showObjects(all ...appsv1.ReplicaSet) error {
	p, err := o.Printer("")
	if err != nil {
		return err
	}
	for i := range all {
		all[i].SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
		if err := p.Print(&all[i], o.Out); err != nil {
			return err
		}
	}
	return nil
}

// undo puts back the template of an older revision, of the one before by default.
func undo(ctx context.Context, o *options, i *resource.Info) error {
	d, err := deployment(i, fmt.Sprintf("no rollbacker has been implemented for %q", i.Mapping.GroupVersionKind.GroupKind()))
	if err != nil {
		return err
	}
	if d.Annotations["kubectl.kubernetes.io/last-applied-configuration"] != "" {
		fmt.Fprintf(o.ErrOut, "Warning: resource %s/%s was previously managed with 'kubectl apply'. Rolling back will not update the kubectl.kubernetes.io/last-applied-configuration annotation, which may cause unexpected behavior on future 'kubectl apply' operations. Consider using 'kubectl apply' with your previous configuration file instead.\n", i.Mapping.Resource.Resource, i.Name)
	}
	all, err := revisions(ctx, o, d)
	if err != nil {
		return err
	}
	target, err := pick(d, all, o.revision)
	if err != nil {
		return err
	}
	if d.Spec.Paused {
		return fmt.Errorf("you cannot rollback a paused deployment; resume it first with 'kubectl rollout resume' and try again")
	}
	if o.DryRun == write.DryRunClient {
		var text strings.Builder
		o.template(&text, target.Spec.Template)
		return o.say(i, text.String())
	}
	template := target.Spec.Template.DeepCopy()
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	if equality.Semantic.DeepEqual(*template, d.Spec.Template) {
		return o.say(i, fmt.Sprintf("skipped rollback (current template already matches revision %d)", revision(target)))
	}
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/template", "value": template}})
	if err != nil {
		return err
	}
	if err := i.Patch(ctx, types.JSONPatchType, patch, o.PatchOptions()); err != nil {
		return err
	}
	return o.say(i, "rolled back")
}

// pick is the revision to go back to.
func pick(d *appsv1.Deployment, all []appsv1.ReplicaSet, to int64) (*appsv1.ReplicaSet, error) {
	if to > 0 {
		for i := range all {
			if revision(&all[i]) == to {
				return &all[i], nil
			}
		}
		return nil, fmt.Errorf("unable to find specified revision %v in history", to)
	}
	if len(all) < 2 {
		return nil, fmt.Errorf("no rollout history found for deployment %q", d.Name)
	}
	return &all[len(all)-2], nil
}
