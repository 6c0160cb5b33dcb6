package storageversionmigrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	migrationv1 "k8s.io/api/storagemigration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient/served"
	"bonsai/pkg/controller"
)

const (
	// page is how many objects' names are read at once.
	page = 500
	// telling is how often a migration says how many objects it has seen.
	telling = time.Minute
	// writer is the field manager of the patches. It comes to own nothing, because they change nothing.
	writer = "storage-version-migrator-controller"
)

// migrate has every object of r written again, one after the other. An error means that it has to be tried again, from
// the start: what is done by then is not written a second time.
func (c *Controller) migrate(ctx context.Context, m *migration, r served.Resource) error {
	done, told := 0, c.Now()
	options := metav1.ListOptions{Limit: page}
	for {
		if now, ok := c.migrations.Get(controller.KeyOf(m)); !ok || now.UID != m.UID {
			return nil // it was deleted; another one may have its name
		}
		list, err := c.metadata.Resource(r.GroupVersionResource).List(ctx, options)
		if next, ok := newer(err); ok {
			options.Continue = next
			continue
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", r.GroupResource(), err)
		}
		for i := range list.Items {
			err := c.rewrite(ctx, r, &list.Items[i])
			switch {
			case err != nil && passing(err):
				return fmt.Errorf("migrating %s: %w", r.GroupResource(), err)
			case err != nil:
				left := len(list.Items) - i - 1
				if list.RemainingItemCount != nil {
					left += int(*list.RemainingItemCount)
				}
				return c.fail(ctx, m, fmt.Sprintf("%d/%d not yet migrated. migration encountered unhandled error: %v", left,
					done+1+left, err))
			}
			done++
			if c.Now().Sub(told) < telling {
				continue
			}
			c.progress(m, done)
			if err := c.write(ctx, m); err != nil {
				return err
			}
			told = c.Now()
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	c.progress(m, done)
	c.set(m, migrationv1.MigrationSucceeded, metav1.ConditionTrue, "StorageVersionMigrationSucceeded", completed)
	return c.write(ctx, m)
}

// newer is where a list goes on whose version is forgotten by now: behind the last object, in a newer version. What
// was created in between is stored as it should be.
func newer(err error) (string, bool) {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return "", false
	}
	next := status.Status().Continue
	return next, next != ""
}

func (c *Controller) progress(m *migration, done int) {
	c.set(m, migrationv1.MigrationRunning, metav1.ConditionTrue, "MigrationRunning",
		fmt.Sprintf("The migration is running, %d objects verified migrated", done))
}

// rewrite patches an object with what it has. One that is gone needs nothing more, and one that has changed since it
// was listed was written by that.
func (c *Controller) rewrite(ctx context.Context, r served.Resource, o *metav1.PartialObjectMetadata) error {
	gv := r.GroupVersion()
	patch, err := json.Marshal(map[string]any{"apiVersion": gv.String(), "kind": r.Kind,
		"metadata": map[string]string{"resourceVersion": o.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("encoding a patch of %s/%s: %w", o.Namespace, o.Name, err)
	}
	_, err = c.metadata.Resource(r.GroupVersionResource).Namespace(o.Namespace).Patch(ctx, o.Name,
		types.MergePatchType, patch, metav1.PatchOptions{FieldManager: writer})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// passing reports whether an error is about the server's state, and not about the object.
func passing(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err)
}
