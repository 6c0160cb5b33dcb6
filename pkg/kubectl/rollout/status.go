package rollout

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// status prints the progress of the rollout until it is done. The server may end a watch at any time, and does when it
// restarts: write.Await then lists the object again, and a version that was shown already is not shown twice.
func status(ctx context.Context, o *options, i *resource.Info) error {
	refusal := "no status viewer has been implemented for " + i.Mapping.GroupVersionKind.GroupKind().String()
	if _, err := decode(i, refusal); err != nil {
		return err
	}
	show := func(u *unstructured.Unstructured) (done bool, err error) {
		w, err := decode(&resource.Info{Mapping: i.Mapping, Object: u}, refusal)
		if err != nil {
			return false, err
		}
		message, done, err := w.progress(o.revision)
		if err != nil {
			return false, err
		}
		fmt.Fprint(o.Out, message)
		return done || !o.watch, nil
	}
	if done, err := show(i.Object); done || err != nil {
		return err
	}
	shown := i.Object.GetResourceVersion()
	return write.Await(ctx, o.client, i.Mapping, i.Namespace, i.Name, o.timeout,
		func(u *unstructured.Unstructured) (bool, error) {
			switch {
			case u == nil:
				return false, errors.New("object has been deleted")
			case u.GetResourceVersion() == shown:
				return false, nil
			}
			shown = u.GetResourceVersion()
			return show(u)
		})
}
