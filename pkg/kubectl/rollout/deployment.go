package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubectl/resource"
)

// revisionAnnotation is where the deployment controller numbers Deployments and ReplicaSets.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// deployment keeps its history in ReplicaSets.
type deployment struct{ appsv1.Deployment }

func (d *deployment) object() runtime.Object { return &d.Deployment }

func (d *deployment) podTemplate() *corev1.PodTemplateSpec { return &d.Spec.Template }

func (d *deployment) noHistory() error {
	return fmt.Errorf("no rollout history found for deployment %q", d.Name)
}

func (d *deployment) history(ctx context.Context, c *resource.Client) ([]revision, error) {
	m, err := c.Mapping("replicasets.apps")
	if err != nil {
		return nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, err
	}
	list, err := c.List(ctx, m, d.Namespace, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, err
	}
	var out []revision
	for i := range list.Items {
		rs := &appsv1.ReplicaSet{}
		if err := resource.FromUnstructured(&list.Items[i], rs); err != nil {
			return nil, err
		}
		number := revisionNumber(rs)
		if owner := metav1.GetControllerOf(rs); owner == nil || owner.UID != d.UID || number <= 0 {
			continue
		}
		rs.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
		template := rs.Spec.Template.DeepCopy()
		// The controller adds this label to the ReplicaSet's template; the Deployment's own never has it.
		delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		patch, err := json.Marshal([]map[string]any{
			{"op": "replace", "path": "/spec/template", "value": template},
			{"op": "add", "path": "/metadata/annotations", "value": d.annotationsOf(rs)},
		})
		if err != nil {
			return nil, err
		}
		out = append(out, revision{number: number, cause: rs.Annotations[causeAnnotation], template: rs.Spec.Template,
			object: rs, patch: types.JSONPatchType, back: patch})
	}
	slices.SortFunc(out, byNumber)
	return out, nil
}

// annotationsOf returns the annotations that the deployment gets when it goes back to rs: those that the controller
// copied to rs when rs was current, such as the cause of the change. Annotations that the controller never copies keep
// their present values.
func (d *deployment) annotationsOf(rs *appsv1.ReplicaSet) map[string]string {
	notCopied := []string{corev1.LastAppliedConfigAnnotation, revisionAnnotation,
		"deployment.kubernetes.io/revision-history",
		"deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas",
		"deprecated.deployment.rollback.to"}
	out := map[string]string{}
	maps.Copy(out, rs.Annotations)
	for _, name := range notCopied {
		delete(out, name)
		if value, has := d.Annotations[name]; has {
			out[name] = value
		}
	}
	return out
}

// revisionNumber returns the revision of a Deployment or ReplicaSet, 0 if the controller has not numbered it yet.
func revisionNumber(o metav1.Object) int64 {
	n, err := strconv.ParseInt(o.GetAnnotations()[revisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (d *deployment) progress(pinned int64) (message string, done bool, err error) {
	if at := revisionNumber(d); pinned > 0 && at != pinned {
		return "", false, fmt.Errorf("desired revision (%d) is different from the running revision (%d)", pinned, at)
	}
	if d.Generation > d.Status.ObservedGeneration {
		return "Waiting for deployment spec update to be observed...\n", false, nil
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded" {
			return "", false, fmt.Errorf("deployment %q exceeded its progress deadline", d.Name)
		}
	}
	s := d.Status
	wait := fmt.Sprintf("Waiting for deployment %q rollout to finish: ", d.Name)
	switch {
	case d.Spec.Replicas != nil && s.UpdatedReplicas < *d.Spec.Replicas:
		return wait + fmt.Sprintf("%d out of %d new replicas have been updated...\n", s.UpdatedReplicas,
			*d.Spec.Replicas), false, nil
	case s.Replicas > s.UpdatedReplicas:
		return wait + fmt.Sprintf("%d old replicas are pending termination...\n", s.Replicas-s.UpdatedReplicas), false,
			nil
	case s.AvailableReplicas < s.UpdatedReplicas:
		return wait + fmt.Sprintf("%d of %d updated replicas are available...\n", s.AvailableReplicas,
			s.UpdatedReplicas), false, nil
	}
	return fmt.Sprintf("deployment %q successfully rolled out\n", d.Name), true, nil
}
