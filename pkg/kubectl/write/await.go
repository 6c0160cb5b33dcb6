package write

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
)

// ErrTimeout is returned by Await when the time is over.
var ErrTimeout = errors.New("timed out waiting for the condition")

// errDone ends a watch whose condition holds.
var errDone = errors.New("done")

// retryWatch is how long Await rests after a watch that ended, so that a server that closes watches is not hammered.
const retryWatch = 200 * time.Millisecond

// Await reads and watches one object until done says so; done gets nil once the object is gone. A timeout of zero waits
// for as long as ctx lives.
func Await(ctx context.Context, c *resource.Client, m *meta.RESTMapping, namespace, name string, timeout time.Duration,
	done func(*unstructured.Unstructured) (bool, error)) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, ErrTimeout)
		defer cancel()
	}
	for {
		obj, err := c.Get(ctx, m, namespace, name)
		switch {
		case ctx.Err() != nil:
			return cli.Cause(ctx)
		case apierrors.IsNotFound(err):
			obj = nil
		case err != nil:
			return err
		}
		if ok, err := done(obj); ok || err != nil {
			return err
		}
		err = watchOne(ctx, c, m, namespace, name, obj, done)
		switch {
		case errors.Is(err, errDone):
			return nil
		case ctx.Err() != nil:
			return cli.Cause(ctx)
		case err != nil:
			return err
		}
		select {
		case <-ctx.Done():
			return cli.Cause(ctx)
		case <-time.After(retryWatch):
		}
	}
}

// watchOne watches from where obj was read; it returns errDone when done says so, and nil when the watch ends.
func watchOne(ctx context.Context, c *resource.Client, m *meta.RESTMapping, namespace, name string,
	obj *unstructured.Unstructured, done func(*unstructured.Unstructured) (bool, error)) error {
	query := url.Values{"fieldSelector": {fields.OneTermEqualSelector("metadata.name", name).String()}}
	if obj != nil {
		query.Set("resourceVersion", obj.GetResourceVersion())
	}
	err := c.Watch(ctx, m, namespace, query, resource.JSON, func(e resource.Event) error {
		var seen *unstructured.Unstructured
		switch e.Type {
		case "ADDED", "MODIFIED":
			seen = &unstructured.Unstructured{}
			if err := json.Unmarshal(e.Object, seen); err != nil {
				return err
			}
		case "DELETED":
		case "ERROR":
			return errAgain
		default:
			return nil
		}
		ok, err := done(seen)
		if ok && err == nil {
			return errDone
		}
		return err
	})
	if errors.Is(err, errAgain) {
		return nil
	}
	return err
}

// errAgain ends a watch that the server refuses to continue: what it sent is read afresh.
var errAgain = errors.New("watch expired")
