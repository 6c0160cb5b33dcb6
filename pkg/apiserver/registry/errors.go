package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/apiserver/storage"
)

// errStale ends an attempt whose object has changed since it was read.
var errStale = errors.New("the object has changed")

// errModified is the reason in the 409 of a write with an old resourceVersion.
var errModified = errors.New(
	"the object has been modified; please apply your changes to the latest version and try again")

// OtherUID is why a write is refused that was meant for another object of the same name. A Change may return it.
type OtherUID struct{ Want, Have types.UID }

// Error implements error.
func (e *OtherUID) Error() string {
	return fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", e.Want, e.Have)
}

// Conflict is the 409 for it, in the words of Kubernetes' storage.
func (g *Generic) Conflict(ns, name string, e *OtherUID) error {
	return invalidObject(g, ns, name, e)
}

// NoReplicasError tells that an object lacks the field with its wanted replicas.
type NoReplicasError struct{ Path string }

// Error implements error.
func (e *NoReplicasError) Error() string {
	return fmt.Sprintf("the spec replicas field %q does not exist", e.Path)
}

// maxInvalid bounds the problems of an object that an answer reports. Putting them into one message takes time by the
// square of their number, and an object of 3 MiB can have a million.
const maxInvalid = 1000

// invalid returns the 422 for an object with faults. It reports each fault once, also if several rules find it.
func invalid(kind schema.GroupKind, name string, errs field.ErrorList) error {
	found := len(errs)
	errs = distinct(errs[:min(found, maxInvalid)])
	if found > maxInvalid {
		errs = append(errs, field.TooMany(field.NewPath(""), found, maxInvalid))
	}
	return apierrors.NewInvalid(kind, name, errs)
}

// distinct returns errs without those that say the same as one before them.
func distinct(errs field.ErrorList) field.ErrorList {
	if len(errs) < 2 {
		return errs
	}
	said := make(map[string]bool, len(errs))
	out := make(field.ErrorList, 0, len(errs))
	for _, e := range errs {
		if text := e.Error(); !said[text] {
			said[text] = true
			out = append(out, e)
		}
	}
	return out
}

// apiError turns a storage error into the Status error of the API; Status errors pass as they are.
func (g *Generic) apiError(name string, err error) error {
	var status apierrors.APIStatus
	var values *storage.CorruptListError
	var value *storage.CorruptError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &values):
		return corruptList(g, values)
	case errors.As(err, &value):
		return corruptObject(g, value, err)
	case errors.As(err, &status):
		return err
	case errors.Is(err, storage.ErrNotFound):
		return apierrors.NewNotFound(g.gr, name)
	case errors.Is(err, storage.ErrExists):
		return apierrors.NewAlreadyExists(g.gr, name)
	default:
		return StorageError(err)
	}
}

// StorageError is the Status error for a failed list or watch.
func StorageError(err error) error {
	switch {
	case errors.Is(err, storage.ErrExpired):
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	case errors.Is(err, storage.ErrFuture):
		message := "Too large resource version"
		var future *storage.FutureError
		if errors.As(err, &future) {
			message = future.Error()
		}
		e := apierrors.NewTimeoutError(message, 1)
		e.ErrStatus.Details.Causes = []metav1.StatusCause{
			{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
		return e
	case errors.Is(err, storage.ErrTimeout):
		return apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)
	case errors.Is(err, storage.ErrTooLarge):
		return apierrors.NewRequestEntityTooLargeError("etcdserver: request is too large")
	case errors.Is(err, storage.ErrBadContinue):
		return apierrors.NewBadRequest(
			fmt.Sprintf("invalid continue token: continue key is not valid: %v",
				strings.TrimPrefix(err.Error(), storage.ErrBadContinue.Error()+": ")))
	case errors.Is(err, context.DeadlineExceeded):
		return apierrors.NewTimeoutError(
			"request did not complete within requested timeout - context deadline exceeded", 0)
	default:
		return &Fault{apierrors.NewInternalError(storage.Cause(err)), err}
	}
}

// Fault is a fault of the storage. Clients hear its cause; Err, for the log, says what was tried with which key.
type Fault struct {
	*apierrors.StatusError
	Err error
}

// Unwrap is for package errors.
func (f *Fault) Unwrap() error { return f.Err }

// expiredContinue is the 410 for a page whose revision is gone. It offers a token to go on with at the newest revision.
func expiredContinue(old string) error {
	fresh, err := storage.ContinueAtLatest(old)
	if err != nil {
		return StorageError(err)
	}
	e := apierrors.NewResourceExpired(
		"The provided continue parameter is too old to display a consistent list result. You can start a new list without the " +
			"continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results " +
			"in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	e.ErrStatus.ListMeta.Continue = fresh
	return e
}
