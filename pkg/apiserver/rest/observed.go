package rest

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/storage"
)

// serveObserved serves objects that a lister makes for each request, such as componentstatuses. Nothing stores them, so
// they cannot be watched or written.
func serveObserved(x *exchange, named bool) error {
	switch {
	case x.info.Verb == "get" && named:
		return serveGetObserved(x)
	case x.info.Verb == "list" && !named:
		return serveListObserved(x)
	case x.info.Verb == "watch" && !named:
		return apierrors.NewMethodNotSupported(x.res.Row.GroupResource(), "watch")
	}
	return x.notSupported()
}

// serveGetObserved answers with the object of the name.
func serveGetObserved(x *exchange) error {
	a, err := x.negotiate(forObject)
	if err != nil {
		return err
	}
	items, err := observedItems(x)
	if err != nil {
		return err
	}
	for _, i := range items {
		if i.Facts.Fields().Get("metadata.name") == x.info.Name {
			return x.writeStored(a, http.StatusOK, i)
		}
	}
	return apierrors.NewNotFound(x.res.Row.GVR().GroupVersion().WithResource(x.res.Row.Singular).GroupResource(),
		x.info.Name)
}

// serveListObserved answers with all objects that the selectors match. There are no pages, and no resourceVersion: the
// list is a state of nothing.
func serveListObserved(x *exchange) error {
	a, err := x.negotiate(forList)
	if err != nil {
		return err
	}
	opts, err := listOptions(x.query)
	if err != nil {
		return err
	}
	filter, err := selectionOf(x.res.Route, opts, "")
	if err != nil {
		return err
	}
	items, err := observedItems(x)
	if err != nil {
		return err
	}
	chosen := items[:0]
	for _, i := range items {
		if filter == nil || filter(i) {
			chosen = append(chosen, i)
		}
	}
	return writeItems(x, a, chosen, metav1.ListMeta{})
}

// observedItems turns the lister's objects into items, as if they were stored, so that they have the same forms as
// others. They belong to the request alone, so callers may change the slice.
func observedItems(x *exchange) ([]*storage.Item, error) {
	objs, err := x.res.Lister.List(x.r.Context())
	if err != nil {
		return nil, err
	}
	items := make([]*storage.Item, len(objs))
	for n, obj := range objs {
		if items[n], err = servedItem(x.res.codec, &storage.Item{}, obj); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
	}
	return items, nil
}
