package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/storage"
)

// discard removes an object that the storage has and nobody can read. No admission plug-in, finalizer or grace period
// holds it, since all of them need the object. One that can be read is a conflict. A dry run removes nothing.
func discard(ctx context.Context, g *Generic, ns, name string, opts *metav1.DeleteOptions) error {
	if g.Row.Strategy.Held != nil {
		return apierrors.NewInternalError(errors.New(
			"no unsafe deleter provided, can not honor ignoreStoreReadErrorWithClusterBreakingPotential"))
	}
	decodes := func(item *storage.Item) bool {
		_, err := Object(g.codec, item)
		return err == nil
	}
	_, err := g.Storage.Discard(ctx, g.key(ns, name), decodes, isDryRun(opts.DryRun))
	if errors.Is(err, storage.ErrReadable) {
		err = invalidObject(g, ns, name,
			errors.New("unsafe deletion is not allowed because the object is decodable from storage"))
	}
	return g.apiError(name, err)
}

// invalidObject is the 409 of a stored object that is not as the request has it, in the words of Kubernetes' storage.
func invalidObject(g *Generic, ns, name string, why error) error {
	return apierrors.NewConflict(g.gr, name,
		fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: %w",
			g.key(ns, name), why))
}

// corrupt returns the error for a value that cannot be read, in the words of Kubernetes' storage.
func corrupt(key string, err error) error {
	return fmt.Errorf("StorageError: corrupt object, Code: 7, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: %w",
		key, err)
}

// corruptObject is the 500 of an object that cannot be read. err, for the log, is where it was met.
func corruptObject(g *Generic, value *storage.CorruptError, err error) error {
	key := value.Key
	if i := strings.Index(key, "/"+g.Row.StoragePath+"/"); i > 0 {
		key = key[i:]
	}
	return &Fault{apierrors.NewInternalError(corrupt(key, value)), err}
}

// corruptList is the 500 of a list that came upon objects that cannot be read, with a cause for each of them.
func corruptList(g *Generic, list *storage.CorruptListError) error {
	details := &metav1.StatusDetails{Name: "list", Group: g.gr.Group, Kind: g.gr.Resource}
	for _, v := range list.Values {
		details.Causes = append(details.Causes, metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse,
			Message: corrupt(v.Key, v).Error(), Field: v.Key})
	}
	more := ""
	if n := len(list.Values) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	if list.Truncated {
		details.Causes = append(details.Causes, metav1.StatusCause{Type: metav1.CauseTypeTooMany,
			Message: "too many errors, the list is truncated"})
	}
	return &Fault{&apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure,
		Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError, Details: details,
		Message: fmt.Sprintf("failed to read one or more %s from the storage: %s%s", g.gr,
			details.Causes[0].Message, more)}}, list}
}
