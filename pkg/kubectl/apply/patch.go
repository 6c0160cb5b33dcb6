package apply

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/mergepatch"

	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

const (
	// conflicts is how many times a patch is computed again because the object changed in between. The first eager of
	// them come at once; each further one waits for backOff. The numbers are upstream's.
	conflicts = 5
	eager     = 1
	backOff   = time.Second
)

// patcher brings one existing object to the state of want, whose annotation already holds the new configuration: the
// patch then updates the annotation together with the fields, in one write.
type patcher struct {
	o    *Options
	info *resource.Info
	want *unstructured.Unstructured
}

// patch reports whether anything changed. Only --force goes on after conflicts, or after a change that validation
// refuses, such as one of an immutable field: it replaces the object.
func (p *patcher) patch(ctx context.Context) (bool, error) {
	changed, err := p.once(ctx)
	for try := 1; try <= conflicts && apierrors.IsConflict(err); try++ {
		if try > eager {
			if e := rest(ctx, backOff); e != nil {
				return false, e
			}
		}
		if e := p.info.Get(ctx); e != nil {
			return false, e
		}
		changed, err = p.once(ctx)
	}
	if err != nil && p.o.deletion.Force && (apierrors.IsConflict(err) || apierrors.IsInvalid(err)) {
		return true, p.replace(ctx)
	}
	return changed, err
}

// rest waits for d, or returns why ctx ended before.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// once computes the patch from the object as it was read last, and sends it. It reports whether there was anything to
// change. An empty patch is not sent.
func (p *patcher) once(ctx context.Context) (bool, error) {
	i := p.info
	original, err := write.LastApplied(i.Object)
	if err != nil {
		return false, err
	}
	modified, err := resource.Encode(p.want)
	if err != nil {
		return false, err
	}
	current, err := resource.Encode(i.Object)
	if err != nil {
		return false, err
	}
	patch, kind, err := write.Diff3(i.Mapping.GroupVersionKind, original, modified, current, p.o.overwrite)
	if err != nil {
		if mergepatch.IsPreconditionFailed(err) {
			return false, fmt.Errorf("At least one of apiVersion, kind and name was changed")
		}
		return false, write.WithSource(
			fmt.Sprintf("creating patch with:\noriginal:\n%s\nmodified:\n%s\ncurrent:\n%s\nfor:", original, modified,
				current), i.Source, err)
	}
	if string(patch) == "{}" {
		return false, nil
	}
	if p.o.DryRun == write.DryRunClient {
		return true, nil
	}
	if err := i.Patch(ctx, kind, patch, p.o.PatchOptions()); err != nil {
		err = write.WithSource("patching", i.Source, err)
		return false, write.WithSource(fmt.Sprintf("applying patch:\n%s\nto:\n%s\nfor:", patch, describe(i)), i.Source,
			err)
	}
	return true, nil
}

// replace serves --force: it deletes the object, waits until it is gone, and creates it from the file. If the creation
// fails, it creates the old object again; the UID is cleared, as the server refuses one from a client. Either way it is
// another object than before.
func (p *patcher) replace(ctx context.Context) error {
	i, old := p.info, p.info.Object
	if _, err := i.Delete(ctx, p.o.deletion.Options()); err != nil && !apierrors.IsNotFound(err) {
		return write.WithSource("deleting", i.Source, err)
	}
	err := write.Await(ctx, p.o.Client, i.Mapping, i.Namespace, i.Name, p.o.deletion.Timeout,
		func(u *unstructured.Unstructured) (bool, error) {
			return u == nil || u.GetUID() != old.GetUID(), nil
		})
	if err != nil {
		return fmt.Errorf("wait for the deletion of %s: %w", i.ResourceName(), err)
	}
	i.Object = p.want
	created := i.Create(ctx, p.o.CreateOptions())
	if created == nil {
		return nil
	}
	again := old.DeepCopy()
	again.SetUID("")
	i.Object = again
	if err := i.Create(ctx, p.o.CreateOptions()); err != nil {
		return fmt.Errorf("An error occurred force-replacing the existing object with the newly provided one:\n\n%w.\n\nAdditionally, an error occurred attempting to restore the original object:\n\n%v", created, err)
	}
	return fmt.Errorf("An error occurred force-replacing the existing object with the newly provided one. The existing object is restored: %w", created)
}
