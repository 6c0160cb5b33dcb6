package rollout

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
)

// errDone ends the watch of a rollout that is complete.
var errDone = errors.New("rollout complete")

var errTimeout = errors.New("timed out waiting for the condition")

// status tells how far the rollout is, until it is done.
func status(ctx context.Context, o *options, i *resource.Info) error {
	if _, err := deployment(i, "no status viewer has been implemented for "+i.Mapping.GroupVersionKind.Kind); err != nil {
		return err
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, errTimeout)
		defer cancel()
	}
	show := func(u *unstructured.Unstructured) error {
		d := &appsv1.Deployment{}
		if err := resource.FromUnstructured(u, d); err != nil {
			return err
		}
		message, done, err := progress(d, o.revision)
		if err != nil {
			return err
		}
		fmt.Fprint(o.Out, message)
		if done || !o.watch {
			return errDone
		}
		return nil
	}
	err := show(i.Object)
	opts := metav1.ListOptions{FieldSelector: "metadata.name=" + i.Name, ResourceVersion: i.Object.GetResourceVersion()}
	if err == nil {
		err = o.client.Watch(ctx, i.Mapping, i.Namespace, resource.Query(&opts), resource.JSON, func(e resource.Event) error {
			u := &unstructured.Unstructured{}
			switch e.Type {
			case "DELETED":
				return errors.New("object has been deleted")
			case "ADDED", "MODIFIED":
				if err := u.UnmarshalJSON(e.Object); err != nil {
					return err
				}
				return show(u)
			}
			return nil
		})
	}
	switch {
	case errors.Is(err, errDone):
		return nil
	case ctx.Err() != nil:
		return cli.Cause(ctx)
	case err == nil:
		return errors.New("watch closed before the rollout was complete")
	}
	return err
}

// progress words how far d's rollout is. It is an error if it runs another revision than pinned, unless that is 0.
func progress(d *appsv1.Deployment, pinned int64) (message string, done bool, err error) {
	if at := revision(d); pinned > 0 && at != pinned {
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
		return wait + fmt.Sprintf("%d out of %d new replicas have been updated...\n", s.UpdatedReplicas, *d.Spec.Replicas), false, nil
	case s.Replicas > s.UpdatedReplicas:
		return wait + fmt.Sprintf("%d old replicas are pending termination...\n", s.Replicas-s.UpdatedReplicas), false, nil
	case s.AvailableReplicas < s.UpdatedReplicas:
		return wait + fmt.Sprintf("%d of %d updated replicas are available...\n", s.AvailableReplicas, s.UpdatedReplicas), false, nil
	}
	return fmt.Sprintf("deployment %q successfully rolled out\n", d.Name), true, nil
}
