package rollout

import (
	"context"
	"errors"
	"fmt"

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
	refusal := "no status viewer has been implemented for " + i.Mapping.GroupVersionKind.GroupKind().String()
	if _, err := decode(i, refusal); err != nil {
		return err
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, errTimeout)
		defer cancel()
	}
	show := func(u *unstructured.Unstructured) error {
		w, err := decode(&resource.Info{Mapping: i.Mapping, Object: u}, refusal)
		if err != nil {
			return err
		}
		message, done, err := w.progress(o.revision)
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
