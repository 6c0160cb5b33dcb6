package delete

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// longest is how long delete waits when no --timeout was given.
const longest = 7 * 24 * time.Hour

// gone is an object on its way out. A new object of the same name has another uid and is not waited for.
type gone struct {
	info *resource.Info
	uid  types.UID
}

// uidOf is the uid in the answer to a DELETE: that of the object, or of the object the Status tells of.
func uidOf(answer *unstructured.Unstructured) types.UID {
	if answer.GetKind() != "Status" {
		return answer.GetUID()
	}
	uid, _, _ := unstructured.NestedString(answer.Object, "details", "uid")
	return types.UID(uid)
}

// await waits for all to be gone, one after the other, within one timeout.
func (o *Options) await(ctx context.Context, leaving []gone) error {
	timeout := o.deletion.Timeout
	if timeout <= 0 {
		timeout = longest
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, write.ErrTimeout)
	defer cancel()
	var errs []error
	for _, g := range leaving {
		i := g.info
		err := write.Await(ctx, o.Client, i.Mapping, i.Namespace, i.Name, 0,
			func(u *unstructured.Unstructured) (bool, error) {
				return u == nil || g.uid != "" && u.GetUID() != g.uid, nil
			})
		switch {
		case err == nil:
		case errors.Is(err, write.ErrTimeout):
			errs = append(errs, fmt.Errorf("%w on %s/%s", err, i.Mapping.Resource.Resource, i.Name))
		case apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err):
			// who may delete but not look cannot wait
		default:
			errs = append(errs, err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return utilerrors.NewAggregate(errs)
}
