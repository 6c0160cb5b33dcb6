package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// undo restores the template of an older revision, by default the previous one. It writes nothing if the template is
// the current one already, and refuses a paused Deployment.
func undo(ctx context.Context, o *options, i *resource.Info) error {
	w, err := decode(i, fmt.Sprintf("no rollbacker has been implemented for %q",
		i.Mapping.GroupVersionKind.GroupKind()))
	if err != nil {
		return err
	}
	if w.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"] != "" {
		fmt.Fprintf(o.ErrOut, "Warning: resource %s/%s was previously managed with 'kubectl apply'. Rolling back will not update the kubectl.kubernetes.io/last-applied-configuration annotation, which may cause unexpected behavior on future 'kubectl apply' operations. Consider using 'kubectl apply' with your previous configuration file instead.\n", i.Mapping.Resource.Resource, i.Name)
	}
	all, err := w.history(ctx, o.client)
	if err != nil {
		return err
	}
	target, err := pick(w, all, o.revision)
	if err != nil {
		return err
	}
	if paused(w) {
		return errors.New("you cannot rollback a paused deployment; resume it first with 'kubectl rollout resume' and try again")
	}
	if o.DryRun == write.DryRunClient {
		var text strings.Builder
		if _, ok := w.(*deployment); !ok {
			text.WriteString("will roll back to ")
		}
		o.template(&text, target.template)
		return o.say(i, text.String())
	}
	if sameTemplate(target.template, *w.podTemplate()) {
		return o.say(i, fmt.Sprintf("skipped rollback (current template already matches revision %d)", target.number))
	}
	if err := i.Patch(ctx, target.patch, target.back, o.PatchOptions()); err != nil {
		return err
	}
	return o.say(i, "rolled back")
}

// sameTemplate compares templates as users wrote them, without the label that the deployment controller adds.
func sameTemplate(a, b corev1.PodTemplateSpec) bool {
	a, b = *a.DeepCopy(), *b.DeepCopy()
	delete(a.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(b.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return equality.Semantic.DeepEqual(a, b)
}

// pick returns the revision with the number to, or for 0 the one before the current one. all has the oldest first.
func pick(w workload, all []revision, to int64) (*revision, error) {
	if to != 0 {
		for i := range all {
			if all[i].number == to {
				return &all[i], nil
			}
		}
		return nil, fmt.Errorf("unable to find specified revision %v in history", to)
	}
	if len(all) < 2 {
		return nil, w.noHistory()
	}
	return &all[len(all)-2], nil
}
