package rest

import (
	"fmt"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	listvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/apiserver/storage"
)

// fromQuery reads the options of a verb from the query, by one of metav1's conversions. Unknown parameters are ignored,
// as upstream does.
func fromQuery[T any](query url.Values, convert func(*url.Values, *T, conversion.Scope) error) (*T, error) {
	out := new(T)
	if len(query) == 0 {
		return out, nil
	}
	if err := convert(&query, out, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return out, nil
}

// invalidOptions returns the 422 for options that contradict each other, nil without errs.
func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// listOptions reads and checks the options of list, watch and deletecollection.
func listOptions(query url.Values) (*metav1.ListOptions, error) {
	opts, err := fromQuery(query, metav1.Convert_url_Values_To_v1_ListOptions)
	if err != nil || len(query) == 0 {
		return opts, err
	}
	if isTrue(query["watch"]) {
		opts.Watch = true
	}
	internal := &internalversion.ListOptions{
		Watch: opts.Watch, ResourceVersion: opts.ResourceVersion, ResourceVersionMatch: opts.ResourceVersionMatch,
		Limit: opts.Limit, Continue: opts.Continue, SendInitialEvents: opts.SendInitialEvents,
		AllowWatchBookmarks: opts.AllowWatchBookmarks,
	}
	return opts, invalidOptions("ListOptions", listvalidation.ValidateListOptions(internal, true))
}

// revisionOf parses a resourceVersion; "" and "0" are 0. 63 bits: etcd's revisions are signed, and a larger number
// would become a negative one.
func revisionOf(version string) (int64, error) {
	if version == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(version, 10, 63)
	if err != nil {
		return 0, apierrors.NewBadRequest(
			fmt.Sprintf("invalid resource version: %v",
				field.Invalid(field.NewPath("resourceVersion"), version, err.Error())))
	}
	return int64(n), nil
}

// storageList translates list options for the storage. The table of resourceVersion, resourceVersionMatch, limit and
// continue is the API documentation's ("Resource versions").
func storageList(opts *metav1.ListOptions, filter selection) (storage.ListOptions, error) {
	out := storage.ListOptions{Limit: opts.Limit, Continue: opts.Continue, Filter: filter}
	// The token has the revision of the first page, so that all pages are of one state.
	if opts.Continue != "" {
		if v := opts.ResourceVersion; v != "" && v != "0" {
			return out, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		return out, nil
	}
	revision, err := revisionOf(opts.ResourceVersion)
	if err != nil {
		return out, err
	}
	out.Revision = revision
	switch {
	case opts.ResourceVersion == "":
		out.Match = storage.Latest
	case opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact:
		out.Match = storage.Exact
	case opts.ResourceVersionMatch == "" && opts.Limit > 0 && revision > 0:
		out.Match = storage.Exact // what an unset match means for a paged list at a version
	default:
		out.Match = storage.NotOlderThan
	}
	return out, nil
}
