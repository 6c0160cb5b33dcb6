package rest

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serveGet answers with one object, in the encoding that the cache has. With a resourceVersion, an older state is good
// enough; "0" allows any.
func serveGet(x *exchange) error {
	a, err := x.negotiate(forObject)
	if err != nil {
		return err
	}
	opts, err := fromQuery(x.query, metav1.Convert_url_Values_To_v1_GetOptions)
	if err != nil {
		return err
	}
	notOlderThan, err := revisionOf(opts.ResourceVersion)
	if err != nil {
		return err
	}
	if opts.ResourceVersion == "0" {
		notOlderThan = 1
	}
	item, err := x.res.Store.GetItem(x.r.Context(), x.info.Namespace, x.info.Name, notOlderThan)
	if err != nil {
		return err
	}
	return x.writeStored(a, http.StatusOK, item)
}
